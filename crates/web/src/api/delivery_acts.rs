//! What a person does to one delivery (Z23, D06, D27, D44). Answers with the delivery as it stands then.

use axum::response::Response;
use bytes::Bytes;
use postrider_core::connection::DataFormat;
use postrider_core::decide::ByHand;
use postrider_core::topic::TopicName;

use super::deliveries::answer;
use super::send::{body_bytes, data_format};
use super::{Acting, Input};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn retry(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    act(state, segments, query, ByHand::Retry).await
}

pub async fn resend(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    act(state, segments, query, ByHand::Resend).await
}

pub async fn discard(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    act(state, segments, query, ByHand::Discard).await
}

pub async fn set_aside(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    act(state, segments, query, ByHand::SetAside).await
}

pub async fn attempt_now(state: Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    act(state, segments, query, ByHand::AttemptNow).await
}

async fn act(Acting(state): Acting, segments: Segments, query: Query, what: ByHand) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let id = state.delivery(project, &segments).await?.id;
    let changed = state.engine.by_hand(project, id, what).await?;
    answer(&state, &changed).await
}

/// PATCH: a new body. The one accepted stays as the original.
pub async fn edit(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let delivery = state.delivery(project, &segments).await?;
    let connection = state.read().connection(delivery.connection_id).await?;
    let given = input.fields.body();
    let given = input.fields.required("body", given);
    let body: Bytes = body_bytes(&mut input.fields, given, connection.as_ref().map_or(DataFormat::Json, data_format));
    input.fields.finish(&["body", "body_base64"])?;
    state.check_body_size(&body)?;
    let changed = state.engine.edit_body(project, delivery.id, body).await?;
    answer(&state, &changed).await
}

pub async fn forward(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let id = state.delivery(project, &segments).await?.id;
    let keep_header = input.fields.flag("keep_header").unwrap_or(true);
    let given = input.fields.text("topic");
    let given = input.fields.required("topic", given);
    let topic = given.and_then(|given| match TopicName::new(given) {
        Ok(topic) => Some(topic),
        Err(error) => {
            input.fields.refuse("topic", format!("`topic` is no topic's name: {error}"), super::topics::NAMES);
            None
        }
    });
    input.fields.finish(&["topic", "keep_header"])?;
    let topic = topic.ok_or_else(|| Problem::field("topic", "`topic` is missing", super::topics::NAMES))?;
    let changed = state.engine.forward(project, id, &topic, keep_header).await?;
    answer(&state, &changed).await
}
