//! `/projects/{project}/services`: what channels run. Those that are configured can be changed; those of this process are shown beside them.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::id::ProjectId;
use postrider_engine::ConnectionRef;
use postrider_store::PageRequest;
use serde_json::{Value, json};

use super::connections::{Face, answer, connection_json, hold, make, patch, remove, set, summaries};
use super::{Acting, AppState, Input, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// By name; the cursor is the last one's.
pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let PageRequest { limit, cursor } = query.page()?;
    query.finish()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let summaries = summaries(&state, project).await?;
    let mut all: BTreeMap<String, Value> = local(&state).collect();
    for known in state.engine.configured_services(project) {
        // Code in this process is what runs under its name.
        all.entry(known.name.clone())
            .and_modify(|shown| shown["configured"] = true.into())
            .or_insert_with(|| configured(connection_json(&known, summaries.get(&known.id))));
    }
    let mut rest = all.into_iter().filter(|(name, _)| cursor.as_ref().is_none_or(|cursor| name > cursor));
    let shown: Vec<(String, Value)> = rest.by_ref().take(limit).collect();
    let next = rest.next().and(shown.last()).map(|(name, _)| name.clone());
    Ok(list_response(shown.into_iter().map(|(_, json)| json).collect(), next))
}

fn local(state: &AppState) -> impl Iterator<Item = (String, Value)> + use<> {
    state.engine.local_services().into_iter().map(|(name, source, has_queue_response)| {
        let hooks = if has_queue_response { json!(["queue-response"]) } else { json!([]) };
        let shown = json!({"name": name, "source": source, "hooks": hooks, "configured": false});
        (name, shown)
    })
}

fn configured(mut json: Value) -> Value {
    json["source"] = "configured".into();
    json["configured"] = true.into();
    json
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    make(&state, &segments, Face::Service, input).await
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    match found(&state, &segments).await {
        Ok((_, known)) => answer(&state, &known, StatusCode::OK).await,
        Err(problem) => {
            let name = segments.get("name");
            let shown = local(&state).find(|(known, _)| known == name).map(|(_, json)| ok(&json));
            shown.ok_or(problem)
        }
    }
}

pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let (project, known) = found(&state, &segments).await?;
    set(&state, project, Face::Service, &known, input).await
}

pub async fn merge(Acting(state): Acting, segments: Segments, query: Query, input: Input) -> Result<Response, Problem> {
    query.finish()?;
    let (project, known) = found(&state, &segments).await?;
    patch(&state, project, Face::Service, &known, input).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments).await?;
    remove(&state, project, &known, query).await
}

pub async fn pause(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments).await?;
    hold(&state, project, &known, query, true).await
}

pub async fn resume(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments).await?;
    hold(&state, project, &known, query, false).await
}

async fn found(state: &AppState, segments: &Segments) -> Result<(ProjectId, Arc<Connection>), Problem> {
    let project = state.project(segments).await?;
    let named = ConnectionRef { name: segments.get("name").to_owned(), kind: Some(ConnectionKind::Service) };
    Ok((project, state.engine.connection(project, &named).await?))
}
