//! `/projects/{project}/endpoints`: where webhooks go. The secret is shown once, when it is made.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::connection::Connection;
use postrider_core::endpoint::takes_events;
use postrider_core::id::{EndpointId, ProjectId};
use postrider_core::policy::DeliveryPolicy;
use postrider_core::schedule::Schedule;
use postrider_core::settings::warnings;
use postrider_core::{MASK, Secret, Wait};
use postrider_engine::{KeyWish, NewEndpoint, ROTATION_OVERLAP_MAX, SigningScheme};
use serde_json::{Map, Value, json};

use super::connections::summaries;
use super::sorting::Sort;
use super::{Acting, AppState, Input, camel, held, json_response, list_response, merge, ok};
use crate::keyed::WithoutSecret;
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 14] = [
    "id",
    "connectionId",
    "signatureScheme",
    "publicKey",
    "formerSecretSignsUntil",
    "secretUnreadable",
    "verification",
    "switchedOff",
    "health",
    "policy",
    "state",
    "warnings",
    "createdAt",
    "updatedAt",
];
/// Of a secret that somebody brings along.
pub(super) const SECRET_BYTES_MAX: usize = 1024;
pub(super) const OVERLAP_SECONDS_MAX: u64 = ROTATION_OVERLAP_MAX.as_millis() / 1000;
/// A day: receivers have time to learn the new secret.
pub(super) const OVERLAP_SECONDS_DEFAULT: u64 = 86_400;
pub(super) const SCHEMES: [&str; 2] = ["symmetric", "asymmetric"];

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let sort = Sort::take(&mut query)?;
    query.finish()?;
    let all = state.engine.endpoints(project);
    let (shown, next) = match sort {
        Some(sort) => sort.page(all, &summaries(&state, project).await?, &page)?,
        None => held::page(all, &page, |known| EndpointId::of(known.id))?,
    };
    let mut data = Vec::with_capacity(shown.len());
    for connection in &shown {
        data.push(Value::Object(endpoint_json(&state, connection).await?));
    }
    Ok(list_response(data, next))
}

/// The answer has the secret, which nobody is shown again.
pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let fields = &mut input.fields;
    let name = fields.text("name");
    let key = key_wish(fields);
    let verify = fields.flag("verify").unwrap_or(false);
    let written = camel::keys(fields);
    input.fields.finish(&[])?;
    let written = written.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let new = NewEndpoint { name, written, key, verify };
    let (made, secret) = state.engine.create_endpoint(project, new).await.map_err(camel::problem)?;
    Ok(with_secret(StatusCode::CREATED, endpoint_json(&state, &made).await?, &secret))
}

/// What is shown once; a repeat of the request under its idempotency key is not shown it.
fn with_secret(status: StatusCode, mut json: Map<String, Value>, secret: &Secret) -> Response {
    json.insert("secret".into(), Value::Null);
    let without = WithoutSecret(Value::Object(json.clone()).to_string());
    json.insert("secret".into(), secret.expose().into());
    let mut response = json_response(status, &Value::Object(json));
    response.extensions_mut().insert(without);
    response
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, query).await?;
    Ok(ok(&Value::Object(endpoint_json(&state, &known).await?)))
}

/// All settings anew; the secret stays.
pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let mut changes = changed(input.fields, &known)?;
    changes.written.retain(|_, value| !value.is_null());
    store(&state, project, &known, changes).await
}

/// A merge patch, RFC 7396: what is given replaces, null removes, the rest stays.
pub async fn change(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let patch = changed(input.fields, &known)?;
    let written = merge::patched(&known.written, patch.written);
    store(&state, project, &known, Changes { written, ..patch }).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let forced = query.flag("force")?;
    let (project, known) = found(&state, &segments, query).await?;
    state.engine.delete_endpoint(project, EndpointId::of(known.id), forced).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `{secret, signatureScheme, overlapSeconds}` → the new secret. The former one signs too for the overlap.
pub async fn rotate_secret(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let key = key_wish(&mut input.fields);
    let overlap = input.fields.number("overlapSeconds", 0..=OVERLAP_SECONDS_MAX).unwrap_or(OVERLAP_SECONDS_DEFAULT);
    input.fields.finish(&["secret", "signatureScheme", "overlapSeconds"])?;
    let id = EndpointId::of(known.id);
    let secret = state.engine.rotate_endpoint_key(project, id, key, Wait::from_secs(overlap)).await;
    let secret = secret.map_err(camel::problem)?;
    Ok(with_secret(StatusCode::OK, endpoint_json(&state, &known).await?, &secret))
}

pub(super) async fn found(
    state: &AppState,
    segments: &Segments,
    query: Query,
) -> Result<(ProjectId, Arc<Connection>), Problem> {
    query.finish()?;
    let project = state.project(segments).await?;
    let id = segments.id::<EndpointId>("endpoint", "endpoint")?;
    Ok((project, state.engine.endpoint(project, id)?))
}

/// What a request to change an endpoint asks for.
struct Changes {
    name: Option<String>,
    written: Map<String, Value>,
    /// `None`: as it is.
    verify: Option<bool>,
}

async fn store(
    state: &AppState,
    project: ProjectId,
    known: &Connection,
    changes: Changes,
) -> Result<Response, Problem> {
    let id = EndpointId::of(known.id);
    let replaced = state.engine.replace_endpoint(project, id, changes.name, changes.written).await;
    let mut replaced = replaced.map_err(camel::problem)?;
    if let Some(required) = changes.verify {
        replaced = state.engine.require_verification(project, id, required).await?;
    }
    Ok(ok(&Value::Object(endpoint_json(state, &replaced).await?)))
}

/// A secret of the owner's own, or one that is made.
fn key_wish(fields: &mut Fields) -> KeyWish {
    let scheme = fields.text("signatureScheme");
    let read = scheme.as_deref().map(SigningScheme::parse);
    if read == Some(None) {
        fields.refuse("signatureScheme", "`signatureScheme` is none", format!("one of {}", SCHEMES.join(", ")));
    }
    match fields.text("secret") {
        Some(secret) if scheme.is_some() => {
            let allowed = "nothing together with `secret`, which says it itself";
            fields.refuse("signatureScheme", "`signatureScheme` and `secret` are both there", allowed);
            KeyWish::Given(Secret::new(secret))
        }
        Some(secret) => {
            if secret.len() > SECRET_BYTES_MAX {
                let allowed = format!("at most {SECRET_BYTES_MAX} bytes");
                fields.refuse("secret", "`secret` is too long", allowed);
            }
            KeyWish::Given(Secret::new(secret))
        }
        None => KeyWish::Make(read.flatten().unwrap_or(SigningScheme::Symmetric)),
    }
}

/// `version`, if given, must be the stored one, so that nobody undoes another's change unseen.
fn changed(mut fields: Fields, known: &Connection) -> Result<Changes, Problem> {
    for ours in OURS {
        fields.take(ours);
    }
    let name = fields.text("name");
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let verify = fields.flag("verify");
    let mut written = camel::keys(&mut fields);
    fields.finish(&[])?;
    if let Some(version) = version.filter(|version| u64::from(known.version) != *version) {
        let detail = format!("the endpoint has version {} by now, not {version}: read it again", known.version);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    keep_masked(&mut written, known);
    Ok(Changes { name, written, verify })
}

/// A header whose value we showed masked, and that comes back so, keeps its value.
pub(super) fn keep_masked(written: &mut Map<String, Value>, known: &Connection) {
    let Some(Value::Object(headers)) = written.get_mut("custom_headers") else { return };
    for (name, value) in headers {
        let former = known.written.get("custom_headers").and_then(|former| former.get(name.as_str()));
        if let (Some(MASK), Some(former)) = (value.as_str(), former) {
            *value = former.clone();
        }
    }
}

pub(super) async fn endpoint_json(state: &AppState, connection: &Connection) -> Result<Map<String, Value>, Problem> {
    let summary = state.read().queue_summary(connection.id).await?;
    let id = EndpointId::of(connection.id);
    let standing = state.engine.endpoint_standing(id);
    let standing = standing.as_deref();
    // By the store: another server may make its attempts.
    let stood = state.engine.endpoint_state(connection).await?;
    let target = connection.spec.target.webhook();
    let mut object = Map::new();
    object.insert("id".into(), json!(id));
    object.insert("name".into(), connection.name.clone().into());
    object.extend(camel::members(&shown_settings(state, connection)));
    let url = target.map(|target| target.url.to_string());
    object.insert("url".into(), json!(url));
    object.insert("enabled".into(), target.is_some_and(|target| takes_events(target, &stood)).into());
    object.insert("connectionId".into(), json!(connection.id));
    object.insert("signatureScheme".into(), json!(standing.and_then(|endpoint| endpoint.scheme())));
    object.insert("publicKey".into(), json!(standing.and_then(|endpoint| endpoint.public_key())));
    let former = standing.and_then(|endpoint| endpoint.row.keys.former.as_ref());
    object.insert("formerSecretSignsUntil".into(), json!(former.map(|former| former.signs_until)));
    object.insert("secretUnreadable".into(), json!(standing.and_then(|endpoint| endpoint.unreadable())));
    object.insert("verification".into(), json!(stood.verification));
    object.insert("switchedOff".into(), json!(stood.off));
    let health = stood.health;
    object.insert(
        "health".into(),
        json!({
            "failingSince": health.failing_since,
            "failedInARow": health.failed_in_a_row,
            "lastTest": stood.last_test,
        }),
    );
    let mut policy = policy_json(&connection.spec.policy);
    if target.is_some_and(|target| target.ordered_by_key) {
        policy["ordered"] = true.into();
    }
    object.insert("policy".into(), policy);
    let waits = json!({"paused": connection.paused, "waiting": summary.waiting, "dead": summary.dead, "oldestWaitingSince": summary.oldest_waiting_since});
    object.insert("state".into(), waits);
    let mut warned = warnings(connection.kind(), &connection.written);
    if let Some(off) = stood.off {
        let reason = off.reason.as_str();
        warned.push(format!(
            "it was switched off at {} ({reason}): `POST …/endpoints/{id}/enable` switches it on",
            off.at
        ));
    }
    object.insert("warnings".into(), warned.into());
    object.insert("version".into(), connection.version.into());
    object.insert("createdAt".into(), json!(connection.created_at));
    object.insert("updatedAt".into(), json!(connection.updated_at));
    Ok(object)
}

/// As written, secret headers masked.
fn shown_settings(state: &AppState, connection: &Connection) -> Map<String, Value> {
    let mut written = connection.written.clone();
    if let Some(Value::Object(headers)) = written.get_mut("custom_headers") {
        for (name, value) in headers {
            if state.masked().cover(name) {
                *value = MASK.into();
            }
        }
    }
    written
}

/// What is in force, whatever of it was written.
fn policy_json(policy: &DeliveryPolicy) -> Value {
    let (max_attempts, delays) = match &policy.schedule {
        Schedule::Ladder(ladder) => {
            let seconds = ladder.delays().iter().map(|delay| delay.as_secs_f64()).collect::<Vec<_>>();
            (Some(ladder.max_attempts()), Some(seconds))
        }
        Schedule::Backoff(_) => (None, None),
    };
    json!({
        "maxAttempts": max_attempts,
        "retryDelays": delays,
        "retryableStatuses": policy.retryable_statuses.as_str(),
        "timeoutSeconds": policy.timeout.as_secs_f64(),
        "ordered": policy.queue.ordered,
        "concurrency": policy.queue.concurrency,
        "ageCapSeconds": policy.age_cap.map(Wait::as_secs_f64),
    })
}
