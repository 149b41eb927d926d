//! What a person does to one endpoint: tests and verifies it, switches it on and off, and sees how it does (V03-V06, R14).

use axum::response::Response;
use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::connection::Connection;
use postrider_core::endpoint::{EndpointState, Verification, takes_events};
use postrider_core::id::EndpointId;
use postrider_core::topic::TopicName;
use postrider_engine::TestEvent;
use serde_json::{Map, Value, json};

use super::endpoints::{endpoint_json, found};
use super::shapes::attempt_json;
use super::{Acting, AppState, Input, ok};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

/// `{type, data}` → what the endpoint answered. Never tried again; it leaves no delivery.
pub async fn test(Acting(state): Acting, segments: Segments, query: Query, input: Input) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let event = test_event(&state, input.fields)?;
    let id = EndpointId::of(known.id);
    let probe = state.engine.test_endpoint(project, id, event).await?;
    Ok(ok(&json!({
        "succeeded": probe.attempt.failure.is_none(),
        "deliveryId": probe.delivery_id,
        "eventId": probe.event_id,
        "attempt": attempt_json(&probe.attempt, state.seen()),
    })))
}

fn test_event(state: &AppState, mut fields: Fields) -> Result<TestEvent, Problem> {
    let mut event = TestEvent::default();
    if let Some(given) = fields.text("type") {
        match TopicName::new(given) {
            Ok(name) => event.event_type = name,
            Err(error) => {
                fields.refuse("type", format!("`type` is no event type: {error}"), super::topics::NAMES);
            }
        }
    }
    if fields.has("data") {
        let given = fields.take("data");
        if let Some(data) = fields.compacted("data", given.as_deref()) {
            event.data = Bytes::from(data);
        }
    }
    fields.finish(&["type", "data"])?;
    state.check_body_size(&event.data)?;
    Ok(event)
}

/// Asks for a challenge back, unless the endpoint has given one at this address before.
pub async fn verify(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let probe = state.engine.verify_endpoint(project, EndpointId::of(known.id)).await?;
    let verification = probe.as_ref().and_then(|probe| probe.verification).unwrap_or(Verification::Verified);
    let attempt = probe.map(|probe| attempt_json(&probe.attempt, state.seen()));
    Ok(ok(&json!({"verification": verification, "attempt": attempt})))
}

/// Warns when the last test did not succeed, and does not forbid it (V06).
pub async fn enable(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let changed = state.engine.enable_endpoint(project, EndpointId::of(known.id)).await?;
    let mut json = endpoint_json(&state, &changed).await?;
    let tested = state.engine.endpoint_state(&changed).await?.last_test;
    let warning = match tested {
        Some(test) if test.succeeded => None,
        Some(test) => Some(format!("its last test, at {}, did not succeed", test.at)),
        None => Some("it has never been tested".to_owned()),
    };
    if let (Some(warning), Some(Value::Array(warnings))) = (warning, json.get_mut("warnings")) {
        warnings.push(warning.into());
    }
    Ok(ok(&Value::Object(json)))
}

pub async fn disable(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let changed = state.engine.disable_endpoint(project, EndpointId::of(known.id)).await?;
    Ok(ok(&Value::Object(endpoint_json(&state, &changed).await?)))
}

pub async fn health(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, query).await?;
    let stands = state.engine.endpoint_state(&known).await?;
    let summary = state.read().queue_summary(known.id).await?;
    let target = known.spec.target.webhook();
    let mut object = Map::new();
    object.insert("endpointId".into(), json!(EndpointId::of(known.id)));
    object.insert("enabled".into(), target.is_some_and(|target| takes_events(target, &stands)).into());
    object.insert("switchedOff".into(), json!(stands.off));
    object.insert("verification".into(), json!(stands.verification));
    object.insert("failingSince".into(), json!(stands.health.failing_since));
    object.insert("failedInARow".into(), stands.health.failed_in_a_row.into());
    object.insert("lastTest".into(), json!(stands.last_test));
    object.insert("switchOff".into(), rules_json(&known, &stands));
    object.insert("waiting".into(), summary.waiting.into());
    object.insert("dead".into(), summary.dead.into());
    object.insert("oldestWaitingSince".into(), json!(summary.oldest_waiting_since));
    Ok(ok(&Value::Object(object)))
}

/// What switches it off, and when that will be if nothing happens before.
fn rules_json(connection: &Connection, stands: &EndpointState) -> Value {
    let rules = &connection.spec.policy.switch_off;
    let due_at = stands.health.sweep_due_at(rules).filter(|_| stands.off.is_none());
    json!({
        "onGone": rules.on_gone,
        "afterFailures": rules.after_failures,
        "failingForSeconds": rules.failing_for.map(Wait::as_secs_f64),
        "dueAt": due_at,
    })
}
