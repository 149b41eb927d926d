//! Who waits for what: callers for the outcome of their attempt, operators for the answer to their command.
//!
//! Everything here is in memory and lost with the process; whatever matters is in the store. It must not know how outcomes come about.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postrider_core::Wait;
use postrider_core::id::{Cid, CommandId, DeliveryId};
use postrider_core::outcome::Outcome;
use tokio::sync::{Notify, oneshot};

const WAITING: u8 = 0;
const BEGUN: u8 = 1;
const LEFT: u8 = 2;

#[derive(Default)]
pub(crate) struct Notifier {
    callers: Mutex<BTreeMap<DeliveryId, Caller>>,
    operators: Mutex<BTreeMap<CommandId, oneshot::Sender<()>>>,
    /// Callers of this process to whom the store may have a reply from another one (D11).
    elsewhere: Mutex<BTreeMap<DeliveryId, Arc<Notify>>>,
}

/// The end of a call that the engine holds: somebody wants the outcome of the first attempt.
pub(crate) struct Caller {
    id: DeliveryId,
    cid: Cid,
    end: End,
}

enum End {
    Here {
        turn: Arc<AtomicU8>,
        answer: oneshot::Sender<Outcome>,
    },
    /// Another process holds the caller, and the store what it is told (D11). `is_asked`: it is still there, and waits for the attempt's end.
    Elsewhere {
        is_asked: bool,
    },
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
        match &self.end {
            End::Here { turn, answer } => {
                !answer.is_closed()
                    && turn.compare_exchange(WAITING, BEGUN, Ordering::AcqRel, Ordering::Acquire).is_ok()
            }
            End::Elsewhere { is_asked } => *is_asked,
        }
    }

    pub fn is_there(&self) -> bool {
        match &self.end {
            End::Here { turn, answer } => !answer.is_closed() && turn.load(Ordering::Acquire) != LEFT,
            End::Elsewhere { is_asked } => *is_asked,
        }
    }

    /// One whom another process holds is told by the settlement.
    pub fn tell(self, outcome: Outcome) {
        if let End::Here { answer, .. } = self.end {
            // A caller who has just left does not need to know.
            let _ = answer.send(outcome);
        }
    }

    pub const fn elsewhere(id: DeliveryId, cid: Cid) -> Self {
        Caller { id, cid, end: End::Elsewhere { is_asked: false } }
    }

    pub const fn is_elsewhere(&self) -> bool {
        matches!(self.end, End::Elsewhere { .. })
    }

    /// Whether it is still there is to be asked of the store before its attempt begins.
    pub const fn is_to_be_asked(&self) -> bool {
        matches!(self.end, End::Elsewhere { is_asked: false })
    }

    pub const fn is_asked(&mut self) {
        if let End::Elsewhere { is_asked } = &mut self.end {
            *is_asked = true;
        }
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
        if self.gives_up_its_turn() {
            return queued;
        }
        self.end().await
    }

    /// What a runner of this process says, whenever it does.
    pub async fn end(&mut self) -> Outcome {
        (&mut self.answer).await.unwrap_or_else(|_| Outcome::queued(self.id, self.cid.clone()))
    }

    /// No runner of this process begins the attempt for this caller from now on. `false`: one has.
    pub fn gives_up_its_turn(&self) -> bool {
        self.turn.compare_exchange(WAITING, LEFT, Ordering::AcqRel, Ordering::Acquire) != Err(BEGUN)
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
        let end = End::Here { turn: Arc::clone(&turn), answer: send };
        let caller = Caller { id, cid: cid.clone(), end };
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).insert(id, caller);
        Waiting { notifier: self, id, cid, turn, answer: receive }
    }

    /// From now on the caller may be answered by another process too. What is given rings when it may have been.
    pub fn expect_elsewhere(&self, id: DeliveryId) -> Arc<Notify> {
        let heard = Arc::new(Notify::new());
        self.lock_elsewhere().insert(id, Arc::clone(&heard));
        heard
    }

    pub fn forget_elsewhere(&self, id: DeliveryId) {
        self.lock_elsewhere().remove(&id);
    }

    pub fn replied(&self, ids: &[DeliveryId]) {
        let waiting = self.lock_elsewhere();
        ids.iter().filter_map(|id| waiting.get(id)).for_each(|heard| heard.notify_one());
    }

    pub fn anybody_may_be_replied(&self) {
        self.lock_elsewhere().values().for_each(|heard| heard.notify_one());
    }

    fn lock_elsewhere(&self) -> MutexGuard<'_, BTreeMap<DeliveryId, Arc<Notify>>> {
        self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No runner of this process has it. Its caller is not to wait for that, unless another process may answer.
    pub fn is_not_run_here(&self, id: DeliveryId) {
        if self.lock_elsewhere().contains_key(&id) {
            return;
        }
        if let Some(caller) = self.caller_of(id) {
            caller.tell_queued();
        }
    }

    pub fn has_caller(&self, id: DeliveryId) -> bool {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
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
