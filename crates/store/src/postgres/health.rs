//! How endpoints do. It must not know when one is to be switched off.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::endpoint::Verification;
use postrider_core::id::ConnectionId;

use super::columns::Columns;
use super::endpoints::{COLUMNS, read};
use super::failures::Outcome;
use super::key::Id as _;
use super::work::Work;
use super::{PostgresStore, audit};
use crate::health::without_needless;
use crate::{EndpointHealths, EndpointRow, HealthWrite, OffWrite, StoreError};

#[async_trait]
impl EndpointHealths for PostgresStore {
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError> {
        let after = after.unwrap_or(ConnectionId::from_u128(0));
        self.read((after, rows_max), |work, (after, rows_max)| failing(work, *after, *rows_max).boxed()).await
    }

    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError> {
        self.write((was.clone(), off), |work, (was, off)| switch_off_as_it_was(work, was, off).boxed()).await
    }

    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError> {
        self.read((now, rows_max), |work, (now, rows_max)| untold(work, *now, *rows_max).boxed()).await
    }

    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError> {
        self.write((was.id, was.tell_at, until), |work, (id, was, until)| take(work, *id, *was, *until).boxed()).await
    }

    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError> {
        self.write((id, epoch), |work, (id, epoch)| end(work, *id, *epoch).boxed()).await
    }
}

async fn failing(work: &Work, after: ConnectionId, rows_max: u32) -> Outcome<Vec<EndpointRow>> {
    work.all(&failing_sql(), &[&after.key(), &i64::from(rows_max)], read).await
}

pub(super) fn failing_sql() -> String {
    format!("SELECT {COLUMNS} FROM endpoint WHERE failing_since IS NOT NULL AND id > $1 ORDER BY id LIMIT $2")
}

async fn untold(work: &Work, now: Timestamp, rows_max: u32) -> Outcome<Vec<EndpointRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM endpoint WHERE tell_at IS NOT NULL AND tell_at <= $1 ORDER BY tell_at LIMIT $2");
    work.all(&sql, &[&now.as_millis(), &i64::from(rows_max)], read).await
}

async fn take(work: &Work, id: ConnectionId, was: Option<Timestamp>, until: Timestamp) -> Outcome<bool> {
    let sql = "UPDATE endpoint SET tell_at = $3 WHERE id = $1 AND tell_at = $2";
    Ok(work.execute(sql, &[&id.key(), &was.map(Timestamp::as_millis), &until.as_millis()]).await? == 1)
}

async fn end(work: &Work, id: ConnectionId, epoch: u32) -> Outcome<()> {
    let sql = "UPDATE endpoint SET tell_at = NULL WHERE id = $1 AND epoch = $2";
    work.execute(sql, &[&id.key(), &i64::from(epoch)]).await?;
    Ok(())
}

/// What the attempts of one batch make of their endpoints.
pub(super) async fn write(work: &Work, writes: &[(ConnectionId, &HealthWrite)]) -> Outcome<()> {
    let mut writes = without_needless(writes);
    // Always in the order of the ids, so that two servers wait for each other and do not block each other.
    writes.sort_by_key(|(id, _)| *id);
    let rows = Columns::of(&writes, |to, (id, write)| {
        to.key(*id);
        to.int(write.epoch);
        to.optional_time(write.health.failing_since);
        to.int(write.health.failed_in_a_row);
    });
    let sql = format!(
        "UPDATE endpoint AS e SET failing_since = n.failing_since, failed_in_a_row = n.failed_in_a_row \
         FROM {} AS n (id, epoch, failing_since, failed_in_a_row) \
         WHERE e.id = n.id AND e.epoch = n.epoch AND e.off_reason IS NULL",
        rows.unnest(1)
    );
    work.write_rows(&sql, &rows).await?;
    for (id, write) in writes {
        if let Some(off) = &write.off {
            switch_off(work, id, write.epoch, off).await?;
        }
    }
    Ok(())
}

async fn switch_off_as_it_was(work: &Work, was: &EndpointRow, off: &OffWrite) -> Outcome<bool> {
    let since = was.state.health.failing_since.map(Timestamp::as_millis);
    let sql = "SELECT 1 FROM endpoint WHERE id = $1 AND failing_since IS NOT DISTINCT FROM $2 FOR UPDATE";
    if !work.exists(sql, &[&was.id.key(), &since]).await? {
        return Ok(false);
    }
    switch_off(work, was.id, was.state.epoch, off).await
}

/// `false`: it is in another epoch, or off already.
async fn switch_off(work: &Work, id: ConnectionId, epoch: u32, write: &OffWrite) -> Outcome<bool> {
    let sql = "UPDATE endpoint SET off_reason = $3, off_at = $4, tell_at = $4, epoch = epoch + 1 \
               WHERE id = $1 AND epoch = $2 AND off_reason IS NULL";
    let (reason, at) = (write.off.reason.as_str(), write.off.at.as_millis());
    let is_written = work.execute(sql, &[&id.key(), &i64::from(epoch), &reason, &at]).await? == 1;
    if is_written {
        // Other servers make no deliveries for it from now on (V05).
        work.tell_of_configuration();
        audit::insert(work, &write.entry).await?;
    }
    Ok(is_written)
}

/// What a person changes beside the connection's settings.
pub(super) async fn change(
    work: &Work,
    id: ConnectionId,
    verification: Option<Verification>,
    switches_on: bool,
) -> Outcome<()> {
    work.tell_of_configuration();
    if !work.exists("SELECT 1 FROM endpoint WHERE id = $1 FOR UPDATE", &[&id.key()]).await? {
        return Err(StoreError::NotFound { what: "endpoint" }.into());
    }
    if let Some(verification) = verification {
        let sql = "UPDATE endpoint SET verification = $2, verified_url = NULL WHERE id = $1";
        work.execute(sql, &[&id.key(), &verification.as_str()]).await?;
    }
    if switches_on {
        let sql = "UPDATE endpoint SET off_reason = NULL, off_at = NULL, failing_since = NULL, failed_in_a_row = 0, \
                   tell_at = NULL, epoch = epoch + 1 WHERE id = $1";
        work.execute(sql, &[&id.key()]).await?;
    }
    Ok(())
}
