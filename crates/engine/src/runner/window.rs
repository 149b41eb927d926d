//! The part of an ordered queue that its owner holds in memory: from the head on, without gaps.
//!
//! It must not know how deliveries are attempted or settled.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use postrider_core::delivery::{Delivery, Origin, Position, Status};
use postrider_core::id::DeliveryId;
use postrider_core::message::RequestHead;
use postrider_store::{Loaded, WindowLimit};

use super::not_begun;
use crate::notifier::{Caller, Notifier};

/// Calls whose callers wait may exceed the window's limits this many times: they are in memory anyway.
const ROOM_FOR_CALLS: u32 = 16;

pub(crate) struct Entry {
    pub delivery: Delivery,
    /// Taken out of `delivery`, to be shared with the sender.
    pub head: Arc<RequestHead>,
    pub body: Bytes,
    pub caller: Option<Caller>,
    /// A direct call that has not failed: those behind it may still wait for their own turn (D10).
    pub is_call: bool,
}

pub(crate) struct Window {
    entries: VecDeque<Entry>,
    bytes: u64,
    limit: WindowLimit,
    /// The last position that was ever in this window.
    last: Option<Position>,
    /// The queue may go on behind `last`.
    beyond: bool,
    /// Calls behind `last` whose callers wait to see what is ahead of them.
    unplaced: VecDeque<(Position, DeliveryId)>,
    /// The highest position that intake has told of.
    told: Option<Position>,
    /// Behind it, and changed by a command before intake told of them: what intake will bring is old.
    changed_unseen: BTreeSet<DeliveryId>,
}

impl Entry {
    fn new(loaded: Loaded) -> Self {
        let Loaded { mut delivery, body } = loaded;
        let head = Arc::new(std::mem::take(&mut delivery.head));
        Entry { delivery, head, body, caller: None, is_call: false }
    }

    pub fn id(&self) -> DeliveryId {
        self.delivery.id
    }
}

impl Window {
    /// Of a queue just taken: nobody knows yet what is in it.
    pub fn unknown(limit: WindowLimit) -> Self {
        Window {
            entries: VecDeque::new(),
            bytes: 0,
            limit,
            last: None,
            beyond: true,
            unplaced: VecDeque::new(),
            told: None,
            changed_unseen: BTreeSet::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn may_go_on(&self) -> bool {
        self.beyond
    }

    pub fn last(&self) -> Option<Position> {
        self.last
    }

    pub fn limit(&self) -> WindowLimit {
        self.limit
    }

    pub fn head(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub fn head_mut(&mut self) -> Option<&mut Entry> {
        self.entries.front_mut()
    }

    pub fn pop_head(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes = self.bytes.saturating_sub(entry.delivery.body_bytes);
        Some(entry)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    pub fn find_mut(&mut self, id: DeliveryId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.id() == id)
    }

    pub fn remove(&mut self, id: DeliveryId) -> Option<Entry> {
        let index = self.entries.iter().position(|entry| entry.id() == id)?;
        let entry = self.entries.remove(index)?;
        self.bytes = self.bytes.saturating_sub(entry.delivery.body_bytes);
        Some(entry)
    }

    /// Something was put at the tail by others.
    pub fn note_beyond(&mut self) {
        self.beyond = true;
    }

    /// Takes in what the store gave; nothing means that the end is reached. `elsewhere`: those of them that another process waits for.
    pub fn loaded(&mut self, rows: Vec<Loaded>, elsewhere: &BTreeSet<DeliveryId>, notifier: &Notifier) {
        if rows.is_empty() {
            self.beyond = false;
        }
        for row in rows {
            let caller = elsewhere
                .contains(&row.delivery.id)
                .then(|| Caller::elsewhere(row.delivery.id, row.delivery.cid.clone()));
            self.push(row, caller, notifier);
        }
        while self.unplaced.front().is_some_and(|(position, _)| self.last.is_some_and(|last| *position <= last)) {
            self.unplaced.pop_front();
        }
        if !self.only_calls() {
            self.dismiss_unplaced(notifier);
        }
    }

    /// A command has changed this one, which is in the store and not in the window.
    pub fn changed_unseen(&mut self, id: DeliveryId, position: Position) {
        // Intake tells of a queue's positions in their order, so of what lies before the highest one it will not tell again.
        if self.told.is_none_or(|told| told < position) {
            self.changed_unseen.insert(id);
        }
    }

    /// Takes in what this process has just stored, if it is the very next one, still as it was stored, and there is room. If not, it is
    /// read back later.
    pub fn fresh(&mut self, loaded: Loaded, ahead: u64, is_as_stored: bool, notifier: &Notifier) {
        let Some(position) = loaded.delivery.position else { return };
        self.told = self.told.max(Some(position));
        let is_as_stored = !self.changed_unseen.remove(&loaded.delivery.id) && is_as_stored;
        if self.last.is_some_and(|last| position <= last) {
            return;
        }
        let follows = self.last.is_some_and(|last| position.0 == last.0 + 1);
        let is_first = self.entries.is_empty() && !self.beyond && ahead == 0;
        let is_call = loaded.delivery.origin == Origin::Call && self.only_calls();
        let times = if is_call { ROOM_FOR_CALLS } else { 1 };
        if is_as_stored && (follows || is_first) && self.has_room(loaded.delivery.body_bytes, times) {
            self.push(loaded, None, notifier);
            return;
        }
        self.beyond = true;
        let room = self.limit.deliveries_max.saturating_mul(ROOM_FOR_CALLS) as usize;
        if is_call && self.unplaced.len() < room {
            self.unplaced.push_back((position, loaded.delivery.id));
        } else if let Some(caller) = notifier.caller_of(loaded.delivery.id) {
            caller.tell_queued();
        }
    }

    /// One ahead failed, or nothing is sent for now: nobody waits for a turn any more (D10).
    pub fn dismiss_callers(&mut self, notifier: &Notifier) {
        for entry in &mut self.entries {
            entry.is_call = false;
            if let Some(caller) = entry.caller.take() {
                caller.tell_queued();
            }
        }
        self.dismiss_unplaced(notifier);
    }

    fn dismiss_unplaced(&mut self, notifier: &Notifier) {
        for (_, id) in self.unplaced.drain(..) {
            if let Some(caller) = notifier.caller_of(id) {
                caller.tell_queued();
            }
        }
    }

    fn push(&mut self, loaded: Loaded, elsewhere: Option<Caller>, notifier: &Notifier) {
        let mut entry = Entry::new(loaded);
        if entry.delivery.progress.status == Status::Processing {
            // Claimed while the queue was unordered, and never sent by this owner.
            entry.delivery.progress = not_begun(&entry.delivery.progress);
        }
        if entry.delivery.origin == Origin::Call && entry.delivery.progress.attempts == 0 {
            match notifier.caller_of(entry.id()).or(elsewhere) {
                Some(caller) if self.only_calls() => {
                    entry.caller = Some(caller);
                    entry.is_call = true;
                }
                Some(caller) => caller.tell_queued(),
                None => {}
            }
        }
        self.bytes += entry.delivery.body_bytes;
        self.last = entry.delivery.position.or(self.last);
        self.entries.push_back(entry);
    }

    /// Behind what position nobody waits for a turn any more. A head that has been attempted is answered with its decision.
    pub fn last_with_a_caller(&self, is_head_under_way: bool) -> Option<Position> {
        let Some(head) = self.head() else { return self.last };
        let last = self.entries.iter().rev().find(|entry| entry.caller.is_some());
        match last {
            Some(entry) => entry.delivery.position,
            None if is_head_under_way || head.delivery.progress.attempts > 0 => head.delivery.position,
            None => head.delivery.position.map(|position| Position(position.0 - 1)),
        }
    }

    /// Whoever comes behind all of these may wait for its turn (D10).
    pub fn only_calls(&self) -> bool {
        // Callers are only ever attached behind calls, so the last entry speaks for all.
        self.entries.back().is_none_or(|entry| entry.is_call)
    }

    fn has_room(&self, body_bytes: u64, times: u32) -> bool {
        self.entries.is_empty()
            || (self.entries.len() < (self.limit.deliveries_max.saturating_mul(times)) as usize
                && self.bytes + body_bytes <= self.limit.bytes_max.saturating_mul(u64::from(times)))
    }
}

#[cfg(test)]
mod tests {
    use postrider_core::Timestamp;
    use postrider_core::delivery::Progress;
    use postrider_core::id::{BodyId, Cid, ConnectionId, ProjectId};

    use super::*;

    fn stored(position: i64) -> Loaded {
        let now = Timestamp::from_millis(0);
        let delivery = Delivery {
            id: DeliveryId::from_u128(u128::from(position.unsigned_abs())),
            project_id: ProjectId::from_u128(1),
            connection_id: ConnectionId::from_u128(1),
            cid: Cid::new(now, 7),
            origin: Origin::Publish,
            created_at: now,
            head: RequestHead::default(),
            body_id: BodyId::from_u128(1),
            body_bytes: 1,
            original_body_id: None,
            event: None,
            ladder: None,
            position: Some(Position(position)),
            version: 0,
            progress: Progress::accepted(now),
        };
        Loaded { delivery, body: Bytes::from_static(b"x") }
    }

    /// Of an empty queue whose end is known.
    fn known() -> (Window, Notifier) {
        let notifier = Notifier::default();
        let mut window = Window::unknown(WindowLimit { deliveries_max: 10, bytes_max: 1000 });
        window.loaded(Vec::new(), &BTreeSet::new(), &notifier);
        (window, notifier)
    }

    // proves: D06 (a discard or an edit that is applied before intake tells of the request is not undone by it)
    #[test]
    fn d06_what_a_command_changed_first_is_read_back_from_the_store() {
        let (mut window, notifier) = known();
        window.changed_unseen(DeliveryId::from_u128(1), Position(1));
        window.fresh(stored(1), 0, true, &notifier);
        assert!(window.is_empty() && window.may_go_on());
        // The next one is no head before the store was asked.
        window.fresh(stored(2), 0, true, &notifier);
        assert!(window.is_empty() && window.may_go_on());
        window.loaded(vec![stored(2)], &BTreeSet::new(), &notifier);
        window.fresh(stored(3), 1, true, &notifier);
        assert_eq!(
            window.iter().filter_map(|entry| entry.delivery.position).collect::<Vec<_>>(),
            [Position(2), Position(3)]
        );
        // Of what was told already nothing is kept.
        window.changed_unseen(DeliveryId::from_u128(3), Position(3));
        assert!(window.changed_unseen.is_empty());
    }

    // proves: D06 (what was stored while nobody or another held the queue may have been changed since)
    #[test]
    fn d06_what_was_stored_under_another_lease_is_read_back_from_the_store() {
        let (mut window, notifier) = known();
        window.fresh(stored(1), 0, false, &notifier);
        assert!(window.is_empty() && window.may_go_on());
        let (mut window, notifier) = known();
        window.fresh(stored(1), 0, true, &notifier);
        assert_eq!(window.head().map(Entry::id), Some(DeliveryId::from_u128(1)));
    }
}
