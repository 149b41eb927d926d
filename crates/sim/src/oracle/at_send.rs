//! Just before a request goes out: is it stored, at the head, due, numbered right and unchanged?

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Status};
use postrider_wire::Outgoing;

use super::Oracle;

impl Oracle {
    pub(crate) async fn before_send(&self, outgoing: &Outgoing, now: Timestamp) {
        let id = outgoing.delivery_id;
        self.check_body(outgoing);
        if self.state().stolen.contains(&outgoing.connection.id) {
            return;
        }
        let reopened = self.is_reopened(id);
        if self.ledger().discarded.contains(&id) && !reopened {
            self.report(5, format!("{id} is sent after its discard was acknowledged"));
        }
        // With two workers a success may reach the one that has just lost its lease.
        if self.plan.workers == 1 && !reopened && self.state().answered_ok.contains(&id) {
            self.report(5, format!("{id} is sent again after a success that nothing has put in doubt"));
        }
        self.check_rate(outgoing, now);
        if !outgoing.connection.spec.policy.queue.ordered {
            self.saw_unordered(outgoing.connection.id);
        }
        match self.store().delivery(id).await {
            Ok(Some(stored)) => self.check_stored(&stored, outgoing, now).await,
            Ok(None) => self.check_not_stored(outgoing).await,
            Err(error) => self.report(1, format!("{id} cannot be read: {error}")),
        }
        if let Err(error) = self.check_depths(outgoing.connection.id).await {
            self.report(1, format!("the counters of {} cannot be read: {error}", outgoing.connection.id));
        }
        match self.store().counts(None).await {
            Ok(counts) if counts.is_balanced() => {}
            Ok(counts) => self.report(1, format!("the books do not balance: {counts:?}")),
            Err(error) => self.report(1, format!("the books cannot be read: {error}")),
        }
    }

    /// A call on a connection with the queue off: nothing accepted before it may still be waiting (Z18).
    async fn check_not_stored(&self, outgoing: &Outgoing) {
        if outgoing.head.method.only_reads() {
            return;
        }
        let id = outgoing.delivery_id;
        if outgoing.connection.spec.policy.queue.use_queue {
            // `use_queue` may have been turned on while the call was retried.
            if outgoing.attempt == 1 {
                self.report(1, format!("{id} is sent before it is stored"));
            }
            return;
        }
        if self.plan.workers > 1 || outgoing.attempt > 1 {
            return;
        }
        let Some(submitted) = self.ledger().requests.get(&outgoing.body).map(|request| request.submitted) else {
            return;
        };
        let waiting = match self.all_waiting(outgoing.connection.id).await {
            Ok(waiting) => waiting,
            Err(error) => return self.report(2, format!("the queue cannot be read: {error}")),
        };
        for other in waiting {
            // What came back from the DLQ may have come after the call.
            if self.state().moved.contains(&other.id) {
                continue;
            }
            let ledger = self.ledger();
            let body = ledger.accepted_body.get(&other.id);
            let acknowledged = body.and_then(|body| ledger.requests.get(body)).and_then(|request| request.acknowledged);
            drop(ledger);
            if acknowledged.is_some_and(|at| at < submitted) && !self.state().answered_ok.contains(&other.id) {
                self.report(2, format!("the call {id} overtakes {}, which was accepted before it", other.id));
            }
        }
    }

    async fn check_stored(&self, stored: &Delivery, outgoing: &Outgoing, now: Timestamp) {
        let id = stored.id;
        let progress = &stored.progress;
        if !progress.status.is_waiting() {
            return self.report(5, format!("{id} is sent while it is {}", progress.status.as_str()));
        }
        if !self.plan.clock_jumps && progress.due_at > now {
            self.report(5, format!("{id} is sent at {now}, but due at {}", progress.due_at));
        }
        let begun = progress.status == Status::Processing;
        let number = progress.attempts + u32::from(!begun);
        if outgoing.attempt != number {
            self.report(4, format!("{id}: attempt {} is sent, number {number} is next", outgoing.attempt));
        }
        if begun && !self.state().claimed_sends.insert((id, outgoing.attempt)) {
            self.report(
                4,
                format!("{id}: attempt {number} is sent again under its number, and no interruption is on record"),
            );
        }
        let queue = &outgoing.connection.spec.policy.queue;
        if queue.ordered && !self.state().unordered.contains(&outgoing.connection.id) {
            self.check_order(stored, queue.settle_ahead_max).await;
        }
        if !queue.ordered {
            self.check_line(stored).await;
        }
        if !queue.ordered && !begun {
            self.report(4, format!("{id} is sent from an unordered queue without a claim"));
        }
    }

    async fn check_order(&self, stored: &Delivery, settle_ahead_max: u32) {
        let queue = match self.all_waiting(stored.connection_id).await {
            Ok(queue) => queue,
            Err(error) => return self.report(2, format!("the queue cannot be read: {error}")),
        };
        let mut running_ahead_of = 0;
        for other in queue.iter().take_while(|other| other.id != stored.id) {
            running_ahead_of += 1;
            if !self.state().answered_ok.contains(&other.id) {
                self.report(2, format!("{} is sent while {} waits ahead of it, unanswered", stored.id, other.id));
            }
        }
        if running_ahead_of > settle_ahead_max {
            self.report(2, format!("{running_ahead_of} successes are unsettled, at most {settle_ahead_max} may be"));
        }
    }

    fn check_body(&self, outgoing: &Outgoing) {
        let ledger = self.ledger();
        let id = outgoing.delivery_id;
        let edits = ledger.edits.get(&id);
        let known = edits.is_some_and(|edits| edits.contains(&outgoing.body))
            || match ledger.accepted_body.get(&id) {
                Some(body) => body == &outgoing.body,
                None => ledger.requests.contains_key(&outgoing.body),
            };
        drop(ledger);
        if !known {
            self.report(8, format!("{id} is sent with a body that nobody handed in for it"));
        }
    }
}
