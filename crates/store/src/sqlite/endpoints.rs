//! Rows of webhook endpoints. It must not know what a key is, nor what follows from a state.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::connection::ConnectionKind;
use postrider_core::endpoint::{EndpointState, LastTest, SwitchedOff, Verification};
use postrider_core::health::{EndpointHealth, SwitchOffReason};
use postrider_core::id::{ConnectionId, ProjectId};
use rusqlite::Row;

use super::SqliteStore;
use super::rows::{Columns, key, read_all, read_one};
use super::work::Work;
use crate::{EndpointKeys, EndpointRow, Endpoints, FormerSigningKey, StoreError};

pub(super) const COLUMNS: &str = "id, project_id, sealed, former_sealed, former_until, verification, verified_url, off_reason, off_at, failing_since, \
     failed_in_a_row, tested_at, test_succeeded, epoch, tell_at, version";
const MISSING: StoreError = StoreError::NotFound { what: "endpoint" };

#[async_trait]
impl Endpoints for SqliteStore {
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM endpoint ORDER BY id");
        self.read(move |connection| read_all(connection, &sql, &[], read)).await
    }

    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM endpoint WHERE id = ?1");
        self.read(move |connection| read_one(connection, &sql, &[&key(id.as_u128())], read)).await
    }

    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError> {
        let row = row.clone();
        self.write(move |work| create(work, &row)).await
    }

    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        let keys = keys.clone();
        self.write(move |work| replace_keys(work, id, &keys, version)).await
    }

    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError> {
        self.write(move |work| {
            let sql = "UPDATE endpoint SET tested_at = ?2, test_succeeded = ?3 WHERE id = ?1";
            found(work.execute(sql, &[&key(id.as_u128()), &test.at.as_millis(), &test.succeeded])?)
        })
        .await
    }

    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError> {
        let url = url.to_owned();
        self.write(move |work| {
            let sql = "UPDATE endpoint SET verification = ?2, verified_url = ?3 WHERE id = ?1";
            found(work.execute(sql, &[&key(id.as_u128()), &verification.as_str(), &url])?)
        })
        .await
    }
}

fn found(rows: usize) -> Result<(), StoreError> {
    if rows == 1 { Ok(()) } else { Err(MISSING) }
}

pub(super) fn create(work: &Work, row: &EndpointRow) -> Result<(), StoreError> {
    let id = key(row.id.as_u128());
    let kind =
        work.first("SELECT kind FROM connection WHERE id = ?1", &[&id], |found| Ok(found.get::<_, String>(0)?))?;
    if kind.as_deref() != Some(ConnectionKind::Webhook.as_str()) {
        return Err(MISSING);
    }
    if work.first("SELECT 1 FROM endpoint WHERE id = ?1", &[&id], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict("the endpoint has its keys already".to_owned()));
    }
    let EndpointRow { keys, state, .. } = row;
    work.execute(
        &format!(
            "INSERT INTO endpoint ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)"
        ),
        &[
            &id,
            &key(row.project_id.as_u128()),
            &keys.sealed,
            &keys.former.as_ref().map(|former| &former.sealed),
            &keys.former.as_ref().map(|former| former.signs_until.as_millis()),
            &state.verification.as_str(),
            &row.verified_url,
            &state.off.map(|off| off.reason.as_str()),
            &state.off.map(|off| off.at.as_millis()),
            &state.health.failing_since.map(Timestamp::as_millis),
            &state.health.failed_in_a_row,
            &state.last_test.map(|test| test.at.as_millis()),
            &state.last_test.map(|test| test.succeeded),
            &state.epoch,
            &row.tell_at.map(Timestamp::as_millis),
            &row.version,
        ],
    )?;
    Ok(())
}

pub(super) fn replace_keys(work: &Work, id: ConnectionId, keys: &EndpointKeys, version: u32) -> Result<(), StoreError> {
    let id = key(id.as_u128());
    let stored = work
        .first("SELECT version FROM endpoint WHERE id = ?1", &[&id], |row| Ok(row.get::<_, u32>(0)?))?
        .ok_or(MISSING)?;
    if stored != version {
        return Err(StoreError::Conflict(format!("the endpoint's keys have changed meanwhile: version {stored}")));
    }
    work.execute(
        "UPDATE endpoint SET sealed = ?2, former_sealed = ?3, former_until = ?4, version = version + 1 WHERE id = ?1",
        &[
            &id,
            &keys.sealed,
            &keys.former.as_ref().map(|former| &former.sealed),
            &keys.former.as_ref().map(|former| former.signs_until.as_millis()),
        ],
    )?;
    Ok(())
}

/// With its connection.
pub(super) fn delete(work: &Work, id: &[u8; 16]) -> Result<(), StoreError> {
    work.execute("DELETE FROM endpoint WHERE id = ?1", &[id])?;
    Ok(())
}

pub(super) fn read(row: &Row<'_>) -> Result<EndpointRow, StoreError> {
    let mut at = Columns { row, next: 0 };
    let (id, project_id) = (ConnectionId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let sealed = at.take()?;
    let former = match (at.take::<Option<String>>()?, at.time()?) {
        (Some(sealed), Some(signs_until)) => Some(FormerSigningKey { sealed, signs_until }),
        _ => None,
    };
    let (verification, verified_url) = (at.word(Verification::parse)?, at.take()?);
    let off = match (at.optional_word(SwitchOffReason::parse)?, at.time()?) {
        (Some(reason), Some(at)) => Some(SwitchedOff { reason, at }),
        _ => None,
    };
    let health = EndpointHealth { failing_since: at.time()?, failed_in_a_row: at.take()? };
    let last_test = match (at.time()?, at.take::<Option<bool>>()?) {
        (Some(at), Some(succeeded)) => Some(LastTest { at, succeeded }),
        _ => None,
    };
    Ok(EndpointRow {
        id,
        project_id,
        keys: EndpointKeys { sealed, former },
        state: EndpointState { verification, off, health, last_test, epoch: at.take()? },
        verified_url,
        tell_at: at.time()?,
        version: at.take()?,
    })
}
