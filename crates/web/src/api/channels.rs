//! `/projects/{project}/channels`: the addresses that accept requests. The keys are those of `channel_rest` and `channel_soap`.

use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::id::ProjectId;

use super::connections::{Face, answer, connection_json, hold, make, patch, remove, set, summaries, with_port};
use super::sorting::Sort;
use super::{Acting, AppState, Input, held, list_response, queues};
use crate::problem::{Problem, clipped};
use crate::read::{Query, Segments};

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let page = query.page()?;
    let sort = Sort::take(&mut query)?;
    query.finish()?;
    let summaries = summaries(&state, project).await?;
    let all = state.engine.channels(project);
    let (shown, next) = match sort {
        Some(sort) => sort.page(all, &summaries, &page)?,
        None => held::page(all, &page, |known| known.id)?,
    };
    let json = |known: &Arc<Connection>| {
        let mut json = connection_json(known, summaries.get(&known.id));
        with_port(&state, known, &mut json);
        json
    };
    let data = shown.iter().map(json).collect();
    Ok(list_response(data, next))
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    make(&state, &segments, Face::Channel, input).await
}

pub async fn one(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    answer(&state, &known, StatusCode::OK).await
}

pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    set(&state, project, Face::Channel, &known, input).await
}

pub async fn merge(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    patch(&state, project, Face::Channel, &known, input).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    remove(&state, project, &known, query).await
}

pub async fn pause(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    hold(&state, project, &known, query, true).await
}

pub async fn resume(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, &mut query).await?;
    hold(&state, project, &known, query, false).await
}

pub async fn queue(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, &mut query).await?;
    let page = query.page()?;
    query.finish()?;
    queues::waiting(&state, &known, page).await
}

pub async fn dead_letters(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, &mut query).await?;
    let page = query.page()?;
    query.finish()?;
    queues::dead(&state, &known, page).await
}

pub async fn attempt_head_now(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, &mut query).await?;
    query.finish()?;
    queues::head_now(&state, &known).await
}

/// `?type=` where the name alone is ambiguous (D16).
async fn found(
    state: &AppState,
    segments: &Segments,
    query: &mut Query,
) -> Result<(ProjectId, Arc<Connection>), Problem> {
    let project = state.project(segments).await?;
    let kind = match query.take("type") {
        None => None,
        Some(given) => Some(ConnectionKind::of_channel_type(&given).ok_or_else(|| {
            let allowed = ConnectionKind::CHANNELS_ALLOWED;
            let message = format!("`type` is `{}`: allowed is {allowed}", clipped(&given));
            Problem::bad_request("type", message, allowed)
        })?),
    };
    Ok((project, state.engine.channel(project, segments.get("name"), kind)?))
}
