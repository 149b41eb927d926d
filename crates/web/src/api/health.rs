//! `/health/live` and `/health/ready`: they need no key, so they say nothing about messages, and they are answered from memory, so that a
//! stalled store never stalls them (P06).
//!
//! It must not know how anything is checked.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use postrider_core::Timestamp;
use postrider_core::readiness::Check;
use postrider_engine::Standing;
use serde_json::{Value, json};

use super::{Site, json_response};

/// The process is worth keeping.
pub async fn live(State(site): State<Site>) -> Response {
    answer(&site.0.engine.live())
}

/// Requests should be sent here.
pub async fn ready(State(site): State<Site>) -> Response {
    answer(&site.0.engine.ready())
}

/// Of a server that has not finished its start: alive, and not ready.
pub fn while_starting(live: bool, since: Timestamp) -> Response {
    let Check { name, trouble } = Check::starting();
    let standing = Standing { name, since, trouble: trouble.filter(|_| !live) };
    answer(&[standing])
}

fn answer(checks: &[Standing]) -> Response {
    let fails = checks.iter().any(|check| check.trouble.is_some());
    let (status, word) = if fails { (StatusCode::SERVICE_UNAVAILABLE, "failing") } else { (StatusCode::OK, "ok") };
    let checks: Vec<Value> = checks.iter().map(shown).collect();
    json_response(status, &json!({"status": word, "checks": checks}))
}

fn shown(check: &Standing) -> Value {
    let (name, since) = (check.name.as_str(), check.since);
    match &check.trouble {
        None => json!({"name": name, "status": "ok", "since": since}),
        Some(trouble) => {
            json!({"name": name, "status": "failing", "since": since, "detail": trouble.detail, "action": trouble.action})
        }
    }
}
