//! One attempt of an ordered queue's head: how it begins, and what is written of it and of what leaves without one.
//!
//! It must not know when an attempt may begin.

use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::decide::{Decision, Event, Snapshot, decide};
use postrider_core::delivery::{Progress, Status};
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::outcome::Outcome;
use postrider_core::{Reply, Timestamp};
use postrider_store::{CommandAnswer, Guard, NewBody, Placement, Settlement};

use super::Fifo;
use crate::attempt::{self, Ended};
use crate::elsewhere;
use crate::endpoints;
use crate::notifier::Caller;
use crate::runner::window::Entry;
use crate::runner::{Made, given_up, not_begun, outgoing, was_made};
use crate::settler::ToSettle;
use crate::switching;

impl Fifo {
    pub(super) fn begin(&mut self, live: &Arc<Connection>, policy_of: Arc<Connection>, now: Timestamp) {
        let Some(head) = self.window.head_mut() else { return };
        self.is_probe = self.post.handle.slots.begins();
        if head.caller.as_ref().is_some_and(|caller| !caller.begin()) {
            head.caller = None;
        }
        let progress = std::mem::replace(&mut head.delivery.progress, Progress::accepted(now));
        head.delivery.progress = progress.begun(now);
        let timeout = policy_of.spec.policy.timeout;
        let request = outgoing(live, &head.delivery, &head.head, &head.body, timeout);
        let of = head.delivery.event.as_ref().map(|event| event.subscription_id);
        self.round = Some((head.id(), policy_of));
        self.epoch = endpoints::epoch(&self.post.shared, live);
        self.flight = Some(attempt::make(&self.post.shared, request, of));
    }

    pub(super) fn attempt_ended(&mut self, ended: Ended) {
        let Ended { reply, verdict, record } = ended;
        if let Some((_, connection)) = &self.round {
            self.post.circuit_heard(connection, &verdict, self.is_probe);
        }
        self.post.handle.slots.give_back(self.post.lease, 1);
        let Some(head) = self.window.head_mut() else { return };
        if head.caller.as_ref().is_some_and(|caller| !caller.is_there()) {
            head.caller = None;
        }
        let direct = head.caller.is_some();
        let Some((_, policy_of)) = &self.round else { return };
        let shared = &self.post.shared;
        let made = was_made(policy_of, &verdict);
        let progress = if made { head.delivery.progress.clone() } else { not_begun(&head.delivery.progress) };
        let snapshot =
            Snapshot { progress: &progress, policy: &policy_of.spec.policy, ladder: head.delivery.ladder.as_ref() };
        let event = Event::AttemptEnded { verdict: &verdict, reply: &reply, direct };
        // Only a person's wish is ever refused.
        let Ok(mut decision) = decide(event, snapshot, shared.now(), shared.roll()) else { return };
        let made = made.then(|| {
            let live = self.post.connection().unwrap_or_else(|| Arc::clone(policy_of));
            let now = shared.now();
            let health = switching::noted(shared, &live, self.epoch, &mut decision.progress, &record, now);
            Made { record, health }
        });
        self.apply_to_head(decision, made, Some(reply));
    }

    /// What has expired or is too old leaves without an attempt.
    pub(super) fn give_up(&mut self, id: DeliveryId, policy_of: &Connection) {
        let shared = &self.post.shared;
        let Some(live) = self.post.connection() else { return };
        let behind = self.window.head().map(Entry::id).filter(|head| *head != id);
        let Some(entry) = self.window.find_mut(id) else { return };
        let snapshot = Snapshot {
            progress: &entry.delivery.progress,
            policy: &policy_of.spec.policy,
            ladder: entry.delivery.ladder.as_ref(),
        };
        let Some(decision) = given_up(shared, snapshot, live.open_since(), shared.now(), behind) else { return };
        let Some(entry) = self.window.remove(id) else { return };
        let caller = entry.caller.map(|caller| (caller, decision.progress.clone()));
        self.hand_over(
            id,
            decision.progress,
            None,
            None,
            None,
            caller.map(|(caller, progress)| {
                let outcome = Outcome::after_attempt(id, entry.delivery.cid, &progress, nothing_came());
                (caller, outcome)
            }),
        );
        self.barrier = true;
    }

    /// Writes what was decided for the head, and moves on if it has left the queue.
    pub(super) fn apply_to_head(&mut self, decision: Decision, made: Option<Made>, reply: Option<Reply>) {
        let Decision { progress, .. } = decision;
        let delivered = progress.status == Status::Success;
        let Some(head) = self.window.head_mut() else { return };
        let (id, caller) = (head.id(), head.caller.take());
        let caller = caller.map(|caller| {
            let reply = reply.unwrap_or_else(nothing_came);
            (caller, Outcome::after_attempt(id, head.delivery.cid.clone(), &progress, reply))
        });
        if progress.status.is_waiting() {
            head.delivery.progress = progress.clone();
        } else {
            self.window.pop_head();
        }
        if !delivered {
            self.barrier = true;
            self.refusing = false;
            self.dismiss_waiting();
        }
        self.hand_over(id, progress, made, None, None, caller);
    }

    pub(super) fn hand_over(
        &mut self,
        delivery_id: DeliveryId,
        progress: Progress,
        made: Option<Made>,
        edited_body: Option<NewBody>,
        answers: Option<CommandId>,
        caller: Option<(Caller, Outcome)>,
    ) {
        self.unsettled += 1;
        let (attempt, health) = made.map_or((None, None), |made| (Some(made.record), made.health));
        let elsewhere = caller.as_ref().filter(|(caller, _)| caller.is_elsewhere());
        let reply = elsewhere.map(|(_, outcome)| elsewhere::reply_of(outcome, progress.status, self.post.shared.now()));
        self.post.shared.settler.settle(ToSettle {
            settlement: Settlement {
                delivery_id,
                queue_id: self.post.queue_id(),
                guard: Guard::Lease(self.post.lease),
                progress,
                placement: Placement::Keep,
                attempt,
                forward: None,
                edited_body,
                answers: answers.map(|id| (id, CommandAnswer::Applied)),
                health,
                reply,
            },
            runner: self.post.handle.inbox(),
            life: self.post.life,
            caller,
        });
    }
}

pub(super) fn nothing_came() -> Reply {
    Reply::unanswered(postrider_core::NoAnswerKind::Internal, "no attempt was made")
}
