//! Calls that have ended enter the delivery log in batches, off their callers' path (D12).
//!
//! The buffer is bounded: when it is full, a call waits for room. It must not know how calls are made.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::{CallRecord, StoreError};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::shared::Shared;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) struct CallLog {
    ended: mpsc::Sender<Entry>,
    /// Calls under way and calls not yet in the log.
    open: AtomicUsize,
    none_open: Notify,
    stop: watch::Sender<bool>,
}

/// A call that has ended, and who waits until it is in the log.
pub(crate) struct Entry {
    record: CallRecord,
    written: Option<oneshot::Sender<()>>,
}

/// A call under way; the engine's stop waits for it.
pub(crate) struct UnderWay<'a>(&'a CallLog);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.close(1);
    }
}

impl CallLog {
    pub fn new(waiting_max: usize) -> (Self, mpsc::Receiver<Entry>) {
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
        self.put(Entry { record, written: None }).await;
    }

    /// Returns once it is on disk, or never will be.
    pub async fn enter_durably(&self, record: CallRecord) {
        let (written, is_written) = oneshot::channel();
        self.put(Entry { record, written: Some(written) }).await;
        // Dropped unanswered, it is as good as answered: nothing more will come of it.
        let _ = is_written.await;
    }

    async fn put(&self, entry: Entry) {
        self.open.fetch_add(1, Ordering::AcqRel);
        if self.ended.send(entry).await.is_err() {
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
pub(crate) async fn run(shared: Arc<Shared>, mut entries: mpsc::Receiver<Entry>) {
    let batch_max = shared.options.settle_batch_max.max(1);
    let mut taken = Vec::with_capacity(batch_max);
    while entries.recv_many(&mut taken, batch_max).await > 0 {
        shared.vitals.busy(Worker::CallLog);
        let count = taken.len();
        let (records, waiting): (Vec<_>, Vec<_>) = taken.drain(..).map(|entry| (entry.record, entry.written)).unzip();
        write(&shared, records).await;
        for written in waiting.into_iter().flatten() {
            let _ = written.send(());
        }
        shared.call_log.close(count);
        shared.vitals.idle(Worker::CallLog);
    }
}

async fn write(shared: &Shared, batch: Vec<CallRecord>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match shared.store.record_calls(batch.clone()).await {
            Ok(()) => return,
            Err(error @ (StoreError::Unavailable(_) | StoreError::Full { .. })) => {
                tracing::warn!(event = log::CALLS_NOT_LOGGED, %error, "ended calls cannot be logged yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                shared.vitals.busy(Worker::CallLog);
            }
            Err(StoreError::Closed) => return,
            Err(error) if batch.len() == 1 => {
                tracing::error!(event = log::CALL_LOST, %error, "an ended call cannot be logged");
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
