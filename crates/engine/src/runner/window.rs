//! The part of an ordered queue that its owner holds in memory: from the head on, without gaps.
//!
//! It must not know how deliveries are attempted or settled.

use std::collections::VecDeque;
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
        Window { entries: VecDeque::new(), bytes: 0, limit, last: None, beyond: true, unplaced: VecDeque::new() }
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

    /// Takes in what the store gave; nothing means that the end is reached.
    pub fn loaded(&mut self, rows: Vec<Loaded>, notifier: &Notifier) {
        if rows.is_empty() {
            self.beyond = false;
        }
        for row in rows {
            self.push(row, notifier);
        }
        while self.unplaced.front().is_some_and(|(position, _)| self.last.is_some_and(|last| *position <= last)) {
            self.unplaced.pop_front();
        }
        if !self.only_calls() {
            self.dismiss_unplaced(notifier);
        }
    }

    /// Takes in what this process has just stored, if it is the very next one and there is room. If not, it is read back later.
    pub fn fresh(&mut self, loaded: Loaded, ahead: u64, notifier: &Notifier) {
        let Some(position) = loaded.delivery.position else { return };
        if self.last.is_some_and(|last| position <= last) {
            return;
        }
        let follows = self.last.is_some_and(|last| position.0 == last.0 + 1);
        let is_first = self.entries.is_empty() && !self.beyond && ahead == 0;
        let is_call = loaded.delivery.origin == Origin::Call && self.only_calls();
        let times = if is_call { ROOM_FOR_CALLS } else { 1 };
        if (follows || is_first) && self.has_room(loaded.delivery.body_bytes, times) {
            self.push(loaded, notifier);
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

    fn push(&mut self, loaded: Loaded, notifier: &Notifier) {
        let mut entry = Entry::new(loaded);
        if entry.delivery.progress.status == Status::Processing {
            // Claimed while the queue was unordered, and never sent by this owner.
            entry.delivery.progress = not_begun(&entry.delivery.progress);
        }
        if entry.delivery.origin == Origin::Call && entry.delivery.progress.attempts == 0 {
            match notifier.caller_of(entry.id()) {
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

    fn only_calls(&self) -> bool {
        // Callers are only ever attached behind calls, so the last entry speaks for all.
        self.entries.back().is_none_or(|entry| entry.is_call)
    }

    fn has_room(&self, body_bytes: u64, times: u32) -> bool {
        self.entries.is_empty()
            || (self.entries.len() < (self.limit.deliveries_max.saturating_mul(times)) as usize
                && self.bytes + body_bytes <= self.limit.bytes_max.saturating_mul(u64::from(times)))
    }
}
