//! How endpoints do. It must not know when one is to be switched off.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::endpoint::Verification;
use postrider_core::id::ConnectionId;

use super::endpoints::{COLUMNS, read};
use super::rows::{key, read_all};
use super::work::Work;
use super::{SqliteStore, audit};
use crate::health::without_needless;
use crate::{EndpointHealths, EndpointRow, HealthWrite, OffWrite, StoreError};

#[async_trait]
impl EndpointHealths for SqliteStore {
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError> {
        let sql = failing_sql();
        let after = after.map_or([0; 16], |id| key(id.as_u128()));
        self.read(move |connection| read_all(connection, &sql, &[&after, &rows_max], read)).await
    }

    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError> {
        let was = was.clone();
        self.write(move |work| {
            let since = was.state.health.failing_since.map(Timestamp::as_millis);
            let sql = "SELECT 1 FROM endpoint WHERE id = ?1 AND failing_since IS ?2";
            if work.first(sql, &[&key(was.id.as_u128()), &since], |_| Ok(()))?.is_none() {
                return Ok(false);
            }
            switch_off(work, was.id, was.state.epoch, &off)
        })
        .await
    }

    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError> {
        let sql = untold_sql();
        self.read(move |connection| read_all(connection, &sql, &[&now.as_millis(), &rows_max], read)).await
    }

    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError> {
        let (id, was_at) = (key(was.id.as_u128()), was.tell_at.map(Timestamp::as_millis));
        self.write(move |work| {
            let sql = "UPDATE endpoint SET tell_at = ?3 WHERE id = ?1 AND tell_at = ?2";
            Ok(work.execute(sql, &[&id, &was_at, &until.as_millis()])? == 1)
        })
        .await
    }

    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError> {
        self.write(move |work| {
            work.execute(
                "UPDATE endpoint SET tell_at = NULL WHERE id = ?1 AND epoch = ?2",
                &[&key(id.as_u128()), &epoch],
            )?;
            Ok(())
        })
        .await
    }
}

pub(super) fn failing_sql() -> String {
    format!("SELECT {COLUMNS} FROM endpoint WHERE failing_since IS NOT NULL AND id > ?1 ORDER BY id LIMIT ?2")
}

pub(super) fn untold_sql() -> String {
    format!("SELECT {COLUMNS} FROM endpoint WHERE tell_at IS NOT NULL AND tell_at <= ?1 ORDER BY tell_at LIMIT ?2")
}

/// What the attempts of one batch make of their endpoints.
pub(super) fn write(work: &Work, writes: &[(ConnectionId, &HealthWrite)]) -> Result<(), StoreError> {
    for (id, write) in without_needless(writes) {
        let sql = "UPDATE endpoint SET failing_since = ?3, failed_in_a_row = ?4 \
                   WHERE id = ?1 AND epoch = ?2 AND off_reason IS NULL";
        let (since, count) = (write.health.failing_since.map(Timestamp::as_millis), write.health.failed_in_a_row);
        work.execute(sql, &[&key(id.as_u128()), &write.epoch, &since, &count])?;
        if let Some(off) = &write.off {
            switch_off(work, id, write.epoch, off)?;
        }
    }
    Ok(())
}

/// `false`: it is in another epoch, or off already.
fn switch_off(work: &Work, id: ConnectionId, epoch: u32, write: &OffWrite) -> Result<bool, StoreError> {
    let sql = "UPDATE endpoint SET off_reason = ?3, off_at = ?4, tell_at = ?4, epoch = epoch + 1 \
               WHERE id = ?1 AND epoch = ?2 AND off_reason IS NULL";
    let (reason, at) = (write.off.reason.as_str(), write.off.at.as_millis());
    let is_written = work.execute(sql, &[&key(id.as_u128()), &epoch, &reason, &at])? == 1;
    if is_written {
        audit::insert(work, &write.entry)?;
    }
    Ok(is_written)
}

/// What a person changes beside the connection's settings.
pub(super) fn change(
    work: &Work,
    id: ConnectionId,
    verification: Option<Verification>,
    switches_on: bool,
) -> Result<(), StoreError> {
    let id = key(id.as_u128());
    if work.first("SELECT 1 FROM endpoint WHERE id = ?1", &[&id], |_| Ok(()))?.is_none() {
        return Err(StoreError::NotFound { what: "endpoint" });
    }
    if let Some(verification) = verification {
        let sql = "UPDATE endpoint SET verification = ?2, verified_url = NULL WHERE id = ?1";
        work.execute(sql, &[&id, &verification.as_str()])?;
    }
    if switches_on {
        let sql = "UPDATE endpoint SET off_reason = NULL, off_at = NULL, failing_since = NULL, failed_in_a_row = 0, \
                   tell_at = NULL, epoch = epoch + 1 WHERE id = ?1";
        work.execute(sql, &[&id])?;
    }
    Ok(())
}
