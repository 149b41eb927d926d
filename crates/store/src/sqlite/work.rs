//! The write connection with what a transaction keeps in memory: queue rows, counts of statements. It must not know threads.

use postrider_core::log;
use std::cell::{Cell, RefCell, RefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{CachedStatement, Connection, Row, ToSql};

use super::disk::Space;
use super::queues::Queues;
use crate::{Histogram, Statistics, StoreError, StoreLimits};

/// In microseconds: from a cached disk to one that is about to fail.
const COMMIT_MICROS: &[u64] = &[100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000];
const COMMIT_ROWS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096];

#[derive(Debug)]
pub(super) struct Counters {
    pub statements: AtomicU64,
    pub commits: AtomicU64,
    pub enqueued: AtomicU64,
    pub settled: AtomicU64,
    pub commit_micros: Histogram,
    pub commit_rows: Histogram,
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            statements: AtomicU64::default(),
            commits: AtomicU64::default(),
            enqueued: AtomicU64::default(),
            settled: AtomicU64::default(),
            commit_micros: Histogram::new(COMMIT_MICROS),
            commit_rows: Histogram::new(COMMIT_ROWS),
        }
    }
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

/// The only connection that writes. Every change goes through one of these.
pub(super) struct Work {
    pub connection: Connection,
    pub limits: StoreLimits,
    pub space: Space,
    pub counters: Arc<Counters>,
    queues: RefCell<Queues>,
    changes_at_begin: Cell<u64>,
}

impl Work {
    pub fn new(connection: Connection, limits: StoreLimits, space: Space, counters: Arc<Counters>) -> Self {
        // Each verb has a few statements, the batched ones four sizes of each.
        connection.set_prepared_statement_cache_capacity(256);
        Work {
            connection,
            limits,
            space,
            counters,
            queues: RefCell::new(Queues::default()),
            changes_at_begin: Cell::new(0),
        }
    }

    pub fn into_connection(self) -> Connection {
        self.connection
    }

    pub fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, StoreError> {
        self.counters.statements.fetch_add(1, Ordering::Relaxed);
        Ok(self.connection.prepare_cached(sql)?)
    }

    pub fn execute(&self, sql: &str, params: &[&dyn ToSql]) -> Result<usize, StoreError> {
        Ok(self.prepare(sql)?.execute(params)?)
    }

    pub fn first<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        read: impl FnOnce(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params)?;
        rows.next()?.map(read).transpose()
    }

    pub fn all<T>(
        &self,
        sql: &str,
        params: &[&dyn ToSql],
        mut read: impl FnMut(&Row<'_>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(read(row)?);
        }
        Ok(found)
    }

    pub fn queues(&self) -> RefMut<'_, Queues> {
        self.queues.borrow_mut()
    }

    /// Writes the queue rows that have changed, before a verb that asks SQL about queues, and before every commit.
    pub fn flush_queues(&self) -> Result<(), StoreError> {
        let changed = self.queues().take_changed();
        super::queues::write(self, &changed)
    }

    pub fn begin(&self) -> Result<(), StoreError> {
        self.prepare("BEGIN IMMEDIATE")?.execute([])?;
        self.changes_at_begin.set(self.connection.total_changes());
        Ok(())
    }

    /// Durable when this returns `Ok`; rolled back when it returns an error.
    pub fn commit(&self) -> Result<(), StoreError> {
        let result = self.flush_queues().and_then(|()| Ok(self.prepare("COMMIT")?.execute([]).map(|_| ())?));
        match result {
            Ok(()) => {
                self.queues().keep_small();
                if self.connection.total_changes() != self.changes_at_begin.get() {
                    self.counters.commits.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(_) => self.roll_back(),
        }
        result
    }

    /// What was kept in memory may be of the transaction that is undone, so it goes as well.
    pub fn roll_back(&self) {
        self.queues().forget();
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::error!(event = log::STORE_ROLLBACK_FAILED, %error, "a transaction could not be rolled back");
        }
    }

    /// Whether the transaction has changed anything since `mark`.
    pub fn changed_since(&self, mark: Mark) -> bool {
        self.mark() != mark
    }

    pub fn mark(&self) -> Mark {
        Mark { rows: self.connection.total_changes(), queues: self.queues().touches() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    rows: u64,
    queues: u64,
}

/// How many rows go into one statement: few sizes, so that each is prepared once.
const CHUNKS: [usize; 4] = [64, 16, 4, 1];

/// Cuts `items` into the sizes for which a statement is kept.
pub(super) fn in_chunks<T>(
    mut items: &[T],
    mut each: impl FnMut(&[T]) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    while !items.is_empty() {
        let size = CHUNKS.into_iter().find(|size| *size <= items.len()).unwrap_or(1);
        let (chunk, rest) = items.split_at(size);
        each(chunk)?;
        items = rest;
    }
    Ok(())
}

/// `(?,?),(?,?)`: `rows` times `columns`.
pub(super) fn places(rows: usize, columns: usize) -> String {
    let mut text = String::with_capacity(rows * (columns * 2 + 2));
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ",(" });
        for column in 0..columns {
            text.push_str(if column == 0 { "?" } else { ",?" });
        }
        text.push(')');
    }
    text
}

/// Runs one statement a chunk: `before`, the places of its rows, `after`.
pub(super) fn write_rows<T>(
    work: &Work,
    (before, columns, after): (&str, usize, &str),
    rows: &[T],
    bind: impl Fn(&mut Binder<'_, '_>, &T) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    in_chunks(rows, |chunk| {
        let mut statement = work.prepare(&format!("{before}{}{after}", places(chunk.len(), columns)))?;
        let mut binder = Binder { statement: &mut statement, next: 1 };
        for row in chunk {
            bind(&mut binder, row)?;
        }
        statement.raw_execute()?;
        Ok(())
    })
}

/// The same for a statement whose rows are read: `… IN (?,?,…)`.
pub(super) fn read_rows<K: ToSql + Copy>(
    work: &Work,
    (before, after): (&str, &str),
    keys: &[K],
    mut read: impl FnMut(&Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    in_chunks(keys, |chunk| {
        let mut statement = work.prepare(&format!("{before}{}{after}", places(1, chunk.len())))?;
        let mut rows = statement.query(rusqlite::params_from_iter(chunk.iter()))?;
        while let Some(row) = rows.next()? {
            read(row)?;
        }
        Ok(())
    })
}

/// And for one that only changes rows.
pub(super) fn change_rows<K: ToSql + Copy>(work: &Work, before: &str, keys: &[K]) -> Result<(), StoreError> {
    in_chunks(keys, |chunk| {
        let mut statement = work.prepare(&format!("{before}{}", places(1, chunk.len())))?;
        statement.execute(rusqlite::params_from_iter(chunk.iter()))?;
        Ok(())
    })
}

/// Binds values from left to right.
pub(super) struct Binder<'b, 'c> {
    pub statement: &'b mut CachedStatement<'c>,
    pub next: usize,
}

impl Binder<'_, '_> {
    pub fn push<T: ToSql>(&mut self, value: T) -> Result<(), StoreError> {
        self.statement.raw_bind_parameter(self.next, value)?;
        self.next += 1;
        Ok(())
    }
}
