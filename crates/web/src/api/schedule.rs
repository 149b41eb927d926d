//! `/schedule`: when the attempts of a connection's policy, or of a preset, would be made if all of them failed (P08).

use axum::response::Response;
use postrider_core::connection::ConnectionKind;
use postrider_core::policy::DeliveryPolicy;
use postrider_core::schedule::Schedule;
use postrider_core::schedule::preview::schedule_preview;
use postrider_core::settings::delivery::policy_of;
use postrider_engine::Refusal;
use serde_json::{Value, json};

use super::{Acting, Input, connection_ref, ok};
use crate::problem::{Problem, clipped};
use crate::read::{Query, Segments};

pub(super) const PRESETS: &str = "webhook, forward, patient";

pub async fn of_connection(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    Ok(ok(&schedule_json(&connection.spec.policy)))
}

/// `?preset=webhook|forward|patient` (D20).
pub async fn of_preset(mut query: Query) -> Result<Response, Problem> {
    let given = query.take("preset").unwrap_or_default();
    query.finish()?;
    let policy = match given.as_str() {
        "webhook" => DeliveryPolicy::webhook(),
        "forward" => DeliveryPolicy::forward(),
        "patient" => DeliveryPolicy::patient(),
        other => {
            let message = format!("`preset` is `{}`", clipped(other));
            return Err(Problem::bad_request("preset", message, PRESETS));
        }
    };
    Ok(ok(&schedule_json(&policy)))
}

/// The same of settings that nobody has stored: `type` and the keys of a connection, of which only those of the delivery are looked at (P08).
pub async fn of_settings(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    state.project(&segments).await?;
    let kind = input.fields.required_text("type");
    let parsed = kind.as_deref().and_then(ConnectionKind::parse);
    if let (Some(given), None) = (&kind, parsed) {
        input.fields.refuse("type", format!("`type` is `{}`", clipped(given)), ConnectionKind::ALLOWED);
    }
    let written = input.fields.rest();
    input.fields.finish(&[])?;
    let kind = parsed.ok_or_else(|| Problem::field("type", "`type` is missing", ConnectionKind::ALLOWED))?;
    let policy = policy_of(kind, &written).map_err(Refusal::Invalid)?;
    Ok(ok(&schedule_json(&policy)))
}

/// Times in seconds since the first attempt; `wait` since the attempt before. `earliest` and `latest` are the bounds of the jitter.
fn schedule_json(policy: &DeliveryPolicy) -> Value {
    let kind = match &policy.schedule {
        Schedule::Backoff(_) => "backoff",
        Schedule::Ladder(_) => "ladder",
    };
    let attempts: Vec<Value> = schedule_preview(policy)
        .iter()
        .map(|planned| {
            json!({
                "attempt": planned.attempt,
                "wait_seconds": planned.wait.as_secs_f64(),
                "wait_min_seconds": planned.wait_min.as_secs_f64(),
                "wait_max_seconds": planned.wait_max.as_secs_f64(),
                "after_first_seconds": planned.after_first.as_secs_f64(),
                "earliest_seconds": planned.earliest.as_secs_f64(),
                "latest_seconds": planned.latest.as_secs_f64(),
            })
        })
        .collect();
    json!({
        "schedule": kind,
        "timeout_seconds": policy.timeout.as_secs_f64(),
        "age_cap_seconds": policy.age_cap.map(postrider_core::Wait::as_secs_f64),
        "data": attempts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_shows_its_attempts_in_seconds() {
        let json = schedule_json(&DeliveryPolicy::patient());
        assert_eq!(json["schedule"], "ladder");
        assert_eq!(json["data"][0]["wait_seconds"], 0.0);
        assert_eq!(json["data"][1]["wait_seconds"], 60.0);
        assert_eq!(json["data"].as_array().unwrap().len(), 8);
    }
}
