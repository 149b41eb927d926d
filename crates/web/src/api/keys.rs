//! `/keys` of a project and of the installation: made, rotated, revoked. A key is shown once, when it is made (P07).

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;
use postrider_core::Wait;
use postrider_core::access::{Scope, ScopeSet};
use postrider_core::id::{KeyId, ProjectId};
use postrider_engine::{KeyHolder, NewKey, ShownKey};
use postrider_store::ApiKey;
use serde_json::{Value, json};

use super::{Acting, AppState, Input, Site, json_response, list_response, ok};
use crate::keyed::WithoutSecret;
use crate::problem::Problem;
use crate::read::{Query, Segments};

const DAY_SECONDS: u64 = 24 * 3600;
/// How long the former key works after a rotation when the caller does not say.
pub(super) const OVERLAP_SECONDS_DEFAULT: u64 = DAY_SECONDS;
pub(super) const OVERLAP_SECONDS_MAX: u64 = 30 * DAY_SECONDS;

/// Whose keys a path is about: those of its project, or where it names none those of the installation.
pub struct Owner(pub Option<ProjectId>);

impl FromRequestParts<Site> for Owner {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Problem> {
        let Acting(state) = Acting::from_request_parts(parts, site).await?;
        let segments = Segments::from_request_parts(parts, site).await?;
        match segments.get("project") {
            "" => Ok(Owner(None)),
            _ => Ok(Owner(Some(state.project(&segments).await?))),
        }
    }
}

pub async fn list(Acting(state): Acting, Owner(owner): Owner, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let keys = state.engine.keys(owner);
    Ok(list_response(keys.iter().map(|holder| holder_json(holder)).collect(), None))
}

pub async fn create(
    Acting(state): Acting,
    Owner(owner): Owner,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let fields = &mut input.fields;
    let name = fields.text("name");
    let name = fields.required("name", name).unwrap_or_default();
    let given = fields.texts("scopes", Scope::ALL.len());
    let given = fields.required("scopes", given);
    let scopes = given.and_then(|given| match ScopeSet::parse(given.iter().map(String::as_str)) {
        Ok(scopes) => Some(scopes),
        Err(error) => {
            fields.refuse("scopes", error.to_string(), error.allowed);
            None
        }
    });
    let expires_at = fields.text("expiresAt").and_then(|given| {
        let read = postrider_core::Timestamp::parse_rfc3339(&given);
        if read.is_none() {
            fields.refuse("expiresAt", "`expiresAt` is no time", "an RFC 3339 time such as 2027-03-12T12:00:00Z");
        }
        read
    });
    input.fields.finish(&["name", "scopes", "expiresAt"])?;
    let scopes = scopes.ok_or_else(|| Problem::field("scopes", "`scopes` is missing", Scope::ALLOWED))?;
    let made = state.engine.create_key(owner, NewKey { name, scopes, expires_at }).await?;
    Ok(shown(&made, StatusCode::CREATED))
}

pub async fn one(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    Ok(ok(&holder_json(&*find(&state, owner, &segments)?)))
}

/// `{overlap_seconds}`: how long the former key works on.
pub async fn rotate(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let id = find(&state, owner, &segments)?.key.id;
    let overlap = input.fields.number("overlap_seconds", 0..=OVERLAP_SECONDS_MAX).unwrap_or(OVERLAP_SECONDS_DEFAULT);
    input.fields.finish(&["overlap_seconds"])?;
    let made = state.engine.rotate_key(owner, id, Wait::from_secs(overlap)).await?;
    Ok(shown(&made, StatusCode::OK))
}

pub async fn revoke(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    let id = find(&state, owner, &segments)?.key.id;
    state.engine.revoke_key(owner, id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// By id, or by name.
fn find(state: &AppState, owner: Option<ProjectId>, segments: &Segments) -> Result<std::sync::Arc<KeyHolder>, Problem> {
    let text = segments.get("key");
    if let Ok(id) = text.parse::<KeyId>() {
        return state.engine.key(owner, id).map_err(|_| Problem::not_found("key", text));
    }
    let named = state.engine.keys(owner).into_iter().find(|holder| holder.key.name == text);
    named.ok_or_else(|| Problem::not_found("key", text))
}

fn shown(made: &ShownKey, status: StatusCode) -> Response {
    let mut json = key_json(&made.key, made.key.last_used_at);
    json["key"] = Value::Null;
    let without_key = WithoutSecret(json.to_string());
    json["key"] = made.text.expose().into();
    let mut response = json_response(status, &json);
    response.extensions_mut().insert(without_key);
    response
}

fn holder_json(holder: &KeyHolder) -> Value {
    key_json(&holder.key, holder.last_used_at())
}

fn key_json(key: &ApiKey, last_used_at: Option<postrider_core::Timestamp>) -> Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes.to_json(),
        "hint": format!("{}…", key.hint),
        "createdAt": key.created_at,
        "rotatedAt": key.rotated_at,
        "expiresAt": key.expires_at,
        "lastUsedAt": last_used_at,
        "formerWorksUntil": key.former.map(|former| former.works_until),
    })
}
