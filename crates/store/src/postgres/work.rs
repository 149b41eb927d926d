//! One connection with what is done on it: statements, counted, inside one transaction. It must not know which verb runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deadpool_postgres::{Object, Pool};
use postrider_core::Timestamp;
use postrider_core::id::{QueueId, WorkerId};
use tokio_postgres::Row;

use super::columns::{Columns, Param};
use super::failures::{Fault, Outcome};
use super::signals::{Bell, News};
use crate::{Statistics, StoreError, StoreLimits};

/// What all connections of a store share.
pub(super) struct Context {
    pub limits: StoreLimits,
    pub lease_clock: LeaseClock,
    pub counters: Counters,
    pub bell: Bell,
}

/// Whose time ends leases (D05).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaseClock {
    /// The database's, so that no worker's own clock matters.
    #[default]
    Database,
    /// The `now` of each call, for tests that own the time.
    Caller,
}

/// Every statement that this process has run, for the test of their plans.
#[cfg(test)]
pub(super) static SEEN: Mutex<std::collections::BTreeSet<String>> = Mutex::new(std::collections::BTreeSet::new());

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub statements: AtomicU64,
    pub commits: AtomicU64,
    pub enqueued: AtomicU64,
    pub settled: AtomicU64,
}

impl Counters {
    pub fn read(&self) -> Statistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            statements: read(&self.statements),
            commits: read(&self.commits),
            enqueued: read(&self.enqueued),
            settled: read(&self.settled),
        }
    }
}

/// The time by which leases end: `$n` is this parameter.
pub(super) fn lease_now(number: usize) -> String {
    format!("coalesce(${number}::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)")
}

pub(super) struct Work {
    /// `None` once it has been thrown away.
    client: Option<Object>,
    pub context: Arc<Context>,
    in_transaction: AtomicBool,
    has_written: AtomicBool,
    news: Mutex<News>,
}

impl Work {
    pub async fn connect(pool: &Pool, context: &Arc<Context>) -> Outcome<Self> {
        let client = pool.get().await?;
        Ok(Work {
            client: Some(client),
            context: Arc::clone(context),
            in_transaction: AtomicBool::new(false),
            has_written: AtomicBool::new(false),
            news: Mutex::default(),
        })
    }

    /// The parameter of `lease_now`.
    pub fn lease_time(&self, now: Timestamp) -> Option<i64> {
        match self.context.lease_clock {
            LeaseClock::Database => None,
            LeaseClock::Caller => Some(now.as_millis()),
        }
    }

    pub fn limits(&self) -> &StoreLimits {
        &self.context.limits
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever else looks after this queue is to look, once this is committed; nobody has to be told if its owner is one of ours.
    pub fn tell_of_queue(&self, id: QueueId, owner: Option<WorkerId>) {
        if !self.context.bell.is_own(owner) {
            self.news().queues.insert(id);
        }
    }

    /// Everybody is to read the configuration anew, once this is committed.
    pub fn tell_of_configuration(&self) {
        self.news().configuration = true;
    }

    pub fn changes_configuration(&self) -> bool {
        self.news().configuration
    }

    /// What is to be told now that it is committed.
    pub fn take_news(&self) -> News {
        std::mem::take(&mut self.news())
    }

    fn client(&self) -> Outcome<&Object> {
        self.count();
        self.client.as_ref().ok_or_else(|| Fault::Lost(StoreError::Unavailable("the connection is closed".to_owned())))
    }

    fn count(&self) {
        self.context.counters.statements.fetch_add(1, Ordering::Relaxed);
    }

    #[cfg(test)]
    fn note(&self, sql: &str) {
        SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(sql.to_owned());
    }

    #[cfg(not(test))]
    const fn note(&self, _: &str) {}

    /// How many rows it changed.
    pub async fn execute(&self, sql: &str, params: &[Param<'_>]) -> Outcome<u64> {
        self.note(sql);
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await?;
        let changed = client.execute(&statement, params).await?;
        if changed > 0 {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(changed)
    }

    /// As `execute`, for rows in columns; nothing is done for none.
    pub async fn write_rows(&self, sql: &str, rows: &Columns<'_>) -> Outcome<u64> {
        if rows.is_empty() {
            return Ok(0);
        }
        self.execute(sql, &rows.params()).await
    }

    pub async fn rows(&self, sql: &str, params: &[Param<'_>]) -> Outcome<Vec<Row>> {
        self.note(sql);
        let client = self.client()?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, params).await?)
    }

    pub async fn all<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        mut read: impl FnMut(&Row) -> Result<T, StoreError>,
    ) -> Outcome<Vec<T>> {
        let rows = self.rows(sql, params).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.push(read(row)?);
        }
        Ok(found)
    }

    /// As `all`, for a statement that changes the rows that it gives.
    pub async fn changed<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        read: impl FnMut(&Row) -> Result<T, StoreError>,
    ) -> Outcome<Vec<T>> {
        let found = self.all(sql, params, read).await?;
        if !found.is_empty() {
            self.has_written.store(true, Ordering::Relaxed);
        }
        Ok(found)
    }

    pub async fn first<T>(
        &self,
        sql: &str,
        params: &[Param<'_>],
        read: impl FnOnce(&Row) -> Result<T, StoreError>,
    ) -> Outcome<Option<T>> {
        let rows = self.rows(sql, params).await?;
        Ok(rows.first().map(read).transpose()?)
    }

    pub async fn exists(&self, sql: &str, params: &[Param<'_>]) -> Outcome<bool> {
        Ok(!self.rows(sql, params).await?.is_empty())
    }

    pub async fn begin(&self, how: &str) -> Outcome<()> {
        let client = self.client()?;
        // Before the answer: should this be given up in between, the connection is thrown away.
        self.in_transaction.store(true, Ordering::Relaxed);
        self.has_written.store(false, Ordering::Relaxed);
        Ok(client.batch_execute(how).await?)
    }

    /// Whether the transaction has changed anything.
    pub fn has_written(&self) -> bool {
        self.has_written.load(Ordering::Relaxed)
    }

    pub async fn commit(&self) -> Outcome<()> {
        self.client()?.batch_execute("COMMIT").await?;
        self.in_transaction.store(false, Ordering::Relaxed);
        if self.has_written() {
            self.context.counters.commits.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// One that cannot be rolled back ends with its connection.
    pub async fn roll_back(&self) {
        let Some(client) = &self.client else { return };
        self.count();
        if client.batch_execute("ROLLBACK").await.is_ok() {
            self.in_transaction.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for Work {
    /// A caller may leave in the middle. The connection must not go back to the pool with a transaction open, so it is closed, and the
    /// database rolls back.
    fn drop(&mut self) {
        if self.in_transaction.load(Ordering::Relaxed)
            && let Some(client) = self.client.take()
        {
            drop(Object::take(client));
        }
    }
}
