//! One visit of a page: who looks, at which project, and the API on their behalf. Every handler takes one.
//!
//! It must not know of any page.

use std::fmt::Display;
use std::sync::Arc;

use askama::Template;
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use postrider_core::Timestamp;
use postrider_core::access::Scope;
use postrider_core::access::ScopeSet;

use super::answer;
use super::ask::{Api, Refused};
use super::board::Board;
use super::fault::Fault;
use super::frame::{Flash, Frame};
use super::session::Session;
use super::theme::Theme;
use crate::read::{Query, Segments};

/// What a segment of a path may hold as it is (RFC 3986, section 2.3).
const IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub struct Visit {
    pub board: Board,
    pub session: Arc<Session>,
    pub api: Api,
    pub segments: Segments,
    pub query: Query,
    pub theme: Theme,
    /// Path and query, to come back to.
    pub way: String,
}

impl FromRequestParts<Board> for Visit {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, board: &Board) -> Result<Self, Fault> {
        let session = parts.extensions.get::<Arc<Session>>().cloned().ok_or_else(Fault::log_in)?;
        let segments = Segments::from_request_parts(parts, board).await?;
        Ok(Visit {
            board: board.clone(),
            api: Api::new(board.api(), session.caller.clone()),
            session,
            segments,
            query: Query::parse(parts.uri.query().unwrap_or_default()),
            theme: Theme::of(&parts.headers),
            way: parts.uri.path_and_query().map_or("/ui", |way| way.as_str()).to_owned(),
        })
    }
}

impl Visit {
    pub fn now(&self) -> Timestamp {
        self.board.now()
    }

    /// The project in the path.
    pub fn project(&self) -> &str {
        self.segments.get("project")
    }

    /// A path of the API below the project.
    pub fn of_project(&self, rest: impl Display) -> String {
        format!("/api/v1/projects/{}{rest}", segment(self.project()))
    }

    /// A page below the project.
    pub fn page_of_project(&self, rest: impl Display) -> String {
        format!("/ui/projects/{}{rest}", segment(self.project()))
    }

    /// Whether whoever looks may do what needs this scope: pages show no button that would be refused.
    pub fn may(&self, scope: Scope) -> bool {
        self.session.caller.scopes().cover(ScopeSet::of(&[scope]))
    }

    /// The frame around a page of this project. `place` marks the entry of the navigation.
    pub async fn frame(&self, title: &str, place: &'static str) -> Result<Frame, Fault> {
        Frame::of(self, title, place).await
    }

    /// Done: says so on the next page, once.
    pub fn done(&self, way: &str, text: impl Into<String>) -> Response {
        self.board.flashes().put(self.session.id, Flash::good(text));
        answer::redirect(way)
    }

    /// Refused by the API: says why where the button was. What is not there, or not theirs, is a page of its own, since there may be no way back.
    pub fn refused(&self, way: &str, refused: Refused) -> Response {
        match refused.status {
            StatusCode::NOT_FOUND | StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED => {
                Fault::from(refused).into_response()
            }
            _ => self.not_done(way, refused.told()),
        }
    }

    /// Not done: the same.
    pub fn not_done(&self, way: &str, text: impl Into<String>) -> Response {
        self.board.flashes().put(self.session.id, Flash::bad(text));
        answer::redirect(way)
    }
}

/// Something as one segment of a path.
pub fn segment(text: &str) -> impl Display + '_ {
    utf8_percent_encode(text, IN_SEGMENT)
}

/// A page as it is shown.
pub fn show(template: &impl Template) -> Result<Response, Fault> {
    answer::page(template)
}
