//! Connections that only read, each call on one snapshot. They never hold up a writer. It must not know what is read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use deadpool_postgres::Pool;

use super::failures::{Fault, Outcome};
use super::work::{Context, Work};
use super::writer::Run;
use crate::StoreError;

pub(super) struct Readers {
    pub pool: Pool,
    pub context: Arc<Context>,
    pub closing: Arc<AtomicBool>,
}

impl Readers {
    /// For a verb of one statement.
    pub async fn read<D: Sync, T>(&self, data: &D, verb: Run<D, T>) -> Result<T, StoreError> {
        self.twice("", data, verb).await
    }

    /// For a verb of several statements, which all see the same.
    pub async fn on_snapshot<D: Sync, T>(&self, data: &D, verb: Run<D, T>) -> Result<T, StoreError> {
        self.twice("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", data, verb).await
    }

    /// It is run again, once, when its connection turns out to be from before a restart of the database.
    async fn twice<D: Sync, T>(&self, begin: &str, data: &D, verb: Run<D, T>) -> Result<T, StoreError> {
        if self.closing.load(Ordering::Relaxed) {
            return Err(StoreError::Closed);
        }
        match self.once(begin, data, verb).await {
            Err(Fault::Lost(_)) => {
                self.pool.retain(|_, _| false);
                Ok(self.once(begin, data, verb).await?)
            }
            Err(Fault::Silent(error)) => {
                self.pool.retain(|_, _| false);
                Err(error)
            }
            other => Ok(other?),
        }
    }

    async fn once<D: Sync, T>(&self, begin: &str, data: &D, verb: Run<D, T>) -> Outcome<T> {
        let work = Work::connect(&self.pool, &self.context).await?;
        if begin.is_empty() {
            return verb(&work, data).await;
        }
        work.begin(begin).await?;
        let found = verb(&work, data).await;
        work.roll_back().await;
        found
    }
}
