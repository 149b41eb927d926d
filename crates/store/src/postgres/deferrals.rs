//! What holds deliveries up. It must not know why.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::id::{DeliveryId, QueueId};

use super::PostgresStore;
use super::columns::Param;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::queues::{self, Lock};
use super::rows::Cells;
use super::work::Work;
use crate::{Deferrals, QueueLease, StoreError};

#[async_trait]
impl Deferrals for PostgresStore {
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
        self.write((lease, deferral), |work, (lease, deferral)| note(work, lease, *deferral).boxed()).await
    }

    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError> {
        self.read(queues, |work, queues| said(work, queues).boxed()).await
    }

    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError> {
        self.read(ids, |work, ids| behind(work, ids).boxed()).await
    }
}

async fn note(work: &Work, lease: &QueueLease, deferral: Option<Deferral>) -> Outcome<()> {
    queues::held(work, lease, Lock::Share).await?;
    let Some(deferral) = deferral else { return forget(work, lease.queue_id).await };
    let sql = "INSERT INTO deferral (queue_id, token, reason, until) VALUES ($1, $2, $3, $4) \
         ON CONFLICT (queue_id) DO UPDATE SET token = excluded.token, reason = excluded.reason, until = excluded.until";
    let params: [Param<'_>; 4] =
        [&lease.queue_id.key(), &lease.token.0, &deferral.by.as_str(), &deferral.until.map(Timestamp::as_millis)];
    work.execute(sql, &params).await?;
    Ok(())
}

pub(super) async fn forget(work: &Work, queue_id: QueueId) -> Outcome<()> {
    work.execute("DELETE FROM deferral WHERE queue_id = $1", &[&queue_id.key()]).await?;
    Ok(())
}

async fn said(work: &Work, ids: &[QueueId]) -> Outcome<Vec<(QueueId, Deferral)>> {
    let keys: Vec<Key> = ids.iter().map(|id| id.key()).collect();
    let sql = "SELECT f.queue_id, f.reason, f.until FROM deferral AS f JOIN queue AS q ON q.id = f.queue_id AND q.token = f.token \
         WHERE f.queue_id = ANY($1) AND q.owner IS NOT NULL";
    work.all(sql, &[&keys], |row| {
        let mut at = Cells::of(row);
        let id = QueueId::from_u128(at.id()?);
        Ok((id, Deferral { by: at.word(DeferredBy::parse)?, until: at.optional_time()? }))
    })
    .await
}

pub(super) const BEHIND_SQL: &str = "SELECT w.id, w.before FROM (SELECT d.id, CASE WHEN e.ordered THEN (SELECT b.id FROM delivery AS b \
     WHERE b.connection_id = d.connection_id AND b.position < d.position AND b.position IS NOT NULL AND NOT b.by_due \
     ORDER BY b.position LIMIT 1) ELSE (SELECT b.id FROM delivery AS b WHERE b.connection_id = d.connection_id AND b.line = d.line \
     AND b.line IS NOT NULL AND b.position IS NOT NULL AND b.position < d.position ORDER BY b.position LIMIT 1) END AS before \
     FROM delivery AS d JOIN queue_entry AS e ON e.id = d.connection_id WHERE d.id = ANY($1) AND d.position IS NOT NULL) AS w \
     WHERE w.before IS NOT NULL";

async fn behind(work: &Work, ids: &[DeliveryId]) -> Outcome<Vec<(DeliveryId, DeliveryId)>> {
    let keys: Vec<Key> = ids.iter().map(|id| id.key()).collect();
    work.all(BEHIND_SQL, &[&keys], |row| {
        let mut at = Cells::of(row);
        Ok((DeliveryId::from_u128(at.id()?), DeliveryId::from_u128(at.id()?)))
    })
    .await
}
