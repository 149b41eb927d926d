//! Logging in and out. It must not know how a session is kept.

use askama::Template;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue, StatusCode};
use postrider_core::Secret;
use postrider_engine::{Actor, KeyRefused, LogInRefused};

use super::answer::{page_with, redirect, with_cookie};
use super::board::Board;
use super::fault::Fault;
use super::form::{Form, safe_way};
use super::frame::Frame;
use super::session::{Before, cookie_of, forgotten, log_in_with_key};
use super::theme::Theme;
use super::visit::Visit;
use crate::gate::PeerAddress;
use crate::problem::Problem;
use crate::read::Query;

#[derive(Template)]
#[template(path = "log_in.html")]
struct LogInPage<'a> {
    frame: Frame,
    back: &'a str,
    name: &'a str,
    wrong: Option<&'a str>,
    /// Which of the two forms it was.
    is_key: bool,
}

/// Over https at the caller's end, as far as a proxy says so.
pub fn is_https(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https")
}

pub async fn show(
    State(board): State<Board>,
    before: Before,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Fault> {
    let next = query.take("next").unwrap_or_default();
    let frame = before.frame("Log in", &board, Theme::of(&headers));
    let back = safe_way(&next).unwrap_or("/ui");
    let page = LogInPage { frame, back, name: "", wrong: None, is_key: false };
    Ok(before.kept(page_with(StatusCode::OK, &page)?, is_https(&headers)))
}

pub async fn log_in(
    State(board): State<Board>,
    before: Before,
    peer: Option<Extension<PeerAddress>>,
    headers: HeaderMap,
    form: Form,
) -> Result<Response, Fault> {
    let back = form.way_back("/ui");
    let address = peer.map(|peer| peer.0.0.ip());
    let is_key = form.text("key").is_some();
    let (status, wrong, wait) = match form.text("key") {
        Some(key) => match log_in_with_key(&board, key, is_https(&headers)) {
            Some(cookie) => return Ok(with_cookie(redirect(&back), cookie)),
            None => {
                board.engine().note_refused(KeyRefused::Unknown, &Actor::unknown(address), None);
                let wrong = "Nobody has this key. Keys are shown once, when they are made: paste the whole of it.";
                (StatusCode::UNAUTHORIZED, wrong.to_owned(), None)
            }
        },
        None => {
            let password = Secret::new(form.get("password").unwrap_or_default());
            match board.engine().log_in(form.get("name").unwrap_or_default(), password, address).await {
                Ok((token, _)) => {
                    let cookie = cookie_of(&token, is_https(&headers));
                    let cookie = cookie.ok_or_else(|| Fault::broken("a cookie could not be made"))?;
                    return Ok(with_cookie(redirect(&back), cookie));
                }
                Err(refused) => refusal_of(refused)?,
            }
        }
    };
    let frame = before.frame("Log in", &board, Theme::of(&headers));
    let name = form.get("name").unwrap_or_default();
    let mut response = page_with(status, &LogInPage { frame, back: &back, name, wrong: Some(&wrong), is_key })?;
    if let Some(wait) = wait.and_then(|wait| HeaderValue::try_from(wait).ok()) {
        response.headers_mut().insert(RETRY_AFTER, wait);
    }
    Ok(before.kept(response, is_https(&headers)))
}

/// The status, what the page says, and after how many seconds to come again.
pub fn refusal_of(refused: LogInRefused) -> Result<(StatusCode, String, Option<String>), Fault> {
    match refused {
        LogInRefused::Wrong => Ok((StatusCode::UNAUTHORIZED, "The name or the password is wrong.".to_owned(), None)),
        LogInRefused::TooOften(wait) => {
            let seconds = wait.as_millis().div_ceil(1000).to_string();
            let unit = if seconds == "1" { "second" } else { "seconds" };
            let text = format!("Too many tries. The next one is looked at in {seconds} {unit}.");
            Ok((StatusCode::TOO_MANY_REQUESTS, text, Some(seconds)))
        }
        LogInRefused::Refused(refusal) => Err(Fault::from(Problem::from(refusal))),
    }
}

pub async fn log_out(visit: Visit) -> Result<Response, Fault> {
    match &visit.session.user {
        Some(holder) => {
            let ended = visit.board.engine().log_out(holder, visit.session.address).await;
            ended.map_err(|refusal| Fault::from(Problem::from(refusal)))?;
        }
        None => visit.board.sessions().end(&visit.session.id),
    }
    Ok(with_cookie(redirect("/ui/log-in"), forgotten()))
}
