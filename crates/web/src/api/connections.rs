//! `/projects/{project}/connections`: the keys as people write them, plus what we know about the connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::blocked::blocked_by;
use postrider_core::connection::{Connection, ConnectionKind, Door, Family, check_name};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::masking::masked_settings;
use postrider_core::settings::warnings;
use postrider_engine::{ConnectionRef, NewConnection};
use postrider_store::{PageRequest, QueueSummary};
use serde_json::{Map, Value, json};

use super::sorting::Sort;
use super::{Acting, AppState, Input, connection_ref, json_response, list_response, merge, ok, wsdl};
use crate::problem::{FieldError, Problem};
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 5] = ["id", "state", "warnings", "createdAt", "updatedAt"];

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let sort = Sort::take(&mut query)?;
    query.finish()?;
    let summaries = summaries(&state, project).await?;
    // Channels and services have lists of their own.
    let (shown, next) = match sort {
        Some(sort) => {
            let mut all = state.engine.connections();
            all.retain(|known| known.project_id == project && known.kind().family() == Family::Connection);
            sort.page(all, &summaries, &page)?
        }
        None => {
            let found = state.read().connections(project, page).await?;
            let shown = found.items.into_iter().filter(|known| known.kind().family() == Family::Connection);
            (shown.map(Arc::new).collect(), found.next_cursor)
        }
    };
    let mut data = Vec::with_capacity(shown.len());
    for known in &shown {
        let summary = summaries.get(&known.id);
        let mut json = connection_json(known, summary);
        json["state"]["blocked"] = blocked(&state, known, summary).await?;
        data.push(json);
    }
    Ok(list_response(data, next))
}

/// How the queues of a project stand.
pub(super) async fn summaries(
    state: &AppState,
    project: ProjectId,
) -> Result<BTreeMap<ConnectionId, QueueSummary>, Problem> {
    let summaries = state.read().queue_summaries(project).await?;
    Ok(summaries.into_iter().map(|summary| (summary.queue_id, summary)).collect())
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    make(&state, &segments, Face::Connection, input).await
}

/// Makes a connection, a channel or a service.
pub(super) async fn make(
    state: &AppState,
    segments: &Segments,
    face: Face,
    mut input: Input,
) -> Result<Response, Problem> {
    let project = state.project(segments).await?;
    let name = input.fields.required_text("name");
    let kind = match face {
        Face::Service => Some(ConnectionKind::Service.as_str().to_owned()),
        Face::Connection | Face::Channel => input.fields.required_text("type"),
    };
    let new = written(input.fields, face, name, kind, None)?;
    let created = state.engine.create_connection(project, new).await?;
    answer(state, &created, StatusCode::CREATED).await
}

pub async fn one(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    answer(&state, &known, StatusCode::OK).await
}

/// The connection in the path; a channel or a service is none here.
async fn found(
    state: &AppState,
    segments: &Segments,
    query: &mut Query,
) -> Result<(ProjectId, Arc<Connection>), Problem> {
    let project = state.project(segments).await?;
    let named = connection_ref(segments, query)?;
    let known = state.engine.connection(project, &named).await?;
    match known.kind().family() {
        Family::Connection => Ok((project, known)),
        Family::Channel | Family::Service => Err(Problem::not_found("connection", &named.name)),
    }
}

/// All settings anew; a new `name` renames and keeps the queue (Z18).
pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    set(&state, project, Face::Connection, &known, input).await
}

pub(super) async fn set(
    state: &AppState,
    project: ProjectId,
    face: Face,
    known: &Connection,
    mut input: Input,
) -> Result<Response, Problem> {
    let (name, kind) = named_or_known(&mut input.fields, face, known);
    let new = written(input.fields, face, name, kind, Some(known))?;
    store(state, project, known, new).await
}

/// A merge patch, RFC 7396: what is given replaces, null removes, the rest stays.
pub async fn merge(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    patch(&state, project, Face::Connection, &known, input).await
}

pub(super) async fn patch(
    state: &AppState,
    project: ProjectId,
    face: Face,
    known: &Connection,
    mut input: Input,
) -> Result<Response, Problem> {
    let (name, kind) = named_or_known(&mut input.fields, face, known);
    let patch = written(input.fields, face, name, kind, Some(known))?;
    let merged = merge::patched(&known.written, patch.written);
    store(state, project, known, NewConnection { written: merged, ..patch }).await
}

fn named_or_known(fields: &mut Fields, face: Face, known: &Connection) -> (Option<String>, Option<String>) {
    let name = fields.text("name").or_else(|| Some(known.name.clone()));
    let kind = match face {
        Face::Service => None,
        Face::Connection | Face::Channel => fields.text("type"),
    };
    (name, kind.or_else(|| Some(face.shown(known.kind()).to_owned())))
}

async fn store(
    state: &AppState,
    project: ProjectId,
    known: &Connection,
    new: NewConnection,
) -> Result<Response, Problem> {
    let replaced = state.engine.replace_connection(project, &exactly(known), new).await?;
    answer(state, &replaced, StatusCode::OK).await
}

/// As the engine finds it again.
fn exactly(known: &Connection) -> ConnectionRef {
    ConnectionRef { name: known.name.clone(), kind: Some(known.kind()) }
}

pub async fn delete(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    remove(&state, project, &known, query).await
}

pub(super) async fn remove(
    state: &AppState,
    project: ProjectId,
    known: &Connection,
    mut query: Query,
) -> Result<Response, Problem> {
    let forced = query.flag("force")?;
    query.finish()?;
    state.engine.delete_connection(project, &exactly(known), forced).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub async fn pause(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    hold(&state, project, &known, query, true).await
}

pub async fn resume(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    hold(&state, project, &known, query, false).await
}

pub(super) async fn hold(
    state: &AppState,
    project: ProjectId,
    known: &Connection,
    query: Query,
    paused: bool,
) -> Result<Response, Problem> {
    query.finish()?;
    let connection = state.engine.set_paused(project, &exactly(known), paused).await?;
    answer(state, &connection, StatusCode::OK).await
}

/// Which of the three resources a request is about: the same settings and the same rules, under names of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Face {
    Connection,
    /// Its types are what it speaks: rest, soap.
    Channel,
    /// It has no type.
    Service,
}

impl Face {
    fn of(kind: ConnectionKind) -> Face {
        match kind.family() {
            Family::Connection => Face::Connection,
            Family::Channel => Face::Channel,
            Family::Service => Face::Service,
        }
    }

    fn parse(self, text: &str) -> Option<ConnectionKind> {
        match self {
            Face::Connection => ConnectionKind::CONNECTIONS.into_iter().find(|kind| kind.as_str() == text),
            Face::Channel => ConnectionKind::of_channel_type(text),
            Face::Service => Some(ConnectionKind::Service),
        }
    }

    pub(super) fn shown(self, kind: ConnectionKind) -> &'static str {
        match self {
            Face::Channel => kind.channel_type().unwrap_or(kind.as_str()),
            Face::Connection | Face::Service => kind.as_str(),
        }
    }

    const fn allowed(self) -> &'static str {
        match self {
            Face::Connection => ConnectionKind::CONNECTIONS_ALLOWED,
            Face::Channel => ConnectionKind::CHANNELS_ALLOWED,
            Face::Service => "nothing here: a service has no type",
        }
    }
}

/// What a request says about a connection. `version`, if given, must be the stored one, so that nobody undoes another's change unseen.
fn written(
    mut fields: Fields,
    face: Face,
    name: Option<String>,
    kind: Option<String>,
    known: Option<&Connection>,
) -> Result<NewConnection, Problem> {
    for ours in OURS {
        fields.take(ours);
    }
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let description = wsdl::read(&mut fields);
    let nulls_kept = known.is_some();
    let written = if nulls_kept { fields.rest() } else { without_nulls(fields.rest()) };
    if let Some(Err(error)) = name.as_deref().map(check_name) {
        let FieldError { field, message, allowed } = FieldError::from(&error);
        fields.refuse(field, message, allowed.unwrap_or_default());
    }
    let parsed = kind.as_deref().and_then(|kind| face.parse(kind));
    if let (Some(given), None) = (&kind, parsed) {
        fields.refuse("type", format!("`type` is `{}`", crate::problem::clipped(given)), face.allowed());
    }
    if let (Some(known), Some(kind)) = (known, parsed)
        && known.kind() != kind
    {
        fields.refuse("type", "the type of a connection cannot change", face.shown(known.kind()));
    }
    let written = match (description, parsed) {
        (Some(description), Some(ConnectionKind::Soap)) => {
            wsdl::with_described(&mut fields, &description, written, known)
        }
        (Some(_), Some(kind)) => {
            let message = format!("what is of type `{}` has no WSDL", kind.as_str());
            fields.refuse("wsdl", message, "nothing here: only connections of type soap have it");
            written
        }
        _ => written,
    };
    fields.finish(&[])?;
    if let (Some(known), Some(version)) = (known, version)
        && u64::from(known.version) != version
    {
        let detail = format!("the connection has version {} by now, not {version}: read it again", known.version);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    match (name, parsed) {
        (Some(name), Some(kind)) => Ok(NewConnection { name, kind, written }),
        _ => Err(Problem::field("name", "`name` and `type` are missing", "both must be given")),
    }
}

fn without_nulls(written: Map<String, Value>) -> Map<String, Value> {
    written.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

pub(super) async fn answer(state: &AppState, connection: &Connection, status: StatusCode) -> Result<Response, Problem> {
    let summary = state.read().queue_summary(connection.id).await?;
    let mut json = connection_json(connection, Some(&summary));
    json["state"]["blocked"] = blocked(state, connection, Some(&summary)).await?;
    with_port(state, connection, &mut json);
    Ok(if status == StatusCode::OK { ok(&json) } else { json_response(status, &json) })
}

/// Whether a channel with a port of its own listens on it in this process; if not, a warning says why.
pub(super) fn with_port(state: &AppState, connection: &Connection, json: &mut Value) {
    let Some(Door::Mllp(_)) = connection.spec.target.channel().map(|channel| &channel.door) else { return };
    let shut = state.engine.port_shut(connection.id);
    json["state"]["listening"] = (connection.spec.is_active && shut.is_none()).into();
    if let (Some(why), Some(warnings)) = (shut, json["warnings"].as_array_mut()) {
        warnings.push(format!("it does not listen: {why}; it is tried again").into());
    }
}

/// The code that the head of its queue was refused with for good (D25); null where the queue moves.
async fn blocked(state: &AppState, connection: &Connection, summary: Option<&QueueSummary>) -> Result<Value, Problem> {
    let may_be = connection.spec.target.mllp().is_some() && !connection.spec.policy.dlq.use_dlq;
    if !may_be || summary.is_none_or(|summary| summary.waiting == 0) {
        return Ok(Value::Null);
    }
    let head = state.read().queue(connection.id, PageRequest { limit: 1, cursor: None }).await?.items.pop();
    let code = head.and_then(|head| blocked_by(connection, &head.progress));
    Ok(code.map_or(Value::Null, |code| code.as_str().into()))
}

pub(super) fn connection_json(connection: &Connection, summary: Option<&QueueSummary>) -> Value {
    let (waiting, dead) = summary.map_or((0, 0), |summary| (summary.waiting, summary.dead));
    let mut object = Map::new();
    object.insert("name".into(), connection.name.clone().into());
    let face = Face::of(connection.kind());
    if face != Face::Service {
        object.insert("type".into(), face.shown(connection.kind()).into());
    }
    // Headers of an endpoint may hold somebody's secret.
    object.extend(masked_settings(&connection.written));
    object.insert("id".into(), json!(connection.id));
    object.insert("version".into(), connection.version.into());
    let state = json!({
        "paused": connection.paused,
        "is_active": connection.spec.is_active,
        // D31: the queue was turned off with a backlog.
        "draining": !connection.spec.policy.queue.use_queue && waiting > 0,
        "waiting": waiting,
        "dead": dead,
        "oldestWaitingSince": summary.and_then(|summary| summary.oldest_waiting_since),
        // Only over MLLP may it be otherwise, and then the caller says so.
        "blocked": Value::Null,
    });
    object.insert("state".into(), state);
    object.insert("warnings".into(), warnings(connection.kind(), &connection.written).into());
    object.insert("createdAt".into(), json!(connection.created_at));
    object.insert("updatedAt".into(), json!(connection.updated_at));
    Value::Object(object)
}
