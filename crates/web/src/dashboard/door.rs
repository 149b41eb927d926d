//! The door in front of every page: who is logged in, whether their scopes reach, and whether a form is one of ours.
//!
//! Nobody logged in: to the log-in page, and from there back. A form without this session's token, or sent from another site, is refused before its
//! handler runs. What went wrong becomes a page here. It must not know what a page shows.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode};
use postrider_core::access::ScopeSet;

use super::answer::{redirect, with_safe_headers};
use super::board::Board;
use super::fault::{Fault, nothing_here};
use super::form::Posted;
use super::routes::{Doors, Opens, opens_of};
use super::session::{Before, Session, session_of};
use crate::gate::PeerAddress;
use crate::problem::Problem;
use crate::read::{BodyBounds, Pattern, collect};

/// `log_in_bytes_max`: of a form that somebody sends who is not logged in.
const LOG_IN_BYTES_MAX: u64 = 4 << 10;

pub struct Door {
    pub board: Board,
    pub doors: Doors,
}

/// The middleware. Whoever is logged in, and the form that was sent, are in the request's extensions.
pub async fn open(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let address = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
    let (session, unknown) = match session_of(&door.board, request.headers(), address).await {
        Ok(session) => (session, None),
        Err(refusal) => (None, Some(Fault::from(Problem::from(refusal)))),
    };
    let theme = super::theme::Theme::of(request.headers());
    let way = request.uri().path_and_query().map_or("/ui", |way| way.as_str()).to_owned();
    let is_get = request.method() == Method::GET;
    if let Some(pattern) = door.pattern(&request) {
        request.extensions_mut().insert(pattern);
    }
    let mut response = match unknown.map_or_else(|| door.judge(&request, session.as_deref()), Err) {
        Ok(()) => match door.read_form(&mut request, session.as_deref()).await {
            Ok(()) => {
                if let Some(session) = &session {
                    request.extensions_mut().insert(Arc::clone(session));
                }
                next.run(request).await
            }
            Err(fault) => fault.into_response(),
        },
        Err(fault) => fault.into_response(),
    };
    if let Some(fault) = response.extensions_mut().remove::<Fault>() {
        response = match &session {
            None if fault.status() == StatusCode::UNAUTHORIZED => redirect(&log_in_for(&way, is_get)),
            _ => fault.page(&door.board, session.as_deref(), theme),
        };
    }
    with_safe_headers(&mut response);
    response
}

/// Only a page that was looked at can be come back to.
fn log_in_for(way: &str, is_get: bool) -> String {
    if !is_get || way == "/ui" || way == "/ui/" {
        return "/ui/log-in".to_owned();
    }
    let next = percent_encoding::utf8_percent_encode(way, percent_encoding::NON_ALPHANUMERIC);
    format!("/ui/log-in?next={next}")
}

impl Door {
    fn pattern(&self, request: &Request) -> Option<Pattern> {
        let path = request.extensions().get::<MatchedPath>()?;
        self.doors.get_key_value(path.as_str()).map(|(path, _)| Pattern(path))
    }

    fn judge(&self, request: &Request, session: Option<&Session>) -> Result<(), Fault> {
        let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let method = if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
        let opens = opens_of(&self.doors, path, &method);
        if opens == Some(Opens::Everybody) {
            return Ok(());
        }
        let Some(session) = session else { return Err(Fault::log_in()) };
        let is_bound = session.caller.only_project().is_some();
        match opens {
            None => Err(nothing_here()),
            Some(Opens::Session(scopes)) => reach(session, scopes),
            Some(Opens::Installation(_)) if is_bound => Err(Fault::forbidden(
                "This page is about the whole installation. You are logged in for one project only.",
            )),
            Some(Opens::Installation(scopes)) => reach(session, scopes),
            Some(Opens::Everybody) => Ok(()),
        }
    }

    /// Reads what a form sent and checks that it is ours.
    async fn read_form(&self, request: &mut Request, session: Option<&Session>) -> Result<(), Fault> {
        if *request.method() != Method::POST {
            return Ok(());
        }
        if is_from_elsewhere(request.headers()) {
            return Err(Fault::forbidden("This form was sent from another site, so nothing was done."));
        }
        let all = BodyBounds::default();
        let bounds = if session.is_some() { all } else { BodyBounds { body_bytes_max: LOG_IN_BYTES_MAX, ..all } };
        let body = std::mem::replace(request.body_mut(), Body::empty());
        let bytes = collect(request.headers(), body, &bounds).await?;
        let posted = Posted::parse(&bytes);
        let is_ours = posted.get("csrf").is_some_and(|given| match session {
            Some(session) => session.is_csrf(given),
            None => Before::is_csrf(request.headers(), given),
        });
        if !is_ours {
            return Err(Fault::forbidden(
                "This form is from an earlier session, so nothing was done. Go back, load the page anew and send it again.",
            ));
        }
        request.extensions_mut().insert(Arc::new(posted));
        Ok(())
    }
}

fn reach(session: &Session, needed: ScopeSet) -> Result<(), Fault> {
    if session.caller.scopes().cover(needed) {
        return Ok(());
    }
    Err(Fault::forbidden(&format!(
        "This needs the scope {needed}, and you are logged in with {}.",
        session.caller.scopes()
    )))
}

/// Browsers say where a form comes from; one that says nothing of it is judged by the token alone.
fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(site) = text("sec-fetch-site") {
        return !matches!(site, "same-origin" | "none");
    }
    match (text(ORIGIN.as_str()), text(HOST.as_str())) {
        (Some(origin), Some(host)) => origin.split_once("://").is_none_or(|(_, of)| of != host),
        _ => false,
    }
}
