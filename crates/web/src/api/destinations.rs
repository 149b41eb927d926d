//! `/projects/{project}/destinations`: where the webhooks of a source are forwarded, each a subscription to the source's topic.
//!
//! With a `url` the destination gets an endpoint of its own that is sent webhooks as they arrived; or it names an endpoint, or any other connection.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::connection::ConnectionKind;
use postrider_core::id::{DestinationId, EndpointId, ProjectId, SourceId};
use postrider_core::settings::PUSH_KEYS;
use postrider_core::subscription::PushSubscription;
use postrider_engine::{KeyWish, NewDestination, NewEndpoint, NewSubscription, SigningScheme};
use serde_json::{Map, Value, json};

use super::{Acting, AppState, Input, camel, held, json_response, list_response, merge, ok, subscriptions};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 13] = [
    "id",
    "sourceId",
    "subscriptionId",
    "endpointId",
    "connection",
    "type",
    "url",
    "connectionId",
    "eventType",
    "policy",
    "warnings",
    "createdAt",
    "updatedAt",
];
/// Settings of an endpoint of its own beside the subscription's: they are given with `url` alone.
pub(super) const OF_ENDPOINT: [&str; 5] = ["description", "preset", "security", "concurrency", "rateLimitPerSecond"];

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let source = match query.take("sourceId") {
        Some(text) => Some(
            text.parse::<SourceId>()
                .map_err(|error| Problem::bad_request("sourceId", error.to_string(), "a source's id (src_…)"))?,
        ),
        None => None,
    };
    query.finish()?;
    let mut all = state.engine.destinations(project);
    all.retain(|(_, of)| source.is_none_or(|id| id == *of));
    let (shown, next) = held::page(all, &page, |(known, _)| DestinationId::of(known.id))?;
    Ok(list_response(shown.iter().map(|(known, of)| destination_json(&state, known, *of)).collect(), next))
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let source = source(&state, project, &mut input.fields)?;
    let name = input.fields.text("name");
    let made = match input.fields.text("url") {
        Some(url) => {
            let (topic, fields) = (topic(&state, project, source)?, input.fields);
            let new = with_endpoint(fields, name, url, topic)?;
            state.engine.create_destination(project, new).await.map_err(camel::problem)?
        }
        None => {
            let target = subscriptions::target(&state, project, &mut input.fields).await?;
            let target = input.fields.required("url", target);
            let mut written = camel::keys(&mut input.fields);
            written.retain(|_, value| !value.is_null());
            input.fields.finish(&[])?;
            let Some(connection) = target else {
                return Err(Problem::field("url", "`url` is missing", "`url`, `endpointId` or `connection`"));
            };
            written.insert("event_type".into(), topic(&state, project, source)?.into());
            let new = NewSubscription { name, connection, written };
            state.engine.subscribe_push(project, new).await.map_err(camel::problem)?
        }
    };
    Ok(json_response(StatusCode::CREATED, &destination_json(&state, &made, source)))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known, source) = found(&state, &segments, query).await?;
    Ok(ok(&destination_json(&state, &known, source)))
}

/// A merge patch, RFC 7396. The endpoint's own settings are changed at the endpoint.
pub async fn change(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    let (project, known, source) = found(&state, &segments, query).await?;
    let fields = &mut input.fields;
    for ours in OURS {
        fields.take(ours);
    }
    let name = fields.text("name");
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let patch = camel::keys(fields);
    input.fields.finish(&[])?;
    if let Some(version) = version.filter(|version| u64::from(known.version) != *version) {
        let detail = format!("the destination has version {} by now, not {version}: read it again", known.version);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    let written = merge::patched(&known.written, patch);
    let new = NewSubscription { name, connection: known.connection_id, written };
    let replaced = state.engine.replace_push_subscription(project, known.id, new).await.map_err(camel::problem)?;
    Ok(ok(&destination_json(&state, &replaced, source)))
}

/// Forwards that are there already go on; its endpoint stays.
pub async fn delete(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known, _) = found(&state, &segments, query).await?;
    state.engine.unsubscribe_push(project, known.id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn found(
    state: &AppState,
    segments: &Segments,
    query: Query,
) -> Result<(ProjectId, Arc<PushSubscription>, SourceId), Problem> {
    query.finish()?;
    let project = state.project(segments).await?;
    let text = segments.get("destination");
    let id = segments.id::<DestinationId>("destination", "destination")?;
    let known = state.engine.destinations(project).into_iter().find(|(known, _)| known.id == id.subscription());
    let (known, source) = known.ok_or_else(|| Problem::not_found("destination", text))?;
    Ok((project, known, source))
}

fn source(state: &AppState, project: ProjectId, fields: &mut Fields) -> Result<SourceId, Problem> {
    let text = fields.required_text("sourceId").unwrap_or_default();
    let id = text
        .parse::<SourceId>()
        .map_err(|error| Problem::field("sourceId", error.to_string(), "a source's id (src_…)"))?;
    Ok(state.engine.source(project, id)?.row.source.id)
}

fn topic(state: &AppState, project: ProjectId, source: SourceId) -> Result<String, Problem> {
    Ok(state.engine.source(project, source)?.row.source.spec.topic.to_string())
}

/// Of the settings, those that a subscription has are its own, and the rest are the endpoint's.
fn with_endpoint(
    mut fields: Fields,
    name: Option<String>,
    url: String,
    topic: String,
) -> Result<NewDestination, Problem> {
    let all = camel::keys(&mut fields);
    fields.finish(&[])?;
    let mut endpoint = Map::new();
    endpoint.insert("retry_preset".into(), "forward".into());
    endpoint.insert("payload".into(), "as_arrived".into());
    endpoint.insert("url".into(), url.into());
    let mut written = Map::new();
    for (key, value) in all.into_iter().filter(|(_, value)| !value.is_null()) {
        let is_subscriptions = PUSH_KEYS.iter().any(|doc| doc.name == key) && key != "event_type";
        let place = if is_subscriptions { &mut written } else { &mut endpoint };
        place.insert(key, value);
    }
    written.insert("event_type".into(), topic.into());
    let key = KeyWish::Make(SigningScheme::Symmetric);
    Ok(NewDestination { endpoint: NewEndpoint { name, written: endpoint, key, verify: false }, written })
}

pub(super) fn destination_json(state: &AppState, destination: &PushSubscription, source: SourceId) -> Value {
    let connection = state.engine.connections().into_iter().find(|known| known.id == destination.connection_id);
    let mut object = Map::new();
    object.insert("id".into(), json!(DestinationId::of(destination.id)));
    object.insert("sourceId".into(), json!(source));
    object.insert("name".into(), destination.name.clone().into());
    object.insert("subscriptionId".into(), json!(destination.id));
    let endpoint = connection.as_ref().filter(|known| known.kind() == ConnectionKind::Webhook);
    object.insert("endpointId".into(), json!(endpoint.map(|known| EndpointId::of(known.id))));
    object.insert("connection".into(), json!(connection.as_ref().map(|known| &known.name)));
    object.insert("type".into(), json!(connection.as_ref().map(|known| known.kind())));
    object.insert("url".into(), json!(connection.as_ref().map(|known| known.spec.target.address())));
    object.extend(camel::members(&destination.written));
    object.insert("enabled".into(), destination.spec.enabled.into());
    object.insert("connectionId".into(), json!(destination.connection_id));
    let policy = connection.as_ref().map(|known| &known.spec.policy);
    let terms = policy.and_then(|policy| destination.spec.terms(policy));
    object.insert("policy".into(), subscriptions::policy_json(terms.as_ref()));
    let warning = policy.and_then(|policy| destination.spec.warning(policy));
    object.insert("warnings".into(), warning.into_iter().collect::<Vec<_>>().into());
    object.insert("version".into(), destination.version.into());
    object.insert("createdAt".into(), json!(destination.created_at));
    object.insert("updatedAt".into(), json!(destination.updated_at));
    Value::Object(object)
}
