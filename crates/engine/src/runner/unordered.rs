//! The runner of an unordered queue: as many attempts at once as `concurrency` allows, fresh requests before old retries.
//!
//! A claim is committed before anything is sent (D04). It must not know other queues, nor decide anything that the core decides.

mod attempts;
mod duties;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use postrider_core::connection::Connection;
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::delivery::{Delivery, Origin};
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::{Timestamp, log, pace};
use postrider_store::{Loaded, Settled, StoreError, WindowLimit};
use tokio::sync::mpsc;

use super::held_up::HeldUp;
use super::next::Next;
use super::{Exit, LOOK_FOR_SLOTS, Post, SHORTEST_WAIT, STORE_PAUSE, ToRunner, earlier};
use crate::attempt::Ended;
use crate::dispatcher;
use crate::elsewhere;
use crate::endpoints;
use crate::notifier::Caller;
use crate::shared::slots_of;
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
    /// Decisions handed over and not yet written.
    settling: BTreeMap<DeliveryId, Settling>,
    /// What a former owner had claimed may still be PROCESSING: nothing is claimed before that is settled.
    interruptions: bool,
    /// When the next claim of a former owner that was left to it times out (R01).
    claims_end_at: Option<Timestamp>,
    /// What an operator decided: nothing is claimed before it is written.
    commanded: BTreeSet<DeliveryId>,
    handled: BTreeSet<CommandId>,
    commands: bool,
    /// Something may be due now.
    look: bool,
    next_due: Option<Timestamp>,
    rest_until: Option<Timestamp>,
    /// Attempts that ended without having reached the remote system, since the last one that did.
    unreachable_in_a_row: u32,
    /// What a limit or the endpoint's breaker holds up (R04).
    held_up: HeldUp,
    /// When something that waits may have expired or be too old (Z17, R09).
    expiry_at: Option<Timestamp>,
    concurrency: u32,
    /// Free slots kept back because too many decisions are not yet written.
    kept_back: u32,
    /// Callers in other processes are not to wait while nothing is sent.
    dismisses: bool,
    leaving: Option<Exit>,
}

/// What follows once a decision is written.
#[derive(Clone, Copy)]
struct Settling {
    due_at: Option<Timestamp>,
    /// It leaves a line, and the next one of that may go (R15).
    releases: bool,
}

struct UnderWay {
    delivery: Delivery,
    policy_of: Arc<Connection>,
    /// Of its endpoint, when the attempt began.
    epoch: u32,
    caller: Option<Caller>,
    /// It shows whether the endpoint is back.
    is_probe: bool,
}

enum Asked {
    /// `callers`: of another process, for whom these attempts are made.
    Claimed {
        slots: u32,
        rows: Result<Vec<Loaded>, StoreError>,
        callers: Vec<(DeliveryId, Caller)>,
    },
    NextDue(Result<Option<Timestamp>, StoreError>),
    Expiring(Result<Expiring, StoreError>),
    Refusing(Result<Refusing, StoreError>),
}

/// Runs until told to stop, or until the queue is somebody else's.
pub(crate) async fn run(post: Post, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
    let Some(connection) = post.connection() else { return Exit::Deleted };
    let concurrency = slots_of(&connection);
    let shut = post.has_claims || connection.is_held();
    post.handle.slots.open(&post.shared, &connection, post.handle.inbox(), post.lease, concurrency, shut);
    post.read_endpoint().await;
    let mut runner = Unordered {
        flights: FuturesUnordered::new(),
        under_way: BTreeMap::new(),
        waiting: BTreeMap::new(),
        asking: None,
        rounds: BTreeMap::new(),
        settling: BTreeMap::new(),
        interruptions: post.has_claims,
        claims_end_at: None,
        commanded: BTreeSet::new(),
        handled: BTreeSet::new(),
        commands: post.has_commands,
        look: true,
        next_due: None,
        rest_until: None,
        unreachable_in_a_row: 0,
        held_up: HeldUp::default(),
        expiry_at: earliest_end(&connection),
        concurrency,
        kept_back: 0,
        dismisses: false,
        leaving: None,
        post,
    };
    let exit = runner.work(inbox).await;
    runner.post.handle.slots.close(runner.post.shared.now());
    exit
}

impl Unordered {
    async fn work(&mut self, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
        loop {
            while let Ok(message) = inbox.try_recv() {
                self.hear(message);
            }
            let next = match self.step().await {
                Next::Exit(exit) => return exit,
                Next::Again => continue,
                next => next,
            };
            let shared = Arc::clone(&self.post.shared);
            tokio::select! {
                biased;
                message = inbox.recv() => match message {
                    Some(message) => self.hear(message),
                    None => return Exit::Stopped,
                },
                Some((id, ended)) = self.flights.next(), if !self.flights.is_empty() => self.attempt_ended(id, ended),
                asked = answer(&mut self.asking) => self.answered(asked),
                () = next.rest(&shared) => {}
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
                if let Some(settling) = self.settling.remove(&delivery_id) {
                    self.next_due = earlier(self.next_due, settling.due_at);
                    self.look |= settling.releases;
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
            ToRunner::Called => {
                self.look = true;
                self.dismisses |= self.is_held();
            }
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
        self.post.handle.slots.change(&self.post.shared, &connection, self.concurrency, after);
        self.concurrency = after;
        self.expiry_at = earliest_end(&connection);
        self.post.handle.slots.set_shut(connection.is_held() || self.interruptions);
        self.look = true;
        if connection.is_held() {
            self.dismiss_callers();
            self.dismisses = self.post.shared.options.other_workers;
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
        self.post.handle.slots.close(self.post.shared.now());
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
        if self.leaving.is_none() {
            self.write_held_up().await;
            if std::mem::take(&mut self.dismisses) {
                // Whoever is not told leaves in its time.
                let _ = self.post.shared.store.dismiss_awaited(self.post.queue_id(), None).await;
            }
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
        if self.claims_end_at.is_some_and(|at| at <= now) {
            self.claims_end_at = None;
            self.interruptions = true;
        }
        if self.interruptions {
            return self.note_interruptions(now).await;
        }
        if self.next_due.is_some_and(|due| due <= now) {
            self.look = true;
        }
        if !self.look {
            self.find_held_up(None, now);
            if self.next_due.is_none() && self.under_way.is_empty() && self.settling.is_empty() {
                self.post.handle.set_backlog(false);
            }
            let next = earlier(earlier(self.next_due, expiry_at), earlier(self.held_up.write_at(), self.claims_end_at));
            return next.map_or(Next::Event, Next::At);
        }
        if endpoints::refused(&self.post.shared, &connection).is_some() {
            self.find_held_up(None, now);
            self.look_for_refused(now);
            return Next::Again;
        }
        if !self.post.shared.lease.may_send() {
            return Next::In(self.post.shared.lease.pause_before_looking_again());
        }
        match self.take_slots(now) {
            Ok(slots) => {
                self.claim(slots, now);
                Next::Again
            }
            Err(deferral) => self.held_up_by(deferral, expiry_at, now),
        }
    }

    fn take_slots(&self, now: Timestamp) -> Result<u32, Deferral> {
        let slots = self.post.shared.options.window_deliveries_max.max(1);
        self.post.handle.slots.take(&self.post.shared, slots, now)
    }

    /// A deferral: nothing is claimed, no attempt is used and no ladder moves (R04).
    fn held_up_by(&mut self, deferral: Deferral, expiry_at: Option<Timestamp>, now: Timestamp) -> Next {
        self.find_held_up(Some(deferral), now);
        // Whoever waits for a slot of its project is woken, and looks by itself should that be missed.
        let look_at = match deferral.by {
            DeferredBy::ProjectConcurrency => Some(now + LOOK_FOR_SLOTS),
            _ => deferral.until,
        };
        let at = earlier(earlier(look_at, expiry_at), earlier(self.held_up.write_at(), self.claims_end_at));
        at.map_or(Next::Event, |at| Next::At(at.max(now + SHORTEST_WAIT)))
    }

    fn claim(&mut self, slots: u32, now: Timestamp) {
        let shared = Arc::clone(&self.post.shared);
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
        self.asking = Some(Box::pin(async move {
            let rows = shared.store.claim(lease, now, limit).await;
            let callers = match &rows {
                Ok(rows) => elsewhere::begun(&shared, rows).await,
                Err(_) => Vec::new(),
            };
            Asked::Claimed { slots, rows, callers }
        }));
    }

    fn answered(&mut self, asked: Asked) {
        match asked {
            Asked::Claimed { slots, rows: Ok(rows), callers } => {
                for (id, caller) in callers {
                    // A caller of this process is told here.
                    self.waiting.entry(id).or_insert(caller);
                }
                let unused = slots.saturating_sub(u32::try_from(rows.len()).unwrap_or(slots));
                let now = self.post.shared.now();
                self.post.handle.slots.give_back_unused(self.post.lease, unused, now);
                if unused > 0 {
                    self.find_held_up(None, now);
                }
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
            Asked::Claimed { slots, rows: Err(error), .. } => {
                self.post.handle.slots.give_back_unused(self.post.lease, slots, self.post.shared.now());
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
}

async fn answer(asking: &mut Option<BoxFuture<'static, Asked>>) -> Asked {
    let Some(question) = asking.as_mut() else { return std::future::pending().await };
    let asked = question.await;
    *asking = None;
    asked
}
