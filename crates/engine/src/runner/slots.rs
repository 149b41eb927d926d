//! The free slots of an unordered queue, shared with intake: a request that finds one is claimed as it is stored.
//!
//! It must not know what a slot is used for.

use std::sync::{Mutex, PoisonError};

use postrider_store::QueueLease;

#[derive(Default)]
pub(crate) struct Slots(Mutex<Option<Open>>);

struct Open {
    lease: QueueLease,
    /// Below zero after `concurrency` was lowered, until enough have come back.
    free: i64,
    /// Intake gets none, as while the queue is paused.
    shut: bool,
}

impl Slots {
    /// A runner begins.
    pub fn open(&self, lease: QueueLease, free: u32, shut: bool) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Open { lease, free: i64::from(free), shut });
    }

    /// A runner ends: nobody gets a slot until the next one begins.
    pub fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub fn set_shut(&self, shut: bool) {
        if let Some(open) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            open.shut = shut;
        }
    }

    pub fn resize(&self, before: u32, after: u32) {
        if let Some(open) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            open.free += i64::from(after) - i64::from(before);
        }
    }

    /// Takes one for a request about to be stored.
    pub fn take_one(&self) -> Option<QueueLease> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = slots.as_mut().filter(|open| !open.shut && open.free > 0)?;
        open.free -= 1;
        Some(open.lease)
    }

    /// Takes all that are free, for the runner itself.
    pub fn take_all(&self) -> u32 {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = slots.as_mut().filter(|open| open.free > 0) else { return 0 };
        u32::try_from(std::mem::take(&mut open.free)).unwrap_or(0)
    }

    /// Gives back what was taken under this lease.
    pub fn give_back(&self, lease: QueueLease, count: u32) {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = slots.as_mut().filter(|open| open.lease == lease) {
            open.free += i64::from(count);
        }
    }
}
