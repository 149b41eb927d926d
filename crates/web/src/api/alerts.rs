//! `/alerts`: what is wrong now and what was, newest first (P09, D43). Of one project, or of the installation.

use axum::response::Response;
use postrider_core::alert::Alert;
use postrider_core::id::ProjectId;
use serde_json::{Value, json};

use super::{Acting, AppState, list_response};
use crate::problem::Problem;
use crate::read::{Query, Segments};

/// Of `?state=`.
pub(super) const STATES: [&str; 2] = ["open", "past"];

pub async fn of_project(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    list(&state, Some(project), query).await
}

pub async fn of_installation(Acting(state): Acting, query: Query) -> Result<Response, Problem> {
    list(&state, None, query).await
}

async fn list(state: &AppState, project: Option<ProjectId>, mut query: Query) -> Result<Response, Problem> {
    let open = match query.take("state").as_deref() {
        None => None,
        Some("open") => Some(true),
        Some("past") => Some(false),
        Some(_) => return Err(Problem::bad_request("state", "`state` is not known", STATES.join(" or "))),
    };
    let page = query.page()?;
    query.finish()?;
    let found = state.engine.alerts(project, open, page).await?;
    Ok(list_response(found.items.iter().map(|alert| alert_json(state, alert)).collect(), found.next_cursor))
}

fn alert_json(state: &AppState, alert: &Alert) -> Value {
    let connection = alert.connection_id.and_then(|id| state.engine.connection_by_id(id));
    json!({
        "id": alert.id,
        "kind": alert.kind.as_str(),
        "state": STATES[usize::from(alert.recovered_at.is_some())],
        "connection": connection.map(|connection| connection.name.clone()),
        "connectionId": alert.connection_id,
        "value": alert.value,
        "threshold": alert.threshold,
        "detail": alert.kind.told(alert.value, alert.threshold),
        "action": alert.kind.action(),
        "raisedAt": alert.raised_at,
        "recoveredAt": alert.recovered_at,
    })
}
