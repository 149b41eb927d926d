//! Security definitions, and the rule that a connection names one that is there. It must not know what a definition means.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::id::{ProjectId, SecurityId};
use postrider_core::security::{SecurityDefinition, SecurityKind};
use postrider_core::settings::security;
use rusqlite::Row;

use super::rows::{Columns, from_json, json, key, read_all};
use super::work::Work;
use super::{SqliteStore, configuration};
use crate::security::in_use;
use crate::{SecurityDefinitions, StoreError};

const COLUMNS: &str = "id, project_id, kind, name, written, sealed, version, created_at, updated_at";

#[async_trait]
impl SecurityDefinitions for SqliteStore {
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError> {
        self.read(all).await
    }

    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        let definition = definition.clone();
        self.write(move |work| create(work, &definition)).await
    }

    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        let definition = definition.clone();
        self.write(move |work| replace(work, &definition, version)).await
    }

    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError> {
        self.write(move |work| delete(work, id)).await
    }
}

pub(super) fn all(connection: &rusqlite::Connection) -> Result<Vec<SecurityDefinition>, StoreError> {
    read_all(connection, &format!("SELECT {COLUMNS} FROM security ORDER BY id"), &[], read)
}

/// `NotFound` when the connection names a definition that its project does not have.
pub(super) fn require_named(work: &Work, connection: &Connection) -> Result<(), StoreError> {
    let Some(name) = &connection.spec.security else { return Ok(()) };
    let sql = "SELECT 1 FROM security WHERE project_id = ?1 AND name = ?2";
    work.first(sql, &[&key(connection.project_id.as_u128()), name], |_| Ok(()))?
        .ok_or(StoreError::NotFound { what: "security definition" })
}

pub(super) fn create(work: &Work, definition: &SecurityDefinition) -> Result<(), StoreError> {
    configuration::require_project(work, definition.project_id)?;
    let project = key(definition.project_id.as_u128());
    let taken = work.first(
        "SELECT 1 FROM security WHERE (project_id = ?1 AND name = ?2) OR id = ?3",
        &[&project, &definition.name, &key(definition.id.as_u128())],
        |_| Ok(()),
    )?;
    if taken.is_some() {
        let name = &definition.name;
        return Err(StoreError::Conflict(format!("there is a security definition `{name}` in this project already")));
    }
    work.execute(
        &format!("INSERT INTO security ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"),
        &[
            &key(definition.id.as_u128()),
            &project,
            &definition.kind().as_str(),
            &definition.name,
            &json(&definition.written)?,
            &definition.sealed,
            &definition.version,
            &definition.created_at.as_millis(),
            &definition.updated_at.as_millis(),
        ],
    )?;
    Ok(())
}

pub(super) fn replace(work: &Work, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
    let id = key(definition.id.as_u128());
    let stored = work
        .first("SELECT version FROM security WHERE id = ?1", &[&id], |row| Ok(row.get::<_, u32>(0)?))?
        .ok_or(StoreError::NotFound { what: "security definition" })?;
    if stored != version {
        return Err(StoreError::Conflict(format!(
            "the security definition `{}` has changed meanwhile: it has version {stored}, not {version}",
            definition.name
        )));
    }
    work.execute(
        "UPDATE security SET kind = ?2, written = ?3, sealed = ?4, version = ?5, updated_at = ?6 WHERE id = ?1",
        &[
            &id,
            &definition.kind().as_str(),
            &json(&definition.written)?,
            &definition.sealed,
            &definition.version,
            &definition.updated_at.as_millis(),
        ],
    )?;
    Ok(())
}

pub(super) fn delete(work: &Work, id: SecurityId) -> Result<(), StoreError> {
    let id = key(id.as_u128());
    let (project, name) = work
        .first("SELECT project_id, name FROM security WHERE id = ?1", &[&id], |row| {
            Ok((row.get::<_, [u8; 16]>(0)?, row.get::<_, String>(1)?))
        })?
        .ok_or(StoreError::NotFound { what: "security definition" })?;
    let users = work.all(
        "SELECT name FROM connection WHERE project_id = ?1 AND json_extract(written, '$.security') = ?2 ORDER BY name",
        &[&project, &name],
        |row| Ok(row.get::<_, String>(0)?),
    )?;
    if !users.is_empty() {
        return Err(in_use(&name, &users));
    }
    work.execute("DELETE FROM security WHERE id = ?1", &[&id])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<SecurityDefinition, StoreError> {
    let mut at = Columns { row, next: 0 };
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
        version: at.take()?,
        created_at: Timestamp::from_millis(at.take()?),
        updated_at: Timestamp::from_millis(at.take()?),
    })
}
