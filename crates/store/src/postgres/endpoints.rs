//! Rows of webhook endpoints. It must not know what a key is, nor what follows from a state.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::connection::ConnectionKind;
use postrider_core::endpoint::{EndpointState, LastTest, SwitchedOff, Verification};
use postrider_core::health::{EndpointHealth, SwitchOffReason};
use postrider_core::id::{ConnectionId, ProjectId};
use tokio_postgres::Row;

use super::PostgresStore;
use super::columns::Param;
use super::failures::Outcome;
use super::key::Id as _;
use super::rows::Cells;
use super::work::Work;
use crate::{EndpointKeys, EndpointRow, Endpoints, FormerSigningKey, StoreError};

pub(super) const COLUMNS: &str = "id, project_id, sealed, former_sealed, former_until, verification, verified_url, off_reason, off_at, failing_since, \
     failed_in_a_row, tested_at, test_succeeded, epoch, tell_at, version";
const MISSING: StoreError = StoreError::NotFound { what: "endpoint" };

#[async_trait]
impl Endpoints for PostgresStore {
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError> {
        self.read((), |work, ()| all(work).boxed()).await
    }

    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError> {
        self.read(id, |work, id| one(work, *id).boxed()).await
    }

    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError> {
        self.write(row.clone(), |work, row| create(work, row).boxed()).await
    }

    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        let data = (id, keys.clone(), version);
        self.write(data, |work, (id, keys, version)| replace_keys(work, *id, keys, *version).boxed()).await
    }

    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError> {
        self.write((id, test), |work, (id, test)| note_test(work, *id, *test).boxed()).await
    }

    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError> {
        let data = (id, verification, url.to_owned());
        self.write(data, |work, (id, found, url)| note_verification(work, *id, *found, url).boxed()).await
    }
}

async fn all(work: &Work) -> Outcome<Vec<EndpointRow>> {
    work.all(&format!("SELECT {COLUMNS} FROM endpoint ORDER BY id"), &[], read).await
}

async fn one(work: &Work, id: ConnectionId) -> Outcome<Option<EndpointRow>> {
    work.first(&format!("SELECT {COLUMNS} FROM endpoint WHERE id = $1"), &[&id.key()], read).await
}

async fn note_test(work: &Work, id: ConnectionId, test: LastTest) -> Outcome<()> {
    let sql = "UPDATE endpoint SET tested_at = $2, test_succeeded = $3 WHERE id = $1";
    found(work.execute(sql, &[&id.key(), &test.at.as_millis(), &test.succeeded]).await?)
}

async fn note_verification(work: &Work, id: ConnectionId, verification: Verification, url: &str) -> Outcome<()> {
    work.tell_of_configuration();
    let sql = "UPDATE endpoint SET verification = $2, verified_url = $3 WHERE id = $1";
    found(work.execute(sql, &[&id.key(), &verification.as_str(), &url]).await?)
}

fn found(rows: u64) -> Outcome<()> {
    if rows == 1 { Ok(()) } else { Err(MISSING.into()) }
}

pub(super) async fn create(work: &Work, row: &EndpointRow) -> Outcome<()> {
    work.tell_of_configuration();
    let id = row.id.key();
    let kind = ConnectionKind::Webhook.as_str();
    if !work.exists("SELECT 1 FROM connection WHERE id = $1 AND kind = $2 FOR SHARE", &[&id, &kind]).await? {
        return Err(MISSING.into());
    }
    if work.exists("SELECT 1 FROM endpoint WHERE id = $1", &[&id]).await? {
        return Err(StoreError::Conflict("the endpoint has its keys already".to_owned()).into());
    }
    let EndpointRow { keys, state, .. } = row;
    let sql = format!(
        "INSERT INTO endpoint ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
    );
    let params: [Param<'_>; 16] = [
        &id,
        &row.project_id.key(),
        &keys.sealed,
        &keys.former.as_ref().map(|former| &former.sealed),
        &keys.former.as_ref().map(|former| former.signs_until.as_millis()),
        &state.verification.as_str(),
        &row.verified_url,
        &state.off.map(|off| off.reason.as_str()),
        &state.off.map(|off| off.at.as_millis()),
        &state.health.failing_since.map(Timestamp::as_millis),
        &i64::from(state.health.failed_in_a_row),
        &state.last_test.map(|test| test.at.as_millis()),
        &state.last_test.map(|test| test.succeeded),
        &i64::from(state.epoch),
        &row.tell_at.map(Timestamp::as_millis),
        &i64::from(row.version),
    ];
    work.execute(&sql, &params).await?;
    Ok(())
}

pub(super) async fn replace_keys(work: &Work, id: ConnectionId, keys: &EndpointKeys, version: u32) -> Outcome<()> {
    work.tell_of_configuration();
    let id = id.key();
    let sql = "SELECT version FROM endpoint WHERE id = $1 FOR UPDATE";
    let stored = work.first(sql, &[&id], |row| Cells::of(row).number::<u32>()).await?.ok_or(MISSING)?;
    if stored != version {
        let why = format!("the endpoint's keys have changed meanwhile: version {stored}");
        return Err(StoreError::Conflict(why).into());
    }
    let sql =
        "UPDATE endpoint SET sealed = $2, former_sealed = $3, former_until = $4, version = version + 1 WHERE id = $1";
    let params: [Param<'_>; 4] = [
        &id,
        &keys.sealed,
        &keys.former.as_ref().map(|former| &former.sealed),
        &keys.former.as_ref().map(|former| former.signs_until.as_millis()),
    ];
    work.execute(sql, &params).await?;
    Ok(())
}

/// With its connection.
pub(super) async fn delete(work: &Work, id: ConnectionId) -> Outcome<()> {
    work.tell_of_configuration();
    work.execute("DELETE FROM endpoint WHERE id = $1", &[&id.key()]).await?;
    Ok(())
}

pub(super) fn read(row: &Row) -> Result<EndpointRow, StoreError> {
    let mut at = Cells::of(row);
    let (id, project_id) = (ConnectionId::from_u128(at.id()?), ProjectId::from_u128(at.id()?));
    let sealed = at.take()?;
    let former = match (at.take::<Option<String>>()?, at.optional_time()?) {
        (Some(sealed), Some(signs_until)) => Some(FormerSigningKey { sealed, signs_until }),
        _ => None,
    };
    let (verification, verified_url) = (at.word(Verification::parse)?, at.take()?);
    let off = match (at.optional_word(SwitchOffReason::parse)?, at.optional_time()?) {
        (Some(reason), Some(at)) => Some(SwitchedOff { reason, at }),
        _ => None,
    };
    let health = EndpointHealth { failing_since: at.optional_time()?, failed_in_a_row: at.number()? };
    let last_test = match (at.optional_time()?, at.take::<Option<bool>>()?) {
        (Some(at), Some(succeeded)) => Some(LastTest { at, succeeded }),
        _ => None,
    };
    Ok(EndpointRow {
        id,
        project_id,
        keys: EndpointKeys { sealed, former },
        state: EndpointState { verification, off, health, last_test, epoch: at.number()? },
        verified_url,
        tell_at: at.optional_time()?,
        version: at.number()?,
    })
}
