//! The thread that owns the write connection: it takes whatever has arrived and commits it together. It must not know what a verb does.

use postrider_core::log;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use super::checkpoint::Signal;
use super::group::{self, Job};
use super::work::Work;
use crate::StoreError;

/// Calls that wait for the writer; further callers wait for a place.
const JOBS_MAX: usize = 1024;
/// Rows in one transaction, so that the first caller of a group does not wait for ever more of them.
const ROWS_PER_COMMIT: usize = 4096;

/// Starts the thread. It ends when all senders are gone, or at `Job::Close`.
pub(super) fn start(
    work: Work,
    signal: Arc<Signal>,
    checkpointer: JoinHandle<()>,
) -> Result<(mpsc::Sender<Job>, JoinHandle<()>), StoreError> {
    let (sender, jobs) = mpsc::channel(JOBS_MAX);
    let thread = thread::Builder::new()
        .name("store-writer".to_owned())
        .spawn(move || serve(work, jobs, &signal, checkpointer))
        .map_err(|error| StoreError::Unavailable(format!("the writer cannot start: {error}")))?;
    Ok((sender, thread))
}

fn serve(work: Work, mut jobs: mpsc::Receiver<Job>, signal: &Signal, checkpointer: JoinHandle<()>) {
    let mut closing = None;
    while let Some(first) = jobs.blocking_recv() {
        let mut group = Vec::new();
        let mut weight = 0;
        let mut next = Some(first);
        // No timer: whatever came in during the last commit is the next group.
        while let Some(job) = next {
            if let Job::Close(reply) = job {
                closing = Some(reply);
                break;
            }
            weight += job.weight();
            group.push(job);
            next = if weight < ROWS_PER_COMMIT { jobs.try_recv().ok() } else { None };
        }
        if !group.is_empty() {
            measured(&work, weight, || group::run(&work, group));
            signal.after_commit(&work);
        }
        if closing.is_some() {
            break;
        }
    }
    signal.stop();
    // Only the last connection to close removes the WAL, and that is to be this one.
    if checkpointer.join().is_err() {
        tracing::error!(event = log::STORE_THREAD_PANICKED, "the checkpointer had panicked");
    }
    if let Some(reply) = closing {
        close(work, reply);
    }
}

/// Notes how long a transaction took that changed something, and how many rows it had.
#[allow(clippy::disallowed_methods, reason = "a figure for people; no decision reads it")]
fn measured(work: &Work, rows: usize, transaction: impl FnOnce()) {
    let commits = || work.counters.commits.load(Ordering::Relaxed);
    let (before, began) = (commits(), std::time::Instant::now());
    transaction();
    if commits() != before {
        work.counters.commit_micros.observe(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        work.counters.commit_rows.observe(rows as u64);
    }
}

/// Leaves a single file behind. Callers that come later find nobody here, which they report as `Closed`.
fn close(work: Work, reply: oneshot::Sender<()>) {
    if let Err(error) = work.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(event = log::CHECKPOINT_FAILED, %error, "the last checkpoint failed; the next start reads the WAL");
    }
    if let Err((_, error)) = work.into_connection().close() {
        tracing::warn!(event = log::STORE_CLOSE_FAILED, %error, "the store did not close cleanly");
    }
    let _ = reply.send(());
}
