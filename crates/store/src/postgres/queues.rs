//! The rows of queues and their locks. It must not know what a delivery is.
//!
//! Whoever locks more than one row locks in the order entry, queue, exit, and in each by id.

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::id::{ProjectId, QueueId, WorkerId};

use super::columns::Columns;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::rows::Cells;
use super::work::Work;
use crate::{QueueLease, StoreError};

/// Who owns a queue.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub id: QueueId,
    pub token: i64,
    pub owner: Option<WorkerId>,
    /// Set when it is taken, cleared when it is released: still set with no owner, the last one died.
    pub unreleased: bool,
    /// Its connection is gone; only the log still speaks of it.
    pub deleted: bool,
}

impl Queue {
    pub fn is_held_under(&self, lease: &QueueLease) -> bool {
        self.owner == Some(lease.worker_id) && self.token == lease.token.0
    }
}

pub(super) type Queues = BTreeMap<QueueId, Queue>;

const QUEUE: &str = "id, token, owner, unreleased, deleted";

fn read_queue(row: &tokio_postgres::Row) -> Result<Queue, StoreError> {
    let mut at = Cells::of(row);
    Ok(Queue {
        id: QueueId::from_u128(at.id()?),
        token: at.take()?,
        owner: at.optional_id()?.map(WorkerId::from_u128),
        unreleased: at.take()?,
        deleted: at.take()?,
    })
}

/// How a queue's row is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lock {
    /// Its owner stays the owner until the end of the transaction.
    Share,
    /// Nobody writes under a lease, and the owner may be changed.
    Alone,
    /// As `Alone`, leaving out those that others have locked.
    AloneIfFree,
}

pub(super) fn lock_sql(lock: Lock) -> String {
    let how = match lock {
        Lock::Share => "FOR SHARE",
        Lock::Alone => "FOR UPDATE",
        Lock::AloneIfFree => "FOR UPDATE SKIP LOCKED",
    };
    format!("SELECT {QUEUE} FROM queue WHERE id = ANY($1) ORDER BY id {how}")
}

pub(super) async fn lock(work: &Work, ids: &BTreeSet<QueueId>, lock: Lock) -> Outcome<Queues> {
    if ids.is_empty() {
        return Ok(Queues::new());
    }
    let found = work.all(&lock_sql(lock), &[&keys(ids)], read_queue).await?;
    Ok(found.into_iter().map(|queue| (queue.id, queue)).collect())
}

pub(super) fn keys(ids: &BTreeSet<QueueId>) -> Vec<Key> {
    ids.iter().map(|id| id.key()).collect()
}

pub(super) const LOCK_ENTRIES_SQL: &str = "SELECT 1 FROM queue_entry WHERE id = ANY($1) ORDER BY id FOR UPDATE";

/// From here to the end of the transaction nobody else stores into these queues, nor gives positions there.
pub(super) async fn lock_entries(work: &Work, ids: &BTreeSet<QueueId>) -> Outcome<()> {
    if !ids.is_empty() {
        work.rows(LOCK_ENTRIES_SQL, &[&keys(ids)]).await?;
    }
    Ok(())
}

/// The queue, if this lease is the one that holds it; locked so that it stays so.
pub(super) async fn held(work: &Work, lease: &QueueLease, how: Lock) -> Outcome<Queue> {
    let mut found = lock(work, &BTreeSet::from([lease.queue_id]), how).await?;
    let queue = found.remove(&lease.queue_id).filter(|queue| queue.is_held_under(lease));
    Ok(queue.ok_or(StoreError::LeaseLost)?)
}

/// Three rows for a new queue.
pub(super) async fn create(work: &Work, id: QueueId, project_id: ProjectId, ordered: bool) -> Outcome<()> {
    let key = id.key();
    work.execute("INSERT INTO queue_entry (id, ordered) VALUES ($1, $2)", &[&key, &ordered]).await?;
    work.execute("INSERT INTO queue (id, project_id) VALUES ($1, $2)", &[&key, &project_id.key()]).await?;
    work.execute("INSERT INTO queue_exit (id) VALUES ($1)", &[&key]).await?;
    Ok(())
}

pub(super) async fn remove(work: &Work, id: QueueId) -> Outcome<()> {
    for table in ["queue_entry", "queue", "queue_exit"] {
        work.execute(&format!("DELETE FROM {table} WHERE id = $1"), &[&id.key()]).await?;
    }
    Ok(())
}

/// What a transaction takes out of queues, or brings back into them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Left {
    pub count: i64,
    pub bytes: i64,
    pub dead: i64,
    pub pruned: i64,
}

/// Counts what has left. The rows are written in the order of their ids, so that two who settle several queues do not block each other.
pub(super) async fn count_left(work: &Work, left: &BTreeMap<QueueId, Left>) -> Outcome<()> {
    let changed = left.iter().filter(|(_, left)| **left != Left::default());
    let rows = Columns::of(changed, |to, (id, left)| {
        to.key(*id);
        to.int(left.count);
        to.int(left.bytes);
        to.int(left.dead);
        to.int(left.pruned);
    });
    if rows.rows() > 1 {
        let ids: Vec<Key> = left.keys().map(|id| id.key()).collect();
        work.rows("SELECT 1 FROM queue_exit WHERE id = ANY($1) ORDER BY id FOR UPDATE", &[&ids]).await?;
    }
    let sql = format!(
        "UPDATE queue_exit AS x SET left_count = x.left_count + n.left_count, left_bytes = x.left_bytes + n.left_bytes, \
         dead = x.dead + n.dead, pruned = x.pruned + n.pruned \
         FROM {} AS n (id, left_count, left_bytes, dead, pruned) WHERE x.id = n.id",
        rows.unnest(1)
    );
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

pub(super) const WANTED_SQL: &str = "UPDATE queue SET wanted = true WHERE id IN \
     (SELECT id FROM queue WHERE id = ANY($1) AND owner IS NULL AND NOT wanted ORDER BY id FOR UPDATE)";

/// Something waits in these now: where nobody is the owner, somebody is wanted. Their entries are locked, so no owner leaves meanwhile.
pub(super) async fn want_owners(work: &Work, ids: &BTreeSet<QueueId>) -> Outcome<()> {
    if !ids.is_empty() {
        work.execute(WANTED_SQL, &[&keys(ids)]).await?;
    }
    Ok(())
}

/// Whether something waits in `queue`.
pub(super) const HAS_WAITING: &str =
    "EXISTS (SELECT 1 FROM delivery WHERE delivery.connection_id = queue.id AND delivery.position IS NOT NULL)";
