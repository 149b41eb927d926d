//! `/forwards` and `/incoming-dlq`: webhooks on their way to their destinations, and Failed Forwards (R12). A retry is a new forward.

use std::collections::BTreeMap;

use axum::response::Response;
use http::StatusCode;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Origin, Status};
use postrider_core::id::{ConnectionId, DestinationId, ForwardId, ProjectId, SourceId};
use postrider_store::{DeliveryFilter, PAGE_ROWS_MAX, PageRequest};
use serde_json::{Map, Value, json};

use super::deliveries::connections_of;
use super::shapes::delivery_json;
use super::{Acting, AppState, Input, filter, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// Forwards of one bulk retry, at most.
pub(super) const IDS_MAX: usize = 1000;

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let filter = of_query(&state, project, &mut query).await?;
    let page = query.page()?;
    query.finish()?;
    let found = state.read().deliveries(&filter, page).await?;
    let context = Context::of(&state, project, &found.items).await?;
    Ok(list_response(found.items.iter().map(|item| context.forward_json(&state, item)).collect(), found.next_cursor))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let forward = forward(&state, project, &segments).await?;
    let context = Context::of(&state, project, std::slice::from_ref(&forward)).await?;
    Ok(ok(&context.forward_json(&state, &forward)))
}

pub async fn failed(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let mut filter = of_query(&state, project, &mut query).await?;
    if !filter.statuses.is_empty() {
        return Err(Problem::bad_request("status", "every failed forward has the status DLQ", "no `status` here"));
    }
    filter.statuses = vec![Status::Dlq];
    let page = query.page()?;
    query.finish()?;
    let found = state.read().deliveries(&filter, page).await?;
    let context = Context::of(&state, project, &found.items).await?;
    Ok(list_response(found.items.iter().map(|item| context.failed_json(&state, item)).collect(), found.next_cursor))
}

pub async fn one_failed(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let forward = forward(&state, project, &segments).await?;
    if forward.progress.status != Status::Dlq {
        return Err(Problem::not_found("failed forward", segments.get("id")));
    }
    let context = Context::of(&state, project, std::slice::from_ref(&forward)).await?;
    Ok(ok(&context.failed_json(&state, &forward)))
}

/// 201 with the new forward.
pub async fn retry(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let id = segments.id::<ForwardId>("id", "forward")?;
    let new = state.engine.retry_forward(project, id).await?;
    let context = Context::of(&state, project, std::slice::from_ref(&new)).await?;
    Ok(json_response(StatusCode::CREATED, &context.forward_json(&state, &new)))
}

/// `{forwardIds}` or `{filter}` → `{retried, requested, refused}`, the oldest first. A filter takes at most so many at once; `hasMore` tells of others.
pub async fn retry_several(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let dry_run = input.fields.flag("dry_run").unwrap_or(false);
    let (ids, has_more) = match input.fields.take("filter") {
        Some(given) => {
            input.fields.finish(&["filter", "dry_run"])?;
            let mut query = filter::query_of(&given)?;
            let filter = of_query(&state, project, &mut query).await;
            let filter = filter.and_then(|filter| query.finish().map(|()| filter));
            failed_of(&state, filter.map_err(|problem| problem.within("filter"))?).await?
        }
        None => {
            let given = input.fields.ids::<ForwardId>("forwardIds", IDS_MAX, "a forward's id (fwd_…)");
            let ids = input.fields.required("forwardIds", given).unwrap_or_default();
            input.fields.finish(&["forwardIds", "filter", "dry_run"])?;
            (ids, false)
        }
    };
    if dry_run {
        return Ok(ok(&json!({"matched": ids.len(), "hasMore": has_more})));
    }
    retry_all(&state, project, &ids, has_more).await
}

async fn retry_all(
    state: &AppState,
    project: ProjectId,
    ids: &[ForwardId],
    has_more: bool,
) -> Result<Response, Problem> {
    let (mut forwards, mut refused) = (Vec::new(), Vec::new());
    for id in ids {
        match state.engine.retry_forward(project, *id).await {
            Ok(new) => forwards.push(json!({"retried": id, "forward": ForwardId::of(new.id)})),
            Err(refusal) => {
                let problem = Problem::from(refusal);
                // What fails for all of them is told at once, as long as nothing has been done yet.
                if problem.status() >= StatusCode::INTERNAL_SERVER_ERROR && forwards.is_empty() {
                    return Err(problem);
                }
                refused.push(json!({"forwardId": id, "status": problem.status().as_u16(), "detail": problem.detail()}));
            }
        }
    }
    let answer = json!({
        "retried": forwards.len(),
        "requested": ids.len(),
        "forwards": forwards,
        "refused": refused,
        "hasMore": has_more,
    });
    Ok(ok(&answer))
}

/// Failed ones that the filter lets through, the oldest first, so that they keep their order.
async fn failed_of(state: &AppState, mut filter: DeliveryFilter) -> Result<(Vec<ForwardId>, bool), Problem> {
    filter.statuses = vec![Status::Dlq];
    let (mut found, mut cursor) = (Vec::new(), None);
    loop {
        let page = state.read().deliveries(&filter, PageRequest { limit: PAGE_ROWS_MAX, cursor }).await?;
        found.extend(page.items.iter().map(|item| ForwardId::of(item.id)));
        cursor = page.next_cursor;
        if cursor.is_none() || found.len() >= IDS_MAX {
            let has_more = cursor.is_some() || found.len() > IDS_MAX;
            found.truncate(IDS_MAX);
            found.reverse();
            return Ok((found, has_more));
        }
    }
}

/// The filters of deliveries, and `source` and `destination`.
async fn of_query(state: &AppState, project: ProjectId, query: &mut Query) -> Result<DeliveryFilter, Problem> {
    if query.has("origin") {
        return Err(Problem::bad_request("origin", "every forward has the origin incoming", "no `origin` here"));
    }
    let id = match query.take("id") {
        None => None,
        Some(text) => Some(
            text.parse::<ForwardId>()
                .map_err(|error| Problem::bad_request("id", error.to_string(), "a forward's id (fwd_…)"))?,
        ),
    };
    let (source, destination) = (query.take("source"), query.take("destination"));
    let mut filter = filter::of_query(state, project, query).await?;
    filter.origin = Some(Origin::Incoming);
    filter.id = id.map(ForwardId::delivery);
    if let Some(text) = source {
        let id = text
            .parse::<SourceId>()
            .map_err(|error| Problem::bad_request("source", error.to_string(), "a source's id (src_…)"))?;
        filter.event_type = Some(state.engine.source(project, id)?.row.source.spec.topic.to_string());
    }
    if let Some(text) = destination {
        let id = text
            .parse::<DestinationId>()
            .map_err(|error| Problem::bad_request("destination", error.to_string(), "a destination's id (dst_…)"))?;
        let known = state.engine.push_subscription(project, id.subscription())?;
        filter.connection_id = Some(known.connection_id);
        filter.event_type.get_or_insert_with(|| known.spec.pattern.as_str().to_owned());
    }
    Ok(filter)
}

async fn forward(state: &AppState, project: ProjectId, segments: &Segments) -> Result<Delivery, Problem> {
    let id = segments.id::<ForwardId>("id", "forward")?;
    let found = state.read().delivery(id.delivery()).await?;
    let is_ours = |known: &Delivery| known.project_id == project && known.origin == Origin::Incoming;
    found.filter(is_ours).ok_or_else(|| Problem::not_found("forward", segments.get("id")))
}

/// What the forwards of a page refer to.
struct Context {
    connections: BTreeMap<ConnectionId, Connection>,
    /// By topic.
    sources: BTreeMap<String, (SourceId, String)>,
}

impl Context {
    async fn of(state: &AppState, project: ProjectId, forwards: &[Delivery]) -> Result<Context, Problem> {
        let sources = state.engine.sources(project).into_iter().map(|known| {
            let source = &known.row.source;
            (source.spec.topic.to_string(), (source.id, source.name.clone()))
        });
        Ok(Context { connections: connections_of(state, forwards).await?, sources: sources.collect() })
    }

    /// Where it came from and where it goes; the same in every answer.
    fn way(&self, forward: &Delivery) -> Map<String, Value> {
        let connection = self.connections.get(&forward.connection_id);
        let event = forward.event.as_ref();
        let source = event.and_then(|event| self.sources.get(&event.event_type));
        let mut way = Map::new();
        way.insert("deliveryId".into(), json!(forward.id));
        way.insert("incomingEventId".into(), json!(event.map(|event| event.id)));
        way.insert("sourceId".into(), json!(source.map(|(id, _)| id)));
        way.insert("sourceName".into(), json!(source.map(|(_, name)| name)));
        way.insert("destinationId".into(), json!(event.map(|event| DestinationId::of(event.subscription_id))));
        way.insert("destinationUrl".into(), json!(connection.map(|known| known.spec.target.address())));
        way.insert("connection".into(), json!(connection.map(|known| &known.name)));
        way
    }

    fn forward_json(&self, state: &AppState, forward: &Delivery) -> Value {
        let connection = self.connections.get(&forward.connection_id);
        let Value::Object(mut object) = delivery_json(forward, connection, state.seen()) else { return Value::Null };
        object.extend(self.way(forward));
        object.insert("id".into(), json!(ForwardId::of(forward.id)));
        Value::Object(object)
    }

    /// An item of Failed Forwards, in the shape of Failed Messages.
    fn failed_json(&self, state: &AppState, forward: &Delivery) -> Value {
        let progress = &forward.progress;
        let mut object = Map::new();
        object.insert("forwardId".into(), json!(ForwardId::of(forward.id)));
        object.extend(self.way(forward));
        object.insert("attemptCount".into(), progress.attempts.into());
        object.insert("lastError".into(), state.seen().error(progress.error.as_deref()));
        object.insert("failure".into(), json!(progress.failure));
        object.insert("failedAt".into(), json!(progress.dead_at));
        object.insert("createdAt".into(), json!(forward.created_at));
        object.insert("cid".into(), json!(forward.cid));
        object.insert("bodyBytes".into(), forward.body_bytes.into());
        Value::Object(object)
    }
}
