//! The store on PostgreSQL, for any number of servers and workers on one database.
//!
//! Every verb that writes is a function over `Work`, run by a lane: a task with one transaction at a time, in which whatever has arrived
//! meanwhile goes together. What is to be seen by all processes is in the database; nothing is kept in memory but figures. It must not
//! know policies, clocks or who calls.

mod alerts;
mod answers;
mod at_once;
mod audit;
mod bodies;
mod calls;
mod columns;
mod commands;
mod configuration;
mod configure;
mod credentials;
mod deferrals;
mod endpoints;
mod events;
mod failures;
#[cfg(any(test, feature = "conformance"))]
pub mod filling;
mod filter;
mod group;
mod health;
mod intake;
mod jobs;
mod key;
mod keyed;
mod lines;
mod listing;
mod lookups;
mod open;
mod ownership;
mod partitions;
mod people;
mod positions;
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
pub(crate) mod tests;
mod topics;
mod value;
mod verbs;
mod verbs_of_jobs;
mod vitals;
mod walk;
mod window;
mod work;
mod workforce;
mod writer;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Pool;
use postrider_core::{Timestamp, log};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::{Statistics, StoreError, StoreLimits};
use group::Job;
use readers::Readers;
use signals::{Bell, Ear};
use work::{Context, Counters};
use writer::Run;

pub(crate) use columns::storable;
pub use open::{Database, Schema};
pub(crate) use open::{told, way_in};
pub(crate) use partitions::reach_back;
pub use work::LeaseClock;

/// What an operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresOptions {
    pub limits: StoreLimits,
    /// `store_connections_max`: connections of this process to the database, at least 8.
    pub connections_max: usize,
    pub lease_clock: LeaseClock,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        PostgresOptions { limits: StoreLimits::default(), connections_max: 16, lease_clock: LeaseClock::Database }
    }
}

/// Each lane has a connection when it needs one, and one more is there to look up an outcome.
const WRITERS_MAX: usize = 6;
const CONNECTIONS_MIN: usize = 8;

/// A store in one schema of a database. Dropping it without `close` loses nothing that was answered.
pub struct PostgresStore {
    lanes: Lanes,
    readers: Readers,
    writers: Pool,
    context: Arc<Context>,
    closing: Arc<AtomicBool>,
    ear: Ear,
    /// Tells other processes what this one did.
    telling: Mutex<Option<JoinHandle<()>>>,
    /// The runtime that carries each call while its caller's thread stands still; `None`: callers wait as for anything.
    carrier: Option<Handle>,
}

/// Each kind of work has its own, so that none waits behind another.
struct Lanes {
    intake: Lane,
    /// Settlements, and the claims of the same owners.
    settle: Lane,
    /// Leases: nobody's heartbeat waits behind a long change.
    lease: Lane,
    other: Lane,
}

struct Lane {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    running: Mutex<Option<JoinHandle<()>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lane {
    fn start(pool: &Pool, context: &Arc<Context>, closing: &Arc<AtomicBool>) -> Self {
        let (jobs, running) = writer::start(pool, context, closing);
        Lane { jobs: Mutex::new(Some(jobs)), running: Mutex::new(Some(running)) }
    }

    async fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = locked(&self.jobs).clone().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)
    }

    async fn call<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        verb: Run<D, T>,
    ) -> Result<T, StoreError> {
        let (job, answer) = Job::call(data, verb);
        self.send(job).await?;
        answered(answer).await
    }

    /// Takes no more, and ends when what it has is answered.
    async fn close(&self) {
        locked(&self.jobs).take();
        let running = locked(&self.running).take();
        if let Some(running) = running
            && running.await.is_err()
        {
            tracing::error!(event = log::STORE_THREAD_PANICKED, "a lane of the store had panicked");
        }
    }
}

impl PostgresStore {
    /// Connects, brings the schema up to date and starts the lanes. Must be called on a Tokio runtime.
    ///
    /// # Errors
    /// `Unavailable` when the database is not there, when a pooler in between drops the settings of sessions, or when a newer server wrote
    /// the schema; `Corrupt` when the schema has tables of another program.
    pub async fn open(database: &Database, options: PostgresOptions) -> Result<Self, StoreError> {
        let name = open::prepare(database).await.map_err(|fault| opening(database, fault.into()))?;
        open::refuse_unfinished(database).await.map_err(|fault| opening(database, fault.into()))?;
        PostgresStore::start(database, options, name)
    }

    /// As `open`, also where another store is being moved into it.
    pub(crate) async fn open_unfinished(database: &Database, options: PostgresOptions) -> Result<Self, StoreError> {
        let name = open::prepare(database).await.map_err(|fault| opening(database, fault.into()))?;
        PostgresStore::start(database, options, name)
    }

    fn start(database: &Database, options: PostgresOptions, name: String) -> Result<Self, StoreError> {
        let context = Arc::new(Context {
            limits: options.limits,
            lease_clock: options.lease_clock,
            counters: Counters::default(),
            bell: Bell::default(),
        });
        let closing = Arc::new(AtomicBool::new(false));
        let writers = database.pool(WRITERS_MAX)?;
        let readers_max = options.connections_max.max(CONNECTIONS_MIN) - WRITERS_MAX;
        let readers =
            Readers { pool: database.pool(readers_max)?, context: Arc::clone(&context), closing: Arc::clone(&closing) };
        let lane = || Lane::start(&writers, &context, &closing);
        let lanes = Lanes { intake: lane(), settle: lane(), lease: lane(), other: lane() };
        let channel = format!("{}_news", database.schema().name());
        let (signals, ear) = Ear::open();
        tokio::spawn(signals::listen(database.clone(), channel.clone(), name.clone(), signals));
        let telling = tokio::spawn(signals::tell(Arc::clone(&context), readers.pool.clone(), channel, name));
        let telling = Mutex::new(Some(telling));
        Ok(PostgresStore { lanes, readers, writers, context, closing, ear, telling, carrier: None })
    }

    /// What the lanes have done since the store was opened.
    pub fn statistics(&self) -> Statistics {
        self.context.counters.read()
    }

    /// For the simulator, on the runtime that is to carry its connections: every verb is answered at once on the calling task, whose own
    /// runtime may stand still meanwhile. Every lease ends, as with the process that had the database for itself.
    ///
    /// # Errors
    /// As [`PostgresStore::open`].
    pub async fn open_inline(database: &Database, options: PostgresOptions) -> Result<Self, StoreError> {
        let mut store = PostgresStore::open(database, options).await?;
        store.end_all_leases().await?;
        store.carrier = Some(Handle::current());
        Ok(store)
    }

    /// What is left when the process of a worker has died and its lease has run out.
    pub async fn end_all_leases(&self) -> Result<(), StoreError> {
        use futures_util::FutureExt as _;
        self.lease((), |work, ()| ownership::end_all_leases(work).boxed()).await
    }

    /// Outside the lanes: it changes tables, and what it has to wait for must not keep anybody else waiting.
    async fn look_after_partitions(&self, log_before: Timestamp) -> Result<(), StoreError> {
        let looked = async {
            let mut client = self.writers.get().await?;
            partitions::look_after(&mut client, Some(log_before.as_millis())).await
        };
        self.at_once(looked).await.map_err(|fault: failures::Fault| fault.into())
    }

    async fn at_once<F: Future>(&self, call: F) -> F::Output {
        at_once::at_once(self.carrier.as_ref(), call).await
    }

    /// A batch of one of the lanes that know batches.
    async fn submit<T>(&self, lane: &Lane, job: Job, answer: group::Answer<T>) -> Result<T, StoreError> {
        let submitted = async {
            lane.send(job).await?;
            answered(answer).await
        };
        self.at_once(submitted).await
    }

    async fn write<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        verb: Run<D, T>,
    ) -> Result<T, StoreError> {
        self.at_once(self.lanes.other.call(data, verb)).await
    }

    async fn lease<D: Send + Sync + 'static, T: Send + 'static>(
        &self,
        data: D,
        verb: Run<D, T>,
    ) -> Result<T, StoreError> {
        self.at_once(self.lanes.lease.call(data, verb)).await
    }

    async fn read<D: Sync, T>(&self, data: D, verb: Run<D, T>) -> Result<T, StoreError> {
        self.at_once(self.readers.read(&data, verb)).await
    }

    async fn read_together<D: Sync, T>(&self, data: D, verb: Run<D, T>) -> Result<T, StoreError> {
        self.at_once(self.readers.on_snapshot(&data, verb)).await
    }

    async fn shut(&self) -> Result<(), StoreError> {
        if self.closing.swap(true, Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        let Lanes { intake, settle, lease, other } = &self.lanes;
        tokio::join!(intake.close(), settle.close(), lease.close(), other.close());
        if let Some(telling) = locked(&self.telling).take() {
            telling.abort();
        }
        self.ear.close().await;
        self.writers.close();
        self.readers.pool.close();
        Ok(())
    }
}

/// The lane died, which is a defect; nothing that it had not answered may be relied on.
async fn answered<T>(answer: group::Answer<T>) -> Result<T, StoreError> {
    answer.await.unwrap_or(Err(StoreError::Closed))
}

/// Whatever goes wrong before the store is open is told with the database's name.
fn opening(database: &Database, error: StoreError) -> StoreError {
    match error {
        StoreError::Corrupt(why) => StoreError::Corrupt(format!("the {} cannot be used: {why}", database.shown())),
        other => StoreError::Unavailable(format!("the {} cannot be opened: {other}", database.shown())),
    }
}
