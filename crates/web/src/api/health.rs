//! `/health/live` and `/health/ready`: they need no key, so they say nothing about messages, and they are answered from memory, so that a
//! stalled store never stalls them (P06).
//!
//! It must not know how anything is checked.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use postrider_core::Timestamp;
use postrider_core::readiness::Check;
use postrider_engine::{Restored, Standing};
use serde_json::{Value, json};

use super::{Site, json_response};

/// The process is worth keeping.
pub async fn live(State(site): State<Site>) -> Response {
    answer(&site.0.engine.live(), None)
}

/// Requests should be sent here.
pub async fn ready(State(site): State<Site>) -> Response {
    answer(&site.0.engine.ready(), site.0.engine.restored())
}

/// Of a server that has not finished its start: alive, and not ready.
pub fn while_starting(live: bool, since: Timestamp) -> Response {
    let Check { name, trouble } = Check::starting();
    let standing = Standing { name, since, trouble: trouble.filter(|_| !live) };
    answer(&[standing], None)
}

/// A restored store is ready, and whoever looks is told that nothing goes out yet (D08).
fn answer(checks: &[Standing], restored: Option<Restored>) -> Response {
    let fails = checks.iter().any(|check| check.trouble.is_some());
    let (status, word) = if fails { (StatusCode::SERVICE_UNAVAILABLE, "failing") } else { (StatusCode::OK, "ok") };
    let checks: Vec<Value> = checks.iter().map(shown).collect();
    let mut answer = json!({"status": word, "checks": checks});
    if let Some(Restored { at, held }) = restored {
        answer["restored"] = json!({
            "at": at,
            "paused": held.len(),
            "detail": "the store was restored from a backup, and its queues are paused",
            "action": "once no other server works on the original: start with --resume, or resume the connections",
        });
    }
    json_response(status, &answer)
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
