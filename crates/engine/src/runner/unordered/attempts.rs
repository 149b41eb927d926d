//! Attempts of an unordered queue: begun with what has been claimed, ended with what the core decides, handed over to be written.
//!
//! It must not know which deliveries are claimed, nor when.

use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::decide::{Event, Snapshot, decide};
use postrider_core::delivery::{Delivery, Origin, Progress, Status};
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::outcome::Outcome;
use postrider_core::{Failure, NoAnswerKind, Reply};
use postrider_store::{CommandAnswer, Guard, Loaded, NewBody, Placement, Settlement};

use super::{ROUNDS_KEPT_MAX, Settling, UnderWay, Unordered};
use crate::attempt::{self, Ended};
use crate::elsewhere;
use crate::endpoints;
use crate::notifier::Caller;
use crate::runner::{Exit, Made, given_up, not_begun, outgoing, refused, was_made};
use crate::settler::ToSettle;
use crate::switching;

impl Unordered {
    /// Starts the attempt of a delivery that has been claimed: it has its number already.
    pub(super) fn begin(&mut self, loaded: Loaded) {
        let Loaded { mut delivery, body } = loaded;
        let shared = Arc::clone(&self.post.shared);
        let live = self.post.connection().filter(|live| !live.is_held());
        let (Some(live), None) = (live, self.leaving) else { return self.unclaim(&delivery) };
        let now = shared.now();
        let policy_of = self.round_policy(&delivery, &live);
        let before = not_begun(&delivery.progress);
        let snapshot = Snapshot { progress: &before, policy: &policy_of.spec.policy, ladder: delivery.ladder.as_ref() };
        let ends = given_up(&shared, snapshot, live.open_since(), now, None);
        if let Some(decision) = ends.or_else(|| refused(&shared, &live, snapshot, now)) {
            self.post.handle.slots.give_back_unused(self.post.lease, 1, now);
            let caller = self.take_caller(&delivery);
            self.hand_over(&delivery, decision.progress, None, None, caller, None);
            self.look = true;
            return;
        }
        let caller = self.take_caller(&delivery).filter(Caller::begin);
        let head = Arc::new(std::mem::take(&mut delivery.head));
        let request = outgoing(&live, &delivery, &head, &body, policy_of.spec.policy.timeout);
        let of = delivery.event.as_ref().map(|event| event.subscription_id);
        let epoch = endpoints::epoch(&shared, &live);
        let (id, flight) = (delivery.id, attempt::make(&shared, request, of));
        self.flights.push(Box::pin(async move { (id, flight.await) }));
        let is_probe = self.post.handle.slots.begins();
        self.under_way.insert(id, UnderWay { delivery, policy_of, epoch, caller, is_probe });
    }

    pub(super) fn take_caller(&mut self, delivery: &Delivery) -> Option<Caller> {
        if delivery.origin != Origin::Call || delivery.progress.attempts > 1 {
            return None;
        }
        self.waiting.remove(&delivery.id).or_else(|| self.post.shared.notifier.caller_of(delivery.id))
    }

    /// Z15: a round keeps the policy with which it began; a ladder's is always live (D21).
    fn round_policy(&self, delivery: &Delivery, live: &Arc<Connection>) -> Arc<Connection> {
        let mid_round = delivery.progress.round_attempts > 1 && delivery.ladder.is_none();
        let kept = if mid_round { self.rounds.get(&delivery.id) } else { None };
        Arc::clone(kept.unwrap_or(live))
    }

    /// A bounded number of decisions may be on their way to the store, as in an ordered queue (D03).
    pub(super) fn free_slot(&mut self) {
        if self.settling.len() >= self.post.shared.options.window_deliveries_max.max(1) as usize {
            self.kept_back += 1;
        } else {
            self.post.handle.slots.give_back(self.post.lease, 1);
        }
    }

    /// It was claimed and cannot begin: back to PENDING, unspent.
    fn unclaim(&mut self, delivery: &Delivery) {
        self.post.handle.slots.give_back_unused(self.post.lease, 1, self.post.shared.now());
        if let Some(caller) = self.take_caller(delivery) {
            caller.tell_queued();
        }
        if self.leaving != Some(Exit::Lost) {
            self.hand_over(delivery, not_begun(&delivery.progress), None, None, None, None);
        }
    }

    pub(super) fn attempt_ended(&mut self, id: DeliveryId, ended: Ended) {
        let Some(UnderWay { delivery, policy_of, epoch, caller, is_probe }) = self.under_way.remove(&id) else {
            return;
        };
        let Ended { reply, verdict, record } = ended;
        self.post.circuit_heard(&policy_of, &verdict, is_probe);
        self.free_slot();
        let unreachable = record.failure == Some(Failure::Unreachable);
        self.unreachable_in_a_row = if unreachable { self.unreachable_in_a_row.saturating_add(1) } else { 0 };
        let caller = caller.filter(Caller::is_there);
        let shared = Arc::clone(&self.post.shared);
        let made = was_made(&policy_of, &verdict);
        let progress = if made { delivery.progress.clone() } else { not_begun(&delivery.progress) };
        let snapshot =
            Snapshot { progress: &progress, policy: &policy_of.spec.policy, ladder: delivery.ladder.as_ref() };
        let event = Event::AttemptEnded { verdict: &verdict, reply: &reply, direct: caller.is_some() };
        // Only a person's wish is ever refused.
        let Ok(decision) = decide(event, snapshot, shared.now(), shared.roll()) else { return };
        let mut progress = decision.progress;
        let made = made.then(|| {
            let live = self.post.connection().unwrap_or_else(|| Arc::clone(&policy_of));
            let health = switching::noted(&shared, &live, epoch, &mut progress, &record, shared.now());
            Made { record, health }
        });
        if progress.status == Status::Pending {
            if progress.round_attempts > 0 && self.rounds.len() < ROUNDS_KEPT_MAX {
                self.rounds.insert(id, policy_of);
            }
        } else {
            self.rounds.remove(&id);
        }
        self.hand_over(&delivery, progress, made, Some(reply), caller, None);
    }

    pub(super) fn hand_over(
        &mut self,
        delivery: &Delivery,
        progress: Progress,
        made: Option<Made>,
        reply: Option<Reply>,
        caller: Option<Caller>,
        command: Option<(CommandId, Option<NewBody>)>,
    ) {
        let caller = caller.map(|caller| {
            let reply = reply.unwrap_or_else(|| Reply::unanswered(NoAnswerKind::Internal, "no attempt was made"));
            (caller, Outcome::after_attempt(delivery.id, delivery.cid.clone(), &progress, reply))
        });
        let (answers, edited_body) = match command {
            Some((id, edited_body)) => (Some((id, CommandAnswer::Applied)), edited_body),
            None => (None, None),
        };
        let elsewhere = caller.as_ref().filter(|(caller, _)| caller.is_elsewhere());
        let reply = elsewhere.map(|(_, outcome)| elsewhere::reply_of(outcome, progress.status, self.post.shared.now()));
        let (attempt, health) = made.map_or((None, None), |made| (Some(made.record), made.health));
        let due_at = (progress.status == Status::Pending).then_some(progress.due_at);
        if due_at.is_some() {
            self.note_expiry(delivery, &progress);
        }
        let in_line = delivery.event.as_ref().is_some_and(|event| event.line.is_some());
        let releases = in_line && !progress.status.is_waiting();
        self.settling.insert(delivery.id, Settling { due_at, releases });
        self.post.shared.settler.settle(ToSettle {
            settlement: Settlement {
                delivery_id: delivery.id,
                queue_id: self.post.queue_id(),
                guard: Guard::Lease(self.post.lease),
                progress,
                placement: Placement::Keep,
                attempt,
                forward: None,
                edited_body,
                answers,
                health,
                reply,
            },
            runner: self.post.handle.inbox(),
            life: self.post.life,
            caller,
        });
    }
}
