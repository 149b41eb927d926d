//! What the owner of an unordered queue does beside attempts: what a former owner left, operators' commands, what is too old.
//!
//! It must not know how slots are used.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use postrider_core::connection::Connection;
use postrider_core::decide::{Event, Snapshot, decide, leaves_at};
use postrider_core::deferral::Deferral;
use postrider_core::delivery::{Delivery, Progress, Status};
use postrider_core::id::DeliveryId;
use postrider_core::ordering::Line;
use postrider_core::{Timestamp, Wait};
use postrider_store::{Command, CommandAnswer, PAGE_ROWS_MAX, PageRequest, StoreError};

use super::{Asked, Next, Unordered};
use crate::attempt;
use crate::runner::commands::{Change, change};
use crate::runner::{Exit, earlier, given_up, refused};

/// Claims of former owners that are looked at in one go: an owner has no more than its `concurrency`.
const FORMER_CLAIMS_MAX: u32 = 4096;

/// What a look through a queue has found.
pub(super) struct Expiring {
    pub expired: Vec<Delivery>,
    /// Of those that wait in a line: who goes before them.
    pub behind: BTreeMap<DeliveryId, DeliveryId>,
    /// When the next of the others expires.
    pub next: Option<Timestamp>,
}

/// What a look through a queue whose endpoint is off has found.
#[derive(Default)]
pub(super) struct Refusing {
    pub due: Vec<Delivery>,
    /// When the next of the others is due.
    pub next: Option<Timestamp>,
}

impl Unordered {
    /// Whatever a former owner had claimed may have been sent (D04). What climbs a ladder is left to it until its claim has timed out, while
    /// the rest of the queue goes on (R01, D05).
    pub(super) async fn note_interruptions(&mut self, now: Timestamp) -> Next {
        if !self.settling.is_empty() {
            return Next::Event;
        }
        let shared = Arc::clone(&self.post.shared);
        match shared.store.claimed_by_former_owner(self.post.lease, FORMER_CLAIMS_MAX).await {
            Ok(rows) => {
                let Some(connection) = self.post.connection() else { return Next::Exit(Exit::Deleted) };
                let times_out = |delivery: &Delivery| claim_ends_at(delivery, shared.options.claim_timeout);
                let (open, over): (Vec<Delivery>, Vec<Delivery>) =
                    rows.into_iter().partition(|delivery| times_out(delivery).is_some_and(|at| at > now));
                let batch = shared.options.settle_batch_max.max(1);
                if over.len() <= batch {
                    self.interruptions = false;
                    self.claims_end_at = open.iter().filter_map(times_out).min();
                    self.post.handle.slots.set_shut(connection.is_held());
                }
                for delivery in over.iter().take(batch) {
                    self.interrupt(delivery, &connection);
                    // Nothing is claimed before these are written.
                    self.commanded.insert(delivery.id);
                }
            }
            Err(StoreError::LeaseLost) => self.lose(),
            Err(error) => self.rest(&error),
        }
        Next::Again
    }

    pub(super) fn interrupt(&mut self, delivery: &Delivery, policy_of: &Connection) {
        let shared = Arc::clone(&self.post.shared);
        let snapshot =
            Snapshot { progress: &delivery.progress, policy: &policy_of.spec.policy, ladder: delivery.ladder.as_ref() };
        let now = shared.now();
        let Ok(decision) = decide(Event::Interrupted, snapshot, now, shared.roll()) else { return };
        let began = delivery.progress.last_attempt_at.unwrap_or(now);
        let record = attempt::interrupted(delivery.progress.attempts, began, decision.progress.error.clone());
        self.hand_over(delivery, decision.progress, Some(record.into()), None, None, None);
    }

    /// Applies what can be applied now; what concerns an attempt under way waits for its end (D06).
    pub(super) async fn take_commands(&mut self) {
        let commands = match self.post.shared.store.commands(self.post.lease).await {
            Ok(commands) => commands,
            Err(StoreError::LeaseLost) => return self.lose(),
            Err(_) => return,
        };
        self.commands = false;
        self.handled.retain(|id| commands.iter().any(|command| command.id == *id));
        for command in commands {
            if self.handled.contains(&command.id) {
                continue;
            }
            if self.take_command(&command).await {
                self.handled.insert(command.id);
            } else {
                self.commands = true;
            }
        }
    }

    /// `false`: not now.
    async fn take_command(&mut self, command: &Command) -> bool {
        let id = command.delivery_id;
        if self.under_way.contains_key(&id) || self.settling.contains_key(&id) {
            return false;
        }
        let shared = Arc::clone(&self.post.shared);
        let (Some(connection), Ok(found)) = (self.post.connection(), shared.store.delivery(id).await) else {
            return false;
        };
        let Some(delivery) = found else {
            shared.settler.answer(self.post.lease, command.id, CommandAnswer::NotWaiting);
            return true;
        };
        match change(&shared, command, &delivery, &connection.spec.policy) {
            Change::Refuse(answer) => shared.settler.answer(self.post.lease, command.id, answer),
            Change::Write { progress, edited_body } => {
                self.look = true;
                self.commanded.insert(id);
                let caller = if progress.status.is_waiting() { None } else { self.waiting.remove(&id) };
                self.hand_over(&delivery, *progress, None, None, caller, Some((command.id, edited_body)));
            }
        }
        true
    }

    /// What holds up everything that is due; `None`: nothing does.
    pub(super) fn find_held_up(&mut self, deferral: Option<Deferral>, now: Timestamp) {
        self.post.find_held_up(&mut self.held_up, deferral, now);
    }

    pub(super) async fn write_held_up(&mut self) {
        self.post.write_held_up(&mut self.held_up).await;
    }

    /// Nothing may be sent, so what is due needs neither a slot nor a claim. What has been attempted comes by its time, behind what has not;
    /// so the walk ends at the first of it that is not due.
    pub(super) fn look_for_refused(&mut self, now: Timestamp) {
        let (store, queue_id) = (Arc::clone(&self.post.shared.store), self.post.queue_id());
        let rows_max = self.post.shared.options.settle_batch_max.max(1);
        let settling: BTreeSet<DeliveryId> = self.settling.keys().copied().collect();
        self.look = false;
        // What is settled from here on may not be in the answer: it is noted beside it.
        self.next_due = None;
        self.asking = Some(Box::pin(async move {
            let mut found = Refusing::default();
            let limit = u32::try_from(rows_max + settling.len()).unwrap_or(PAGE_ROWS_MAX).min(PAGE_ROWS_MAX);
            let mut page = PageRequest { limit, cursor: None };
            loop {
                let read = match store.queue(queue_id, page.clone()).await {
                    Ok(read) => read,
                    Err(error) => return Asked::Refusing(Err(error)),
                };
                let rows = read.items.into_iter().filter(|row| row.progress.status == Status::Pending);
                for row in rows.filter(|row| !settling.contains(&row.id)) {
                    let (tried, due_at) = (row.progress.attempts > 0, row.progress.due_at);
                    if due_at <= now {
                        found.due.push(row);
                    } else {
                        found.next = earlier(found.next, Some(due_at));
                    }
                    if found.due.len() >= rows_max || (tried && due_at > now) {
                        return Asked::Refusing(Ok(found));
                    }
                }
                page.cursor = read.next_cursor;
                if page.cursor.is_none() {
                    return Asked::Refusing(Ok(found));
                }
            }
        }));
    }

    /// What has come due ends as its endpoint or project says, in order (V05, D28); the rest waits for its time.
    pub(super) fn refuse(&mut self, found: Refusing) {
        let Some(connection) = self.post.connection() else { return };
        let shared = Arc::clone(&self.post.shared);
        self.next_due = earlier(self.next_due, found.next);
        // There may be more, and what may be sent again by now is claimed.
        self.look |= !found.due.is_empty();
        for delivery in found.due {
            let progress = &delivery.progress;
            let snapshot = Snapshot { progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
            let Some(decision) = refused(&shared, &connection, snapshot, shared.now()) else { continue };
            self.commanded.insert(delivery.id);
            let caller = self.take_caller(&delivery);
            self.hand_over(&delivery, decision.progress, None, None, caller, None);
        }
    }

    /// It waits: its time may come (Z17, R09).
    pub(super) fn note_expiry(&mut self, delivery: &Delivery, progress: &Progress) {
        let Some(connection) = self.post.connection().filter(|connection| gives_up(connection)) else { return };
        let at = Snapshot { progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
        self.expiry_at = earlier(self.expiry_at, leaves_at(at, connection.open_since()));
    }

    /// Something came back to this queue in the store. What is then due is judged when it is claimed; a cap can only end a whole cap later.
    pub(super) fn note_returned(&mut self) {
        let Some(connection) = self.post.connection() else { return };
        let policy = &connection.spec.policy;
        let at = match policy.expires_after {
            Some(_) => Some(Timestamp::default()),
            None => policy.age_cap.map(|cap| self.post.shared.now() + cap),
        };
        self.expiry_at = earlier(self.expiry_at, at);
    }

    /// Looks through all that waits, whether it is due or not and also while the queue is held (D22).
    pub(super) fn look_for_expired(&mut self, connection: Arc<Connection>, now: Timestamp) {
        let (store, queue_id) = (Arc::clone(&self.post.shared.store), self.post.queue_id());
        let rows_max = self.post.shared.options.settle_batch_max.max(1);
        self.expiry_at = None;
        self.asking = Some(Box::pin(async move {
            let mut found = Expiring { expired: Vec::new(), behind: BTreeMap::new(), next: None };
            // The foremost of each line is listed before those behind it.
            let mut foremost: BTreeMap<Line, DeliveryId> = BTreeMap::new();
            let mut page = PageRequest { limit: PAGE_ROWS_MAX, cursor: None };
            loop {
                let read = match store.queue(queue_id, page.clone()).await {
                    Ok(read) => read,
                    Err(error) => return Asked::Expiring(Err(error)),
                };
                for delivery in read.items {
                    let line = delivery.event.as_ref().and_then(|event| event.line);
                    let first = line.map(|line| *foremost.entry(line).or_insert(delivery.id));
                    if delivery.progress.status != Status::Pending {
                        continue;
                    }
                    let ladder = delivery.ladder.as_ref();
                    let at = Snapshot { progress: &delivery.progress, policy: &connection.spec.policy, ladder };
                    match leaves_at(at, connection.open_since()) {
                        Some(at) if at <= now && found.expired.len() < rows_max => {
                            if let Some(first) = first.filter(|first| *first != delivery.id) {
                                found.behind.insert(delivery.id, first);
                            }
                            found.expired.push(delivery);
                        }
                        at => found.next = earlier(found.next, at),
                    }
                }
                page.cursor = read.next_cursor;
                if page.cursor.is_none() {
                    return Asked::Expiring(Ok(found));
                }
            }
        }));
    }

    pub(super) fn expire(&mut self, expiring: Expiring) {
        self.expiry_at = earlier(self.expiry_at, expiring.next);
        let Some(connection) = self.post.connection() else { return };
        let shared = Arc::clone(&self.post.shared);
        for delivery in expiring.expired {
            if self.settling.contains_key(&delivery.id) {
                continue;
            }
            let progress = &delivery.progress;
            let snapshot = Snapshot { progress, policy: &connection.spec.policy, ladder: delivery.ladder.as_ref() };
            // The connection may have been changed since it was looked at.
            let behind = expiring.behind.get(&delivery.id).copied();
            if let Some(decision) = given_up(&shared, snapshot, connection.open_since(), shared.now(), behind) {
                self.commanded.insert(delivery.id);
                let caller = self.waiting.remove(&delivery.id);
                self.hand_over(&delivery, decision.progress, None, None, caller, None);
            }
        }
    }
}

/// When a claim of a dead worker is taken over. `None`: at once.
fn claim_ends_at(delivery: &Delivery, claim_timeout: Wait) -> Option<Timestamp> {
    delivery.ladder.as_ref()?;
    Some(delivery.progress.last_attempt_at? + claim_timeout)
}

/// Something that waits here may come to its end by its age.
pub(super) fn gives_up(connection: &Connection) -> bool {
    connection.spec.policy.expires_after.is_some() || connection.spec.policy.age_cap.is_some()
}

/// Nothing that waits here comes to its end by its age before this; only then is it worth looking through a whole queue.
pub(super) fn earliest_end(connection: &Connection) -> Option<Timestamp> {
    match connection.spec.policy.expires_after {
        Some(_) => Some(Timestamp::default()),
        None => Some(connection.open_since()? + connection.spec.policy.age_cap?),
    }
}
