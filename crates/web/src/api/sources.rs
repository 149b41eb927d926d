//! `/projects/{project}/sources`: where webhooks come in. Token and secret are shown once, when they are made.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::id::{EventId, ProjectId, SourceId};
use postrider_core::{Secret, Wait};
use postrider_engine::{NewSource, OpenSource, ReplayEvents, ReplayOrder, Shown};
use postrider_store::PageRequest;
use serde_json::{Map, Value, json};

use super::endpoints::{OVERLAP_SECONDS_DEFAULT, OVERLAP_SECONDS_MAX};
use super::{Acting, AppState, Input, camel, held, json_response, list_response, merge, ok};
use crate::keyed::WithoutSecret;
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 12] = [
    "id",
    "ingressPath",
    "ingressUrl",
    "token",
    "secretConfigured",
    "secretUnreadable",
    "formerTokenOpensUntil",
    "formerSecretVerifiesUntil",
    "figures",
    "destinations",
    "createdAt",
    "updatedAt",
];
pub(super) const SECRET_BYTES_MAX: usize = 1024;
/// Events of one replay, at most.
pub(super) const REPLAY_MAX: u64 = 1000;
pub(super) const REPLAY_DEFAULT: u64 = 100;

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    query.finish()?;
    let (shown, next) = held::page(state.engine.sources(project), &page, |known| known.row.source.id)?;
    let data = shown.iter().map(|known| Value::Object(source_json(&state, known, None))).collect();
    Ok(list_response(data, next))
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let name = input.fields.required_text("name").unwrap_or_default();
    let secret = secret(&mut input.fields);
    let written = camel::keys(&mut input.fields);
    input.fields.finish(&[])?;
    let written = written.into_iter().filter(|(_, value)| !value.is_null()).collect();
    let made = state.engine.create_source(project, NewSource { name, written, secret }).await;
    let (made, shown) = made.map_err(camel::problem)?;
    Ok(with_credentials(&state, StatusCode::CREATED, &made, &shown))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, query).await?;
    Ok(ok(&Value::Object(source_json(&state, &known, None))))
}

/// All settings anew; token and secret stay.
pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let (name, mut written) = changed(input.fields, &known)?;
    written.retain(|_, value| !value.is_null());
    store(&state, project, &known, name, written).await
}

/// A merge patch, RFC 7396: what is given replaces, null removes, the rest stays.
pub async fn change(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let (name, patch) = changed(input.fields, &known)?;
    let merged = merge::patched(&known.row.source.written, patch);
    store(&state, project, &known, name, merged).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    state.engine.delete_source(project, known.row.source.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `{overlapSeconds}` → the new token. The former address goes on for the overlap.
pub async fn rotate_token(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let overlap = overlap(&mut input.fields);
    input.fields.finish(&["overlapSeconds"])?;
    let (known, shown) = state.engine.rotate_source_token(project, known.row.source.id, overlap).await?;
    Ok(with_credentials(&state, StatusCode::OK, &known, &shown))
}

/// `{secret, overlapSeconds}` → the secret, when it was made here. The former one verifies too for the overlap.
pub async fn rotate_secret(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let secret = secret(&mut input.fields);
    let overlap = overlap(&mut input.fields);
    input.fields.finish(&["secret", "overlapSeconds"])?;
    let rotated = state.engine.rotate_source_secret(project, known.row.source.id, secret, overlap).await;
    let (known, shown) = rotated.map_err(camel::problem)?;
    Ok(with_credentials(&state, StatusCode::OK, &known, &shown))
}

/// `{eventIds}` or `{from, before, limit, cursor}`, and `destinationId`, `dry_run` → `{events, forwards, next_cursor}`.
pub async fn replay(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let fields = &mut input.fields;
    let destination = match fields.text("destinationId") {
        None => None,
        Some(text) => {
            let parsed = text.parse();
            if parsed.is_err() {
                fields.refuse("destinationId", "`destinationId` is no id", "a destination's id (dst_…)");
            }
            parsed.ok()
        }
    };
    let dry_run = fields.flag("dry_run").unwrap_or(false);
    let events = replay_events(fields);
    input.fields.finish(&["eventIds", "from", "before", "limit", "cursor", "destinationId", "dry_run"])?;
    let order = ReplayOrder { source: known.row.source.id, events, destination, dry_run };
    let replayed = state.engine.replay_incoming(project, order).await?;
    let answer = json!({"events": replayed.events, "forwards": replayed.forwards, "next_cursor": replayed.next_cursor});
    Ok(ok(&answer))
}

fn replay_events(fields: &mut Fields) -> ReplayEvents {
    let limit = fields.number("limit", 1..=REPLAY_MAX).unwrap_or(REPLAY_DEFAULT);
    let cursor = fields.text("cursor");
    let mut time = |name: &str| {
        let text = fields.text(name)?;
        let time = postrider_core::Timestamp::parse_rfc3339(&text);
        if time.is_none() {
            fields.refuse(name, format!("`{name}` is no time"), "an RFC 3339 time such as 2026-03-12T12:05:34Z");
        }
        time
    };
    let (from, before) = (time("from"), time("before"));
    let ids_max = usize::try_from(REPLAY_MAX).unwrap_or(usize::MAX);
    let Some(ids) = fields.ids::<EventId>("eventIds", ids_max, "an event's id (evt_…)") else {
        if from.is_none() && before.is_none() {
            fields.refuse("eventIds", "nothing says what is replayed", "`eventIds`, or `from`, `before` or both");
        }
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        return ReplayEvents::Range { from, before, page: PageRequest { limit, cursor } };
    };
    if from.is_some() || before.is_some() || cursor.is_some() {
        fields.refuse("eventIds", "`eventIds` and a range are both there", "one of the two");
    }
    ReplayEvents::Ids(ids)
}

async fn found(state: &AppState, segments: &Segments, query: Query) -> Result<(ProjectId, Arc<OpenSource>), Problem> {
    query.finish()?;
    let project = state.project(segments).await?;
    Ok((project, state.engine.source(project, segments.id("source", "source")?)?))
}

async fn store(
    state: &AppState,
    project: ProjectId,
    known: &OpenSource,
    name: Option<String>,
    written: Map<String, Value>,
) -> Result<Response, Problem> {
    let replaced = state.engine.replace_source(project, known.row.source.id, name, written).await;
    let replaced = replaced.map_err(camel::problem)?;
    Ok(ok(&Value::Object(source_json(state, &replaced, None))))
}

/// `version`, if given, must be the stored one, so that nobody undoes another's change unseen.
fn changed(mut fields: Fields, known: &OpenSource) -> Result<(Option<String>, Map<String, Value>), Problem> {
    for ours in OURS {
        fields.take(ours);
    }
    if fields.has("secret") {
        fields.take("secret");
        fields.refuse("secret", "`secret` is there", "nothing here: `rotate-secret` sets another one");
    }
    let name = fields.text("name");
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let written = camel::keys(&mut fields);
    fields.finish(&[])?;
    let stored = known.row.source.version;
    if let Some(version) = version.filter(|version| u64::from(stored) != *version) {
        let detail = format!("the source has version {stored} by now, not {version}: read it again");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    Ok((name, written))
}

fn overlap(fields: &mut Fields) -> Wait {
    let seconds = fields.number("overlapSeconds", 0..=OVERLAP_SECONDS_MAX);
    Wait::from_secs(seconds.unwrap_or(OVERLAP_SECONDS_DEFAULT))
}

fn secret(fields: &mut Fields) -> Option<Secret> {
    let secret = fields.text("secret")?;
    if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
        let allowed = format!("1 to {SECRET_BYTES_MAX} bytes");
        fields.refuse("secret", "`secret` is empty or too long", allowed);
    }
    Some(Secret::new(secret))
}

/// What is shown once; a repeat of the request under its idempotency key is not shown it.
fn with_credentials(state: &AppState, status: StatusCode, known: &OpenSource, shown: &Shown) -> Response {
    let without = WithoutSecret(Value::Object(source_json(state, known, None)).to_string());
    let mut response = json_response(status, &Value::Object(source_json(state, known, Some(shown))));
    response.extensions_mut().insert(without);
    response
}

/// With what is shown once, right after it was made.
fn source_json(state: &AppState, known: &OpenSource, shown: Option<&Shown>) -> Map<String, Value> {
    let source = &known.row.source;
    let keys = &known.row.keys;
    let mut object = Map::new();
    object.insert("id".into(), json!(source.id));
    object.insert("name".into(), source.name.clone().into());
    object.extend(camel::members(&source.written));
    object.insert("provider".into(), json!(source.spec.provider));
    object.insert("topic".into(), json!(source.spec.topic.as_str()));
    object.insert("enabled".into(), source.spec.enabled.into());
    object.insert("secretConfigured".into(), keys.sealed.is_some().into());
    object.insert("secretUnreadable".into(), json!(known.unreadable()));
    object.insert("formerTokenOpensUntil".into(), json!(keys.former_token.map(|(_, until)| until)));
    object.insert("formerSecretVerifiesUntil".into(), json!(keys.former_sealed.as_ref().map(|(_, until)| until)));
    if let Some(token) = shown.and_then(|shown| shown.token.as_ref()) {
        let path = format!("/ingress/{}", token.expose());
        let url = source.spec.public_url.as_ref().map(|base| format!("{}{path}", base.origin()));
        object.insert("token".into(), token.expose().into());
        object.insert("ingressPath".into(), path.into());
        object.insert("ingressUrl".into(), json!(url));
    }
    if let Some(secret) = shown.and_then(|shown| shown.secret.as_ref()) {
        object.insert("secret".into(), secret.expose().into());
    }
    object.insert("figures".into(), figures_json(state, source.id));
    let destinations = state.engine.destinations(source.project_id);
    object.insert("destinations".into(), destinations.iter().filter(|(_, of)| *of == source.id).count().into());
    object.insert("version".into(), source.version.into());
    object.insert("createdAt".into(), json!(source.created_at));
    object.insert("updatedAt".into(), json!(source.updated_at));
    object
}

/// Of this process, since it started.
fn figures_json(state: &AppState, id: SourceId) -> Value {
    let figures = state.engine.source_figures(id);
    let rejections = figures.last_rejections.iter().map(|rejection| {
        json!({
            "at": rejection.at,
            "reason": rejection.reason,
            "detail": rejection.detail,
            "address": rejection.address,
        })
    });
    json!({
        "accepted": figures.accepted,
        "duplicates": figures.duplicates,
        "handshakes": figures.handshakes,
        "rejected": figures.rejected,
        "lastAcceptedAt": figures.last_accepted_at,
        "lastRejections": rejections.collect::<Vec<_>>(),
    })
}
