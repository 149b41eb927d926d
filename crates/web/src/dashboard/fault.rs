//! What goes wrong, as a page that says what happened and what to do.
//!
//! A handler answers with a `Fault`; the door makes the page of it, since it knows who is logged in. What failed inside must not be known here.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::log;

use super::answer::html;
use super::ask::Refused;
use super::board::Board;
use super::frame::Frame;
use super::session::Session;
use super::theme::Theme;
use crate::problem::Problem;

#[derive(Clone, Debug)]
pub struct Fault {
    status: StatusCode,
    detail: String,
}

impl Fault {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Fault {
        Fault { status, detail: detail.into() }
    }

    /// Nobody is logged in; the door leads to the log-in page.
    pub fn log_in() -> Fault {
        Fault::new(StatusCode::UNAUTHORIZED, "Log in first.")
    }

    pub fn forbidden(detail: &str) -> Fault {
        Fault::new(StatusCode::FORBIDDEN, detail)
    }

    /// Something of ours; `what` goes to the log and not to the page.
    pub fn broken(what: &'static str) -> Fault {
        tracing::error!(event = log::PAGE_BROKEN, what, "a page of the dashboard failed");
        Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "Something failed on our side; the server goes on. Try it again.")
    }

    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// What stands at the top of the page.
    fn title(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::CONFLICT => "Not possible now",
            StatusCode::UNPROCESSABLE_ENTITY | StatusCode::BAD_REQUEST => "Not understood",
            StatusCode::SERVICE_UNAVAILABLE => "Not available now",
            StatusCode::INSUFFICIENT_STORAGE => "The store is full",
            status if status.is_client_error() => "Refused",
            _ => "Something failed",
        }
    }

    /// What whoever looks can do about it.
    fn advice(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "It may have been deleted or renamed, or belong to another project.",
            StatusCode::FORBIDDEN => "If it needs more than you may, ask an owner, or log in as somebody else.",
            StatusCode::SERVICE_UNAVAILABLE => {
                "Nothing that was accepted is lost. Load the page again in a moment; if it stays, run `postrider doctor` on the server."
            }
            StatusCode::INSUFFICIENT_STORAGE => {
                "Deliveries go on and make room. Free space on the disk, or raise the limit."
            }
            _ => "Nothing was changed.",
        }
    }

    pub fn page(&self, board: &Board, session: Option<&Session>, theme: Theme) -> Response {
        let frame = Frame::bare(self.title(), board, session, theme);
        let page = FaultPage { frame, status: self.status.as_u16(), detail: &self.detail, advice: self.advice() };
        match page.render() {
            Ok(text) => html(self.status, text),
            Err(_) => (self.status, self.detail.clone()).into_response(),
        }
    }
}

#[derive(Template)]
#[template(path = "fault.html")]
struct FaultPage<'a> {
    frame: Frame,
    status: u16,
    detail: &'a str,
    advice: &'static str,
}

/// The page is made by the door.
impl IntoResponse for Fault {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Fault {
        Fault::new(problem.status(), sentence(problem.detail()))
    }
}

impl From<Refused> for Fault {
    fn from(refused: Refused) -> Fault {
        match refused.status {
            // The key of the session has ended.
            StatusCode::UNAUTHORIZED => Fault::log_in(),
            status => Fault::new(status, sentence(&refused.detail)),
        }
    }
}

/// The API's details are parts of sentences.
pub fn sentence(detail: &str) -> String {
    let mut chars = detail.chars();
    let Some(first) = chars.next() else { return String::new() };
    let end = if detail.ends_with(['.', '?', '!']) { "" } else { "." };
    first.to_uppercase().chain(chars).collect::<String>() + end
}

pub fn nothing_here() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "There is no page at this address.")
}
