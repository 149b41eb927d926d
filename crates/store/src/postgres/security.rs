//! Security definitions, and the rule that a connection names one that is there. It must not know what a definition means.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::connection::Connection;
use postrider_core::id::{ProjectId, SecurityId};
use postrider_core::security::{SecurityDefinition, SecurityKind};
use postrider_core::settings::security;
use tokio_postgres::Row;

use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::rows::{Cells, from_json, json};
use super::work::Work;
use super::{PostgresStore, configuration};
use crate::security::in_use;
use crate::{SecurityDefinitions, StoreError};

const COLUMNS: &str = "id, project_id, kind, name, written, sealed, version, created_at, updated_at";

#[async_trait]
impl SecurityDefinitions for PostgresStore {
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError> {
        self.read((), |work, ()| all(work).boxed()).await
    }

    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        self.write(definition.clone(), |work, definition| create(work, definition).boxed()).await
    }

    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        let data = (definition.clone(), version);
        self.write(data, |work, (definition, version)| replace(work, definition, *version).boxed()).await
    }

    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError> {
        self.write(id, |work, id| delete(work, *id).boxed()).await
    }
}

/// `NotFound` when the connection names a definition that its project does not have. It stays until the end of the transaction.
pub(super) async fn require_named(work: &Work, connection: &Connection) -> Outcome<()> {
    let Some(name) = &connection.spec.security else { return Ok(()) };
    let sql = "SELECT 1 FROM security WHERE project_id = $1 AND name = $2 FOR SHARE";
    if work.exists(sql, &[&connection.project_id.key(), name]).await? {
        return Ok(());
    }
    Err(StoreError::NotFound { what: "security definition" }.into())
}

pub(super) async fn create(work: &Work, definition: &SecurityDefinition) -> Outcome<()> {
    work.tell_of_configuration();
    configuration::require_project(work, definition.project_id, "FOR SHARE").await?;
    let (project, name) = (definition.project_id.key(), &definition.name);
    let taken = "SELECT 1 FROM security WHERE (project_id = $1 AND name = $2) OR id = $3";
    if work.exists(taken, &[&project, name, &definition.id.key()]).await? {
        let why = format!("there is a security definition `{name}` in this project already");
        return Err(StoreError::Conflict(why).into());
    }
    let sql = format!("INSERT INTO security ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
    let params: [super::columns::Param<'_>; 9] = [
        &definition.id.key(),
        &project,
        &definition.kind().as_str(),
        name,
        &json(&definition.written)?,
        &definition.sealed,
        &i64::from(definition.version),
        &definition.created_at.as_millis(),
        &definition.updated_at.as_millis(),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn replace(work: &Work, definition: &SecurityDefinition, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    let id = definition.id.key();
    let sql = "SELECT version FROM security WHERE id = $1 FOR UPDATE";
    let stored = work.first(sql, &[&id], |row| Cells::of(row).number::<u32>()).await?;
    let stored = stored.ok_or(StoreError::NotFound { what: "security definition" })?;
    if stored != version {
        return Err(StoreError::Conflict(format!(
            "the security definition `{}` has changed meanwhile: it has version {stored}, not {version}",
            definition.name
        ))
        .into());
    }
    let sql = "UPDATE security SET kind = $2, written = $3, sealed = $4, version = $5, updated_at = $6 WHERE id = $1";
    let params: [super::columns::Param<'_>; 6] = [
        &id,
        &definition.kind().as_str(),
        &json(&definition.written)?,
        &definition.sealed,
        &i64::from(definition.version),
        &definition.updated_at.as_millis(),
    ];
    work.execute(sql, &params).await?;
    Ok(())
}

pub(super) async fn delete(work: &Work, id: SecurityId) -> Outcome<()> {
    work.tell_of_configuration();
    let id = id.key();
    let named = work
        .first("SELECT project_id, name FROM security WHERE id = $1 FOR UPDATE", &[&id], |row| {
            let mut at = Cells::of(row);
            Ok((at.take::<Key>()?, at.take::<String>()?))
        })
        .await;
    let (project, name) = named?.ok_or(StoreError::NotFound { what: "security definition" })?;
    let users = "SELECT name FROM connection WHERE project_id = $1 AND written::json ->> 'security' = $2 ORDER BY name";
    let users: Vec<String> = work.all(users, &[&project, &name], |row| Cells::of(row).take()).await?;
    if !users.is_empty() {
        return Err(in_use(&name, &users).into());
    }
    work.execute("DELETE FROM security WHERE id = $1", &[&id]).await?;
    Ok(())
}

async fn all(work: &Work) -> Outcome<Vec<SecurityDefinition>> {
    work.all(&format!("SELECT {COLUMNS} FROM security ORDER BY id"), &[], read).await
}

fn read(row: &Row) -> Result<SecurityDefinition, StoreError> {
    let mut at = Cells::of(row);
    let id = SecurityId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let kind = at.word(SecurityKind::parse)?;
    let name: String = at.take()?;
    let written = from_json(at.text()?, "a security definition")?;
    let read = security::parse(kind, &written).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        StoreError::Corrupt(format!("the security definition `{name}`: {}", errors.join("; ")))
    })?;
    Ok(SecurityDefinition {
        id,
        project_id,
        name,
        written,
        spec: read.spec,
        sealed: at.take()?,
        version: at.number()?,
        created_at: at.time()?,
        updated_at: at.time()?,
    })
}
