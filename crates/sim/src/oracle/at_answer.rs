//! When a caller is told an outcome: is it on disk, is it true, and did it come in time?

use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_engine::Refusal;

use super::Oracle;
use crate::ledger::Entry;

impl Oracle {
    /// `durable`: it had to be stored before this answer (law 3).
    pub(crate) async fn told(&self, outcome: Outcome, body: &Bytes, durable: bool) {
        self.ledger().acknowledge(outcome.clone(), body, durable);
        let Some(id) = outcome.msg_id else {
            if outcome.state != OutcomeState::NotDelivered || outcome.error.is_none() {
                self.report(9, format!("a caller was told {:?} without an id", outcome.state));
            }
            return;
        };
        if !durable {
            return;
        }
        match self.store().delivery(id).await {
            Ok(Some(stored)) => self.check_told(&Entry { outcome, durable }, &stored, true),
            Ok(None) => self.report(1, format!("{id} is acknowledged before it is stored")),
            Err(error) => self.report(1, format!("{id} cannot be read: {error}")),
        }
    }

    /// A refusal of ours leaves nothing behind; a stop in between may.
    pub(crate) fn refused(&self, refusal: &Refusal, body: &Bytes) {
        if *refusal != Refusal::Stopping {
            self.ledger().refuse(body);
        }
    }

    pub(crate) fn told_for_key(&self, key: &Bytes, outcome: &Outcome) {
        let Some(id) = outcome.msg_id else { return };
        let mut ledger = self.ledger();
        let ids = ledger.keys.entry(key.clone()).or_default();
        ids.insert(id);
        if ids.len() > 1 {
            let what = format!("one idempotency key, and its callers were told of {ids:?}");
            drop(ledger);
            self.report(6, what);
        }
    }

    /// `now`: at the moment of the answer; later, what an answer allows has grown.
    pub(super) fn check_told(&self, entry: &Entry, stored: &Delivery, now: bool) {
        let id = stored.id;
        let status = stored.progress.status;
        let (touched, reopened) = {
            let ledger = self.ledger();
            (ledger.touched.contains(&id), ledger.reopened.contains(&id))
        };
        let fits = match entry.outcome.state {
            OutcomeState::IsOk => status == Status::Success || reopened,
            // Only a direct call ends as FAILED, and its caller is told so.
            OutcomeState::IsInQueue => status != Status::Failed || reopened,
            // A repeat under the same key is told what the first was told, and the DLQ's action may have come in between.
            OutcomeState::IsInDlq if now => {
                let is_told_late = matches!(status, Status::Forwarded | Status::Discarded);
                status == Status::Dlq || is_told_late || touched || stored.progress.dlq_retries > 0
            }
            OutcomeState::IsInDlq => {
                touched || stored.progress.dlq_retries > 0 || !matches!(status, Status::Pending | Status::Success)
            }
            OutcomeState::NotDelivered => {
                touched || matches!(status, Status::Failed | Status::Expired | Status::Discarded | Status::Forwarded)
            }
        };
        if !fits {
            self.report(9, format!("{id} was answered {:?} and is {}", entry.outcome.state, status.as_str()));
        }
    }

    /// D10: its turn within the connection's timeout, the attempt, and the writing.
    pub(crate) fn check_patience(&self, took: Wait, timeout_ms: u64, attempts_max: u64, waits_ms: u64) {
        if !self.plan.has_quick_store() {
            return;
        }
        let bound_ms = timeout_ms * (1 + attempts_max) + waits_ms + 100;
        if took.as_millis() > bound_ms {
            self.report(9, format!("a caller waited {took}, and {bound_ms} ms at most are allowed"));
        }
    }
}
