//! Queue rows in the writer's memory: read once, changed there, written once a transaction. It must not know what a delivery is.
//!
//! Only the writer changes queue rows and only this process has the file, so what is kept here is what the file says.

use std::collections::BTreeMap;

use postrider_core::id::{ProjectId, QueueId, WorkerId};

use super::rows::{Columns, key, signed, unsigned};
use super::work::{Work, write_rows};
use crate::{QueueLease, StoreError};

/// Enough for every connection that is busy; with more the memory is emptied between transactions.
const KEPT_MAX: usize = 65_536;

#[derive(Clone, Debug)]
pub(super) struct Queue {
    pub id: QueueId,
    pub project_id: ProjectId,
    pub ordered: bool,
    pub next_position: i64,
    pub waiting: u64,
    pub waiting_bytes: u64,
    pub dead: u64,
    pub accepted: u64,
    pub pruned: u64,
    pub token: i64,
    pub owner: Option<WorkerId>,
    /// Set when it is taken, cleared when it is released: still set with no owner, the last one died.
    pub unreleased: bool,
    /// Its connection is gone; only the log still speaks of it.
    pub deleted: bool,
}

impl Queue {
    pub fn new(id: QueueId, project_id: ProjectId, ordered: bool) -> Self {
        Queue {
            id,
            project_id,
            ordered,
            next_position: 1,
            waiting: 0,
            waiting_bytes: 0,
            dead: 0,
            accepted: 0,
            pruned: 0,
            token: 0,
            owner: None,
            unreleased: false,
            deleted: false,
        }
    }

    /// What changes seldom, and what the indexes are over.
    fn ownership(&self) -> (bool, i64, Option<WorkerId>, bool, bool) {
        (self.ordered, self.token, self.owner, self.unreleased, self.deleted)
    }

    pub fn is_held_under(&self, lease: &QueueLease) -> bool {
        self.owner == Some(lease.worker_id) && self.token == lease.token.0
    }

    pub fn release(&mut self) {
        self.owner = None;
        self.unreleased = false;
    }

    pub fn take_position(&mut self) -> i64 {
        let position = self.next_position;
        self.next_position += 1;
        position
    }

    pub fn enters(&mut self, bytes: u64) {
        self.waiting += 1;
        self.waiting_bytes += bytes;
    }

    pub fn leaves(&mut self, bytes: u64) {
        self.waiting = self.waiting.saturating_sub(1);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
    }
}

/// What of a kept row is not in the file yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    None,
    /// Counters only, as nearly always: no index of ownership is touched.
    Counters,
    Whole,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    kept: BTreeMap<QueueId, (Queue, Change)>,
    /// Those of them that have changed; of ten thousand busy queues a transaction touches a few.
    changed: Vec<QueueId>,
    touches: u64,
}

impl Queues {
    /// How often a row was lent out for a change.
    pub fn touches(&self) -> u64 {
        self.touches
    }

    /// The rows to write, with how much of each.
    pub fn take_changed(&mut self) -> Vec<(Queue, Change)> {
        let mut rows = Vec::with_capacity(self.changed.len());
        for id in self.changed.drain(..) {
            if let Some((queue, change)) = self.kept.get_mut(&id)
                && *change != Change::None
            {
                rows.push((queue.clone(), std::mem::replace(change, Change::None)));
            }
        }
        rows
    }

    pub fn forget(&mut self) {
        self.kept.clear();
        self.changed.clear();
    }

    /// Called between transactions, when all has been written.
    pub fn keep_small(&mut self) {
        if self.kept.len() > KEPT_MAX {
            self.kept.clear();
        }
    }
}

const COLUMNS: &str = "id, project_id, ordered, next_position, waiting, waiting_bytes, dead, accepted, pruned, token, owner, \
     unreleased, deleted";

/// The queue as it stands in this transaction.
pub(super) fn find(work: &Work, id: QueueId) -> Result<Option<Queue>, StoreError> {
    if let Some((queue, _)) = work.queues().kept.get(&id) {
        return Ok(Some(queue.clone()));
    }
    let sql = format!("SELECT {COLUMNS} FROM queue WHERE id = ?1");
    let found = work.first(&sql, &[&key(id.as_u128())], |row| {
        let mut at = Columns { row, next: 0 };
        Ok(Queue {
            id: QueueId::from_u128(at.id()?),
            project_id: ProjectId::from_u128(at.id()?),
            ordered: at.take()?,
            next_position: at.take()?,
            waiting: unsigned(at.take()?)?,
            waiting_bytes: unsigned(at.take()?)?,
            dead: unsigned(at.take()?)?,
            accepted: unsigned(at.take()?)?,
            pruned: unsigned(at.take()?)?,
            token: at.take()?,
            owner: at.optional_id()?.map(WorkerId::from_u128),
            unreleased: at.take()?,
            deleted: at.take()?,
        })
    })?;
    if let Some(queue) = &found {
        work.queues().kept.insert(id, (queue.clone(), Change::None));
    }
    Ok(found)
}

/// The queue, if this lease is the one that holds it.
pub(super) fn held(work: &Work, lease: &QueueLease) -> Result<Queue, StoreError> {
    find(work, lease.queue_id)?.filter(|queue| queue.is_held_under(lease)).ok_or(StoreError::LeaseLost)
}

/// Changes a queue that `find` has found.
pub(super) fn change(work: &Work, id: QueueId, change: impl FnOnce(&mut Queue)) {
    let mut queues = work.queues();
    let queues = &mut *queues;
    queues.touches += 1;
    if let Some((queue, changed)) = queues.kept.get_mut(&id) {
        if *changed == Change::None {
            queues.changed.push(id);
        }
        let before = queue.ownership();
        change(queue);
        let now = if queue.ownership() == before { Change::Counters } else { Change::Whole };
        *changed = now.max(*changed);
    }
}

/// Adds a queue, or replaces the row that a former connection of this id left.
pub(super) fn put(work: &Work, queue: Queue) {
    let mut queues = work.queues();
    queues.touches += 1;
    queues.changed.push(queue.id);
    queues.kept.insert(queue.id, (queue, Change::Whole));
}

pub(super) fn remove(work: &Work, id: QueueId) -> Result<(), StoreError> {
    work.queues().kept.remove(&id);
    work.execute("DELETE FROM queue WHERE id = ?1", &[&key(id.as_u128())])?;
    Ok(())
}

const COUNTERS: &str = "next_position = excluded.next_position, waiting = excluded.waiting, \
     waiting_bytes = excluded.waiting_bytes, dead = excluded.dead, accepted = excluded.accepted, pruned = excluded.pruned";
const OWNERSHIP: &str = "ordered = excluded.ordered, token = excluded.token, owner = excluded.owner, \
     unreleased = excluded.unreleased, deleted = excluded.deleted";

pub(super) fn write(work: &Work, changed: &[(Queue, Change)]) -> Result<(), StoreError> {
    let (whole, counters): (Vec<_>, Vec<_>) = changed.iter().partition(|(_, change)| *change == Change::Whole);
    write_columns(work, &counters, COUNTERS)?;
    write_columns(work, &whole, &format!("{COUNTERS}, {OWNERSHIP}"))
}

fn write_columns(work: &Work, rows: &[&(Queue, Change)], columns: &str) -> Result<(), StoreError> {
    let before = format!("INSERT INTO queue ({COLUMNS}) VALUES ");
    let after = format!(" ON CONFLICT (id) DO UPDATE SET {columns}");
    write_rows(work, (&before, 13, &after), rows, |to, (queue, _)| {
        to.push(key(queue.id.as_u128()))?;
        to.push(key(queue.project_id.as_u128()))?;
        to.push(queue.ordered)?;
        to.push(queue.next_position)?;
        to.push(signed(queue.waiting))?;
        to.push(signed(queue.waiting_bytes))?;
        to.push(signed(queue.dead))?;
        to.push(signed(queue.accepted))?;
        to.push(signed(queue.pruned))?;
        to.push(queue.token)?;
        to.push(queue.owner.map(|id| key(id.as_u128())))?;
        to.push(queue.unreleased)?;
        to.push(queue.deleted)
    })
}
