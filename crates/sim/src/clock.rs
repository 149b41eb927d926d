//! Simulated time: tokio's paused clock on a base that survives crashes, and jumps of the wall clock.
#![allow(clippy::disallowed_methods, reason = "this clock reads tokio's paused time, which is no clock at all")]

use std::sync::{Mutex, PoisonError};

use postrider_core::{Timestamp, Wait};
use postrider_engine::Clock;

/// Where every run begins: 2026-01-01T00:00:00Z.
const BEGINNING: Timestamp = Timestamp::from_millis(1_767_225_600_000);

pub struct SimClock(Mutex<State>);

struct State {
    /// Virtual milliseconds that earlier runtimes used up.
    before_ms: u64,
    started: tokio::time::Instant,
    /// The wall clock's error.
    jump_ms: i64,
}

impl SimClock {
    /// Must be called inside a runtime whose time is paused.
    pub fn new() -> Self {
        SimClock(Mutex::new(State { before_ms: 0, started: tokio::time::Instant::now(), jump_ms: 0 }))
    }

    fn elapsed_ms(&self) -> u64 {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = tokio::time::Instant::now().saturating_duration_since(state.started);
        state.before_ms + u64::try_from(here.as_millis()).unwrap_or(u64::MAX)
    }

    /// The last act in a runtime that is about to be dropped.
    pub fn leave_runtime(&self) {
        let elapsed = self.elapsed_ms();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).before_ms = elapsed;
    }

    /// The first act in the next one.
    pub fn enter_runtime(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).started = tokio::time::Instant::now();
    }

    pub fn jump(&self, by_ms: i64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).jump_ms += by_ms;
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let jump = self.0.lock().unwrap_or_else(PoisonError::into_inner).jump_ms;
        let elapsed = i64::try_from(self.elapsed_ms()).unwrap_or(i64::MAX);
        Timestamp::from_millis(BEGINNING.as_millis() + elapsed + jump)
    }

    fn monotonic(&self) -> Wait {
        Wait::from_millis(self.elapsed_ms())
    }
}
