//! The first owner of an installation, made by whoever has the link that the server printed when it started without users.
//!
//! It must not know what an owner may do.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use postrider_core::Secret;
use postrider_core::person::PASSWORD_CHARS_MIN;
use postrider_engine::Refusal;

use super::answer::{page_with, redirect, with_cookie};
use super::board::Board;
use super::fault::Fault;
use super::form::Form;
use super::frame::Frame;
use super::log_in::{is_https, refusal_of};
use super::session::{Before, cookie_of};
use super::theme::Theme;
use crate::gate::PeerAddress;
use crate::problem::Problem;
use crate::read::Query;

#[derive(Template)]
#[template(path = "first.html")]
struct FirstPage<'a> {
    frame: Frame,
    token: &'a str,
    name: &'a str,
    wrong: Vec<String>,
    chars_min: usize,
}

fn fault(refusal: Refusal) -> Fault {
    Fault::from(Problem::from(refusal))
}

fn used() -> Fault {
    Fault::new(
        StatusCode::NOT_FOUND,
        "This link has been used, or the server has printed another one since. Log in, or ask an owner for a user; who has the admin key can \
         make one: postrider users create NAME --role owner --installation.",
    )
}

pub async fn show(
    State(board): State<Board>,
    before: Before,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Fault> {
    let token = query.take("token").unwrap_or_default();
    if !board.engine().is_first_link(&token).await.map_err(fault)? {
        return Err(used());
    }
    let frame = before.frame("Welcome", &board, Theme::of(&headers));
    let page = FirstPage { frame, token: &token, name: "", wrong: Vec::new(), chars_min: PASSWORD_CHARS_MIN };
    Ok(before.kept(page_with(StatusCode::OK, &page)?, is_https(&headers)))
}

pub async fn create(
    State(board): State<Board>,
    before: Before,
    peer: Option<Extension<PeerAddress>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Fault> {
    let address = peer.map(|peer| peer.0.0.ip());
    let (token, name) = (form.get("token").unwrap_or_default(), form.get("name").unwrap_or_default());
    let engine = board.engine();
    if !engine.is_first_link(token).await.map_err(fault)? {
        return Err(used());
    }
    let password = Secret::new(form.get("password").unwrap_or_default());
    let made = if form.get("password") == form.get("again") {
        engine.create_first_owner(token, name.to_owned(), password.clone(), address).await
    } else {
        Err(Refusal::Conflict("the two passwords differ".to_owned()))
    };
    let wrong = match made {
        Ok(_) => {
            let (token, _) = match engine.log_in(name, password, address).await {
                Ok(opened) => opened,
                Err(refused) => return refusal_of(refused).map(|_| redirect("/ui/log-in")),
            };
            let cookie = cookie_of(&token, is_https(&headers));
            return Ok(with_cookie(
                redirect("/ui"),
                cookie.ok_or_else(|| Fault::broken("a cookie could not be made"))?,
            ));
        }
        Err(Refusal::Invalid(errors)) => {
            errors.iter().map(|error| format!("The {} must be {}.", error.field, error.allowed)).collect()
        }
        Err(Refusal::Conflict(text)) => vec![super::fault::sentence(&text)],
        Err(other) => return Err(fault(other)),
    };
    let frame = before.frame("Welcome", &board, Theme::of(&headers));
    let page = FirstPage { frame, token, name, wrong, chars_min: PASSWORD_CHARS_MIN };
    Ok(before.kept(page_with(StatusCode::UNPROCESSABLE_ENTITY, &page)?, is_https(&headers)))
}
