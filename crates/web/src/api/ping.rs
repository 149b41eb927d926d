//! `/connections/{name}/ping`: whether the remote system can be reached now, how long each part of the way takes, and what to do about it.
//!
//! It must not know how anything is dialled.

use axum::response::Response;
use postrider_core::Timestamp;
use postrider_core::connection::{Connection, Family};
use postrider_core::reach::Reached;
use postrider_engine::ReachMethod;
use serde_json::{Value, json};

use super::{Acting, Input, connection_ref, ok};
use crate::problem::{Problem, clipped};
use crate::read::{Query, Segments};

/// 200 whatever comes of it: the answer is about the remote system.
pub async fn ping(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let given = input.fields.text("method");
    let method = given.as_deref().map(ReachMethod::parse);
    if let (Some(given), Some(None)) = (&given, method) {
        input.fields.refuse("method", format!("`method` is `{}`", clipped(given)), "HEAD, GET or OPTIONS");
    }
    input.fields.finish(&["method"])?;
    let connection = state.engine.connection(project, &named).await?;
    if connection.kind().family() == Family::Channel {
        // It dials nothing.
        return Err(Problem::not_found("connection", &named.name));
    }
    let reached = state.engine.ping(project, &named, method.flatten().unwrap_or(ReachMethod::Head)).await?;
    Ok(ok(&reached_json(&connection, &reached, state.clock.now())))
}

fn reached_json(connection: &Connection, reached: &Reached, now: Timestamp) -> Value {
    let stages: Vec<Value> = reached
        .stages
        .iter()
        .map(|(stage, took)| json!({"stage": stage.as_str(), "tookMs": in_ms(took.as_secs_f64())}))
        .collect();
    json!({
        "is_reachable": reached.is_reachable(),
        "target": connection.spec.target.address(),
        "address": reached.address,
        "stages": stages,
        "failedAt": reached.failed.as_ref().map(|failed| failed.stage.as_str()),
        "status": reached.status,
        "certificateEndsAt": reached.certificate_ends_at,
        "error": reached.failed.as_ref().map(|failed| &failed.error),
        "advice": reached.advice(connection.kind(), now),
    })
}

/// To the microsecond.
fn in_ms(seconds: f64) -> f64 {
    (seconds * 1_000_000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::in_ms;

    #[test]
    fn times_are_in_milliseconds_to_the_microsecond() {
        assert_eq!([in_ms(0.001_234_567), in_ms(2.0), in_ms(0.0)], [1.235, 2000.0, 0.0]);
    }
}
