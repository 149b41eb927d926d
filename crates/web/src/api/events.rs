//! `/projects/{project}/events`: what has happened, published to whoever subscribed to its type (D40).

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use http::StatusCode;
use postrider_core::id::{Cid, EventId, ProjectId};
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_engine::{NewEvent, PublishedTo};
use postrider_store::{EventFilter, StoredEvent};
use serde_json::{Map, Value, json};

use super::send::caller_cid;
use super::{Acting, AppState, Input, json_response, list_response, ok};
use crate::problem::{FieldError, Problem, clipped};
use crate::read::{Fields, Lines, Query, Segments, essence};

/// `event_batch_lines_max`: events in one batch; empty lines do not count.
pub(super) const LINES_MAX: usize = 10_000;
/// Events under way to the store at once.
const LINES_AT_ONCE: usize = 64;
const TYPES: &str = "segments of letters, digits, `_` and `-` with dots between, at most 200 characters";

/// `{type, data, id}` → `{eventId, deliveriesCreated}`. Stored with its deliveries when it is answered.
pub async fn publish(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let cid = caller_cid(&input.headers)?;
    let event = NewEvent { cid, ..read(&state, input.fields)? };
    let published = state.engine.publish_event(project, event.clone()).await?;
    let status = if published.is_repeat { StatusCode::OK } else { StatusCode::CREATED };
    Ok(json_response(status, &Value::Object(published_json(&event, &published))))
}

/// One event a line; a bad line is refused by its number and leaves the others.
pub async fn publish_batch(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    request: Request,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let (parts, body): (_, Body) = request.into_parts();
    if !matches!(essence(&parts.headers).as_str(), "application/x-ndjson" | "application/jsonl") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be JSON objects, one a line: `Content-Type: application/x-ndjson`",
        ));
    }
    let bounds = state.options.body.clone();
    let mut lines = Lines::new(body, &bounds);
    let cid = caller_cid(&parts.headers)?;
    let mut batch = Batch { cid, results: Vec::new(), ready: Vec::new(), stopped: None };
    let ended = loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(problem) => break Some(problem),
        };
        if batch.results.len() + batch.ready.len() >= LINES_MAX {
            let detail = format!("a batch has at most {LINES_MAX} lines (`event_batch_lines_max`)");
            let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail);
            break Some(problem.with_member("next_line", line.number.into()));
        }
        batch.take(&state, line.number, line.content);
        if batch.ready.len() >= LINES_AT_ONCE {
            batch.publish(&state, project).await;
            lines.begin_window();
        }
        if batch.stopped.is_some() {
            break None;
        }
    };
    batch.publish(&state, project).await;
    let (counts, stopped) = (batch.counts(), batch.stopped.take());
    match stopped.or(ended) {
        None => Ok(ok(&Value::Object(counts))),
        Some(problem) => {
            Err(counts.into_iter().fold(problem, |problem, (name, value)| problem.with_member(&name, value)))
        }
    }
}

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let topic = match query.take("type") {
        None => None,
        Some(given) => Some(
            TopicName::new(given)
                .map_err(|error| Problem::bad_request("type", format!("`type` is no event type: {error}"), TYPES))?,
        ),
    };
    let filter = EventFilter { topic, from: query.time("created_from")?, before: query.time("created_before")? };
    query.finish()?;
    let found = state.engine.events(project, &filter, page).await?;
    let data = found.items.iter().map(|event| Value::Object(event_json(event))).collect();
    Ok(list_response(data, found.next_cursor))
}

/// With its data. That it was seen stands in the audit log (D44).
pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    state.check_sees_bodies()?;
    let project = state.project(&segments).await?;
    let text = segments.get("event");
    let id = segments.id::<EventId>("event", "event")?;
    let event = state.engine.event(project, id).await?;
    let seen = json!({"type": event.topic, "body_bytes": event.body.len()});
    state.engine.note_view(project, "event.view", text, seen).await?;
    let mut json = event_json(&event);
    match serde_json::from_slice::<Value>(&event.body) {
        Ok(data) => json.insert("data".into(), data),
        Err(_) => json.insert("data".into(), String::from_utf8_lossy(&event.body).into()),
    };
    Ok(ok(&Value::Object(json)))
}

pub(super) fn read(state: &AppState, mut fields: Fields) -> Result<NewEvent, Problem> {
    let given = fields.required_text("type");
    let event_type = given.and_then(|given| match TopicName::new(given) {
        Ok(name) => Some(name),
        Err(error) => {
            fields.refuse("type", format!("`type` is no event type: {error}"), TYPES);
            None
        }
    });
    let id = fields.text("id").and_then(|given| match given.parse::<EventId>() {
        Ok(id) => Some(id),
        Err(error) => {
            fields.refuse("id", error.to_string(), "an event's id: `evt_` and 26 letters and digits");
            None
        }
    });
    // Null is data too, and nothing is not.
    let data = if fields.has("data") { Some(fields.take("data")) } else { fields.required("data", None) };
    let body = data.and_then(|data| fields.compacted("data", data.as_deref()).map(Bytes::from));
    fields.finish(&["type", "data", "id"])?;
    let (Some(event_type), Some(body)) = (event_type, body) else {
        return Err(Problem::field("type", "`type` and `data` are missing", "both must be given"));
    };
    state.check_body_size(&body)?;
    Ok(NewEvent { event_type, headers: HeaderList::default(), body, id, cid: None })
}

/// What has become of one line.
type Published = Result<Map<String, Value>, FieldError>;

/// What has become of the lines so far.
struct Batch {
    /// Of all its events.
    cid: Option<Cid>,
    results: Vec<(u64, Published)>,
    /// Read and not yet published.
    ready: Vec<(u64, NewEvent)>,
    /// The store took no more: nothing further is read.
    stopped: Option<Problem>,
}

impl Batch {
    fn take(&mut self, state: &AppState, number: u64, content: Option<Bytes>) {
        let event = match content {
            None => Err(Problem::too_large(state.options.body.body_bytes_max)),
            Some(content) => Fields::parse(&content).and_then(|fields| read(state, fields)),
        };
        match event {
            Ok(event) => self.ready.push((number, NewEvent { cid: self.cid.clone(), ..event })),
            Err(problem) => self.results.push((number, Err(first_error(&problem)))),
        }
    }

    /// In the order of their lines.
    async fn publish(&mut self, state: &AppState, project: ProjectId) {
        let ready = std::mem::take(&mut self.ready);
        let answers = join_all(ready.iter().map(|(_, event)| state.engine.publish_event(project, event.clone()))).await;
        for ((number, event), answer) in ready.iter().zip(answers) {
            match answer {
                Ok(published) => self.results.push((*number, Ok(published_json(event, &published)))),
                Err(refusal) => {
                    let problem = Problem::from(refusal);
                    self.results.push((*number, Err(first_error(&problem))));
                    if problem.status().is_server_error() {
                        self.stopped.get_or_insert(problem);
                    }
                }
            }
        }
    }

    fn counts(&mut self) -> Map<String, Value> {
        self.results.sort_by_key(|(number, _)| *number);
        let accepted = self.results.iter().filter(|(_, result)| result.is_ok()).count();
        let line = |(number, result): &(u64, Published)| {
            let mut object = Map::new();
            object.insert("line".into(), (*number).into());
            match result {
                Ok(published) => object.extend(published.clone()),
                Err(error) => {
                    let error = json!({"field": error.field, "message": error.message, "allowed": error.allowed});
                    object.insert("error".into(), error);
                }
            }
            Value::Object(object)
        };
        let mut counts = Map::new();
        counts.insert("accepted".into(), accepted.into());
        counts.insert("refused".into(), (self.results.len() - accepted).into());
        counts.insert("results".into(), self.results.iter().map(line).collect());
        counts
    }
}

fn first_error(problem: &Problem) -> FieldError {
    let first = problem.errors().first().cloned();
    first.unwrap_or_else(|| FieldError { field: String::new(), message: clipped(problem.detail()), allowed: None })
}

fn published_json(event: &NewEvent, published: &PublishedTo) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("eventId".into(), json!(published.id));
    object.insert("type".into(), json!(event.event_type));
    object.insert("deliveriesCreated".into(), published.deliveries.into());
    object.insert("repeated".into(), published.is_repeat.into());
    object
}

fn event_json(event: &StoredEvent) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(event.id));
    object.insert("type".into(), json!(event.topic));
    object.insert("cid".into(), json!(event.cid));
    object.insert("bodyBytes".into(), event.body.len().into());
    object.insert("createdAt".into(), json!(event.published_at));
    object
}
