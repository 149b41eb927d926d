//! How many attempts a queue may begin now, shared with intake: a request that finds a free slot is claimed as it is stored.
//!
//! It must not know what a slot is used for.

use std::sync::{Mutex, PoisonError};

use postrider_core::Timestamp;
use postrider_core::breaker::{Breaker, Ended, Turn};
use postrider_core::connection::Connection;
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_store::QueueLease;

use super::gate::Gate;
use crate::shared::Shared;

#[derive(Default)]
pub(crate) struct Slots(Mutex<State>);

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// Of the endpoint, while no runner has it.
    breaker: Breaker,
    deferral: Option<Deferral>,
}

struct Open {
    lease: QueueLease,
    /// Below zero after `concurrency` was lowered, until enough have come back.
    free: i64,
    /// Intake gets none, as while the queue is paused.
    shut: bool,
    gate: Option<Gate>,
}

impl Slots {
    /// A runner begins.
    pub fn open(
        &self,
        shared: &Shared,
        connection: &Connection,
        inbox: super::Inbox,
        lease: QueueLease,
        free: u32,
        shut: bool,
    ) {
        let mut state = self.lock();
        let gate = Gate::of(shared, connection, inbox, state.breaker);
        state.open = Some(Open { lease, free: i64::from(free), shut, gate });
    }

    /// A runner ends: nobody gets a slot until the next one begins.
    pub fn close(&self, now: Timestamp) {
        let mut state = self.lock();
        state.deferral = None;
        if let Some(gate) = state.open.take().and_then(|open| open.gate) {
            state.breaker = gate.close(now);
        }
    }

    /// A runner has the queue.
    pub fn is_open(&self) -> bool {
        self.lock().open.is_some()
    }

    pub fn set_shut(&self, shut: bool) {
        if let Some(open) = &mut self.lock().open {
            open.shut = shut;
        }
    }

    /// The connection was changed, and perhaps with it how many attempts it may have at once.
    pub fn change(&self, shared: &Shared, connection: &Connection, before: u32, after: u32) {
        if let Some(open) = &mut self.lock().open {
            open.free += i64::from(after) - i64::from(before);
            if let Some(gate) = &mut open.gate {
                gate.change(shared, connection);
            }
        }
    }

    /// Takes one for a request about to be stored.
    pub fn take_one(&self, shared: &Shared, now: Timestamp) -> Option<QueueLease> {
        let mut state = self.lock();
        let open = state.open.as_mut().filter(|open| !open.shut && open.free > 0)?;
        if let Some(gate) = &mut open.gate {
            gate.take(shared, 1, false, now).ok()?;
        }
        open.free -= 1;
        Some(open.lease)
    }

    /// Takes some for the runner itself.
    ///
    /// # Errors
    /// What holds everything up that is due.
    pub fn take(&self, shared: &Shared, slots: u32, now: Timestamp) -> Result<u32, Deferral> {
        let mut state = self.lock();
        let none_free = Deferral { by: DeferredBy::EndpointConcurrency, until: None };
        let Some(open) = state.open.as_mut().filter(|open| open.free > 0) else { return Err(none_free) };
        let wanted = slots.min(u32::try_from(open.free).unwrap_or(u32::MAX));
        let taken = match &mut open.gate {
            Some(gate) => gate.take(shared, wanted, true, now)?,
            None => wanted,
        };
        open.free -= i64::from(taken);
        Ok(taken)
    }

    /// An attempt begins in a slot that was taken; whether it is the probe of a breaker.
    pub fn begins(&self) -> bool {
        self.lock().open.as_mut().and_then(|open| open.gate.as_mut()).is_some_and(Gate::begins)
    }

    /// The attempt has ended. Its slot is given back by itself.
    pub fn ended(&self, shared: &Shared, ended: Ended, is_probe: bool, now: Timestamp) -> Turn {
        let mut state = self.lock();
        let gate = state.open.as_mut().and_then(|open| open.gate.as_mut());
        gate.map_or(Turn::None, |gate| gate.ended(ended, is_probe, shared, now))
    }

    /// Gives back what was taken under this lease and came to an attempt.
    pub fn give_back(&self, lease: QueueLease, count: u32) {
        if let Some(open) = self.lock().open.as_mut().filter(|open| open.lease == lease) {
            open.free += i64::from(count);
        }
    }

    /// The same of what came to none, with all that was taken for it.
    pub fn give_back_unused(&self, lease: QueueLease, count: u32, now: Timestamp) {
        if let Some(open) = self.lock().open.as_mut().filter(|open| open.lease == lease) {
            open.free += i64::from(count);
            if let Some(gate) = &mut open.gate {
                gate.unused(count, now);
            }
        }
    }

    /// What holds up everything that is due, as the runner has found it.
    pub fn set_deferral(&self, deferral: Option<Deferral>) {
        self.lock().deferral = deferral;
    }

    /// `None`: no runner of this process has the queue.
    pub fn deferral(&self) -> Option<Option<Deferral>> {
        let state = self.lock();
        state.open.as_ref().map(|_| state.deferral)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
