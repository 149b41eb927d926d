//! Who may write to a queue: workers, their leases, and fencing tokens that only rise (D05). It must not know what is in a queue.
//!
//! Leases begin and end by the database's clock. A takeover locks the queue's row alone, so it waits for what the former owner is writing,
//! and what the former owner writes later finds another token.

use std::collections::BTreeSet;

use postrider_core::id::{QueueId, WorkerId};
use postrider_core::{Timestamp, Wait};

use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::queues::{self, HAS_WAITING, Lock, Queues};
use super::rows::{Cells, signed};
use super::work::{Work, lease_now};
use crate::{FencingToken, QueueLease, StoreError, TakenQueue, WorkerLease};

pub(super) async fn open_worker(work: &Work, id: WorkerId, life: Wait, now: Timestamp) -> Outcome<WorkerLease> {
    let sql = format!(
        "INSERT INTO worker (id, life_ms, ends_at) VALUES ($1, $2, {} + $2) ON CONFLICT (id) DO NOTHING",
        lease_now(3)
    );
    let opened = work.execute(&sql, &[&id.key(), &signed(life.as_millis()), &work.lease_time(now)]).await?;
    if opened == 0 {
        return Err(StoreError::Conflict(format!("the worker {id} is open already")).into());
    }
    work.context.bell.worker_opened(id);
    Ok(WorkerLease { worker_id: id, life })
}

pub(super) async fn renew_worker(work: &Work, id: WorkerId, now: Timestamp) -> Outcome<()> {
    let now_sql = lease_now(2);
    let sql = format!(
        "UPDATE worker SET ends_at = greatest(ends_at, {now_sql} + life_ms) WHERE id = $1 AND ends_at >= {now_sql}"
    );
    match work.execute(&sql, &[&id.key(), &work.lease_time(now)]).await? {
        0 => Err(StoreError::LeaseLost.into()),
        _ => Ok(()),
    }
}

pub(super) const OWNED_SQL: &str = "SELECT id FROM queue WHERE owner = $1";

pub(super) async fn close_worker(work: &Work, id: WorkerId) -> Outcome<()> {
    let owned = work.all(OWNED_SQL, &[&id.key()], |row| Ok(QueueId::from_u128(Cells::of(row).id()?))).await?;
    release(work, &owned.into_iter().collect(), Some(id)).await?;
    work.execute("DELETE FROM worker WHERE id = $1", &[&id.key()]).await?;
    work.context.bell.worker_closed(id);
    Ok(())
}

pub(super) async fn release_queue(work: &Work, lease: &QueueLease) -> Outcome<()> {
    // Before the queue's own row: nobody stores there meanwhile, so what waits is seen.
    queues::lock_entries(work, &BTreeSet::from([lease.queue_id])).await?;
    queues::held(work, lease, Lock::Alone).await?;
    release(work, &BTreeSet::from([lease.queue_id]), Some(lease.worker_id)).await
}

/// Frees the queues that this worker has.
async fn release(work: &Work, ids: &BTreeSet<QueueId>, owner: Option<WorkerId>) -> Outcome<()> {
    if ids.is_empty() {
        return Ok(());
    }
    queues::lock_entries(work, ids).await?;
    queues::lock(work, ids, Lock::Alone).await?;
    let sql = format!(
        "UPDATE queue SET owner = NULL, unreleased = false, wanted = {HAS_WAITING} WHERE id = ANY($1) AND owner = $2"
    );
    work.execute(&sql, &[&queues::keys(ids), &owner.map(|id| id.key())]).await?;
    ids.iter().for_each(|id| work.tell_of_queue(*id, None));
    Ok(())
}

/// A dead owner loses the queue; whoever takes it next is told that it was not released. The rows are locked.
pub(super) async fn drop_dead_owner(work: &Work, id: QueueId) -> Outcome<()> {
    work.tell_of_queue(id, None);
    let sql = format!("UPDATE queue SET owner = NULL, wanted = {HAS_WAITING} WHERE id = $1");
    work.execute(&sql, &[&id.key()]).await?;
    Ok(())
}

/// Which of these workers have a lease that has not ended.
pub(super) async fn living(work: &Work, ids: &BTreeSet<WorkerId>, now: Timestamp) -> Outcome<BTreeSet<WorkerId>> {
    if ids.is_empty() {
        return Ok(BTreeSet::new());
    }
    let keys: Vec<Key> = ids.iter().map(|id| id.key()).collect();
    let sql = format!("SELECT id FROM worker WHERE id = ANY($1) AND ends_at >= {}", lease_now(2));
    let found =
        work.all(&sql, &[&keys, &work.lease_time(now)], |row| Ok(WorkerId::from_u128(Cells::of(row).id()?))).await;
    Ok(found?.into_iter().collect())
}

async fn require_living(work: &Work, id: WorkerId, now: Timestamp) -> Outcome<()> {
    let living = living(work, &BTreeSet::from([id]), now).await?;
    if living.is_empty() { Err(StoreError::LeaseLost.into()) } else { Ok(()) }
}

/// Queues with something waiting and no living owner, the one first whose head has waited longest. Only those are looked at that are wanted
/// or whose owner is dead.
pub(super) fn free_sql() -> String {
    let now = lease_now(1);
    format!(
        "SELECT id FROM (SELECT free.id, (SELECT created_at FROM delivery WHERE connection_id = free.id AND position IS NOT NULL \
         ORDER BY created_at LIMIT 1) AS head FROM (SELECT id FROM queue WHERE wanted AND owner IS NULL UNION ALL \
         SELECT queue.id FROM worker JOIN queue ON queue.owner = worker.id AND queue.owner IS NOT NULL WHERE worker.ends_at < {now}) AS free) \
         AS waiting WHERE head IS NOT NULL ORDER BY head, id LIMIT $2"
    )
}

pub(super) async fn take_queues(
    work: &Work,
    worker_id: WorkerId,
    now: Timestamp,
    queues_max: u32,
) -> Outcome<Vec<TakenQueue>> {
    require_living(work, worker_id, now).await?;
    let params: [super::columns::Param<'_>; 2] = [&work.lease_time(now), &i64::from(queues_max)];
    let free = work.all(&free_sql(), &params, |row| Ok(QueueId::from_u128(Cells::of(row).id()?))).await?;
    // Another worker is taking those that are locked.
    take(work, worker_id, now, &free, Lock::AloneIfFree).await
}

/// Of those named, the ones that seem to have no living owner but this worker.
pub(super) fn takeable_sql() -> String {
    let now = lease_now(3);
    format!(
        "SELECT id FROM queue WHERE id = ANY($1) AND (owner IS NULL OR owner = $2 \
         OR NOT EXISTS (SELECT 1 FROM worker WHERE worker.id = queue.owner AND worker.ends_at >= {now})) ORDER BY id"
    )
}

pub(super) async fn take_named_queues(
    work: &Work,
    worker_id: WorkerId,
    now: Timestamp,
    named: &[QueueId],
) -> Outcome<Vec<TakenQueue>> {
    require_living(work, worker_id, now).await?;
    // Whoever only asks must not hold up the owner, so those that are owned are not locked.
    let keys: Vec<Key> = named.iter().map(|id| id.key()).collect();
    let params: [super::columns::Param<'_>; 3] = [&keys, &worker_id.key(), &work.lease_time(now)];
    let free = work.all(&takeable_sql(), &params, |row| Ok(QueueId::from_u128(Cells::of(row).id()?))).await?;
    let named: Vec<QueueId> = named.iter().filter(|id| free.contains(id)).copied().collect();
    take(work, worker_id, now, &named, Lock::Alone).await
}

pub(super) const TAKE_SQL: &str = "UPDATE queue SET token = token + 1, owner = $2, unreleased = true, wanted = false WHERE id = ANY($1) \
     RETURNING id, token, \
     EXISTS (SELECT 1 FROM delivery WHERE delivery.connection_id = queue.id AND delivery.status = 'PROCESSING'), \
     EXISTS (SELECT 1 FROM command WHERE command.queue_id = queue.id AND command.answer IS NULL)";

/// Takes those that have no living owner but this worker itself, in the order given.
async fn take(
    work: &Work,
    worker_id: WorkerId,
    now: Timestamp,
    wanted: &[QueueId],
    how: Lock,
) -> Outcome<Vec<TakenQueue>> {
    let locked: Queues = queues::lock(work, &wanted.iter().copied().collect(), how).await?;
    let owners = locked.values().filter_map(|queue| queue.owner).filter(|owner| *owner != worker_id).collect();
    let living = living(work, &owners, now).await?;
    let free: Vec<Key> = locked
        .values()
        .filter(|queue| !queue.deleted && queue.owner.is_none_or(|owner| !living.contains(&owner)))
        .map(|queue| queue.id.key())
        .collect();
    if free.is_empty() {
        return Ok(Vec::new());
    }
    // A statement of its own: it sees what was written by whoever held the locks before.
    let taken = work
        .changed(TAKE_SQL, &[&free, &worker_id.key()], |row| {
            let mut at = Cells::of(row);
            let queue_id = QueueId::from_u128(at.id()?);
            let lease = QueueLease { queue_id, worker_id, token: FencingToken(at.take()?) };
            let taken_over = locked.get(&queue_id).is_some_and(|queue| queue.unreleased);
            Ok(TakenQueue { lease, taken_over, has_claims: at.take()?, has_commands: at.take()? })
        })
        .await;
    let mut taken = taken?;
    taken.sort_by_key(|one| wanted.iter().position(|id| *id == one.lease.queue_id));
    Ok(taken)
}

/// For whoever ends a process without waiting for its leases to run out.
pub(super) async fn end_all_leases(work: &Work) -> Outcome<()> {
    let sql = format!("UPDATE queue SET owner = NULL, wanted = {HAS_WAITING} WHERE owner IS NOT NULL");
    work.execute(&sql, &[]).await?;
    work.execute("DELETE FROM worker", &[]).await?;
    Ok(())
}
