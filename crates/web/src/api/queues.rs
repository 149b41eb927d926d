//! `/connections/{name}/queue` and `/dlq`: what waits, from head to tail, and what was set aside.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use postrider_core::decide::ByHand;
use postrider_core::delivery::Status;
use postrider_store::{DeliveryFilter, PageRequest};

use super::deliveries::answer;
use super::shapes::delivery_json;
use super::{AppState, connection_ref, list_response};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn queue(State(state): State<AppState>, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    let page = query.page()?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    let found = state.read().queue(connection.id, page).await?;
    let data = found.items.iter().map(|delivery| delivery_json(delivery, Some(&connection.name))).collect();
    Ok(list_response(data, found.next_cursor))
}

pub async fn dead_letters(
    State(state): State<AppState>,
    segments: Segments,
    mut query: Query,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    let page = query.page()?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    let filter = DeliveryFilter {
        project_id: Some(project),
        connection_id: Some(connection.id),
        statuses: vec![Status::Dlq],
        ..DeliveryFilter::default()
    };
    let found = state.read().deliveries(&filter, page).await?;
    let data = found.items.iter().map(|delivery| delivery_json(delivery, Some(&connection.name))).collect();
    Ok(list_response(data, found.next_cursor))
}

/// The head is attempted without waiting for its time (D44); answers with the head as it stands then.
pub async fn attempt_head_now(
    State(state): State<AppState>,
    segments: Segments,
    mut query: Query,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    let head = state.read().queue(connection.id, PageRequest { limit: 1, cursor: None }).await?.items.pop();
    let Some(head) = head else {
        return Err(Problem::new(StatusCode::CONFLICT, "nothing waits in this queue"));
    };
    let changed = state.engine.by_hand(project, head.id, ByHand::AttemptNow).await?;
    answer(&state, &changed).await
}
