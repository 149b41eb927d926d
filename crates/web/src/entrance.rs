//! What the server answers from the first moment it listens: that it is starting, until the API is there.
//!
//! So a probe is never left hanging while a large store opens. It must not know what the API does.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use postrider_core::Timestamp;

use crate::api::while_starting;
use crate::problem::Problem;

/// Clones share it.
#[derive(Clone)]
pub struct Entrance {
    before: Router,
    api: Arc<OnceLock<Router>>,
}

impl Entrance {
    /// Closed: health answers, and everything else is asked to come again.
    pub fn closed(since: Timestamp) -> Entrance {
        let before = Router::new()
            .route("/health/live", get(async move || uncached(while_starting(true, since))))
            .route("/health/ready", get(async move || uncached(while_starting(false, since))))
            .fallback(async || come_again());
        Entrance { before, api: Arc::default() }
    }

    /// From now on the API answers; a second call changes nothing.
    pub fn open(&self, api: Router) {
        let _ = self.api.set(api);
    }

    /// Who answers a request that comes now.
    pub fn service(&self) -> Router {
        self.api.get().unwrap_or(&self.before).clone()
    }
}

impl From<Router> for Entrance {
    fn from(api: Router) -> Entrance {
        Entrance { before: Router::new(), api: Arc::new(OnceLock::from(api)) }
    }
}

fn uncached(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn come_again() -> Response {
    let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is starting; try again soon");
    let mut response = problem.into_response();
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
