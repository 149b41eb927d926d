//! How far a request on its way out has come, for the one who ends it when its time is up.
//!
//! It must not know how long anything takes.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

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
pub struct Progress(AtomicU8);

impl Progress {
    const STAGES: [Stage; 6] = [Stage::Slot, Stage::Token, Stage::Resolve, Stage::Connect, Stage::Tls, Stage::Answer];

    pub fn new() -> Self {
        Progress(AtomicU8::new(Stage::Slot as u8))
    }

    pub fn reach(&self, stage: Stage) {
        self.0.store(stage as u8, Relaxed);
    }

    pub fn stage(&self) -> Stage {
        Self::STAGES.get(usize::from(self.0.load(Relaxed))).copied().unwrap_or(Stage::Answer)
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}
