//! The invariants, checked at every send and every answer, after every crash and at the end of a run. Quoted from the architecture:
//!
//! 1. accepted = waiting + in flight + delivered + dead-lettered + failed + discarded + forwarded + expired, at every instant and
//!    after every crash.
//! 2. FIFO: the first receipt of n+1 comes after n left the head (D03).
//! 3. A commit under an old fencing token changes nothing.
//! 4. Attempts are numbered 1..n without gaps; the log is append-only.
//! 5. No retry before its time; never more attempts than the policy allows; none after discard; none after a success that no crash and
//!    no lost lease has put in doubt (law 6).
//! 6. One idempotency key within its window, one message.
//! 7. Once faults stop, every queue that is not paused drains within a computed bound, the DLQ's actions are taken, and then it is quiet.
//! 8. A body on the wire is byte for byte the body that was accepted (or its declared edit or transformation).
//! 9. A caller is told the truth, and waits no longer than D10 says.
//! 10. A job acts on a delivery once at most, whatever crashes in between; it comes to its end, and its counts are what was written.
//! 11. How an endpoint does is what its deliveries say: each that failed since its last success is counted, once, whatever crashes.
//!
//! The oracle reads the sound store behind the faulty one. It must not know how the engine works.

mod at_answer;
mod at_end;
mod at_send;
mod books;
mod endpoints;
mod held_back;
mod jobs;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postrider_core::Timestamp;
use postrider_core::attempt::Attempt;
use postrider_core::delivery::{Delivery, Position};
use postrider_core::id::{ConnectionId, DeliveryId, QueueId};
use postrider_store::{DeliveryFilter, MemoryStore, PageRequest, QueueLease, Store, StoreError};

use crate::ledger::Ledger;
use crate::plan::Plan;

/// A broken promise, with the number of the invariant and what was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub invariant: u8,
    pub what: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "invariant {}: {}", self.invariant, self.what)
    }
}

pub struct Oracle {
    /// The sound store; another one after each restart.
    store: Mutex<Arc<dyn Store>>,
    ledger: Mutex<Ledger>,
    state: Mutex<State>,
    plan: Plan,
}

#[derive(Default)]
struct State {
    violations: Vec<Violation>,
    /// Answered 2xx, with no crash and no lost lease since.
    answered_ok: BTreeSet<DeliveryId>,
    attempts_seen: BTreeMap<DeliveryId, Vec<Attempt>>,
    /// The newest lease of each queue.
    leases: BTreeMap<QueueId, QueueLease>,
    /// Queues that the thief took last. Their former owner may still send what it holds, since no store stands between it and the wire
    /// (law 6): what it writes afterwards changes nothing.
    stolen: BTreeSet<QueueId>,
    /// Attempts sent under a claim: each of them once (D04).
    claimed_sends: BTreeSet<(DeliveryId, u32)>,
    /// The first position of each delivery.
    positions: BTreeMap<DeliveryId, (QueueId, Position)>,
    /// Deliveries that went to the tail later.
    moved: BTreeSet<DeliveryId>,
    /// When requests went to an endpoint with a rate, in the last second.
    sent_at: BTreeMap<ConnectionId, Vec<Timestamp>>,
    /// Connections that were unordered at some time.
    unordered: BTreeSet<ConnectionId>,
    /// In the order in which they were first received, with their connection.
    first_receipts: Vec<(ConnectionId, DeliveryId)>,
    received: BTreeSet<DeliveryId>,
    jobs: jobs::JobsSeen,
    /// What happened, in order, for people.
    trace: Vec<String>,
}

impl Oracle {
    pub fn new(store: Arc<dyn Store>, plan: Plan) -> Self {
        Oracle { store: Mutex::new(store), ledger: Mutex::default(), state: Mutex::default(), plan }
    }

    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn set_store(&self, store: Arc<dyn Store>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    /// Before the next process opens the file, nobody may have it.
    pub fn drop_store(&self) {
        self.set_store(Arc::new(MemoryStore::default()));
    }

    pub fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    pub fn report(&self, invariant: u8, what: String) {
        self.state().violations.push(Violation { invariant, what });
    }

    pub fn note(&self, what: String) {
        self.state().trace.push(what);
    }

    pub fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    fn is_reopened(&self, id: DeliveryId) -> bool {
        self.ledger().reopened.contains(&id)
    }

    async fn all_deliveries(&self) -> Result<Vec<Delivery>, StoreError> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let request = PageRequest { limit: 500, cursor };
            let page = self.store().deliveries(&DeliveryFilter::default(), request).await?;
            all.extend(page.items);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }

    async fn all_waiting(&self, queue_id: QueueId) -> Result<Vec<Delivery>, StoreError> {
        let mut all = Vec::new();
        let mut cursor = None;
        loop {
            let page = self.store().queue(queue_id, PageRequest { limit: 500, cursor }).await?;
            all.extend(page.items);
            match page.next_cursor {
                Some(next) => cursor = Some(next),
                None => return Ok(all),
            }
        }
    }
}
