//! `/topics` and their subscriptions. Messages are in `topic_messages`.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::Wait;
use postrider_core::connection::check_name;
use postrider_core::id::ProjectId;
use postrider_core::settings::objects::{
    DESCRIPTION_CHARS_MAX, REDELIVER_S, REDELIVER_S_MAX, RETENTION_S, RETENTION_S_MAX, RETENTION_S_MIN,
};
use postrider_core::topic::TopicName;
use postrider_store::{PullSubscription, Topic};
use serde_json::{Value, json};

use super::{AppState, Input, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// What a topic may be called, for refusals.
pub use postrider_core::settings::objects::TOPIC_NAMES as NAMES;

/// The topic's name in the path; what is no name names no topic.
pub fn topic_name(segments: &Segments) -> Result<TopicName, Problem> {
    let text = segments.get("topic");
    TopicName::new(text).map_err(|_| Problem::not_found("topic", text))
}

pub(super) async fn find(state: &AppState, project: ProjectId, segments: &Segments) -> Result<Topic, Problem> {
    let name = topic_name(segments)?;
    state.read().topic(project, &name).await?.ok_or_else(|| Problem::not_found("topic", name.as_str()))
}

pub async fn list(State(state): State<AppState>, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    query.finish()?;
    let found = state.read().topics(project, page).await?;
    Ok(list_response(found.items.iter().map(topic_json).collect(), found.next_cursor))
}

pub async fn create(
    State(state): State<AppState>,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let fields = &mut input.fields;
    let given = fields.text("name");
    let given = fields.required("name", given).unwrap_or_default();
    let name = TopicName::new(given.clone());
    if let (Err(error), false) = (&name, given.is_empty()) {
        fields.refuse("name", format!("`name` is no topic's name: {error}"), NAMES);
    }
    let description = fields.text("description").unwrap_or_default();
    if description.chars().count() > DESCRIPTION_CHARS_MAX {
        let allowed = format!("at most {DESCRIPTION_CHARS_MAX} characters");
        fields.refuse("description", "`description` is too long", allowed);
    }
    let retention = fields
        .number("retention_seconds", RETENTION_S_MIN.into()..=RETENTION_S_MAX.into())
        .unwrap_or(RETENTION_S.into());
    input.fields.finish(&["name", "description", "retention_seconds"])?;
    let name = name.map_err(|error| Problem::field("name", format!("`name` is no topic's name: {error}"), NAMES))?;
    let topic = state.engine.create_topic(project, name, description, Wait::from_secs(retention)).await?;
    Ok(json_response(StatusCode::CREATED, &topic_json(&topic)))
}

pub async fn one(State(state): State<AppState>, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    Ok(ok(&topic_json(&find(&state, project, &segments).await?)))
}

pub async fn delete(State(state): State<AppState>, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    state.engine.delete_topic(project, &topic_name(&segments)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub async fn subscriptions(
    State(state): State<AppState>,
    segments: Segments,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let topic = find(&state, project, &segments).await?;
    let found = state.read().subscriptions(&topic).await?;
    Ok(list_response(found.iter().map(|one| subscription_json(one, &topic.name)).collect(), None))
}

pub async fn subscribe(
    State(state): State<AppState>,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let topic = topic_name(&segments)?;
    let name = input.fields.text("name");
    let name = input.fields.required("name", name).unwrap_or_default();
    if let (Err(error), false) = (check_name(&name), name.is_empty()) {
        input.fields.refuse("name", error.to_string(), error.allowed);
    }
    let redeliver_after =
        input.fields.number("redeliver_after_seconds", 1..=REDELIVER_S_MAX.into()).unwrap_or(REDELIVER_S.into());
    input.fields.finish(&["name", "redeliver_after_seconds"])?;
    if name.is_empty() {
        return Err(Problem::field("name", "`name` is empty", "1 to 200 characters"));
    }
    let made = state.engine.create_subscription(project, &topic, name, Wait::from_secs(redeliver_after)).await?;
    Ok(json_response(StatusCode::CREATED, &subscription_json(&made, &topic)))
}

pub async fn unsubscribe(State(state): State<AppState>, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    state.engine.delete_subscription(project, &topic_name(&segments)?, segments.get("name")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn topic_json(topic: &Topic) -> Value {
    json!({
        "id": topic.id,
        "name": topic.name,
        "description": topic.description,
        "retention_seconds": topic.retention.as_millis() / 1000,
        "createdAt": topic.created_at,
    })
}

fn subscription_json(subscription: &PullSubscription, topic: &TopicName) -> Value {
    json!({
        "id": subscription.id,
        "name": subscription.name,
        "topic": topic,
        "redeliver_after_seconds": subscription.redeliver_after.as_millis() / 1000,
        "createdAt": subscription.created_at,
    })
}
