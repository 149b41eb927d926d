//! Who works on this database. It must not know what a fair spreading is.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::WorkerId;

use super::PostgresStore;
use super::failures::Outcome;
use super::queues::HAS_WAITING;
use super::rows::Cells;
use super::work::{Work, lease_now};
use crate::{Spreading, StoreError, Workforce};

#[async_trait]
impl Spreading for PostgresStore {
    async fn workforce(&self, now: Timestamp) -> Result<Option<Workforce>, StoreError> {
        self.read_together(now, |work, now| workforce(work, *now).boxed()).await.map(Some)
    }
}

pub(super) fn workers_sql() -> String {
    format!(
        "SELECT worker.id, (SELECT count(*) FROM queue WHERE queue.owner = worker.id) FROM worker WHERE worker.ends_at >= {} \
         ORDER BY worker.id",
        lease_now(1)
    )
}

pub(super) fn free_count_sql() -> String {
    let now = lease_now(1);
    format!(
        "SELECT (SELECT count(*) FROM queue WHERE wanted AND owner IS NULL AND {HAS_WAITING}) \
         + (SELECT count(*) FROM worker JOIN queue ON queue.owner = worker.id AND queue.owner IS NOT NULL \
         WHERE worker.ends_at < {now} AND {HAS_WAITING})"
    )
}

async fn workforce(work: &Work, now: Timestamp) -> Outcome<Workforce> {
    let time = work.lease_time(now);
    let read = |row: &tokio_postgres::Row| {
        let mut at = Cells::of(row);
        Ok((WorkerId::from_u128(at.id()?), at.count()?))
    };
    let workers = work.all(&workers_sql(), &[&time], read).await?;
    let free = work.first(&free_count_sql(), &[&time], |row| Cells::of(row).count()).await?;
    Ok(Workforce { workers, free: free.unwrap_or_default() })
}
