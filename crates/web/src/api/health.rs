//! `/health/live` and `/health/ready`; both need no key and tell no detail.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::{Site, ok};
use crate::problem::Problem;

/// The process answers.
pub async fn live() -> Response {
    ok(&json!({"status": "ok"}))
}

/// The store takes writes.
pub async fn ready(State(site): State<Site>) -> Response {
    match site.0.read().check().await {
        Ok(()) => ok(&json!({"status": "ok"})),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            Problem::unavailable("the store cannot take writes now").into_response()
        }
    }
}
