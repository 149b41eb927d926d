//! Who may write to a queue: one lease a worker, one fencing token a queue (law 4, D05). It must not know what is written.

use postrider_core::id::{QueueId, WorkerId};
use postrider_core::{Timestamp, Wait};

use super::rows::{Data, Queue, Worker};
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn open_worker(
        &mut self,
        worker_id: WorkerId,
        life: Wait,
        now: Timestamp,
    ) -> Result<WorkerLease, StoreError> {
        if self.workers.contains_key(&worker_id) {
            return Err(StoreError::Conflict(format!("the worker {worker_id} is open already")));
        }
        self.workers.insert(worker_id, Worker { life, renewed_at: now });
        Ok(WorkerLease { worker_id, life })
    }

    pub(super) fn renew_worker(&mut self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        self.require_living(worker_id, now)?;
        if let Some(worker) = self.workers.get_mut(&worker_id) {
            worker.renewed_at = worker.renewed_at.max(now);
        }
        Ok(())
    }

    pub(super) fn close_worker(&mut self, worker_id: WorkerId) {
        self.workers.remove(&worker_id);
        for queue in self.queues.values_mut().filter(|queue| queue.owner == Some(worker_id)) {
            queue.owner = None;
            queue.is_unreleased = false;
        }
    }

    pub(super) fn end_all_leases(&mut self) {
        self.workers.clear();
        for queue in self.queues.values_mut() {
            queue.owner = None;
        }
    }

    pub(super) fn take_queues(
        &mut self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.require_living(worker_id, now)?;
        let mut free: Vec<(Timestamp, QueueId)> = self
            .queues
            .iter()
            .filter(|(_, queue)| !self.has_living_owner(queue, now))
            .filter_map(|(id, queue)| Some((self.oldest_waiting_since(queue)?, *id)))
            .collect();
        free.sort_unstable();
        free.truncate(queues_max as usize);
        Ok(free.into_iter().filter_map(|(_, id)| self.take(id, worker_id)).collect())
    }

    pub(super) fn take_named_queues(
        &mut self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: &[QueueId],
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.require_living(worker_id, now)?;
        let mut taken = Vec::new();
        for id in queues {
            let is_free = |queue: &Queue| queue.owner == Some(worker_id) || !self.has_living_owner(queue, now);
            if self.queues.get(id).is_some_and(is_free) {
                taken.extend(self.take(*id, worker_id));
            }
        }
        Ok(taken)
    }

    fn take(&mut self, queue_id: QueueId, worker_id: WorkerId) -> Option<TakenQueue> {
        let queue = self.queues.get_mut(&queue_id)?;
        let taken_over = queue.is_unreleased;
        queue.token += 1;
        queue.owner = Some(worker_id);
        queue.is_unreleased = true;
        let lease = QueueLease { queue_id, worker_id, token: FencingToken(queue.token) };
        let has_claims = !queue.processing.is_empty();
        let has_commands =
            self.commands.values().any(|(command, answer)| command.queue_id == queue_id && answer.is_none());
        Some(TakenQueue { lease, taken_over, has_claims, has_commands })
    }

    pub(super) fn release_queue(&mut self, lease: QueueLease) -> Result<(), StoreError> {
        self.require_current(lease)?;
        if let Some(queue) = self.queues.get_mut(&lease.queue_id) {
            queue.owner = None;
            queue.is_unreleased = false;
        }
        Ok(())
    }

    /// Whether this lease is still the one that the queue was last taken under.
    pub(super) fn is_current(&self, lease: QueueLease) -> bool {
        self.queues
            .get(&lease.queue_id)
            .is_some_and(|queue| queue.owner == Some(lease.worker_id) && queue.token == lease.token.0)
    }

    pub(super) fn require_current(&self, lease: QueueLease) -> Result<(), StoreError> {
        if self.is_current(lease) { Ok(()) } else { Err(StoreError::LeaseLost) }
    }

    pub(super) fn has_living_owner(&self, queue: &Queue, now: Timestamp) -> bool {
        queue.owner.is_some_and(|owner| self.is_living(owner, now))
    }

    /// Since when the head has been waiting.
    pub(super) fn oldest_waiting_since(&self, queue: &Queue) -> Option<Timestamp> {
        let (_, head) = queue.line.first_key_value()?;
        self.rows.get(head).map(|row| row.delivery.created_at)
    }

    fn is_living(&self, worker_id: WorkerId, now: Timestamp) -> bool {
        self.workers.get(&worker_id).is_some_and(|worker| now <= worker.renewed_at + worker.life)
    }

    fn require_living(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        if self.is_living(worker_id, now) { Ok(()) } else { Err(StoreError::LeaseLost) }
    }
}
