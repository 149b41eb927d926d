//! The runner of an unordered queue: as many attempts at once as `concurrency` allows, fresh requests before old retries.
//!
//! A claim is committed before anything is sent (D04). It must not know other queues, nor decide anything that the core decides.

mod duties;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use postrider_core::connection::Connection;
use postrider_core::decide::{Event, Snapshot, decide};
use postrider_core::delivery::{Delivery, Origin, Progress, Status};
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::log;
use postrider_core::outcome::Outcome;
use postrider_core::{Failure, NoAnswerKind, Reply, Timestamp, pace};
use postrider_store::{CommandAnswer, Guard, Loaded, NewBody, Placement, Settled, Settlement, StoreError, WindowLimit};
use tokio::sync::mpsc;

use super::{Exit, Made, Post, STORE_PAUSE, ToRunner, earlier, given_up, not_begun, outgoing, refused, was_made};
use crate::attempt::{self, Ended};
use crate::dispatcher;
use crate::endpoints;
use crate::notifier::Caller;
use crate::settler::ToSettle;
use crate::shared::slots_of;
use crate::switching;
use duties::{Expiring, Refusing, earliest_end, gives_up};

/// Policies of rounds under way kept at most; a round whose policy is not kept reads it anew.
const ROUNDS_KEPT_MAX: usize = 4096;

struct Unordered {
    post: Post,
    flights: FuturesUnordered<BoxFuture<'static, (DeliveryId, Ended)>>,
    under_way: BTreeMap<DeliveryId, UnderWay>,
    /// Callers whose requests wait for a slot.
    waiting: BTreeMap<DeliveryId, Caller>,
    /// A question to the store under way; attempts go on meanwhile.
    asking: Option<BoxFuture<'static, Asked>>,
    rounds: BTreeMap<DeliveryId, Arc<Connection>>,
    /// Decisions handed over and not yet written, with when the delivery is due again.
    settling: BTreeMap<DeliveryId, Option<Timestamp>>,
    /// What a former owner had claimed may still be PROCESSING: nothing is claimed before that is settled.
    interruptions: bool,
    /// Of those, what an operator decided: nothing is claimed before it is written.
    commanded: BTreeSet<DeliveryId>,
    handled: BTreeSet<CommandId>,
    commands: bool,
    /// Something may be due now.
    look: bool,
    next_due: Option<Timestamp>,
    rest_until: Option<Timestamp>,
    /// Attempts that ended without having reached the remote system, since the last one that did.
    unreachable_in_a_row: u32,
    /// When something that waits may have expired or be too old (Z17, R09).
    expiry_at: Option<Timestamp>,
    concurrency: u32,
    /// Free slots kept back because too many decisions are not yet written.
    kept_back: u32,
    leaving: Option<Exit>,
}

struct UnderWay {
    delivery: Delivery,
    policy_of: Arc<Connection>,
    /// Of its endpoint, when the attempt began.
    epoch: u32,
    caller: Option<Caller>,
}

enum Asked {
    Claimed { slots: u32, rows: Result<Vec<Loaded>, StoreError> },
    NextDue(Result<Option<Timestamp>, StoreError>),
    Expiring(Result<Expiring, StoreError>),
    Refusing(Result<Refusing, StoreError>),
}

enum Next {
    Event,
    At(Timestamp),
    In(std::time::Duration),
    Again,
    Exit(Exit),
}

/// Runs until told to stop, or until the queue is somebody else's.
pub(crate) async fn run(post: Post, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
    let Some(connection) = post.connection() else { return Exit::Deleted };
    let concurrency = slots_of(&connection);
    let shut = post.has_claims || connection.is_held();
    post.handle.slots.open(post.lease, concurrency, shut);
    post.read_endpoint().await;
    let mut runner = Unordered {
        flights: FuturesUnordered::new(),
        under_way: BTreeMap::new(),
        waiting: BTreeMap::new(),
        asking: None,
        rounds: BTreeMap::new(),
        settling: BTreeMap::new(),
        interruptions: post.has_claims,
        commanded: BTreeSet::new(),
        handled: BTreeSet::new(),
        commands: post.has_commands,
        look: true,
        next_due: None,
        rest_until: None,
        unreachable_in_a_row: 0,
        expiry_at: earliest_end(&connection),
        concurrency,
        kept_back: 0,
        leaving: None,
        post,
    };
    let exit = runner.work(inbox).await;
    runner.post.handle.slots.close();
    exit
}

impl Unordered {
    async fn work(&mut self, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
        loop {
            while let Ok(message) = inbox.try_recv() {
                self.hear(message);
            }
            let (pause, until) = match self.step().await {
                Next::Exit(exit) => return exit,
                Next::Again => continue,
                Next::Event => (None, None),
                Next::In(pause) => (Some(pause), None),
                Next::At(time) => (None, Some(time)),
            };
            let shared = Arc::clone(&self.post.shared);
            let wake = async {
                match (pause, until) {
                    (Some(pause), _) => tokio::time::sleep(pause).await,
                    (None, Some(time)) => shared.sleep_until(time).await,
                    (None, None) => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    Some(message) => self.hear(message),
                    None => return Exit::Stopped,
                },
                Some((id, ended)) = self.flights.next(), if !self.flights.is_empty() => self.attempt_ended(id, ended),
                asked = answer(&mut self.asking) => self.answered(asked),
                () = wake => {}
            }
        }
    }

    fn hear(&mut self, message: ToRunner) {
        match message {
            ToRunner::Fresh { loaded, .. } => {
                self.look = true;
                self.post.handle.set_backlog(true);
                self.note_expiry(&loaded.delivery, &loaded.delivery.progress);
                if loaded.delivery.origin != Origin::Call {
                    return;
                }
                let Some(caller) = self.post.shared.notifier.caller_of(loaded.delivery.id) else { return };
                if self.is_held() || self.leaving.is_some() {
                    caller.tell_queued();
                } else {
                    self.waiting.insert(loaded.delivery.id, caller);
                }
            }
            ToRunner::Claimed(loaded) => self.begin(*loaded),
            ToRunner::Settled { life, delivery_id, settled } if life == self.post.life => {
                if let Some(Some(due_at)) = self.settling.remove(&delivery_id) {
                    self.next_due = earlier(self.next_due, Some(due_at));
                }
                self.commanded.remove(&delivery_id);
                if self.kept_back > 0 {
                    self.kept_back -= 1;
                    self.free_slot();
                }
                if settled == Settled::Stale {
                    self.lose();
                }
            }
            ToRunner::Settled { .. } => {}
            ToRunner::Taken(taken) => {
                dispatcher::release(&self.post.shared, taken);
                self.lose();
            }
            ToRunner::Wake => {
                self.look = true;
                self.note_returned();
            }
            ToRunner::Commands => self.commands = true,
            ToRunner::ConnectionChanged => self.connection_changed(),
            ToRunner::LeaseLost => self.lose(),
            ToRunner::Stop => self.leave(Exit::Stopped),
            ToRunner::GiveBack => self.leave(Exit::GivenBack),
            ToRunner::Abort => self.abort(),
        }
    }

    fn connection_changed(&mut self) {
        let Some(connection) = self.post.connection() else { return self.leave(Exit::Deleted) };
        if connection.spec.policy.queue.ordered {
            return self.leave(Exit::OrderChanged);
        }
        let after = slots_of(&connection);
        self.post.handle.slots.resize(self.concurrency, after);
        self.concurrency = after;
        self.expiry_at = earliest_end(&connection);
        self.post.handle.slots.set_shut(connection.is_held() || self.interruptions);
        self.look = true;
        if connection.is_held() {
            self.dismiss_callers();
        }
    }

    fn dismiss_callers(&mut self) {
        for (_, caller) in std::mem::take(&mut self.waiting) {
            caller.tell_queued();
        }
    }

    fn leave(&mut self, exit: Exit) {
        self.leaving = self.leaving.or(Some(exit));
        self.post.handle.slots.set_shut(true);
        self.dismiss_callers();
    }

    /// What is under way may reach the remote system, but its outcome is no longer ours to write.
    fn lose(&mut self) {
        self.leaving = Some(Exit::Lost);
        self.post.handle.slots.close();
        self.flights = FuturesUnordered::new();
        self.under_way.clear();
        self.asking = None;
        self.dismiss_callers();
    }

    fn abort(&mut self) {
        self.leave(Exit::Stopped);
        self.flights = FuturesUnordered::new();
        for (_, under_way) in std::mem::take(&mut self.under_way) {
            self.interrupt(&under_way.delivery, &under_way.policy_of);
        }
    }

    fn is_held(&self) -> bool {
        self.post.connection().is_none_or(|connection| connection.is_held())
    }

    async fn step(&mut self) -> Next {
        if self.commands && self.leaving.is_none() && self.asking.is_none() {
            self.take_commands().await;
        }
        if let Some(exit) = self.leaving {
            let idle = self.under_way.is_empty() && self.settling.is_empty() && self.asking.is_none();
            return if idle { Next::Exit(exit) } else { Next::Event };
        }
        let Some(connection) = self.post.connection() else { return Next::Exit(Exit::Deleted) };
        if self.asking.is_some() || !self.commanded.is_empty() {
            return Next::Event;
        }
        let now = self.post.shared.now();
        let expiry_at = self.expiry_at.filter(|_| gives_up(&connection));
        if expiry_at.is_some_and(|at| at <= now) {
            self.look_for_expired(connection, now);
            return Next::Again;
        }
        if connection.is_held() {
            return expiry_at.map_or(Next::Event, Next::At);
        }
        if let Some(until) = self.rest_until.filter(|until| *until > now) {
            return Next::At(until);
        }
        if self.interruptions {
            return self.note_interruptions().await;
        }
        if self.next_due.is_some_and(|due| due <= now) {
            self.look = true;
        }
        if !self.look {
            if self.next_due.is_none() && self.under_way.is_empty() && self.settling.is_empty() {
                self.post.handle.set_backlog(false);
            }
            return earlier(self.next_due, expiry_at).map_or(Next::Event, Next::At);
        }
        if endpoints::refused(&self.post.shared, &connection).is_some() {
            self.look_for_refused(now);
            return Next::Again;
        }
        if !self.post.shared.lease.may_send() {
            return Next::In(self.post.shared.lease.pause_before_looking_again());
        }
        let slots = self.post.handle.slots.take_all();
        if slots == 0 {
            return expiry_at.map_or(Next::Event, Next::At);
        }
        self.claim(slots, now);
        Next::Again
    }

    fn claim(&mut self, slots: u32, now: Timestamp) {
        let store = Arc::clone(&self.post.shared.store);
        let lease = self.post.lease;
        let options = &self.post.shared.options;
        let limit = WindowLimit {
            deliveries_max: slots.min(options.window_deliveries_max.max(1)),
            bytes_max: options.window_bytes_max,
        };
        self.look = false;
        if let Some(rest) = pace::rest_after(self.unreachable_in_a_row) {
            self.rest_until = Some(now + rest);
        }
        self.asking =
            Some(Box::pin(async move { Asked::Claimed { slots, rows: store.claim(lease, now, limit).await } }));
    }

    fn answered(&mut self, asked: Asked) {
        match asked {
            Asked::Claimed { slots, rows: Ok(rows) } => {
                let taken = u32::try_from(rows.len()).unwrap_or(slots);
                self.post.handle.slots.give_back(self.post.lease, slots.saturating_sub(taken));
                if rows.is_empty() {
                    let (store, lease) = (Arc::clone(&self.post.shared.store), self.post.lease);
                    // What is settled while the store is asked may not be in its answer: from here on that is noted beside it.
                    self.next_due = None;
                    self.asking = Some(Box::pin(async move { Asked::NextDue(store.next_due(lease).await) }));
                } else {
                    // There may be more; the next free slot shows.
                    self.look = true;
                    self.post.handle.set_backlog(true);
                }
                for loaded in rows {
                    self.begin(loaded);
                }
            }
            Asked::NextDue(Ok(due)) => self.next_due = earlier(self.next_due, due),
            Asked::Claimed { rows: Err(StoreError::LeaseLost), .. } | Asked::NextDue(Err(StoreError::LeaseLost)) => {
                self.lose();
            }
            Asked::Claimed { slots, rows: Err(error) } => {
                self.post.handle.slots.give_back(self.post.lease, slots);
                self.rest(&error);
            }
            Asked::NextDue(Err(error)) | Asked::Expiring(Err(error)) | Asked::Refusing(Err(error)) => self.rest(&error),
            Asked::Expiring(Ok(expiring)) => self.expire(expiring),
            Asked::Refusing(Ok(found)) => self.refuse(found),
        }
    }

    fn rest(&mut self, error: &StoreError) {
        tracing::warn!(event = log::QUEUE_UNREADABLE, %error, queue = %self.post.queue_id(), "a queue cannot be read yet");
        self.look = true;
        self.rest_until = Some(self.post.shared.now() + STORE_PAUSE);
    }

    /// Starts the attempt of a delivery that has been claimed: it has its number already.
    fn begin(&mut self, loaded: Loaded) {
        let Loaded { mut delivery, body } = loaded;
        let shared = Arc::clone(&self.post.shared);
        let live = self.post.connection().filter(|live| !live.is_held());
        let (Some(live), None) = (live, self.leaving) else { return self.unclaim(&delivery) };
        let now = shared.now();
        let policy_of = self.round_policy(&delivery, &live);
        let before = not_begun(&delivery.progress);
        let snapshot = Snapshot { progress: &before, policy: &policy_of.spec.policy, ladder: delivery.ladder.as_ref() };
        let ends = given_up(&shared, snapshot, live.open_since(), now);
        if let Some(decision) = ends.or_else(|| refused(&shared, &live, snapshot, now)) {
            self.post.handle.slots.give_back(self.post.lease, 1);
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
        self.under_way.insert(id, UnderWay { delivery, policy_of, epoch, caller });
    }

    fn take_caller(&mut self, delivery: &Delivery) -> Option<Caller> {
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
    fn free_slot(&mut self) {
        if self.settling.len() >= self.post.shared.options.window_deliveries_max.max(1) as usize {
            self.kept_back += 1;
        } else {
            self.post.handle.slots.give_back(self.post.lease, 1);
        }
    }

    /// It was claimed and cannot begin: back to PENDING, unspent.
    fn unclaim(&mut self, delivery: &Delivery) {
        self.post.handle.slots.give_back(self.post.lease, 1);
        if let Some(caller) = self.take_caller(delivery) {
            caller.tell_queued();
        }
        if self.leaving != Some(Exit::Lost) {
            self.hand_over(delivery, not_begun(&delivery.progress), None, None, None, None);
        }
    }

    fn attempt_ended(&mut self, id: DeliveryId, ended: Ended) {
        let Some(UnderWay { delivery, policy_of, epoch, caller }) = self.under_way.remove(&id) else { return };
        self.free_slot();
        let Ended { reply, verdict, record } = ended;
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

    fn hand_over(
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
        let (attempt, health) = made.map_or((None, None), |made| (Some(made.record), made.health));
        let due_at = (progress.status == Status::Pending).then_some(progress.due_at);
        if due_at.is_some() {
            self.note_expiry(delivery, &progress);
        }
        self.settling.insert(delivery.id, due_at);
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
            },
            runner: self.post.handle.inbox(),
            life: self.post.life,
            caller,
        });
    }
}

async fn answer(asking: &mut Option<BoxFuture<'static, Asked>>) -> Asked {
    let Some(question) = asking.as_mut() else { return std::future::pending().await };
    let asked = question.await;
    *asking = None;
    asked
}
