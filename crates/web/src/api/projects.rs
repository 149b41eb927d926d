//! `/projects`: which there are.

use axum::extract::State;
use axum::response::Response;
use postrider_store::Project;
use serde_json::{Value, json};

use super::{AppState, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn list(State(state): State<AppState>, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let projects = state.read().projects().await?;
    Ok(list_response(projects.iter().map(project_json).collect(), None))
}

pub async fn one(State(state): State<AppState>, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let name = segments.get("project");
    let project = state.read().project(name).await?.ok_or_else(|| Problem::not_found("project", name))?;
    Ok(ok(&project_json(&project)))
}

fn project_json(project: &Project) -> Value {
    json!({"id": project.id, "name": project.name, "createdAt": project.created_at})
}
