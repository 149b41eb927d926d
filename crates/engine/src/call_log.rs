//! Calls that have ended enter the delivery log in batches, off their callers' path (D12).
//!
//! The buffer is bounded: when it is full, a call waits for room. It must not know how calls are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider_store::{CallRecord, StoreError};
use tokio::sync::{Notify, mpsc, watch};

use crate::shared::Shared;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct CallLog {
    ended: mpsc::Sender<CallRecord>,
    /// Calls under way and calls not yet in the log.
    open: AtomicUsize,
    none_open: Notify,
    stop: watch::Sender<bool>,
}

/// A call under way; the engine's stop waits for it.
pub(crate) struct UnderWay<'a>(&'a CallLog);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.close(1);
    }
}

impl CallLog {
    pub fn new(waiting_max: usize) -> (Self, mpsc::Receiver<CallRecord>) {
        let (ended, records) = mpsc::channel(waiting_max.max(1));
        let log =
            CallLog { ended, open: AtomicUsize::new(0), none_open: Notify::new(), stop: watch::Sender::new(false) };
        (log, records)
    }

    pub fn begin_call(&self) -> UnderWay<'_> {
        self.open.fetch_add(1, Ordering::AcqRel);
        UnderWay(self)
    }

    /// Returns at once while there is room.
    pub async fn enter(&self, record: CallRecord) {
        self.open.fetch_add(1, Ordering::AcqRel);
        if self.ended.send(record).await.is_err() {
            self.close(1);
        }
    }

    /// No further retry starts.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub async fn stopped(&self) {
        let mut stop = self.stop.subscribe();
        // The sender lives in `self`.
        let _ = stop.wait_for(|stop| *stop).await;
    }

    /// Waits until every call has ended and is in the log.
    pub async fn drained(&self) {
        loop {
            let none_open = self.none_open.notified();
            if self.open.load(Ordering::Acquire) == 0 {
                return;
            }
            none_open.await;
        }
    }

    fn close(&self, count: usize) {
        if self.open.fetch_sub(count, Ordering::AcqRel) == count {
            self.none_open.notify_waiters();
        }
    }
}

/// The logging task.
pub(crate) async fn run(shared: Arc<Shared>, mut records: mpsc::Receiver<CallRecord>) {
    let batch_max = shared.options.settle_batch_max.max(1);
    let mut taken = Vec::with_capacity(batch_max);
    while records.recv_many(&mut taken, batch_max).await > 0 {
        let count = taken.len();
        write(&shared, std::mem::take(&mut taken)).await;
        shared.call_log.close(count);
    }
}

async fn write(shared: &Shared, batch: Vec<CallRecord>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match shared.store.record_calls(batch.clone()).await {
            Ok(()) => return,
            Err(error @ (StoreError::Unavailable(_) | StoreError::Full { .. })) => {
                tracing::warn!(%error, "ended calls cannot be logged yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(StoreError::Closed) => return,
            Err(error) if batch.len() == 1 => {
                tracing::error!(%error, "an ended call cannot be logged");
                return;
            }
            Err(_) => break,
        }
    }
    // One of them is refused; the others are not to be lost with it.
    for one in batch {
        Box::pin(write(shared, vec![one])).await;
    }
}
