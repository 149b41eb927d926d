//! The worker's lease: renewed every third of its life, also during attempts, and watched before every send (D05).
//!
//! It must not know what the lease is needed for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::id::WorkerId;
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::StoreError;

use crate::clock::Clock;
use crate::dispatcher;
use crate::shared::Shared;

/// This worker's own view of its lease.
pub(crate) struct Lease {
    clock: Arc<dyn Clock>,
    life: Wait,
    worker_id: Mutex<WorkerId>,
    /// On the monotonic clock: nothing is sent from here on.
    ends_at_ms: AtomicU64,
}

impl Lease {
    /// `asked_at`: the monotonic time at which the lease was asked for.
    pub fn new(clock: Arc<dyn Clock>, worker_id: WorkerId, life: Wait, asked_at: Wait) -> Self {
        let lease = Lease { clock, life, worker_id: Mutex::new(worker_id), ends_at_ms: AtomicU64::new(0) };
        lease.extend(asked_at);
        lease
    }

    pub fn worker_id(&self) -> WorkerId {
        *self.worker_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checked by the owner before each send, on its own monotonic clock.
    pub fn may_send(&self) -> bool {
        self.clock.monotonic().as_millis() < self.ends_at_ms.load(Ordering::Acquire)
    }

    /// How long a runner waits that may not send: the keeper is at work meanwhile.
    pub fn pause_before_looking_again(&self) -> Duration {
        (self.life.as_duration() / 15).max(Duration::from_millis(10))
    }

    fn extend(&self, asked_at: Wait) {
        // A sixth of its life is kept as margin for clocks that go at different speeds.
        let safe = self.life.as_millis() - self.life.as_millis() / 6;
        self.ends_at_ms.store(asked_at.as_millis() + safe, Ordering::Release);
    }

    fn end(&self) {
        self.ends_at_ms.store(0, Ordering::Release);
    }
}

/// The heartbeat.
pub(crate) async fn run(shared: Arc<Shared>) {
    let third = shared.options.lease.as_duration() / 3;
    let mut pause = third;
    loop {
        shared.vitals.idle(Worker::LeaseKeeper);
        tokio::time::sleep(pause).await;
        shared.vitals.busy(Worker::LeaseKeeper);
        let asked_at = shared.clock.monotonic();
        match shared.store.renew_worker(shared.lease.worker_id(), shared.now()).await {
            Ok(()) => {
                shared.vitals.wrote();
                shared.lease.extend(asked_at);
                pause = third;
            }
            Err(StoreError::LeaseLost) => pause = begin_anew(&shared).await.map_or(third / 4, |()| third),
            Err(error) => {
                tracing::warn!(event = log::LEASE_NOT_RENEWED, %error, "the lease cannot be renewed yet");
                pause = third / 4;
            }
        }
    }
}

/// The lease has ended: everything held is dropped, and taken again under a new one.
async fn begin_anew(shared: &Arc<Shared>) -> Result<(), StoreError> {
    tracing::error!(event = log::LEASE_ENDED, "the lease has ended before it was renewed; all queues are taken anew");
    shared.lease.end();
    dispatcher::all_lost(shared);
    let now = shared.now();
    let worker_id = WorkerId::new(now, shared.dice.bits());
    let asked_at = shared.clock.monotonic();
    shared.store.open_worker(worker_id, shared.options.lease, now).await?;
    *shared.lease.worker_id.lock().unwrap_or_else(PoisonError::into_inner) = worker_id;
    shared.lease.extend(asked_at);
    // Each runner takes its queue again by itself.
    Ok(())
}
