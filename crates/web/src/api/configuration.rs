//! `/import` and `/export`: the configuration as a file (D18). What a file means is the config crate's.
//!
//! The server's own environment is not read for a caller, since a description could then carry any variable of the process out: values
//! for `Env.NAME` come with the request.

use std::collections::BTreeMap;

use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use postrider_config::document::DOCUMENT_BYTES_MAX;
use postrider_config::{FINDINGS_SHOWN_MAX, Finding, Plan, Refused, SECTIONS};
use postrider_core::access::{Scope, ScopeSet};
use postrider_core::log;
use postrider_core::security::SecurityDefinition;
use postrider_store::{ConfigChange, SourceRow};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Acting, AppState, Site, ok};
use crate::auth::to_hex;
use crate::problem::{Problem, clipped};
use crate::read::{BodyBounds, Fields, Query, collect, essence};

/// Content types that are taken for YAML; `application/yaml` is the registered one (RFC 9512).
const YAML: [&str; 5] = ["application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", ""];
/// Variables that come with a file, at most.
pub(super) const VARIABLES_MAX: usize = 10_000;

/// A file, and the values that it may name.
pub struct Document {
    yaml: String,
    env: BTreeMap<String, String>,
}

impl FromRequest<Site> for Document {
    type Rejection = Problem;

    async fn from_request(request: Request, site: &Site) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let bounds = BodyBounds { body_bytes_max: DOCUMENT_BYTES_MAX as u64, ..site.0.options.body.clone() };
        let bytes = collect(&parts.headers, body, &bounds).await?;
        let essence = essence(&parts.headers);
        if YAML.contains(&essence.as_str()) {
            let yaml = String::from_utf8(bytes.into()).map_err(|error| {
                let at = error.utf8_error().valid_up_to();
                let message = format!("the file is no UTF-8: its byte {at} begins no character");
                Problem::bad_request("body", message, "YAML in UTF-8")
            })?;
            return Ok(Document { yaml, env: BTreeMap::new() });
        }
        if essence != "application/json" {
            let detail = "the body must be YAML (`Content-Type: application/yaml`), or JSON with `yaml` and `env`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
        let mut fields = Fields::read(&parts.headers, &bytes)?;
        let yaml = fields.text("yaml");
        let yaml = fields.required("yaml", yaml);
        let env = fields.take("env").map(|env| serde_json::from_str::<BTreeMap<String, String>>(env.get()));
        let env = match env {
            Some(Ok(env)) if env.len() <= VARIABLES_MAX => env,
            None => BTreeMap::new(),
            Some(_) => {
                let allowed = format!("an object of at most {VARIABLES_MAX} strings by the names of the variables");
                fields.refuse("env", "`env` is no such object", allowed);
                BTreeMap::new()
            }
        };
        fields.finish(&["yaml", "env"])?;
        Ok(Document { yaml: yaml.unwrap_or_default(), env })
    }
}

/// Applies a file, or with `dry_run` only says what it would change. All or nothing: 422 with every error of the file, 409 when something
/// changed meanwhile.
pub async fn import(Acting(state): Acting, mut query: Query, document: Document) -> Result<Response, Problem> {
    let dry_run = query.flag("dry_run")?;
    let project = query.take("project");
    let seen = query.take("plan");
    query.finish()?;
    let Visible { state: mut current, only, definitions, sources } = Visible::load(&state).await?;
    let project = match (project, &only) {
        (Some(given), _) => name_of(&current, given),
        (None, Some(only)) => only.clone(),
        (None, None) => postrider_config::DEFAULT_PROJECT.to_owned(),
    };
    if only.as_ref().is_some_and(|only| *only != project) {
        return Err(Problem::not_found("project", &clipped(&project)));
    }
    // A long file takes a while, and the others are not to wait for it.
    let planned = tokio::task::spawn_blocking({
        let engine = state.engine.clone();
        move || {
            let (clock, dice) = engine.clock_and_dice();
            current.know_secrets(postrider_engine::opened_secrets(engine.vault(), &definitions, &sources));
            let file = postrider_config::read(&document.yaml, SECTIONS, &|name| document.env.get(name).cloned());
            postrider_config::plan(&file, current, &project, clock.now(), &|| dice.bits())
        }
    });
    let plan = planned.await.map_err(|_| Problem::unavailable("the file could not be looked at"))??;
    let is_of_installation =
        |change: &ConfigChange| matches!(change, ConfigChange::CreateProject(_) | ConfigChange::ReplaceProject { .. });
    if only.is_some() && plan.changes.iter().any(is_of_installation) {
        return Err(Problem::forbidden(ScopeSet::of(&[Scope::Admin]), false));
    }
    let mut answer = plan.to_json();
    let fingerprint = fingerprint(&answer);
    if seen.is_some_and(|seen| seen != fingerprint) {
        let detail = "the file would change something else by now: look at the difference again";
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    if !dry_run && !plan.changes.is_empty() {
        apply(&state, plan).await?;
    }
    answer.insert("applied".to_owned(), (!dry_run).into());
    answer.insert("plan".to_owned(), fingerprint.into());
    Ok(ok(&Value::Object(answer)))
}

async fn apply(state: &AppState, plan: Plan) -> Result<(), Problem> {
    let Plan { changes, secrets, differences, .. } = plan;
    state.engine.configure(changes, &secrets).await?;
    tracing::info!(event = log::CONFIG_IMPORTED, objects = differences.len(), "a configuration was imported");
    Ok(())
}

/// What the file changes: the same as long as file and configuration are the same.
fn fingerprint(answer: &Map<String, Value>) -> String {
    let mut hash = Sha256::new();
    for part in ["created", "changed"] {
        hash.update(answer.get(part).map(Value::to_string).unwrap_or_default());
    }
    let hash: [u8; 32] = hash.finalize().into();
    to_hex(&hash[..16])
}

/// The configuration of one project, or of all, as a file.
pub async fn export(Acting(state): Acting, mut query: Query) -> Result<Response, Problem> {
    let project = query.take("project");
    query.finish()?;
    let Visible { state: current, only, .. } = Visible::load(&state).await?;
    let project = project.map(|given| name_of(&current, given)).or(only);
    let text = postrider_config::export(&current, SECTIONS, project.as_deref())
        .ok_or_else(|| Problem::not_found("project", &clipped(project.as_deref().unwrap_or_default())))?;
    let mut response = (StatusCode::OK, text).into_response();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    Ok(response)
}

/// What is configured, as far as the caller may see it: for a key of a project, what is not of that project is not there.
struct Visible {
    state: postrider_config::State,
    /// The only project there is for the caller.
    only: Option<String>,
    /// Those that are in the state.
    definitions: Vec<SecurityDefinition>,
    sources: Vec<SourceRow>,
}

impl Visible {
    async fn load(caller: &AppState) -> Result<Visible, Problem> {
        let mut definitions = caller.engine.all_security_definitions().await?;
        let push = caller.engine.all_push_subscriptions();
        let mut sources = caller.engine.all_sources();
        let mut state =
            postrider_config::State::load(caller.read(), definitions.clone(), push, sources.clone()).await?;
        let Some(id) = caller.only_project() else { return Ok(Visible { state, only: None, definitions, sources }) };
        state.keep_only(id);
        definitions.retain(|known| known.project_id == id);
        sources.retain(|known| known.source.project_id == id);
        let only = state.projects().next().map(|project| project.name.clone());
        let only = only.ok_or_else(|| Problem::not_found("project", &id.to_string()))?;
        Ok(Visible { only: Some(only), state, definitions, sources })
    }
}

/// A project may be named by its id. One that is not there keeps its name: the file may make it.
fn name_of(state: &postrider_config::State, given: String) -> String {
    let known = state.projects().find(|project| project.id.to_string() == given);
    known.map_or(given, |project| project.name.clone())
}

impl From<Refused> for Problem {
    /// Every error with its line.
    fn from(refused: Refused) -> Self {
        let Refused(findings) = &refused;
        let shown: Value = findings.iter().take(FINDINGS_SHOWN_MAX).map(Finding::to_json).collect();
        let left_out = findings.len().saturating_sub(FINDINGS_SHOWN_MAX);
        let more = if left_out > 0 { format!("; the last {left_out} of them are not shown") } else { String::new() };
        let detail = format!("{refused}{more}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_member("errors", shown)
    }
}
