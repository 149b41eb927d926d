//! After a crash, after a stop and at the end: is everything accounted for and numbered, and is the log as it was?

use postrider_core::Failure;
use postrider_core::attempt::Attempt;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::QueueId;
use postrider_core::policy::{DeliveryPolicy, DlqAction};
use postrider_core::schedule::{LadderTerms, Schedule};
use postrider_store::StoreError;

use super::Oracle;

impl Oracle {
    pub(crate) async fn after_crash(&self) {
        let queues: Vec<_> = self.state().leases.keys().copied().collect();
        for queue_id in queues {
            self.doubt(queue_id).await;
        }
        self.after_stop().await;
    }

    /// A graceful stop that the store did not hinder leaves nothing in doubt and nothing claimed.
    pub(crate) async fn after_graceful_stop(&self) {
        if !self.plan.has_quick_store() {
            return self.after_crash().await;
        }
        match self.store().counts(None).await {
            Ok(counts) if counts.processing == 0 => {}
            Ok(counts) => self.report(1, format!("{} are PROCESSING after a graceful stop", counts.processing)),
            Err(error) => self.report(1, format!("the books cannot be read: {error}")),
        }
        self.after_stop().await;
    }

    async fn after_stop(&self) {
        self.forget_rates();
        let (books, endpoints) = (self.check_books().await, self.check_endpoints().await);
        if let Err(error) = books.and(endpoints) {
            self.report(1, format!("the store cannot be read after a restart: {error}"));
        }
    }

    pub(super) async fn check_books(&self) -> Result<(), StoreError> {
        let store = self.store();
        let counts = store.counts(None).await?;
        if !counts.is_balanced() {
            self.report(1, format!("the books do not balance: {counts:?}"));
        }
        let entries: Vec<_> = self.ledger().acknowledged.iter().map(|(id, entry)| (*id, entry.clone())).collect();
        for (id, entry) in entries {
            match store.delivery(id).await? {
                Some(stored) => self.check_told(&entry, &stored, false),
                // Direct calls with the queue off are written after the fact (D12).
                None if entry.durable => self.report(1, format!("{id} was acknowledged and is nowhere")),
                None => {}
            }
        }
        for connection in store.all_connections().await? {
            self.check_depths(connection.id).await?;
        }
        for delivery in self.all_deliveries().await? {
            self.check_attempts(&delivery).await?;
            self.check_end(&delivery).await?;
        }
        Ok(())
    }

    /// The kept counters of a queue against what is in it.
    pub(super) async fn check_depths(&self, queue_id: QueueId) -> Result<(), StoreError> {
        let store = self.store();
        let (summary, waiting) = (store.queue_summary(queue_id).await?, self.all_waiting(queue_id).await?);
        let counts = store.counts(Some(queue_id)).await?;
        let bytes: u64 = waiting.iter().map(|delivery| delivery.body_bytes).sum();
        let kept = (summary.waiting, summary.waiting_bytes, summary.dead);
        let counted = (waiting.len() as u64, bytes, counts.dlq);
        if kept != counted {
            self.report(
                1,
                format!("{queue_id} keeps count of {kept:?} waiting, their bytes and dead, and has {counted:?}"),
            );
        }
        Ok(())
    }

    async fn check_attempts(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let id = delivery.id;
        let attempts = self.store().attempts(id).await?;
        let numbers: Vec<u32> = attempts.iter().map(|attempt| attempt.number).collect();
        let begun = u32::from(delivery.progress.status == Status::Processing);
        let wanted: Vec<u32> = (1..=delivery.progress.attempts.saturating_sub(begun)).collect();
        if numbers != wanted {
            self.report(4, format!("{id} has attempts {numbers:?} and counts {}", delivery.progress.attempts));
        }
        let succeeded = attempts.iter().any(|attempt| attempt.failure.is_none());
        if delivery.progress.status == Status::Success && !succeeded {
            self.report(4, format!("{id} is SUCCESS without an attempt that succeeded"));
        }
        let before = self.state().attempts_seen.insert(id, attempts.clone());
        if let Some(before) = before
            && !attempts.starts_with(&before)
        {
            self.report(4, format!("the log of {id} was changed"));
        }
        if let Some(connection) = self.store().connection(delivery.connection_id).await? {
            self.check_how_many(delivery, &connection.spec.policy, &attempts);
        }
        Ok(())
    }

    fn check_how_many(&self, delivery: &Delivery, policy: &DeliveryPolicy, attempts: &[Attempt]) {
        if !policy.dlq.use_dlq || self.is_reopened(delivery.id) {
            return;
        }
        let rounds = match policy.dlq.action {
            DlqAction::Retry { retries_max } => 1 + retries_max as usize,
            DlqAction::Keep | DlqAction::Forward { .. } | DlqAction::Discard => 1,
        };
        let a_round = match (&delivery.ladder, &policy.schedule) {
            (Some(LadderTerms { ladder, .. }), _) | (None, Schedule::Ladder(ladder)) => ladder.max_attempts(),
            (None, Schedule::Backoff(backoff)) => 1 + backoff.max_retries(),
        };
        let made = attempts.iter().filter(|attempt| attempt.failure != Some(Failure::Interrupted)).count();
        let allowed = a_round as usize * rounds;
        if made > allowed {
            self.report(5, format!("{} was attempted {made} times, its policy allows {allowed}", delivery.id));
        }
    }

    /// Ended for the reason that it gives?
    async fn check_end(&self, delivery: &Delivery) -> Result<(), StoreError> {
        let progress = &delivery.progress;
        let Some(connection) = self.store().connection(delivery.connection_id).await? else { return Ok(()) };
        let policy = &connection.spec.policy;
        if progress.status == Status::Expired && (policy.dlq.use_dlq || policy.expires_after.is_none()) {
            self.report(1, format!("{} is EXPIRED, and its policy does not say so", delivery.id));
        }
        let ended_at = progress.dead_at.or(progress.ended_at);
        if let (Some(Failure::Expired), Some(life), Some(ended_at)) = (progress.failure, policy.expires_after, ended_at)
            && !self.plan.clock_jumps
            && !self.ledger().touched.contains(&delivery.id)
            && ended_at < progress.age_from + life
        {
            self.report(5, format!("{} expired before its time", delivery.id));
        }
        if progress.status == Status::Forwarded
            && !matches!(policy.dlq.action, DlqAction::Forward { .. })
            && !self.ledger().touched.contains(&delivery.id)
        {
            self.report(1, format!("{} is FORWARDED, and nobody asked for it", delivery.id));
        }
        if progress.status == Status::Discarded
            && policy.dlq.action != DlqAction::Discard
            && !self.ledger().touched.contains(&delivery.id)
        {
            self.report(1, format!("{} is DISCARDED, and nobody asked for it", delivery.id));
        }
        Ok(())
    }
}
