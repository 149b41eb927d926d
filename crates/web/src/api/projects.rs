//! `/projects`: made and configured by the installation's keys, seen by their own (D45). A project is not deleted: its log must be accounted for.

use axum::response::Response;
use http::StatusCode;
use postrider_store::{Project, ProjectSettings};
use serde_json::{Value, json};

use super::{Acting, Input, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

const FIELDS: [&str; 4] = ["ownerEmail", "entitled", "rateLimitPerSecond", "concurrency"];
pub(super) const EMAIL_BYTES_MAX: usize = 254;
pub(super) const RATE_MAX: u64 = 100_000;
pub(super) const CONCURRENCY_MAX: u64 = 10_000;

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
    let settings = settings(&mut input.fields, ProjectSettings::default());
    input.fields.finish(&[&["name"][..], &FIELDS].concat())?;
    let project = state.engine.create_project(name, settings).await?;
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
    let settings = settings(&mut input.fields, known.settings.clone());
    input.fields.finish(&FIELDS)?;
    let project = state.engine.configure_project(&known, settings).await?;
    Ok(ok(&project_json(&project)))
}

fn settings(fields: &mut Fields, known: ProjectSettings) -> ProjectSettings {
    let mut settings = known;
    if fields.has("ownerEmail") {
        settings.owner_email = fields.text("ownerEmail");
        let is_address = |text: &String| {
            let parts = text.split_once('@');
            text.len() <= EMAIL_BYTES_MAX
                && !text.chars().any(|c| c.is_control() || c.is_whitespace())
                && parts.is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty() && !domain.contains('@'))
        };
        if settings.owner_email.as_ref().is_some_and(|text| !is_address(text)) {
            fields.refuse("ownerEmail", "`ownerEmail` is no e-mail address", "an address such as ada@example.org");
        }
    }
    if fields.has("entitled") {
        settings.entitled = fields.flag("entitled").unwrap_or(ProjectSettings::default().entitled);
    }
    let number = |given: Option<u64>| given.and_then(|given| u32::try_from(given).ok());
    if fields.has("rateLimitPerSecond") {
        settings.rate_limit_per_second = number(fields.number("rateLimitPerSecond", 1..=RATE_MAX));
    }
    if fields.has("concurrency") {
        settings.concurrency = number(fields.number("concurrency", 1..=CONCURRENCY_MAX));
    }
    settings
}

fn project_json(project: &Project) -> Value {
    let settings = &project.settings;
    json!({
        "id": project.id,
        "name": project.name,
        "ownerEmail": settings.owner_email,
        "entitled": settings.entitled,
        "rateLimitPerSecond": settings.rate_limit_per_second,
        "concurrency": settings.concurrency,
        "createdAt": project.created_at,
    })
}
