//! What the owner of an ordered queue does beside attempts: what a former owner left, and operators' commands.
//!
//! It must not know when attempts begin.

use std::collections::BTreeSet;
use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::decide::{Event, Snapshot, decide};
use postrider_core::delivery::{Delivery, Position, Progress, Status};
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::log;
use postrider_core::outcome::Outcome;
use postrider_store::{Command, CommandAnswer, Guard, NewBody, Placement, Settlement, StoreError};

use super::attempts::nothing_came;
use super::{Fifo, Next};
use crate::attempt;
use crate::notifier::Caller;
use crate::runner::STORE_PAUSE;
use crate::runner::commands::{Change, change};

/// One look at the commands that wait.
struct Taking {
    /// When it began, every decision made before was written.
    all_written: bool,
    /// What it has decided itself since.
    decided: BTreeSet<DeliveryId>,
}

impl Fifo {
    /// What a former owner had claimed while the queue was unordered may have been sent, wherever it stands (D04). `true`: there was such.
    pub(super) async fn settle_former_claims(&mut self) -> bool {
        let shared = Arc::clone(&self.post.shared);
        let rows_max = u32::try_from(shared.options.settle_batch_max.max(1)).unwrap_or(u32::MAX);
        let mut any = false;
        while self.leaving.is_none() {
            let written = match shared.store.claimed_by_former_owner(self.post.lease, rows_max).await {
                Ok(rows) if rows.is_empty() => break,
                Ok(rows) => {
                    let Some(connection) = self.post.connection() else { break };
                    any = true;
                    let batch: Vec<Settlement> =
                        rows.iter().filter_map(|delivery| self.interrupted(delivery, &connection)).collect();
                    let is_dead = |one: &&Settlement| one.progress.status == Status::Dlq;
                    let dead: Vec<DeliveryId> = batch.iter().filter(is_dead).map(|one| one.delivery_id).collect();
                    shared.store.settle(batch).await.map(|_| dead)
                }
                Err(error) => Err(error),
            };
            match written {
                Ok(dead) => dead.into_iter().for_each(|id| shared.dead_lettered(self.post.queue_id(), id)),
                Err(StoreError::LeaseLost) => self.lose(),
                Err(error) => {
                    tracing::warn!(event = log::QUEUE_NOT_IN_ORDER, %error, queue = %self.post.queue_id(), "a queue just taken cannot be put in order yet");
                    tokio::time::sleep(STORE_PAUSE.as_duration()).await;
                }
            }
        }
        any
    }

    /// Nothing else is under way yet, so it is written here and not by the settler.
    fn interrupted(&self, delivery: &Delivery, connection: &Connection) -> Option<Settlement> {
        let shared = &self.post.shared;
        let progress = &delivery.progress;
        let snapshot = Snapshot { progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
        let now = shared.now();
        let decision = decide(Event::Interrupted, snapshot, now, shared.roll()).ok()?;
        let began = progress.last_attempt_at.unwrap_or(now);
        let record = attempt::interrupted(progress.attempts, began, decision.progress.error.clone());
        Some(Settlement {
            delivery_id: delivery.id,
            queue_id: self.post.queue_id(),
            guard: Guard::Lease(self.post.lease),
            progress: decision.progress,
            placement: Placement::Keep,
            attempt: Some(record),
            forward: None,
            edited_body: None,
            answers: None,
            health: None,
            reply: None,
        })
    }

    /// The head, and only it, may have been in flight when the former owner ended (D04).
    pub(super) async fn note_interruption(&mut self, own_from: Option<Position>) {
        while self.window.is_empty() && self.window.may_go_on() && self.leaving.is_none() {
            if let Next::At(until) = self.load().await {
                self.post.shared.sleep_until(until).await;
            }
        }
        let now = self.post.shared.now();
        let Some(connection) = self.post.connection() else { return };
        let Some(head) = self.window.head_mut() else { return };
        let is_own = own_from.zip(head.delivery.position).is_some_and(|(own, position)| position >= own);
        // A held queue sends nothing, so its head does not pay for a restart (Z16).
        if is_own || head.delivery.progress.due_at > now || connection.is_held() {
            return;
        }
        let begun = head.delivery.progress.clone().begun(now);
        let snapshot =
            Snapshot { progress: &begun, policy: &connection.spec.policy, ladder: head.delivery.ladder.as_ref() };
        let Ok(decision) = decide(Event::Interrupted, snapshot, now, self.post.shared.roll()) else { return };
        let record = attempt::interrupted(begun.attempts, now, decision.progress.error.clone());
        self.apply_to_head(decision, Some(record.into()), None);
    }

    /// Whether the head's caller, who is in another process, is to be asked before its attempt begins.
    pub(super) fn is_to_ask(&self) -> bool {
        self.window.head().and_then(|head| head.caller.as_ref()).is_some_and(Caller::is_to_be_asked)
    }

    /// Callers in other processes: those whose turn does not come are told so, and the head's says whether it still waits (D10, D11).
    pub(super) async fn look_after_callers_elsewhere(&mut self) {
        let shared = Arc::clone(&self.post.shared);
        if std::mem::take(&mut self.dismisses) {
            let behind = self.window.last_with_a_caller(self.flight.is_some());
            // Whoever is not told leaves in its time.
            let _ = shared.store.dismiss_awaited(self.post.queue_id(), behind).await;
        }
        if !std::mem::take(&mut self.asks) || !self.is_to_ask() {
            return;
        }
        let Some(head) = self.window.head_mut() else { return };
        let is_there = shared.store.begin_awaited(head.id()).await.unwrap_or(false);
        match &mut head.caller {
            Some(caller) if is_there => caller.is_asked(),
            caller => *caller = None,
        }
    }

    /// Applies what can be applied now; what concerns the attempt under way waits for its end (D06).
    pub(super) async fn take_commands(&mut self) {
        let commands = match self.post.shared.store.commands(self.post.lease).await {
            Ok(commands) => commands,
            Err(StoreError::LeaseLost) => return self.lose(),
            // Asked again with the next thing that happens.
            Err(_) => return,
        };
        self.commands = false;
        self.handled.retain(|id| commands.iter().any(|command| command.id == *id));
        // Many at once, as jobs ask for them, need one wait for what is being written, not one each.
        let mut taking = Taking { all_written: self.unsettled == 0, decided: BTreeSet::new() };
        for command in commands {
            if !self.handled.contains(&command.id) && self.take_command(&command, &mut taking).await {
                self.handled.insert(command.id);
            }
        }
    }

    /// `false`: not now.
    async fn take_command(&mut self, command: &Command, taking: &mut Taking) -> bool {
        let id = command.delivery_id;
        let is_head = self.window.head().is_some_and(|head| head.id() == id);
        if is_head && self.flight.is_some() {
            self.commands = true;
            return false;
        }
        let shared = Arc::clone(&self.post.shared);
        let Some(connection) = self.post.connection() else { return false };
        if let Some(entry) = self.window.find_mut(id) {
            match change(&shared, command, &entry.delivery, &connection.spec.policy) {
                Change::Refuse(answer) => shared.settler.answer(self.post.lease, command.id, answer),
                Change::Write { progress, edited_body } => {
                    taking.decided.insert(id);
                    self.write_command(command.id, id, *progress, edited_body);
                }
            }
            return true;
        }
        // It may be one of those decided and not yet written: what the store says now would be old.
        if !taking.all_written || taking.decided.contains(&id) {
            self.commands = true;
            self.barrier = true;
            return false;
        }
        let Ok(found) = shared.store.delivery(id).await else {
            self.commands = true;
            return false;
        };
        let position = found.as_ref().and_then(|delivery| delivery.position);
        let change = found.map_or(Change::Refuse(CommandAnswer::NotWaiting), |delivery| {
            change(&shared, command, &delivery, &connection.spec.policy)
        });
        match change {
            Change::Refuse(answer) => shared.settler.answer(self.post.lease, command.id, answer),
            Change::Write { progress, edited_body } => {
                taking.decided.insert(id);
                if let Some(position) = position {
                    self.window.changed_unseen(id, position);
                }
                self.hand_over(id, *progress, None, edited_body, Some(command.id), None);
                self.barrier = true;
            }
        }
        true
    }

    fn write_command(&mut self, command: CommandId, id: DeliveryId, progress: Progress, edited_body: Option<NewBody>) {
        let mut caller = None;
        if let Some(entry) = self.window.find_mut(id) {
            if let Some(body) = &edited_body {
                entry.body = body.bytes.clone();
            }
            if progress.status.is_waiting() {
                entry.delivery.progress = progress.clone();
            } else {
                let cid = entry.delivery.cid.clone();
                let outcome = Outcome::after_attempt(id, cid, &progress, nothing_came());
                caller = entry.caller.take().map(|caller| (caller, outcome));
                self.window.remove(id);
            }
        }
        self.hand_over(id, progress, None, edited_body, Some(command), caller);
        self.barrier = true;
    }
}
