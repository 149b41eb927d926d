//! `/connections/{name}/queue` and `/dlq`: what waits, from head to tail, and what was set aside.

use axum::response::Response;
use http::StatusCode;
use postrider_core::blocked::blocked_by;
use postrider_core::connection::Connection;
use postrider_core::decide::ByHand;
use postrider_core::delivery::{Delivery, Status};
use postrider_store::{DeliveryFilter, PageRequest};
use serde_json::Value;

use super::deliveries::answer;
use super::shapes::{delivery_json, with_deferral};
use super::{Acting, AppState, connection_ref, list_response};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn queue(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    let page = query.page()?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    waiting(&state, &connection, page).await
}

/// What waits in a queue, head first.
pub(super) async fn waiting(state: &AppState, known: &Connection, page: PageRequest) -> Result<Response, Problem> {
    let is_first = page.cursor.is_none();
    let found = state.read().queue(known.id, page).await?;
    let deferred = state.engine.deferred(&found.items).await?;
    let shown = |(at, delivery): (usize, &Delivery)| {
        let json = delivery_json(delivery, Some(known), state.seen());
        let mut json = with_deferral(json, deferred.get(&delivery.id));
        // D25: only the head holds up the others.
        let is_head = is_first && at == 0;
        let blocked = is_head.then(|| blocked_by(known, &delivery.progress)).flatten();
        json["blocked"] = blocked.map_or(Value::Null, |code| code.as_str().into());
        json
    };
    Ok(list_response(found.items.iter().enumerate().map(shown).collect(), found.next_cursor))
}

pub async fn dead_letters(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    let page = query.page()?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    dead(&state, &connection, page).await
}

/// What was set aside of it.
pub(super) async fn dead(state: &AppState, known: &Connection, page: PageRequest) -> Result<Response, Problem> {
    let filter = DeliveryFilter {
        project_id: Some(known.project_id),
        connection_id: Some(known.id),
        statuses: vec![Status::Dlq],
        ..DeliveryFilter::default()
    };
    let found = state.read().deliveries(&filter, page).await?;
    let data = found.items.iter().map(|delivery| delivery_json(delivery, Some(known), state.seen())).collect();
    Ok(list_response(data, found.next_cursor))
}

/// The head is attempted without waiting for its time (D44); answers with the head as it stands then.
pub async fn attempt_head_now(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    head_now(&state, &connection).await
}

/// D44.
pub(super) async fn head_now(state: &AppState, known: &Connection) -> Result<Response, Problem> {
    let head = state.read().queue(known.id, PageRequest { limit: 1, cursor: None }).await?.items.pop();
    let Some(head) = head else {
        return Err(Problem::new(StatusCode::CONFLICT, "nothing waits in this queue"));
    };
    let changed = state.engine.by_hand(known.project_id, head.id, ByHand::AttemptNow).await?;
    answer(state, &changed).await
}
