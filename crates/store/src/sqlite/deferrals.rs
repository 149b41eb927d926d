//! What holds deliveries up. It must not know why.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::id::{DeliveryId, QueueId};
use rusqlite::Connection;

use super::SqliteStore;
use super::queues;
use super::rows::{Columns, id_of, key, read_one};
use super::work::Work;
use crate::{Deferrals, QueueLease, StoreError};

#[async_trait]
impl Deferrals for SqliteStore {
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
        self.write(move |work| note(work, &lease, deferral)).await
    }

    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError> {
        self.read(move |connection| {
            let mut found = Vec::new();
            for id in queues {
                if let Some(deferral) = said(connection, id)? {
                    found.push((id, deferral));
                }
            }
            Ok(found)
        })
        .await
    }

    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError> {
        self.read(move |connection| {
            let mut found = Vec::new();
            for id in ids {
                if let Some(before) = before(connection, id)? {
                    found.push((id, before));
                }
            }
            Ok(found)
        })
        .await
    }
}

fn note(work: &Work, lease: &QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
    queues::held(work, lease)?;
    let queue_id = key(lease.queue_id.as_u128());
    let Some(deferral) = deferral else { return forget(work, lease.queue_id) };
    work.execute(
        "INSERT OR REPLACE INTO deferral (queue_id, token, reason, until) VALUES (?1, ?2, ?3, ?4)",
        &[&queue_id, &lease.token.0, &deferral.by.as_str(), &deferral.until.map(Timestamp::as_millis)],
    )?;
    Ok(())
}

pub(super) fn forget(work: &Work, queue_id: QueueId) -> Result<(), StoreError> {
    work.execute("DELETE FROM deferral WHERE queue_id = ?1", &[&key(queue_id.as_u128())])?;
    Ok(())
}

fn said(connection: &Connection, id: QueueId) -> Result<Option<Deferral>, StoreError> {
    let sql = "SELECT f.reason, f.until FROM deferral AS f JOIN queue AS q ON q.id = f.queue_id AND q.token = f.token \
         WHERE f.queue_id = ?1 AND q.owner IS NOT NULL";
    read_one(connection, sql, &[&key(id.as_u128())], |row| {
        let mut at = Columns { row, next: 0 };
        Ok(Deferral { by: at.word(DeferredBy::parse)?, until: at.time()? })
    })
}

pub(super) const BEFORE_SQL: &str = "SELECT CASE WHEN q.ordered THEN (SELECT b.id FROM delivery AS b WHERE b.connection_id = d.connection_id \
     AND b.position < d.position AND b.position IS NOT NULL AND b.by_due = 0 ORDER BY b.position LIMIT 1) \
     ELSE (SELECT b.id FROM delivery AS b WHERE b.connection_id = d.connection_id AND b.line = d.line AND b.line IS NOT NULL \
     AND b.position IS NOT NULL AND b.position < d.position ORDER BY b.position LIMIT 1) END \
     FROM delivery AS d JOIN queue AS q ON q.id = d.connection_id WHERE d.id = ?1 AND d.position IS NOT NULL";

fn before(connection: &Connection, id: DeliveryId) -> Result<Option<DeliveryId>, StoreError> {
    let found = read_one(connection, BEFORE_SQL, &[&key(id.as_u128())], |row| Ok(row.get::<_, Option<[u8; 16]>>(0)?))?;
    Ok(found.flatten().map(|key| DeliveryId::from_u128(id_of(key))))
}
