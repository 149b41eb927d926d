//! The embedded store: one SQLite file, one writer, readers beside it.
//!
//! Every verb that writes is a function over `Work`, run either by the writer thread, many calls a commit, or at once on the calling
//! task for the simulator. It must not know policies, clocks or who calls.

mod alerts;
mod answers;
mod audit;
pub mod backup;
mod bodies;
mod calls;
mod checkpoint;
mod commands;
mod configuration;
mod configure;
mod credentials;
mod deferrals;
mod disk;
mod endpoints;
mod events;
mod failures;
mod filter;
mod group;
mod health;
pub mod inspect;
mod intake;
mod jobs;
mod lines;
mod listing;
mod lookups;
mod open;
mod ownership;
mod people;
mod queues;
mod readers;
mod retention;
mod rows;
mod schema;
mod security;
mod settle;
mod signals;
mod sources;
mod streams;
#[cfg(test)]
mod tests;
mod topics;
mod verbs;
mod verbs_of_jobs;
mod vitals;
mod walk;
mod window;
mod work;
mod workforce;
mod writer;

use postrider_core::log;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::{Statistics, StoreError, StoreLimits};
use checkpoint::Signal;
use disk::{FileLock, Space};
use group::Job;
use readers::Readers;
use work::{Counters, Work};

pub(crate) use open::Alone;

/// What an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    pub limits: StoreLimits,
    /// `store_free_bytes_min` (D07): with less free on the disk, intake is refused and settling goes on. 0 turns it off.
    pub free_bytes_min: u64,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        SqliteOptions { limits: StoreLimits::default(), free_bytes_min: 256 << 20 }
    }
}

/// A store in one file. Dropping it without `close` loses nothing that was answered.
pub struct SqliteStore {
    mode: Mode,
    counters: Arc<Counters>,
    /// `None` in memory.
    database: Option<PathBuf>,
    space: Space,
    lock: Mutex<Option<FileLock>>,
}

enum Mode {
    Threads(Threads),
    /// `None` once it is closed.
    Inline(Mutex<Option<Work>>),
}

struct Threads {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    running: Mutex<Vec<JoinHandle<()>>>,
    readers: Arc<Readers>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteStore {
    /// Opens the file, or creates it, with a writer thread of its own. Ends every lease (D05).
    ///
    /// # Errors
    /// `Unavailable` when another server has the file, the place cannot be written, or a newer server wrote it; `Corrupt` when it is no store.
    pub fn open(database: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        SqliteStore::open_files(database, options).map_err(open::opening(database))
    }

    fn open_files(database: &Path, options: SqliteOptions) -> Result<Self, StoreError> {
        let lock = FileLock::take(database)?;
        let space = Space::below(database, options.free_bytes_min);
        let counters = Arc::new(Counters::default());
        let mut connection = open::writer(database)?;
        let (signal, wanted) = Signal::new(&mut connection)?;
        let signal = Arc::new(signal);
        let work = prepared(connection, options.limits, space.clone(), &counters)?;
        let checkpointer = checkpoint::start(open::checkpointer(database)?, database, Arc::clone(&signal), wanted)?;
        let (jobs, writer) = writer::start(work, signal, checkpointer)?;
        let threads = Threads {
            jobs: Mutex::new(Some(jobs)),
            running: Mutex::new(vec![writer]),
            readers: Arc::new(Readers::new(database.to_owned())),
        };
        Ok(SqliteStore {
            mode: Mode::Threads(threads),
            counters,
            database: Some(database.to_owned()),
            space,
            lock: Mutex::new(Some(lock)),
        })
    }

    /// For the simulator: every verb runs at once on the calling task, so that a run replays exactly. `None` keeps it in memory. A file
    /// outlives a crash of the process, but not one of the machine: nothing is flushed.
    pub fn open_inline(database: Option<&Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let lock = database.map(FileLock::take).transpose()?;
        let space = database.map_or_else(Space::unlimited, |database| Space::below(database, options.free_bytes_min));
        let counters = Arc::new(Counters::default());
        let work = prepared(open::inline(database)?, options.limits, space.clone(), &counters)?;
        let database = database.map(Path::to_owned);
        Ok(SqliteStore {
            mode: Mode::Inline(Mutex::new(Some(work))),
            counters,
            database,
            space,
            lock: Mutex::new(lock),
        })
    }

    /// What the writer has done since the store was opened.
    pub fn statistics(&self) -> Statistics {
        self.counters.read()
    }

    async fn write<T: Send + 'static>(
        &self,
        verb: impl Fn(&Work) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (job, answer) = Job::call(verb);
        self.submit(job).await?;
        answered(answer).await
    }

    async fn submit(&self, job: Job) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Threads(threads) => {
                let jobs = locked(&threads.jobs).clone().ok_or(StoreError::Closed)?;
                jobs.send(job).await.map_err(|_| StoreError::Closed)
            }
            Mode::Inline(work) => {
                let work = locked(work);
                group::run(work.as_ref().ok_or(StoreError::Closed)?, vec![job]);
                Ok(())
            }
        }
    }

    async fn read<T: Send + 'static>(
        &self,
        verb: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.mode {
            Mode::Threads(threads) => threads.readers.read(verb).await,
            Mode::Inline(work) => {
                let work = locked(work);
                verb(&work.as_ref().ok_or(StoreError::Closed)?.connection)
            }
        }
    }

    async fn shut(&self) -> Result<(), StoreError> {
        match &self.mode {
            Mode::Threads(threads) => {
                let jobs = locked(&threads.jobs).take().ok_or(StoreError::Closed)?;
                // Readers first: a file that nobody else reads can be left whole.
                threads.readers.close();
                let (reply, closed) = oneshot::channel();
                jobs.send(Job::Close(reply)).await.map_err(|_| StoreError::Closed)?;
                closed.await.map_err(|_| StoreError::Closed)?;
            }
            Mode::Inline(work) => drop(locked(work).take().ok_or(StoreError::Closed)?),
        }
        locked(&self.lock).take();
        Ok(())
    }
}

/// The writer died, which is a defect; nothing that it had not answered may be relied on.
async fn answered<T>(answer: group::Answer<T>) -> Result<T, StoreError> {
    answer.await.unwrap_or(Err(StoreError::Closed))
}

/// Schema up to date, and all former leases ended.
fn prepared(
    connection: Connection,
    limits: StoreLimits,
    space: Space,
    counters: &Arc<Counters>,
) -> Result<Work, StoreError> {
    schema::migrate(&connection)?;
    open::leave_move(&connection)?;
    let work = Work::new(connection, limits, space, Arc::clone(counters));
    work.begin()?;
    ownership::end_all_leases(&work).inspect_err(|_| work.roll_back())?;
    work.commit()?;
    Ok(work)
}

impl SqliteStore {
    /// Ends without a goodbye: no flush, no checkpoint. What was answered is on disk already.
    fn abandon(&self) {
        match &self.mode {
            Mode::Threads(threads) => {
                locked(&threads.jobs).take();
                threads.readers.close();
                // The lock is not given up while the writer still has the file.
                for thread in locked(&threads.running).drain(..) {
                    if thread.join().is_err() {
                        tracing::error!(event = log::STORE_THREAD_PANICKED, "a thread of the store had panicked");
                    }
                }
            }
            Mode::Inline(work) => drop(locked(work).take()),
        }
        locked(&self.lock).take();
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.abandon();
    }
}
