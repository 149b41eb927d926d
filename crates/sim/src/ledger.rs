//! What the workload was told and what it asked for: the books against which the oracle holds the store.
//!
//! This module must not know the store: it learns only what a caller learns.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use postrider_core::id::DeliveryId;
use postrider_core::outcome::{Outcome, OutcomeState};

#[derive(Clone, Debug)]
pub struct Entry {
    pub outcome: Outcome,
    /// Stored before it was acknowledged; direct calls with the queue off are best effort across a crash (D12).
    pub durable: bool,
}

/// One request as its caller sees it. Every request has a body of its own, which names it.
#[derive(Clone, Debug)]
pub struct HandedIn {
    /// The place of its connection in the plan.
    pub connection: usize,
    /// When it was handed in, and when its caller was told; by a counter, not by a clock.
    pub submitted: u64,
    pub acknowledged: Option<u64>,
    pub msg_id: Option<DeliveryId>,
    /// Its caller was told that nothing was stored.
    pub refused: bool,
}

#[derive(Default)]
pub struct Ledger {
    events: u64,
    pub acknowledged: BTreeMap<DeliveryId, Entry>,
    /// By body: everything on the wire must be one of these, or a declared edit.
    pub requests: BTreeMap<Bytes, HandedIn>,
    pub accepted_body: BTreeMap<DeliveryId, Bytes>,
    /// The bodies that somebody asked to put in a delivery's place.
    pub edits: BTreeMap<DeliveryId, BTreeSet<Bytes>>,
    /// The discard was acknowledged.
    pub discarded: BTreeSet<DeliveryId>,
    /// Somebody asked for something to be done with it by hand.
    pub touched: BTreeSet<DeliveryId>,
    /// A retry or a resend was asked for, so more attempts are right.
    pub reopened: BTreeSet<DeliveryId>,
    /// The deliveries that callers with this idempotency key were told of (oracle 6).
    pub keys: BTreeMap<Bytes, BTreeSet<DeliveryId>>,
    /// Events whose publishers were told that they are stored, by their bodies.
    pub told: BTreeSet<Bytes>,
}

impl Ledger {
    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }

    pub fn hand_in(&mut self, body: Bytes, connection: usize) {
        let submitted = self.event();
        self.requests.entry(body).or_insert(HandedIn {
            connection,
            submitted,
            acknowledged: None,
            msg_id: None,
            refused: false,
        });
    }

    pub fn acknowledge(&mut self, outcome: Outcome, body: &Bytes, durable: bool) {
        let now = self.event();
        let Some(request) = self.requests.get_mut(body) else { return };
        let Some(id) = outcome.msg_id else {
            request.refused = true;
            return;
        };
        request.acknowledged.get_or_insert(now);
        request.msg_id.get_or_insert(id);
        self.accepted_body.insert(id, body.clone());
        if outcome.state == OutcomeState::IsOk || durable {
            self.acknowledged.insert(id, Entry { outcome, durable });
        }
    }

    /// A refusal of ours, which leaves nothing behind.
    pub fn refuse(&mut self, body: &Bytes) {
        if let Some(request) = self.requests.get_mut(body) {
            request.refused = true;
        }
    }
}
