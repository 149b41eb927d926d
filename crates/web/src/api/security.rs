//! `/projects/{project}/security`: who we say we are to remote systems. A secret goes in and never comes out again (D46).

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::id::ProjectId;
use postrider_core::security::SecurityKind;
use postrider_engine::{NewSecurity, Security};
use postrider_store::PageRequest;
use serde_json::{Map, Value, json};

use super::{Acting, AppState, Input, json_response, list_response, merge, ok};
use crate::problem::{Problem, clipped};
use crate::read::{Fields, Query, Segments};

/// Members of our answers that say nothing new when they come back in a request.
pub(super) const OURS: [&str; 4] = ["id", "state", "createdAt", "updatedAt"];
const KINDS: &str = "one of basic_auth, apikey, bearer, oauth2, smart, wss, webhook_signature";

pub async fn list(Acting(state): Acting, segments: Segments, mut query: Query) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let PageRequest { limit, cursor } = query.page()?;
    query.finish()?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    // All of a project's are in memory, by name; the cursor is the last name shown.
    let after = |known: &&std::sync::Arc<Security>| cursor.as_ref().is_none_or(|name| known.definition.name > *name);
    let all = state.engine.security_definitions(project);
    let mut rest = all.iter().filter(after);
    let shown: Vec<_> = rest.by_ref().take(limit).collect();
    let next = rest.next().and(shown.last()).map(|last| last.definition.name.clone());
    Ok(list_response(shown.into_iter().map(|known| security_json(&state, known)).collect(), next))
}

pub async fn create(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let project = state.project(&segments).await?;
    let (name, kind) = (input.fields.required_text("name"), input.fields.required_text("type"));
    let new = written(input.fields, name, kind, None)?;
    let created = state.engine.create_security(project, new).await?;
    Ok(json_response(StatusCode::CREATED, &security_json(&state, &created)))
}

pub async fn one(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (_, known) = found(&state, &segments, query).await?;
    Ok(ok(&security_json(&state, &known)))
}

/// All keys anew; a secret that is left out stays as it is.
pub async fn replace(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let new = changed(input.fields, &known)?;
    store(&state, project, &known, new).await
}

/// A merge patch, RFC 7396: what is given replaces, null removes, the rest stays; the secret too.
pub async fn change(
    Acting(state): Acting,
    segments: Segments,
    query: Query,
    input: Input,
) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    let patch = changed(input.fields, &known)?;
    let merged = merge::patched(&known.definition.written, patch.written);
    store(&state, project, &known, NewSecurity { written: merged, ..patch }).await
}

pub async fn delete(Acting(state): Acting, segments: Segments, query: Query) -> Result<Response, Problem> {
    let (project, known) = found(&state, &segments, query).await?;
    state.engine.delete_security(project, &known.definition.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn found(
    state: &AppState,
    segments: &Segments,
    query: Query,
) -> Result<(ProjectId, std::sync::Arc<Security>), Problem> {
    query.finish()?;
    let project = state.project(segments).await?;
    Ok((project, state.engine.security_definition(project, segments.get("name"))?))
}

async fn store(state: &AppState, project: ProjectId, known: &Security, new: NewSecurity) -> Result<Response, Problem> {
    let replaced = state.engine.replace_security(project, &known.definition.name, new).await?;
    Ok(ok(&security_json(state, &replaced)))
}

fn changed(mut fields: Fields, known: &Security) -> Result<NewSecurity, Problem> {
    let name = fields.text("name").or_else(|| Some(known.definition.name.clone()));
    let kind = fields.text("type").or_else(|| Some(known.definition.kind().as_str().to_owned()));
    written(fields, name, kind, Some(known))
}

/// What a request says about a definition. `version`, if given, must be the stored one, so that nobody undoes another's change unseen.
fn written(
    mut fields: Fields,
    name: Option<String>,
    kind: Option<String>,
    known: Option<&Security>,
) -> Result<NewSecurity, Problem> {
    for ours in OURS {
        fields.take(ours);
    }
    let version = fields.number("version", 0..=u64::from(u32::MAX));
    let written = fields.rest();
    let parsed = kind.as_deref().and_then(SecurityKind::parse);
    if let (Some(given), None) = (&kind, parsed) {
        fields.refuse("type", format!("`type` is `{}`", clipped(given)), KINDS);
    }
    fields.finish(&[])?;
    if let (Some(known), Some(version)) = (known, version)
        && u64::from(known.definition.version) != version
    {
        let now = known.definition.version;
        let detail = format!("the security definition has version {now} by now, not {version}: read it again");
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    }
    match (name, parsed) {
        (Some(name), Some(kind)) => Ok(NewSecurity { name, kind, written }),
        _ => Err(Problem::field("name", "`name` and `type` are missing", "both must be given")),
    }
}

/// The secret is only said to be there.
fn security_json(state: &AppState, known: &Security) -> Value {
    let definition = &known.definition;
    let mut object = Map::new();
    object.insert("name".into(), definition.name.clone().into());
    object.insert("type".into(), definition.kind().as_str().into());
    object.extend(definition.written.clone());
    object.insert("id".into(), json!(definition.id));
    object.insert("version".into(), definition.version.into());
    let all = state.engine.connections();
    let uses = all.iter().filter(|connection| {
        connection.project_id == definition.project_id && connection.spec.security.as_ref() == Some(&definition.name)
    });
    let standing = json!({
        "secret": definition.kind().secret_key(),
        "is_set": true,
        "unreadable": known.unreadable(),
        "usedBy": uses.map(|connection| connection.name.clone()).collect::<Vec<_>>(),
    });
    object.insert("state".into(), standing);
    object.insert("createdAt".into(), json!(definition.created_at));
    object.insert("updatedAt".into(), json!(definition.updated_at));
    Value::Object(object)
}
