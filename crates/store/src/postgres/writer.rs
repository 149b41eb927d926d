//! Lanes: tasks that write, each one transaction at a time, with whatever has arrived for it meanwhile. It must not know what a verb does.
//!
//! A transaction whose answer was lost is looked up before anybody is told: each lane has a row, and each of its transactions writes its
//! number there. What got in its way and was rolled back is done again, a bounded number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use super::failures::{Fault, Outcome};
use super::group::{self, Job};
use super::key::Key;
use super::work::{Context, Work};
use crate::StoreError;

/// Calls that wait for a lane; further callers wait for a place.
const JOBS_MAX: usize = 1024;
/// Rows in one transaction, so that the first caller of a group does not wait for ever more of them.
const ROWS_PER_COMMIT: usize = 1024;
/// How often a transaction is tried that others were in the way of.
const TRIES_MAX: u32 = 6;
/// The pause after the first such try; twice as long each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two looks for the outcome of a transaction.
const LOOK_PAUSE_MAX: Duration = Duration::from_secs(2);

/// A verb that writes: a function of the transaction and of its arguments, so that it can be run again.
pub(super) type Run<D, T> = for<'w> fn(&'w Work, &'w D) -> BoxFuture<'w, Outcome<T>>;

pub(super) struct Lane {
    pool: Pool,
    context: Arc<Context>,
    closing: Arc<AtomicBool>,
    jobs: mpsc::Receiver<Job>,
    /// Its row, once it has one.
    row: Option<Key>,
    number: i64,
}

/// Starts a lane. It ends when all senders are gone.
pub(super) fn start(
    pool: &Pool,
    context: &Arc<Context>,
    closing: &Arc<AtomicBool>,
) -> (mpsc::Sender<Job>, tokio::task::JoinHandle<()>) {
    let (sender, jobs) = mpsc::channel(JOBS_MAX);
    let (pool, context, closing) = (pool.clone(), Arc::clone(context), Arc::clone(closing));
    (sender, tokio::spawn(serve(Lane { pool, context, closing, jobs, row: None, number: 0 })))
}

async fn serve(mut lane: Lane) {
    while let Some(first) = lane.jobs.recv().await {
        let mut group = Vec::new();
        let mut weight = 0;
        let mut next = Some(first);
        // No timer: whatever came in during the last commit is the next group.
        while let Some(job) = next {
            weight += job.weight();
            group.push(job);
            next = if weight < ROWS_PER_COMMIT { lane.jobs.try_recv().ok() } else { None };
        }
        group::run(&mut lane, group).await;
    }
    lane.leave().await;
}

impl Lane {
    /// Runs a verb in a transaction of its own. Durable when this returns `Ok`; nothing is written when it returns an error, unless that
    /// says that the outcome is not known.
    pub async fn transaction<D: Sync + ?Sized, T>(&mut self, data: &D, run: Run<D, T>) -> Result<T, StoreError> {
        let mut tries = 0;
        let mut pause = FIRST_PAUSE;
        loop {
            tries += 1;
            let fault = match self.attempt(data, run).await {
                Ok(value) => return Ok(value),
                Err(fault) => fault,
            };
            match fault {
                // A connection from before the database was started anew is found out only by its use.
                Fault::Lost(_) if tries == 1 => drop(self.pool.retain(|_, _| false)),
                // What else is in the pool will not answer either.
                Fault::Silent(error) => {
                    self.pool.retain(|_, _| false);
                    return Err(error);
                }
                Fault::Again(_) if tries < TRIES_MAX => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                fault => return Err(fault.into()),
            };
        }
    }

    async fn attempt<D: Sync + ?Sized, T>(&mut self, data: &D, run: Run<D, T>) -> Outcome<T> {
        let work = Work::connect(&self.pool, &self.context).await?;
        work.begin("BEGIN").await?;
        let result = match run(&work, data).await {
            Ok(value) if work.has_written() => self.number_it(&work).await.map(|()| value),
            other => other,
        };
        let value = match result {
            Ok(value) => value,
            Err(fault) => {
                work.roll_back().await;
                return Err(fault);
            }
        };
        let has_written = work.has_written();
        let news = work.take_news();
        match work.commit().await {
            Ok(()) => {}
            Err(Fault::Lost(error) | Fault::Silent(error)) if has_written => {
                drop(work);
                if !self.was_committed().await? {
                    return Err(Fault::Again(error));
                }
            }
            Err(fault) => return Err(fault),
        }
        self.context.bell.ring(news);
        Ok(value)
    }

    /// Writes this transaction's number into the lane's row, which is made when it is not there.
    async fn number_it(&mut self, work: &Work) -> Outcome<()> {
        if work.changes_configuration() {
            // Last, since all changes of configuration write this row.
            work.execute("UPDATE version SET configuration = configuration + 1", &[]).await?;
        }
        self.number += 1;
        let row = match self.row {
            Some(row) => row,
            None => self.enter().await?,
        };
        let sql = "UPDATE lane SET number = $2, seen_at = now() WHERE id = $1";
        if work.execute(sql, &[&row, &self.number]).await? == 0 {
            self.row = None;
            return Err(Fault::Again(StoreError::Unavailable("the lane's row is gone".to_owned())));
        }
        Ok(())
    }

    /// On a connection of its own: were the row part of the transaction that it is to testify for, nothing would testify for the row.
    async fn enter(&mut self) -> Outcome<Key> {
        let work = Work::connect(&self.pool, &self.context).await?;
        let sql = "INSERT INTO lane (id, number) VALUES (gen_random_uuid(), $1) RETURNING id";
        let row = work.changed(sql, &[&0_i64], |row| super::rows::Cells::of(row).take()).await?;
        let row = *row.first().ok_or_else(|| StoreError::Corrupt("a row that was inserted is not there".to_owned()))?;
        self.row = Some(row);
        Ok(row)
    }

    /// Whether the last transaction is there, for as long as it takes to learn it: nobody is told a guess. Whoever comes meanwhile is refused,
    /// since nothing can be written before.
    async fn was_committed(&mut self) -> Outcome<bool> {
        let mut pause = FIRST_PAUSE;
        loop {
            let looking = async {
                let found = last_number(&self.pool, &self.context, self.row).await;
                if found.is_err() {
                    tokio::time::sleep(pause).await;
                }
                found
            };
            let found = refusing(&mut self.jobs, looking).await;
            match found {
                Ok(last) => return Ok(last == Some(self.number)),
                Err(fault) if self.closing.load(Ordering::Relaxed) => {
                    let why = StoreError::from(fault);
                    let text = format!(
                        "the connection was lost while a commit was under way, and it is not known whether it is written: {why}"
                    );
                    return Err(Fault::Refused(StoreError::Unavailable(text)));
                }
                Err(_) => pause = (pause * 2).min(LOOK_PAUSE_MAX),
            }
        }
    }

    /// Leaves no row behind. One that cannot be removed is removed by retention.
    async fn leave(self) {
        let Some(row) = self.row else { return };
        if let Ok(work) = Work::connect(&self.pool, &self.context).await {
            let _ = work.execute("DELETE FROM lane WHERE id = $1", &[&row]).await;
        }
    }
}

/// The lock on the row waits for a transaction that is still being committed.
async fn last_number(pool: &Pool, context: &Arc<Context>, row: Option<Key>) -> Outcome<Option<i64>> {
    pool.retain(|_, _| false);
    let work = Work::connect(pool, context).await?;
    work.begin("BEGIN").await?;
    let sql = "SELECT number FROM lane WHERE id = $1 FOR UPDATE";
    let found = work.first(sql, &[&row], |row| super::rows::Cells::of(row).take()).await?;
    work.roll_back().await;
    Ok(found)
}

/// Does this, and meanwhile refuses what comes in.
async fn refusing<T>(jobs: &mut mpsc::Receiver<Job>, doing: impl Future<Output = T>) -> T {
    tokio::pin!(doing);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            done = &mut doing => return done,
            job = jobs.recv(), if is_open => match job {
                Some(job) => {
                    let why = "the connection was lost while a commit was under way, and the database cannot be asked yet".to_owned();
                    job.refuse(StoreError::Unavailable(why));
                }
                None => is_open = false,
            },
        }
    }
}
