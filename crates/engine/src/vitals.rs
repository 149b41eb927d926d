//! What the engine observes about itself: its pulse, its last durable write, what each worker does. `core::readiness` judges it.
//!
//! Observing costs one atomic store; whoever asks is answered from memory, so that a stalled disk never stalls the answer. It must not
//! know who asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use postrider_core::log;
use postrider_core::readiness::{self, Bounds, Check, CheckName, Observed, Room, Trouble, Worker, WorkerState};
use postrider_core::{Timestamp, Wait};

use crate::clock::Clock;
use crate::shared::Shared;

/// How often everything is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// In this part of the bound, with nothing else written, a tiny write is made to see whether the store still takes one.
const WRITE_EVERY_PART: u64 = 3;
/// The name of the value that the tiny write changes.
const PROBE: &str = "health.written_at";

/// In place of a time: waits for work.
const IDLE: u64 = 0;
/// In place of a time: panicked.
const BROKE_DOWN: u64 = u64::MAX;

/// A check as it stands, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub name: CheckName,
    pub since: Timestamp,
    /// `None`: all is well.
    pub trouble: Option<Trouble>,
}

pub(crate) struct Vitals {
    clock: Arc<dyn Clock>,
    bounds: Bounds,
    /// Monotonic times in milliseconds.
    pulse_at: AtomicU64,
    written_at: AtomicU64,
    /// Since when each worker is busy, plus one.
    busy_since: [AtomicU64; Worker::ALL.len()],
    room: Mutex<Room>,
    /// How each check stood when it was last judged.
    standing: Mutex<Vec<(CheckName, bool, Timestamp)>>,
}

impl Vitals {
    /// What was written to start counts as the first write.
    pub fn new(clock: Arc<dyn Clock>, bounds: Bounds) -> Self {
        let now = clock.monotonic().as_millis();
        Vitals {
            clock,
            bounds,
            pulse_at: AtomicU64::new(now),
            written_at: AtomicU64::new(now),
            busy_since: std::array::from_fn(|_| AtomicU64::new(IDLE)),
            room: Mutex::new(Room::Elsewhere),
            standing: Mutex::default(),
        }
    }

    /// Begins a piece of work, or gets on with a long one.
    pub fn busy(&self, worker: Worker) {
        self.set(worker, self.clock.monotonic().as_millis().saturating_add(1));
    }

    /// Waits for work.
    pub fn idle(&self, worker: Worker) {
        self.set(worker, IDLE);
    }

    pub fn broke_down(&self, worker: Worker) {
        self.set(worker, BROKE_DOWN);
    }

    /// Something was written and is durable.
    pub fn wrote(&self) {
        self.written_at.store(self.clock.monotonic().as_millis(), Ordering::Relaxed);
    }

    pub fn since_write(&self) -> Wait {
        self.since(&self.written_at)
    }

    fn set(&self, worker: Worker, value: u64) {
        self.busy_since[worker as usize].store(value, Ordering::Relaxed);
    }

    fn since(&self, at: &AtomicU64) -> Wait {
        self.clock.monotonic().saturating_sub(Wait::from_millis(at.load(Ordering::Relaxed)))
    }

    fn observed(&self, stopping: bool) -> Observed {
        let state = |worker: Worker| match self.busy_since[worker as usize].load(Ordering::Relaxed) {
            IDLE => WorkerState::Idle,
            BROKE_DOWN => WorkerState::BrokeDown,
            since => {
                WorkerState::Busy(self.clock.monotonic().saturating_sub(Wait::from_millis(since.saturating_sub(1))))
            }
        };
        Observed {
            stopping,
            since_pulse: self.since(&self.pulse_at),
            since_write: self.since(&self.written_at),
            room: *self.room.lock().unwrap_or_else(PoisonError::into_inner),
            workers: Worker::ALL.into_iter().map(|worker| (worker, state(worker))).collect(),
        }
    }

    pub fn live(&self) -> Vec<Standing> {
        let checks = readiness::live(&self.observed(false), &self.bounds);
        // A worker may be lost for `ready` and not for `live`; its time is that of the former.
        checks.into_iter().map(|check| self.standing_of(check, false)).collect()
    }

    pub fn ready(&self, stopping: bool) -> Vec<Standing> {
        let checks = readiness::ready(&self.observed(stopping), &self.bounds);
        checks.into_iter().map(|check| self.standing_of(check, true)).collect()
    }

    /// Since when it stands so; noted anew when `note`.
    fn standing_of(&self, check: Check, note: bool) -> Standing {
        let fails = check.trouble.is_some();
        let now = self.clock.now();
        let mut standing = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        let known = standing.iter_mut().find(|(name, _, _)| *name == check.name);
        let since = match known {
            Some((_, before, since)) if *before == fails => *since,
            Some(known) if note => {
                *known = (check.name, fails, now);
                log_change(&check);
                now
            }
            Some((_, _, since)) => *since,
            None => {
                standing.push((check.name, fails, now));
                now
            }
        };
        Standing { name: check.name, since, trouble: check.trouble }
    }
}

fn log_change(check: &Check) {
    let name = check.name.as_str();
    match &check.trouble {
        Some(trouble) => {
            tracing::warn!(event = log::HEALTH_FAILING, check = name, detail = trouble.detail, "not ready")
        }
        None => tracing::info!(event = log::HEALTH_OK, check = name, "ready again"),
    }
}

/// Looks at everything each second. That it has its turn is the pulse.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        let vitals = &shared.vitals;
        vitals.pulse_at.store(shared.clock.monotonic().as_millis(), Ordering::Relaxed);
        *vitals.room.lock().unwrap_or_else(PoisonError::into_inner) = shared.store.room();
        let _ = vitals.ready(shared.is_stopping());
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Sees whether the store takes a write, where nothing else has just shown it. A task of its own: a stalled disk may hold it for long.
pub(crate) async fn probe(shared: Arc<Shared>) {
    let every = Wait::from_millis(shared.vitals.bounds.write.as_millis() / WRITE_EVERY_PART);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if shared.vitals.since(&shared.vitals.written_at) < every {
            continue;
        }
        let now = shared.now().as_millis().to_string();
        match shared.store.set_value(PROBE, Some(now)).await {
            Ok(()) => shared.vitals.wrote(),
            Err(error) => tracing::debug!(event = log::PROBE_FAILED, %error, "the store did not take the tiny write"),
        }
    }
}
