//! Who may write to a queue: workers, their leases, and fencing tokens that only rise (D05). It must not know what is in a queue.

use postrider_core::id::{QueueId, WorkerId};
use postrider_core::{Timestamp, Wait};

use super::queues;
use super::rows::{id_of, key, signed, unsigned};
use super::work::Work;
use crate::{FencingToken, QueueLease, StoreError, TakenQueue, WorkerLease};

/// At open the file lock proves every former owner dead. Their queues are free, and stay marked as not released.
pub(super) fn end_all_leases(work: &Work) -> Result<(), StoreError> {
    work.execute("UPDATE queue SET owner = NULL WHERE owner IS NOT NULL", &[])?;
    work.execute("DELETE FROM worker", &[])?;
    Ok(())
}

pub(super) fn open_worker(work: &Work, id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
    let id_key = key(id.as_u128());
    if work.first("SELECT 1 FROM worker WHERE id = ?1", &[&id_key], |_| Ok(()))?.is_some() {
        return Err(StoreError::Conflict(format!("the worker {id} is open already")));
    }
    work.execute(
        "INSERT INTO worker (id, life_ms, ends_at) VALUES (?1, ?2, ?3)",
        &[&id_key, &signed(life.as_millis()), &(now + life).as_millis()],
    )?;
    Ok(WorkerLease { worker_id: id, life })
}

pub(super) fn renew_worker(work: &Work, id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
    let life = living(work, id, now)?.ok_or(StoreError::LeaseLost)?;
    work.execute(
        "UPDATE worker SET ends_at = max(ends_at, ?2) WHERE id = ?1",
        &[&key(id.as_u128()), &(now + life).as_millis()],
    )?;
    Ok(())
}

pub(super) fn close_worker(work: &Work, id: WorkerId) -> Result<(), StoreError> {
    work.flush_queues()?;
    let id_key = key(id.as_u128());
    let owned = work
        .all("SELECT id FROM queue WHERE owner = ?1", &[&id_key], |row| Ok(QueueId::from_u128(id_of(row.get(0)?))))?;
    for queue_id in owned {
        queues::find(work, queue_id)?;
        queues::change(work, queue_id, queues::Queue::release);
    }
    work.execute("DELETE FROM worker WHERE id = ?1", &[&id_key])?;
    Ok(())
}

/// The life of a worker whose lease has not ended.
fn living(work: &Work, id: WorkerId, now: Timestamp) -> Result<Option<Wait>, StoreError> {
    work.first(
        "SELECT life_ms FROM worker WHERE id = ?1 AND ends_at >= ?2",
        &[&key(id.as_u128()), &now.as_millis()],
        |row| Ok(Wait::from_millis(unsigned(row.get(0)?)?)),
    )
}

pub(super) fn has_living_owner(work: &Work, queue: &queues::Queue, now: Timestamp) -> Result<bool, StoreError> {
    match queue.owner {
        Some(owner) => Ok(living(work, owner, now)?.is_some()),
        None => Ok(false),
    }
}

/// Queues with something waiting and no living owner, the one first whose head has waited longest. Only free ones are looked at.
pub(super) const FREE_SQL: &str = "SELECT id, (SELECT created_at FROM delivery WHERE connection_id = free.id \
     AND position IS NOT NULL ORDER BY created_at LIMIT 1) AS head FROM (\
     SELECT id FROM queue WHERE owner IS NULL AND waiting > 0 UNION ALL \
     SELECT queue.id FROM worker CROSS JOIN queue ON queue.owner = worker.id AND queue.owner IS NOT NULL \
     WHERE worker.ends_at < ?1 AND queue.waiting > 0) AS free ORDER BY head, id LIMIT ?2";

pub(super) fn take_queues(
    work: &Work,
    worker_id: WorkerId,
    now: Timestamp,
    queues_max: u32,
) -> Result<Vec<TakenQueue>, StoreError> {
    living(work, worker_id, now)?.ok_or(StoreError::LeaseLost)?;
    work.flush_queues()?;
    let free =
        work.all(FREE_SQL, &[&now.as_millis(), &queues_max], |row| Ok(QueueId::from_u128(id_of(row.get(0)?))))?;
    take(work, worker_id, now, &free)
}

pub(super) fn take_named_queues(
    work: &Work,
    worker_id: WorkerId,
    now: Timestamp,
    named: &[QueueId],
) -> Result<Vec<TakenQueue>, StoreError> {
    living(work, worker_id, now)?.ok_or(StoreError::LeaseLost)?;
    take(work, worker_id, now, named)
}

pub(super) const HAS_CLAIMS_SQL: &str =
    "SELECT 1 FROM delivery WHERE connection_id = ?1 AND status = 'PROCESSING' LIMIT 1";
pub(super) const HAS_COMMANDS_SQL: &str = "SELECT 1 FROM command WHERE queue_id = ?1 AND answer IS NULL LIMIT 1";

fn take(work: &Work, worker_id: WorkerId, now: Timestamp, wanted: &[QueueId]) -> Result<Vec<TakenQueue>, StoreError> {
    let mut taken = Vec::with_capacity(wanted.len());
    for id in wanted {
        let Some(queue) = queues::find(work, *id)?.filter(|queue| !queue.deleted) else { continue };
        if queue.owner != Some(worker_id) && has_living_owner(work, &queue, now)? {
            continue;
        }
        let token = queue.token + 1;
        queues::change(work, *id, |queue| {
            queue.token = token;
            queue.owner = Some(worker_id);
            queue.unreleased = true;
        });
        let lease = QueueLease { queue_id: *id, worker_id, token: FencingToken(token) };
        let has = |sql: &str| work.first(sql, &[&key(id.as_u128())], |_| Ok(())).map(|found| found.is_some());
        taken.push(TakenQueue {
            lease,
            taken_over: queue.unreleased,
            has_claims: has(HAS_CLAIMS_SQL)?,
            has_commands: has(HAS_COMMANDS_SQL)?,
        });
    }
    Ok(taken)
}

pub(super) fn release_queue(work: &Work, lease: &QueueLease) -> Result<(), StoreError> {
    queues::held(work, lease)?;
    queues::change(work, lease.queue_id, queues::Queue::release);
    Ok(())
}
