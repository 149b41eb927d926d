//! The runner of an ordered queue: one attempt at a time, the head always, the next one as soon as the head has succeeded (D03).
//!
//! It must not know other queues, nor decide anything that the core decides.

mod attempts;
mod duties;

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::decide::{Event, Gate, Snapshot, before_attempt, decide, leaves_at};
use postrider_core::deferral::DeferredBy;
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::log;
use postrider_store::{Settled, StoreError, WindowLimit};
use tokio::sync::mpsc;

use super::held_up::HeldUp;
use super::next::Next;
use super::window::Window;
use super::{Exit, LOOK_FOR_SLOTS, Post, SHORTEST_WAIT, STORE_PAUSE, ToRunner, earlier, refused};
use crate::attempt::{self, Ended};
use crate::dispatcher;
use crate::elsewhere;
use crate::endpoints;

struct Fifo {
    post: Post,
    window: Window,
    /// The head's attempt under way.
    flight: Option<BoxFuture<'static, Ended>>,
    /// Decisions handed over and not yet written.
    unsettled: u32,
    /// Nothing begins before all of them are written: the last one was no success (D03).
    barrier: bool,
    /// What it was set for were refusals only: further ones need not wait, an attempt does.
    refusing: bool,
    /// Whose policy the head's current round follows (Z15).
    round: Option<(DeliveryId, Arc<Connection>)>,
    /// Of the endpoint, when the head's attempt began.
    epoch: u32,
    /// Operators' commands may wait in the store.
    commands: bool,
    /// Commands handled and perhaps not yet answered in the store, which would name them again.
    handled: BTreeSet<CommandId>,
    /// Ends once nothing is under way.
    leaving: Option<Exit>,
    /// What a limit or the endpoint's breaker holds up (R04).
    held_up: HeldUp,
    /// The attempt under way shows whether the endpoint is back.
    is_probe: bool,
    /// The head's caller is in another process, and is to be asked whether it still waits.
    asks: bool,
    /// Callers in other processes are not to wait any longer behind what has one (D10).
    dismisses: bool,
    /// The store did not answer: not asked again before this time.
    rest_until: Option<Timestamp>,
}

/// Runs until told to stop, or until the queue is somebody else's.
pub(crate) async fn run(post: Post, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
    let Some(connection) = post.connection() else { return Exit::Deleted };
    // One attempt at a time, and never one of intake's.
    post.handle.slots.open(&post.shared, &connection, post.handle.inbox(), post.lease, 1, true);
    let options = &post.shared.options;
    let limit = WindowLimit { deliveries_max: options.window_deliveries_max, bytes_max: options.window_bytes_max };
    let mut fifo = Fifo {
        window: Window::unknown(limit),
        flight: None,
        unsettled: 0,
        barrier: false,
        refusing: false,
        round: None,
        epoch: 0,
        commands: post.has_commands,
        handled: BTreeSet::new(),
        leaving: None,
        held_up: HeldUp::default(),
        is_probe: false,
        asks: false,
        dismisses: false,
        rest_until: None,
        post,
    };
    let exit = fifo.live(inbox).await;
    fifo.post.handle.slots.close(fifo.post.shared.now());
    exit
}

impl Fifo {
    async fn live(&mut self, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
        self.post.read_endpoint().await;
        // What this process has just stored cannot have been in flight with a former owner.
        let mut own_from = None;
        while let Ok(message) = inbox.try_recv() {
            if let ToRunner::Fresh { loaded, .. } = &message {
                own_from = own_from.or(loaded.delivery.position);
            }
            self.hear(message);
        }
        let interrupted = self.post.has_claims && self.settle_former_claims().await;
        if self.post.taken_over && !interrupted {
            self.note_interruption(own_from).await;
        }
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
                ended = landing(&mut self.flight) => self.attempt_ended(ended),
                () = next.rest(&shared) => {}
            }
        }
    }
}

async fn landing(flight: &mut Option<BoxFuture<'static, Ended>>) -> Ended {
    let Some(under_way) = flight.as_mut() else { return std::future::pending().await };
    let ended = under_way.await;
    *flight = None;
    ended
}

impl Fifo {
    fn hear(&mut self, message: ToRunner) {
        match message {
            ToRunner::Fresh { loaded, ahead, held_under } => {
                // Stored under another lease or none, it may have been changed by somebody else since.
                let is_as_stored = held_under == Some(self.post.lease.token);
                self.window.fresh(*loaded, ahead, is_as_stored, &self.post.shared.notifier);
                if self.is_held() || self.leaving.is_some() {
                    self.dismiss_waiting();
                }
            }
            // Claimed by intake when the queue was still unordered: it is PROCESSING in the store and comes back with the window.
            ToRunner::Claimed(_) => self.window.note_beyond(),
            ToRunner::Settled { life, settled, .. } if life == self.post.life => {
                self.unsettled = self.unsettled.saturating_sub(1);
                if settled == Settled::Stale {
                    self.lose();
                }
            }
            ToRunner::Settled { .. } => {}
            ToRunner::Taken(taken) => {
                dispatcher::release(&self.post.shared, taken);
                self.lose();
            }
            ToRunner::Wake => self.window.note_beyond(),
            ToRunner::Commands => self.commands = true,
            ToRunner::Called => {
                self.window.note_beyond();
                self.dismisses |= !self.window.only_calls();
            }
            ToRunner::ConnectionChanged => self.connection_changed(),
            ToRunner::LeaseLost => self.lose(),
            ToRunner::Stop => self.leave(Exit::Stopped),
            ToRunner::GiveBack => self.leave(Exit::GivenBack),
            ToRunner::Abort => self.abort(),
        }
    }

    fn connection_changed(&mut self) {
        match self.post.connection() {
            None => self.leave(Exit::Deleted),
            Some(connection) if !connection.spec.policy.queue.ordered => self.leave(Exit::OrderChanged),
            Some(connection) => {
                self.post.handle.slots.change(&self.post.shared, &connection, 1, 1);
                if connection.is_held() {
                    self.dismiss_waiting();
                }
            }
        }
    }

    fn leave(&mut self, exit: Exit) {
        self.leaving = self.leaving.or(Some(exit));
        self.dismiss_waiting();
    }

    /// Those whose turn has not come wait no longer; the one under way is still answered.
    fn dismiss_waiting(&mut self) {
        let head = if self.flight.is_some() { self.window.head_mut() } else { None };
        let under_way = head.and_then(|head| head.caller.take());
        self.window.dismiss_callers(&self.post.shared.notifier);
        // Whoever has the queue next looks for itself.
        self.dismisses |= self.post.shared.options.other_workers && self.leaving.is_none();
        if let Some(head) = self.window.head_mut() {
            head.caller = under_way;
        }
    }

    /// What is under way may reach the remote system, but its outcome is no longer ours to write.
    fn lose(&mut self) {
        self.leaving = Some(Exit::Lost);
        self.post.handle.slots.close(self.post.shared.now());
        self.flight = None;
        self.dismiss_waiting();
    }

    fn abort(&mut self) {
        self.leave(Exit::Stopped);
        if self.flight.take().is_none() {
            return;
        }
        let Some(head) = self.window.head() else { return };
        let connection = self.round.as_ref().map(|(_, connection)| Arc::clone(connection));
        let Some(connection) = connection.or_else(|| self.post.connection()) else { return };
        let snapshot = Snapshot {
            progress: &head.delivery.progress,
            policy: &connection.spec.policy,
            ladder: head.delivery.ladder.as_ref(),
        };
        let now = self.post.shared.now();
        if let Ok(decision) = decide(Event::Interrupted, snapshot, now, self.post.shared.roll()) {
            let progress = &head.delivery.progress;
            let began = progress.last_attempt_at.unwrap_or(now);
            let record = attempt::interrupted(progress.attempts, began, decision.progress.error.clone());
            self.apply_to_head(decision, Some(record.into()), None);
        }
    }

    fn is_held(&self) -> bool {
        self.post.connection().is_none_or(|connection| connection.is_held())
    }

    /// Does the next thing that can be done now.
    async fn step(&mut self) -> Next {
        if self.commands && self.leaving.is_none() {
            self.take_commands().await;
        }
        if self.leaving.is_none() {
            self.post.write_held_up(&mut self.held_up).await;
            self.look_after_callers_elsewhere().await;
        }
        if self.flight.is_some() {
            return Next::Event;
        }
        if let Some(exit) = self.leaving {
            return if self.unsettled == 0 { Next::Exit(exit) } else { Next::Event };
        }
        let Some(connection) = self.post.connection() else { return Next::Exit(Exit::Deleted) };
        if self.barrier {
            let goes_on = self.refusing && endpoints::refused(&self.post.shared, &connection).is_some();
            if self.unsettled > 0 && !goes_on {
                return Next::Event;
            }
            self.barrier = self.unsettled > 0;
        }
        if self.unsettled > connection.spec.policy.queue.settle_ahead_max {
            return Next::Event;
        }
        if self.window.is_empty() {
            if !self.window.may_go_on() {
                if self.unsettled == 0 {
                    self.post.handle.set_backlog(false);
                }
                return Next::Event;
            }
            return self.load().await;
        }
        self.post.handle.set_backlog(true);
        self.begin_or_wait(&connection)
    }

    async fn load(&mut self) -> Next {
        let now = self.post.shared.now();
        if let Some(until) = self.rest_until.filter(|until| *until > now) {
            return Next::At(until);
        }
        match self.post.shared.store.load(self.post.lease, self.window.last(), self.window.limit()).await {
            Ok(rows) => {
                let elsewhere = elsewhere::callers_of(&self.post.shared, &rows).await;
                let any = !elsewhere.is_empty();
                self.window.loaded(rows, &elsewhere, &self.post.shared.notifier);
                self.dismisses |= any && !self.window.only_calls();
                if self.is_held() {
                    self.dismiss_waiting();
                }
            }
            Err(StoreError::LeaseLost) => self.lose(),
            Err(error) => {
                tracing::warn!(event = log::QUEUE_UNREADABLE, %error, queue = %self.post.queue_id(), "a queue cannot be read yet");
                self.rest_until = Some(now + STORE_PAUSE);
            }
        }
        Next::Again
    }

    /// Gives the head its attempt if its time has come; takes out what has expired or is too old, wherever it waits (Z17, R09).
    fn begin_or_wait(&mut self, live: &Arc<Connection>) -> Next {
        let now = self.post.shared.now();
        let behind_leaves = match self.first_to_leave_behind_the_head(live) {
            Some((time, id)) if time <= now => {
                self.give_up(id, live);
                return Next::Again;
            }
            first => first.map(|(time, _)| time),
        };
        let Some(head) = self.window.head() else { return Next::Again };
        let ladder = head.delivery.ladder.as_ref();
        let policy_of = self.round_policy(live);
        let progress = &head.delivery.progress;
        let snapshot = Snapshot { progress, policy: &policy_of.spec.policy, ladder };
        match before_attempt(snapshot, live.open_since(), now) {
            Gate::Expired | Gate::TooOld => {
                let id = head.id();
                self.give_up(id, &policy_of);
                Next::Again
            }
            Gate::WaitUntil(time) => match earlier(Some(time), behind_leaves) {
                Some(time) if time < Timestamp::FAR_FUTURE => Next::At(time),
                _ => Next::Event,
            },
            Gate::Attempt if !self.post.shared.lease.may_send() => {
                Next::In(self.post.shared.lease.pause_before_looking_again())
            }
            Gate::Attempt if self.is_to_ask() => {
                self.asks = true;
                Next::Again
            }
            Gate::Attempt => match refused(&self.post.shared, live, snapshot, now) {
                Some(decision) => {
                    let refusals_only = !self.barrier || self.refusing;
                    self.apply_to_head(decision, None, None);
                    self.refusing = refusals_only;
                    Next::Again
                }
                None if self.barrier => Next::Event,
                None => self.begin_unless_held_up(live, policy_of, behind_leaves, now),
            },
        }
    }

    /// A deferral: nothing is sent, no attempt is used and no ladder moves (R04).
    fn begin_unless_held_up(
        &mut self,
        live: &Arc<Connection>,
        policy_of: Arc<Connection>,
        behind_leaves: Option<Timestamp>,
        now: Timestamp,
    ) -> Next {
        match self.post.handle.slots.take(&self.post.shared, 1, now) {
            Ok(_) => {
                self.post.find_held_up(&mut self.held_up, None, now);
                self.begin(live, policy_of, now);
                self.held_up.write_at().map_or(Next::Event, Next::At)
            }
            Err(deferral) => {
                self.post.find_held_up(&mut self.held_up, Some(deferral), now);
                let look_at = match deferral.by {
                    DeferredBy::ProjectConcurrency => Some(now + LOOK_FOR_SLOTS),
                    _ => deferral.until,
                };
                let at = earlier(earlier(look_at, behind_leaves), self.held_up.write_at());
                at.map_or(Next::Event, |at| Next::At(at.max(now + SHORTEST_WAIT)))
            }
        }
    }

    /// Of those in the window that wait behind the head, the one whose expiry or age cap comes first.
    fn first_to_leave_behind_the_head(&self, live: &Connection) -> Option<(Timestamp, DeliveryId)> {
        let policy = &live.spec.policy;
        if policy.expires_after.is_none() && policy.age_cap.is_none() {
            return None;
        }
        let open_since = live.open_since();
        let leaving = self.window.iter().skip(1).filter_map(|entry| {
            let delivery = &entry.delivery;
            let at = Snapshot { progress: &delivery.progress, policy, ladder: delivery.ladder.as_ref() };
            leaves_at(at, open_since).map(|time| (time, entry.id()))
        });
        leaving.min()
    }

    /// The policy of the head's round: read when the round begins (Z15); with a ladder always live, since only the ladder is copied (D21).
    fn round_policy(&self, live: &Arc<Connection>) -> Arc<Connection> {
        let Some(head) = self.window.head() else { return Arc::clone(live) };
        match &self.round {
            Some((id, connection))
                if *id == head.id() && head.delivery.progress.round_attempts > 0 && head.delivery.ladder.is_none() =>
            {
                Arc::clone(connection)
            }
            _ => Arc::clone(live),
        }
    }
}
