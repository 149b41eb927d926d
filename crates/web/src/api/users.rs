//! `/users` of a project and of the installation: who may log in to the dashboard (P07). A password goes in and never comes out.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use postrider_core::Secret;
use postrider_core::person::Role;
use postrider_engine::{NewPerson, PersonChange};
use postrider_store::User;
use serde_json::{Value, json};

use super::keys::Owner;
use super::{Acting, Input, json_response, list_response, ok};
use crate::problem::Problem;
use crate::read::{Fields, Query, Segments};

pub async fn list(Acting(state): Acting, Owner(owner): Owner, query: Query) -> Result<Response, Problem> {
    query.finish()?;
    let users = state.engine.users(owner).await?;
    Ok(list_response(users.iter().map(user_json).collect(), None))
}

pub async fn create(
    Acting(state): Acting,
    Owner(owner): Owner,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let fields = &mut input.fields;
    let name = fields.required_text("name");
    let role = role(fields);
    let role = fields.required("role", role);
    let sees_bodies = fields.flag("seesBodies").unwrap_or_default();
    let password = fields.required_text("password");
    input.fields.finish(&["name", "role", "seesBodies", "password"])?;
    let (Some(name), Some(role), Some(password)) = (name, role, password) else {
        return Err(Problem::field("name", "a field is missing", "name, role and password"));
    };
    let new = NewPerson { name, role, sees_bodies, password: Secret::new(password) };
    let user = state.engine.create_user(owner, new).await?;
    Ok(json_response(StatusCode::CREATED, &user_json(&user)))
}

pub async fn one(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    Ok(ok(&user_json(&state.engine.user(owner, segments.get("user")).await?)))
}

/// What is given replaces; the user's sessions end.
pub async fn change(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
    mut input: Input,
) -> Result<Response, Problem> {
    query.finish()?;
    let known = state.engine.user(owner, segments.get("user")).await?;
    let fields = &mut input.fields;
    let change = PersonChange {
        role: role(fields),
        sees_bodies: fields.flag("seesBodies"),
        password: fields.text("password").map(Secret::new),
    };
    input.fields.finish(&["role", "seesBodies", "password"])?;
    Ok(ok(&user_json(&state.engine.change_user(known, change).await?)))
}

pub async fn delete(
    Acting(state): Acting,
    Owner(owner): Owner,
    segments: Segments,
    query: Query,
) -> Result<Response, Problem> {
    query.finish()?;
    let known = state.engine.user(owner, segments.get("user")).await?;
    state.engine.delete_user(&known).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn role(fields: &mut Fields) -> Option<Role> {
    let given = fields.text("role")?;
    let role = Role::parse(&given);
    if role.is_none() {
        fields.refuse("role", format!("`{}` is no role", crate::problem::clipped(&given)), Role::ALLOWED);
    }
    role
}

fn user_json(user: &User) -> Value {
    json!({
        "id": user.id,
        "name": user.name,
        "role": user.role.as_str(),
        "seesBodies": user.role.sees_bodies(user.sees_bodies),
        "createdAt": user.created_at,
        "passwordSetAt": user.password_set_at,
        "lastLogInAt": user.last_log_in_at,
    })
}
