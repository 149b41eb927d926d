//! Outages of the healthy remote that come and go: it refuses connections, and the next time it hangs.
//!
//! It must not know what the server makes of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::remote::Remote;
use crate::failure::Failure;

const EVERY_AT_MOST: Duration = Duration::from_secs(240);
const SPAN_AT_MOST: Duration = Duration::from_secs(20);
/// In a short run there are this many.
const OUTAGES_MIN: u32 = 3;

const NONE: u8 = 0;
const REFUSES: u8 = 1;
const HANGS: u8 = 2;

#[derive(Clone)]
pub struct Outages {
    pub every: Duration,
    pub span: Duration,
    remote: Arc<Remote>,
    now: Arc<AtomicU8>,
}

impl Outages {
    pub fn new(remote: Arc<Remote>, whole: Duration) -> Outages {
        let every = EVERY_AT_MOST.min(whole / OUTAGES_MIN);
        Outages { every, span: SPAN_AT_MOST.min(every / 4), remote, now: Arc::new(AtomicU8::new(NONE)) }
    }

    pub fn now(&self) -> Option<&'static str> {
        match self.now.load(Ordering::Relaxed) {
            REFUSES => Some("refuses connections"),
            HANGS => Some("hangs"),
            _ => None,
        }
    }

    /// Goes on until it is dropped, or until the remote's port is lost.
    pub async fn run(self) -> Failure {
        // The first one in the middle of its time.
        tokio::time::sleep(self.every / 2).await;
        let mut ticks = tokio::time::interval(self.every);
        for turn in 0u64.. {
            ticks.tick().await;
            let done = if turn.is_multiple_of(2) { self.refuse().await } else { self.hang().await };
            if let Err(failure) = done {
                return failure;
            }
        }
        Failure::new("no more outages")
    }

    async fn refuse(&self) -> Result<(), Failure> {
        self.now.store(REFUSES, Ordering::Relaxed);
        self.remote.close().await?;
        tokio::time::sleep(self.span).await;
        self.end().await
    }

    async fn hang(&self) -> Result<(), Failure> {
        self.now.store(HANGS, Ordering::Relaxed);
        self.remote.hang(true);
        tokio::time::sleep(self.span).await;
        self.end().await
    }

    /// All is well again.
    pub async fn end(&self) -> Result<(), Failure> {
        self.remote.hang(false);
        self.remote.open().await?;
        self.now.store(NONE, Ordering::Relaxed);
        Ok(())
    }
}
