//! Messages of topics: published, listed, pulled and acknowledged.

use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use postrider_core::connection::DataFormat;
use postrider_core::id::EventId;
use postrider_core::masking::MaskedHeaders;
use postrider_store::TopicMessage;
use serde_json::{Map, Value, json};

use super::send::{body_bytes, caller_cid, headers};
use super::shapes::headers_json;
use super::topics::{find, topic_name};
use super::{Acting, Input, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// Messages of one pull, and acknowledgments of one request, at most.
pub(super) const MESSAGES_MAX: u64 = 1000;
pub(super) const MESSAGES_DEFAULT: u64 = 10;

/// `{headers, body | body_base64}` → `{msg_id, topic}`. Stored when it is answered.
pub async fn publish(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let topic = topic_name(&segments)?;
    let list = headers(&mut input.fields);
    let given = input.fields.body();
    let body = body_bytes(&mut input.fields, given, DataFormat::Json);
    input.fields.finish(&["headers", "body", "body_base64"])?;
    state.check_body_size(&body)?;
    state.refuse_our_keys(&list)?;
    let cid = caller_cid(&input.headers)?;
    let id = state.engine.publish_to_topic(project, &topic, list, body, cid).await?;
    Ok(json_response(StatusCode::CREATED, &json!({"msg_id": id, "topic": topic})))
}

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    query.finish()?;
    state.check_sees_bodies()?;
    let topic = find(&state, project, &segments).await?;
    let found = state.read().topic_messages(&topic, page).await?;
    if !found.items.is_empty() {
        // D44: bodies seen by looking around, unlike those that a subscriber takes out.
        let seen = json!({"messages": found.items.len(), "newest": found.items.first().map(|message| message.id)});
        state.engine.note_view(project, "topic.messages.view", &topic.id.to_string(), seen).await?;
    }
    let data = found.items.iter().map(|message| Value::Object(message_json(message, state.masked()))).collect();
    Ok(list_response(data, found.next_cursor))
}

/// `{max}` → `{"data": […]}`: each is given out again later unless it is acknowledged.
pub async fn pull(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let topic = topic_name(&segments)?;
    let messages_max = input.fields.number("max", 1..=MESSAGES_MAX).unwrap_or(MESSAGES_DEFAULT);
    input.fields.finish(&["max"])?;
    let messages_max = u32::try_from(messages_max).unwrap_or(u32::MAX);
    let pulled = state.engine.pull(project, &topic, segments.get("name"), messages_max).await?;
    let data = pulled.iter().map(|pulled| {
        let mut object = message_json(&pulled.message, state.masked());
        object.insert("timesGiven".into(), pulled.times_given.into());
        Value::Object(object)
    });
    Ok(list_response(data.collect(), None))
}

/// `{ids}` → `{acknowledged, requested}`.
pub async fn acknowledge(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let topic = topic_name(&segments)?;
    let given = input.fields.ids::<EventId>("ids", MESSAGES_MAX as usize, "a message's id");
    let ids = input.fields.required("ids", given).unwrap_or_default();
    input.fields.finish(&["ids"])?;
    let requested = ids.len();
    let acknowledged = state.engine.acknowledge(project, &topic, segments.get("name"), ids).await?;
    Ok(ok(&json!({"acknowledged": acknowledged, "requested": requested})))
}

fn message_json(message: &TopicMessage, masked: &MaskedHeaders) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(message.id));
    object.insert("cid".into(), json!(message.cid));
    object.insert("headers".into(), headers_json(&message.headers, masked));
    match std::str::from_utf8(&message.body) {
        Ok(text) => object.insert("body".into(), text.into()),
        Err(_) => object.insert("body_base64".into(), STANDARD.encode(&message.body).into()),
    };
    object.insert("publishedAt".into(), json!(message.published_at));
    object
}
