//! Checkpoints beside the writer, so that the WAL stays bounded (D07). It must not change any row.
//!
//! A checkpoint beside a busy writer never reaches the end of a WAL that grows meanwhile, and only a WAL copied to its end is begun anew. So
//! this thread copies the bulk, and once the WAL is large the writer copies the short rest between two transactions.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::disk::beside;
use super::work::Work;
use crate::StoreError;

/// A checkpoint is asked for each time about this much has been written.
const STEP_BYTES: u64 = if cfg!(test) { 256 << 10 } else { 4 << 20 };
/// From here on the writer helps, so that the WAL can begin anew.
const LARGE_PAGES: i64 = if cfg!(test) { 512 } else { (48 << 20) / 4096 };
/// A longer WAL file is cut once nobody writes.
const KEPT_FILE_BYTES: u64 = 16 << 20;
/// Without a write for this long the store counts as quiet.
const QUIET: Duration = Duration::from_millis(500);

/// Between the writer and the checkpointer.
pub(super) struct Signal {
    wanted: Mutex<Option<SyncSender<()>>>,
    writer_finishes: AtomicBool,
}

impl Signal {
    pub fn new() -> (Self, Receiver<()>) {
        let (sender, wanted) = sync_channel(1);
        (Signal { wanted: Mutex::new(Some(sender)), writer_finishes: AtomicBool::new(false) }, wanted)
    }

    /// Called by the writer between transactions.
    pub fn after_commit(&self, work: &Work) {
        if self.writer_finishes.swap(false, Ordering::Relaxed)
            && let Err(error) = passive(&work.connection)
        {
            tracing::warn!(%error, "a checkpoint failed; the WAL keeps what it holds");
        }
        if work.written_bytes.get() >= STEP_BYTES {
            work.written_bytes.set(0);
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
    signal: std::sync::Arc<Signal>,
    wanted: Receiver<()>,
) -> Result<JoinHandle<()>, StoreError> {
    let wal = beside(database, "-wal");
    thread::Builder::new()
        .name("store-checkpoint".to_owned())
        .spawn(move || serve(&connection, &wal, &signal, &wanted))
        .map_err(|error| StoreError::Unavailable(format!("the checkpointer cannot start: {error}")))
}

fn serve(connection: &Connection, wal: &PathBuf, signal: &Signal, wanted: &Receiver<()>) {
    let mut has_written = false;
    loop {
        let next = if has_written {
            wanted.recv_timeout(QUIET)
        } else {
            wanted.recv().map_err(|_| RecvTimeoutError::Disconnected)
        };
        match next {
            Ok(()) => {
                has_written = true;
                match passive(connection) {
                    Ok(pages) if pages >= LARGE_PAGES => signal.writer_finishes.store(true, Ordering::Relaxed),
                    Ok(_) => {}
                    Err(error) => tracing::warn!(%error, "a checkpoint failed; the WAL keeps what it holds"),
                }
            }
            Err(RecvTimeoutError::Timeout) => {
                has_written = false;
                cut(connection, wal);
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Copies what can be copied without holding anybody up. How many pages the WAL has.
fn passive(connection: &Connection) -> Result<i64, rusqlite::Error> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))
}

/// Copies the rest and cuts the file. A reader or writer in the way: then next time.
fn cut(connection: &Connection, wal: &PathBuf) {
    let long = std::fs::metadata(wal).is_ok_and(|file| file.len() > KEPT_FILE_BYTES);
    let mode = if long { "TRUNCATE" } else { "PASSIVE" };
    if let Err(error) = connection.query_row(&format!("PRAGMA wal_checkpoint({mode})"), [], |_| Ok(())) {
        tracing::debug!(%error, "the WAL was in use");
    }
}
