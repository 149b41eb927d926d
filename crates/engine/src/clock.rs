//! The only file that reads time. Everybody else is told.
#![allow(clippy::disallowed_methods, reason = "this is the one place that reads the clock")]

use std::sync::Arc;

use postrider_core::{Timestamp, Wait};

/// Where `now` comes from. Sleeping is tokio's, which the simulator pauses and moves by itself.
pub trait Clock: Send + Sync {
    /// Wall-clock time: for stamps and due times. It may jump.
    fn now(&self) -> Timestamp;

    /// Time that never goes backwards, in milliseconds from an arbitrary point: for lease deadlines and for how long an attempt took.
    fn monotonic(&self) -> Wait;
}

#[derive(Debug)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    pub fn shared() -> Arc<dyn Clock> {
        Arc::new(SystemClock { started: std::time::Instant::now() })
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Wait {
        Wait::from(self.started.elapsed())
    }
}
