//! Who waits for what: callers for the outcome of their attempt, operators for the answer to their command.
//!
//! Everything here is in memory and lost with the process; whatever matters is in the store. It must not know how outcomes come about.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use postrider_core::Wait;
use postrider_core::id::{Cid, CommandId, DeliveryId};
use postrider_core::outcome::Outcome;
use tokio::sync::oneshot;

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const LEFT: u8 = 2;

#[derive(Default)]
pub(crate) struct Notifier {
    callers: Mutex<BTreeMap<DeliveryId, Caller>>,
    operators: Mutex<BTreeMap<CommandId, oneshot::Sender<()>>>,
}

/// The end of a call that the engine holds: somebody wants the outcome of the first attempt.
pub(crate) struct Caller {
    id: DeliveryId,
    cid: Cid,
    turn: Arc<AtomicU8>,
    answer: oneshot::Sender<Outcome>,
}

/// The end of a call that its caller holds. Dropping it is leaving.
pub(crate) struct Waiting<'a> {
    notifier: &'a Notifier,
    id: DeliveryId,
    cid: Cid,
    turn: Arc<AtomicU8>,
    answer: oneshot::Receiver<Outcome>,
}

impl Caller {
    /// The attempt begins now: from here on the caller waits for its end. `false`: the caller has left.
    pub fn begin(&self) -> bool {
        !self.answer.is_closed()
            && self.turn.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn is_there(&self) -> bool {
        !self.answer.is_closed() && self.turn.load(Ordering::Acquire) != LEFT
    }

    pub fn tell(self, outcome: Outcome) {
        // A caller who has just left does not need to know.
        let _ = self.answer.send(outcome);
    }

    /// Its request keeps its place, and the caller is not to wait for that (D10).
    pub fn tell_queued(self) {
        let outcome = Outcome::queued(self.id, self.cid.clone());
        self.tell(outcome);
    }
}

impl Waiting<'_> {
    /// Waits for its turn at most `turn_wait`, and once the attempt has begun, for its end (D10).
    pub async fn outcome(mut self, turn_wait: Wait) -> Outcome {
        let queued = Outcome::queued(self.id, self.cid.clone());
        tokio::select! {
            biased;
            outcome = &mut self.answer => return outcome.unwrap_or(queued),
            () = tokio::time::sleep(turn_wait.as_duration()) => {}
        }
        if self.turn.compare_exchange(WAITING, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return queued;
        }
        (&mut self.answer).await.unwrap_or(queued)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.notifier.caller_of(self.id);
    }
}

impl Notifier {
    /// Before the request is stored, so that whoever loads it finds its caller.
    pub fn expect(&self, id: DeliveryId, cid: Cid) -> Waiting<'_> {
        let (send, receive) = oneshot::channel();
        let turn = Arc::new(AtomicU8::new(WAITING));
        let caller = Caller { id, cid: cid.clone(), turn: Arc::clone(&turn), answer: send };
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).insert(id, caller);
        Waiting { notifier: self, id, cid, turn, answer: receive }
    }

    /// Takes the caller who waits for this delivery.
    pub fn caller_of(&self, id: DeliveryId) -> Option<Caller> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id)
    }

    /// The engine ends: what is stored stays stored.
    pub fn dismiss_all(&self) {
        let callers = std::mem::take(&mut *self.callers.lock().unwrap_or_else(PoisonError::into_inner));
        for (_, caller) in callers {
            caller.tell_queued();
        }
    }

    pub fn expect_answer(&self, id: CommandId) -> oneshot::Receiver<()> {
        let (send, receive) = oneshot::channel();
        self.operators.lock().unwrap_or_else(PoisonError::into_inner).insert(id, send);
        receive
    }

    pub fn answered(&self, id: CommandId) {
        if let Some(operator) = self.operators.lock().unwrap_or_else(PoisonError::into_inner).remove(&id) {
            let _ = operator.send(());
        }
    }
}
