//! Logging in and out. It must not know how a session is kept.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use postrider_engine::KeyRefused;

use super::answer::{page_with, redirect, with_cookie};
use super::board::Board;
use super::fault::Fault;
use super::form::{Form, safe_way};
use super::frame::Frame;
use super::session::{forgotten, log_in as begin_session};
use super::theme::Theme;
use super::visit::Visit;
use crate::read::Query;

#[derive(Template)]
#[template(path = "log_in.html")]
struct LogInPage<'a> {
    frame: Frame,
    back: &'a str,
    wrong: Option<&'static str>,
}

pub async fn show(State(board): State<Board>, headers: HeaderMap, mut query: Query) -> Result<Response, Fault> {
    let next = query.take("next").unwrap_or_default();
    let frame = Frame::bare("Log in", &board, None, Theme::of(&headers));
    page_with(StatusCode::OK, &LogInPage { frame, back: safe_way(&next).unwrap_or("/ui"), wrong: None })
}

pub async fn log_in(State(board): State<Board>, headers: HeaderMap, form: Form) -> Result<Response, Fault> {
    let back = form.way_back("/ui");
    let is_https = headers.get("x-forwarded-proto").is_some_and(|proto| proto == "https");
    if let Some(cookie) = form.text("key").and_then(|key| begin_session(&board, key, is_https)) {
        return Ok(with_cookie(redirect(&back), cookie));
    }
    board.engine().note_key_refused(KeyRefused::Unknown, None, None);
    let frame = Frame::bare("Log in", &board, None, Theme::of(&headers));
    let wrong = Some("Nobody has this key. Keys are shown once, when they are made: paste the whole of it.");
    page_with(StatusCode::UNAUTHORIZED, &LogInPage { frame, back: &back, wrong })
}

pub async fn log_out(visit: Visit) -> Response {
    visit.board.sessions().end(&visit.session.id);
    with_cookie(redirect("/ui/log-in"), forgotten())
}
