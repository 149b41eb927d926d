//! What the oracle sees go by: what was stored, taken, written and received. Here invariant 3 is held against the store.

use postrider_core::id::{ConnectionId, DeliveryId, QueueId, WorkerId};
use postrider_store::{Enqueued, Guard, Placement, QueueLease, Settled, Settlement, TakenQueue};

use super::Oracle;

impl Oracle {
    pub(crate) fn saw_enqueued(&self, ids: &[(DeliveryId, ConnectionId)], enqueued: &[Enqueued]) {
        let mut state = self.state();
        for ((id, connection), enqueued) in ids.iter().zip(enqueued) {
            state.trace.push(format!("{connection} {id} stored: {enqueued:?}"));
            if let Enqueued::Stored { position, .. } = enqueued {
                state.positions.insert(*id, (*connection, *position));
            }
        }
    }

    /// Another worker's takeover puts in doubt what its former owner had sent.
    pub(crate) async fn saw_taken(&self, taken: &[TakenQueue]) {
        for one in taken {
            self.note(format!(
                "{} taken under {:?}, taken over: {}",
                one.lease.queue_id, one.lease.token, one.taken_over
            ));
            self.state().stolen.remove(&one.lease.queue_id);
            let former = self.state().leases.insert(one.lease.queue_id, one.lease);
            if let Some(former) = former {
                if former.token >= one.lease.token {
                    self.report(3, format!("{} is taken under {:?} after {:?}", one.lease.queue_id, one.lease, former));
                }
                if former.worker_id != one.lease.worker_id {
                    self.doubt(one.lease.queue_id).await;
                }
            }
        }
    }

    pub(crate) async fn saw_stolen(&self, taken: &[TakenQueue]) {
        self.saw_taken(taken).await;
        self.state().stolen.extend(taken.iter().map(|one| one.lease.queue_id));
    }

    /// What another worker has by now is its own, and was put in doubt when it was taken.
    pub(crate) async fn saw_lease_lost(&self, worker_id: WorkerId) {
        let leases = self.state().leases.clone();
        let of_it = leases.into_iter().filter(|(_, lease)| lease.worker_id == worker_id);
        let queues: Vec<QueueId> = of_it.map(|(queue_id, _)| queue_id).collect();
        for queue_id in queues {
            self.doubt(queue_id).await;
        }
    }

    /// What was sent from this queue and is not settled may be sent again (law 6).
    pub(super) async fn doubt(&self, queue_id: QueueId) {
        match self.all_waiting(queue_id).await {
            Ok(waiting) => {
                let mut state = self.state();
                for delivery in waiting {
                    state.answered_ok.remove(&delivery.id);
                }
            }
            Err(error) => self.report(1, format!("the queue {queue_id} cannot be read: {error}")),
        }
    }

    /// The lease under which the same queue was last taken.
    pub(crate) fn newest_lease(&self, lease: QueueLease) -> QueueLease {
        self.state().leases.get(&lease.queue_id).copied().unwrap_or(lease)
    }

    fn is_old(&self, lease: QueueLease) -> bool {
        self.newest_lease(lease).token > lease.token
    }

    pub(crate) fn saw_read_under(&self, lease: QueueLease) {
        if self.is_old(lease) {
            self.report(3, format!("{} was read for sending under the old token {:?}", lease.queue_id, lease.token));
        }
    }

    pub(crate) fn saw_settled(&self, batch: &[Settlement], settled: Option<&[Settled]>) {
        let Some(settled) = settled else { return };
        for (settlement, settled) in batch.iter().zip(settled) {
            let id = settlement.delivery_id;
            let (progress, number) = (&settlement.progress, settlement.attempt.as_ref().map(|attempt| attempt.number));
            let status = progress.status.as_str();
            self.note(format!("{} {id} {status} after attempt {number:?}: {settled:?}", settlement.queue_id));
            let Settled::Applied { .. } = settled else { continue };
            if let Guard::Lease(lease) = settlement.guard
                && self.is_old(lease)
            {
                self.report(3, format!("{id} was written under the old token {:?}", lease.token));
            }
            if settlement.placement == Placement::Tail {
                self.state().moved.insert(id);
            }
            self.saw_job_answer(settlement);
        }
    }

    /// A command found no living owner. After a jump of the clock the owner may live on for all that, and send what it has (law 6).
    pub(crate) fn saw_no_taker(&self, queue_id: QueueId) {
        if self.plan.clock_jumps {
            self.state().stolen.insert(queue_id);
        }
    }

    pub(crate) fn saw_received(&self, connection: ConnectionId, id: DeliveryId) {
        let mut state = self.state();
        if state.received.insert(id) {
            state.first_receipts.push((connection, id));
        }
    }

    /// A remote system said 2xx.
    pub(crate) fn saw_answered_ok(&self, id: DeliveryId) {
        self.state().answered_ok.insert(id);
    }

    pub(crate) fn saw_unordered(&self, connection: ConnectionId) {
        self.state().unordered.insert(connection);
    }
}
