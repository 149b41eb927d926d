//! Checkpoints beside the writer, so that the WAL stays bounded (D07). It must not change any row.
//!
//! A checkpoint beside a busy writer never reaches the end of a WAL that grows meanwhile, and only a WAL copied to its end is begun anew. So
//! this thread copies the bulk, and once the WAL is large the writer copies the short rest between two transactions.

use postrider_core::log;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::disk::beside;
use super::work::Work;
use crate::StoreError;

/// A checkpoint is asked for each time the WAL has grown by this many pages of 4 KiB.
const STEP_PAGES: i64 = if cfg!(test) { 64 } else { (16 << 20) / 4096 };
/// From here on the writer helps, so that the WAL can begin anew.
const LARGE_PAGES: i64 = if cfg!(test) { 512 } else { (64 << 20) / 4096 };
/// A longer WAL file is cut once nobody writes.
const KEPT_FILE_BYTES: u64 = 16 << 20;
/// Without a commit for this long the store counts as quiet.
const QUIET: Duration = Duration::from_millis(500);

/// Between the writer and the checkpointer.
pub(super) struct Signal {
    wanted: Mutex<Option<SyncSender<()>>>,
    writer_finishes: AtomicBool,
    /// Pages in the WAL after the last commit, as SQLite counts them.
    pages: Arc<AtomicI64>,
    /// At how many pages the last checkpoint was asked for.
    asked_at_pages: AtomicI64,
    commits: AtomicU64,
}

impl Signal {
    /// Counts the pages of what `writer` commits from now on.
    pub fn new(writer: &mut Connection) -> Result<(Self, Receiver<()>), StoreError> {
        let (sender, wanted) = sync_channel(1);
        let pages = Arc::new(AtomicI64::new(0));
        let counted = Arc::clone(&pages);
        writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, now: std::ffi::c_int| {
            counted.store(i64::from(now), Ordering::Relaxed);
            Ok(())
        }))?;
        let signal = Signal {
            wanted: Mutex::new(Some(sender)),
            writer_finishes: AtomicBool::new(false),
            pages,
            asked_at_pages: AtomicI64::new(0),
            commits: AtomicU64::new(0),
        };
        Ok((signal, wanted))
    }

    /// Called by the writer between transactions.
    pub fn after_commit(&self, work: &Work) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        // Twice as large: the checkpointer is starved of processor time, and the bound is the writer's to keep.
        let is_late = self.pages.load(Ordering::Relaxed) >= 2 * LARGE_PAGES;
        if (self.writer_finishes.swap(false, Ordering::Relaxed) || is_late)
            && let Err(error) = passive(&work.connection)
        {
            tracing::warn!(event = log::CHECKPOINT_FAILED, %error, "a checkpoint failed; the WAL keeps what it holds");
        }
        let (pages, asked_at) = (self.pages.load(Ordering::Relaxed), self.asked_at_pages.load(Ordering::Relaxed));
        // Fewer than before: the WAL has begun anew.
        let grown_by = if pages < asked_at { pages } else { pages - asked_at };
        if grown_by >= STEP_PAGES {
            self.asked_at_pages.store(pages, Ordering::Relaxed);
            if let Some(wanted) = &*self.wanted.lock().unwrap_or_else(PoisonError::into_inner) {
                // One that is asked for already will see this write too.
                let _ = wanted.try_send(());
            }
        }
    }

    pub fn stop(&self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

pub(super) fn start(
    connection: Connection,
    database: &Path,
    signal: Arc<Signal>,
    wanted: Receiver<()>,
) -> Result<JoinHandle<()>, StoreError> {
    let wal = beside(database, "-wal");
    thread::Builder::new()
        .name("store-checkpoint".to_owned())
        .spawn(move || serve(&connection, &wal, &signal, &wanted))
        .map_err(|error| StoreError::Unavailable(format!("the checkpointer cannot start: {error}")))
}

fn serve(connection: &Connection, wal: &PathBuf, signal: &Signal, wanted: &Receiver<()>) {
    // Commits that had been made when the WAL was last left whole, and when somebody last looked.
    let (mut left_at, mut seen) = (0, 0);
    loop {
        match wanted.recv_timeout(QUIET) {
            Ok(()) => match passive(connection) {
                Ok(pages) if pages >= LARGE_PAGES => signal.writer_finishes.store(true, Ordering::Relaxed),
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(event = log::CHECKPOINT_FAILED, %error, "a checkpoint failed; the WAL keeps what it holds")
                }
            },
            Err(RecvTimeoutError::Timeout) => {
                let commits = signal.commits.load(Ordering::Relaxed);
                if commits == seen && commits != left_at {
                    left_at = commits;
                    cut(connection, wal);
                }
                seen = commits;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Copies what can be copied without holding anybody up. How many pages the WAL has.
fn passive(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}

/// Copies the rest and cuts the file. A reader or writer in the way: then next time. The copying comes first and by itself, so that a
/// writer that comes meanwhile waits for the cut alone.
fn cut(connection: &Connection, wal: &PathBuf) {
    let mut result = passive(connection).map(|_| ());
    if std::fs::metadata(wal).is_ok_and(|file| file.len() > KEPT_FILE_BYTES) {
        result = result.and_then(|()| connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
    }
    if let Err(error) = result {
        tracing::debug!(event = log::WAL_IN_USE, %error, "the WAL was in use");
    }
}
