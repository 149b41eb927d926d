//! How far a request on its way out has come, for the one who ends it when its time is up; and how long each stage took, for those who ask.
//!
//! It must not know what is too long.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a stage took is shown to whoever asked for it; no decision about a delivery reads it"
)]

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// In the order in which they are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Waiting for one of the connection's sockets.
    Slot,
    /// Fetching the token that the request needs.
    Token,
    Resolve,
    Connect,
    Tls,
    Answer,
}

#[derive(Debug)]
pub struct Progress {
    stage: AtomicU8,
    /// When each was reached; only where somebody asks.
    times: Option<Mutex<Vec<(Stage, Instant)>>>,
}

impl Progress {
    const STAGES: [Stage; 6] = [Stage::Slot, Stage::Token, Stage::Resolve, Stage::Connect, Stage::Tls, Stage::Answer];

    pub fn new() -> Self {
        Progress { stage: AtomicU8::new(Stage::Slot as u8), times: None }
    }

    /// The same, and it remembers when each stage was reached.
    pub fn timed() -> Self {
        Progress { times: Some(Mutex::default()), ..Progress::new() }
    }

    pub fn reach(&self, stage: Stage) {
        self.stage.store(stage as u8, Relaxed);
        if let Some(times) = &self.times {
            times.lock().unwrap_or_else(PoisonError::into_inner).push((stage, Instant::now()));
        }
    }

    pub fn stage(&self) -> Stage {
        Self::STAGES.get(usize::from(self.stage.load(Relaxed))).copied().unwrap_or(Stage::Answer)
    }

    /// How long each stage took up to the next one, and the last one up to now. Empty unless it is timed.
    pub fn took(&self) -> Vec<(Stage, Duration)> {
        let Some(times) = &self.times else { return Vec::new() };
        let times = times.lock().unwrap_or_else(PoisonError::into_inner);
        let ends = times.iter().skip(1).map(|(_, at)| *at).chain([Instant::now()]);
        times.iter().zip(ends).map(|((stage, from), to)| (*stage, to - *from)).collect()
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}
