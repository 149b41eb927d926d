//! `/audit`: who changed what and who saw which body, newest first (P07, D44). Of one project, or of all and the installation.

use axum::response::Response;
use postrider_store::{AuditEntry, AuditFilter};
use serde_json::{Value, json};

use super::{Acting, AppState, list_response};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub(super) const FILTER_CHARS_MAX: usize = 200;

pub async fn of_project(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    list(&state, AuditFilter { project_id: Some(project), ..AuditFilter::default() }, query).await
}

pub async fn of_all(Acting(state): Acting, query: Query) -> Result<Response, Problem> {
    list(&state, AuditFilter::default(), query).await
}

/// `actor`, `action` (its beginning up to a dot is enough), `object`, `from`, `before`.
async fn list(state: &AppState, scope: AuditFilter, mut query: Query) -> Result<Response, Problem> {
    let mut word = |name: &'static str| match query.take(name) {
        Some(given) if given.chars().count() > FILTER_CHARS_MAX => {
            let allowed = format!("at most {FILTER_CHARS_MAX} characters");
            Err(Problem::bad_request(name, format!("`{name}` is too long"), allowed))
        }
        given => Ok(given),
    };
    let (actor, action, object) = (word("actor")?, word("action")?, word("object")?);
    let filter =
        AuditFilter { actor, action, object, from: query.time("from")?, before: query.time("before")?, ..scope };
    let page = query.page()?;
    query.finish()?;
    let found = state.engine.audit_entries(&filter, page).await?;
    Ok(list_response(found.items.iter().map(entry_json).collect(), found.next_cursor))
}

fn entry_json(entry: &AuditEntry) -> Value {
    json!({
        "id": entry.id,
        "at": entry.at,
        "projectId": entry.project_id,
        "actor": {"id": entry.actor.id, "name": entry.actor.name, "address": entry.actor.address},
        "action": entry.action,
        "object": entry.object,
        "objectName": entry.object_name,
        "before": entry.before,
        "after": entry.after,
        "times": entry.times,
    })
}
