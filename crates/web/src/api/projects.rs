//! `/projects`: made and configured by the installation's keys, seen by their own (D45). A project is not deleted: its log must be accounted for.

use axum::response::Response;
use http::StatusCode;
use postrider_core::settings::objects::{ProjectSpec, written_alerts};
use postrider_engine::Refusal;
use postrider_store::{Project, ProjectSettings};
use serde_json::{Map, Value, json};

use super::{Acting, Input, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Query, Segments};

pub async fn list(Acting(state): Acting, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let only = state.only_project();
    let projects = state.read().projects().await?;
    let seen = projects.iter().filter(|project| only.is_none_or(|id| id == project.id));
    Ok(list_response(seen.map(project_json).collect(), None))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let name = segments.get("project");
    let project = state.read().project(name).await?.ok_or_else(|| Problem::not_found("project", name))?;
    Ok(ok(&project_json(&project)))
}

pub async fn create(Acting(state): Acting, query: Query, mut input: Input) -> Result<Response, Problem> {
    query.finish()?;
    let name = input.fields.text("name");
    let name = input.fields.required("name", name).unwrap_or_default();
    let written = input.fields.rest();
    input.fields.finish(&[])?;
    let project = state.engine.create_project(name.clone(), settings(&name, &written)?).await?;
    Ok(json_response(StatusCode::CREATED, &project_json(&project)))
}

/// A merge patch, RFC 7396: what is given replaces, null takes the default, the rest stays.
pub async fn merge(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let name = segments.get("project");
    let known = state.read().project(name).await?.ok_or_else(|| Problem::not_found("project", name))?;
    let mut merged = written(&known.settings);
    merged.extend(input.fields.rest());
    input.fields.finish(&[])?;
    let project = state.engine.configure_project(&known, settings(&known.name, &merged)?).await?;
    Ok(ok(&project_json(&project)))
}

/// The same keys as in a configuration file.
fn settings(name: &str, written: &Map<String, Value>) -> Result<ProjectSettings, Problem> {
    let spec = ProjectSpec::parse(name, written).map_err(Refusal::Invalid)?;
    let ProjectSpec { owner_email, entitled, rate_limit_per_second, concurrency, alerts, .. } = spec;
    Ok(ProjectSettings { owner_email, entitled, rate_limit_per_second, concurrency, alerts })
}

fn written(settings: &ProjectSettings) -> Map<String, Value> {
    let mut written = Map::new();
    written.insert("ownerEmail".to_owned(), settings.owner_email.clone().into());
    written.insert("entitled".to_owned(), settings.entitled.into());
    written.insert("rateLimitPerSecond".to_owned(), settings.rate_limit_per_second.into());
    written.insert("concurrency".to_owned(), settings.concurrency.into());
    written.extend(written_alerts(settings.alerts).map(|(key, value)| (key.to_owned(), value.into())));
    written
}

fn project_json(project: &Project) -> Value {
    let mut object = Map::new();
    object.insert("id".to_owned(), json!(project.id));
    object.insert("name".to_owned(), project.name.clone().into());
    object.extend(written(&project.settings));
    object.insert("createdAt".to_owned(), json!(project.created_at));
    Value::Object(object)
}
