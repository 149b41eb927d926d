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
use crate::server::Answers;

/// Clones share it.
#[derive(Clone)]
pub struct Entrance {
    before: Arc<dyn Answers>,
    then: Arc<OnceLock<Arc<dyn Answers>>>,
}

impl Entrance {
    /// Closed: health answers, and everything else is asked to come again.
    pub fn closed(since: Timestamp) -> Entrance {
        let before = Router::new()
            .route("/health/live", get(async move || uncached(while_starting(true, since))))
            .route("/health/ready", get(async move || uncached(while_starting(false, since))))
            .fallback(async || come_again());
        Entrance { before: Arc::new(before), then: Arc::default() }
    }

    /// From now on this answers; a second call changes nothing.
    pub fn open(&self, then: impl Answers) {
        let _ = self.then.set(Arc::new(then));
    }

    /// Who answers a request that comes now.
    pub fn service(&self) -> &Arc<dyn Answers> {
        self.then.get().unwrap_or(&self.before)
    }
}

impl<A: Answers> From<A> for Entrance {
    fn from(answers: A) -> Entrance {
        let answers: Arc<dyn Answers> = Arc::new(answers);
        Entrance { before: Arc::clone(&answers), then: Arc::new(OnceLock::from(answers)) }
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
