//! What may hold an endpoint's deliveries back before they are claimed: its breaker, its rate, and the limits of its project (R04).
//!
//! What can be given back is asked for first, tokens last. It must not know which deliveries wait, nor what they are.

use std::num::NonZeroU32;
use std::sync::Arc;

use postrider_core::Timestamp;
use postrider_core::breaker::{Admits, Breaker, BreakerRules, Ended, Turn};
use postrider_core::connection::{Connection, WebhookTarget};
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::id::{ProjectId, QueueId};
use postrider_core::rate::TokenBucket;

use super::Inbox;
use crate::admission::{Asker, ProjectGate, Promise};
use crate::endpoints;
use crate::shared::Shared;

pub(crate) struct Gate {
    queue_id: QueueId,
    project_id: ProjectId,
    project: Arc<ProjectGate>,
    inbox: Inbox,
    address: String,
    /// Of the endpoint; another one when it was switched on anew.
    epoch: u32,
    rate: Option<TokenBucket>,
    rules: BreakerRules,
    breaker: Breaker,
    /// Slots of the project that are held for attempts under way or claimed.
    held: u32,
    promised: Option<Promise>,
    /// The next attempt that begins is the breaker's probe.
    probe_granted: bool,
}

impl Gate {
    /// `None` for a connection that is no endpoint: nothing of this holds it back.
    pub fn of(shared: &Shared, connection: &Connection, inbox: Inbox, breaker: Breaker) -> Option<Gate> {
        let target = connection.spec.target.webhook()?;
        Some(Gate {
            queue_id: connection.id,
            project_id: connection.project_id,
            project: shared.admission.gate(connection.project_id),
            inbox,
            address: target.url.to_string(),
            epoch: endpoints::epoch(shared, connection),
            rate: rate_of(target).map(TokenBucket::new),
            rules: target.breaker,
            breaker,
            held: 0,
            promised: None,
            probe_granted: false,
        })
    }

    /// The endpoint was changed. Another address is given another chance, and so is one that was switched on again.
    pub fn change(&mut self, shared: &Shared, connection: &Connection) {
        let Some(target) = connection.spec.target.webhook() else { return };
        match (rate_of(target), &mut self.rate) {
            (None, rate) => *rate = None,
            (Some(per_second), Some(bucket)) => bucket.set_rate(per_second),
            (Some(per_second), rate) => *rate = Some(TokenBucket::new(per_second)),
        }
        self.rules = target.breaker;
        let (address, epoch) = (target.url.to_string(), endpoints::epoch(shared, connection));
        if address != self.address || epoch != self.epoch || target.breaker.failures_max == 0 {
            (self.address, self.epoch) = (address, epoch);
            (self.breaker, self.probe_granted) = (Breaker::default(), false);
        }
    }

    /// Lets up to `wanted` attempts begin.
    ///
    /// # Errors
    /// What holds them all back, and until when.
    pub fn take(&mut self, shared: &Shared, wanted: u32, is_patient: bool, now: Timestamp) -> Result<u32, Deferral> {
        let deferred = |by, until| Deferral { by, until };
        let (wanted, is_probe) = match self.breaker.admits(now) {
            Admits::All => (wanted, false),
            Admits::Probe => (1, true),
            Admits::None { until } => return Err(deferred(DeferredBy::Breaker, until)),
        };
        if let Some(settings) = shared.projects.settings(self.project_id) {
            self.project.set_limits(&settings, shared.workers());
        }
        let asker = Asker { queue_id: self.queue_id, inbox: &self.inbox, held: self.held, is_patient };
        let slots = self.project.take_slots(&asker, wanted);
        if slots == 0 {
            return Err(deferred(DeferredBy::ProjectConcurrency, None));
        }
        let tokens = match self.tokens(slots, is_patient, now) {
            Ok(tokens) => tokens,
            Err(deferral) => {
                self.project.give_back_slots(slots);
                return Err(deferral);
            }
        };
        self.project.give_back_slots(slots - tokens);
        self.held += tokens;
        if is_probe {
            self.breaker.probe_begins();
            self.probe_granted = true;
        }
        Ok(tokens)
    }

    fn tokens(&mut self, wanted: u32, is_patient: bool, now: Timestamp) -> Result<u32, Deferral> {
        let Some(bucket) = &mut self.rate else {
            return self.project.take_tokens(&mut self.promised, wanted, is_patient, now);
        };
        let own = bucket.take(wanted, now);
        if own == 0 {
            let until = Some(bucket.ready_at(wanted, now));
            return Err(Deferral { by: DeferredBy::EndpointRateLimit, until });
        }
        match self.project.take_tokens(&mut self.promised, own, is_patient, now) {
            Ok(both) => {
                bucket.give_back(own - both);
                Ok(both)
            }
            Err(deferral) => {
                bucket.give_back(own);
                Err(deferral)
            }
        }
    }

    /// What was taken and came to no attempt.
    pub fn unused(&mut self, count: u32, now: Timestamp) {
        self.release(count);
        self.project.give_back_tokens(count);
        if let Some(bucket) = &mut self.rate {
            bucket.give_back(count);
        }
        if count > 0 && std::mem::take(&mut self.probe_granted) {
            self.breaker.probe_was_none(now);
        }
    }

    /// An attempt begins; whether it is the probe.
    pub fn begins(&mut self) -> bool {
        std::mem::take(&mut self.probe_granted)
    }

    pub fn ended(&mut self, ended: Ended, is_probe: bool, shared: &Shared, now: Timestamp) -> Turn {
        self.release(1);
        let roll = || shared.roll();
        self.breaker.ended(ended, is_probe, &self.rules, now, roll)
    }

    /// The runner ends: whatever it held is free, and the breaker stays as it is.
    pub fn close(mut self, now: Timestamp) -> Breaker {
        self.project.break_promise(self.promised.take());
        self.release(self.held);
        self.breaker.probe_was_none(now);
        self.breaker
    }

    fn release(&mut self, count: u32) {
        let count = count.min(self.held);
        self.held -= count;
        self.project.give_back_slots(count);
    }
}

fn rate_of(target: &WebhookTarget) -> Option<NonZeroU32> {
    target.rate_limit_per_second.and_then(NonZeroU32::new)
}
