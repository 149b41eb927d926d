//! Connections that only read, each call on one snapshot. They never hold up the writer. It must not know what is read.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::open;
use crate::StoreError;

/// Reads at once; further ones wait.
const READERS_MAX: usize = 4;

pub(super) struct Readers {
    database: PathBuf,
    idle: Mutex<Vec<Connection>>,
    places: Semaphore,
    closed: AtomicBool,
}

impl Readers {
    pub fn new(database: PathBuf) -> Self {
        Readers {
            database,
            idle: Mutex::new(Vec::new()),
            places: Semaphore::new(READERS_MAX),
            closed: AtomicBool::new(false),
        }
    }

    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        verb: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let _place = self.places.acquire().await.map_err(|_| StoreError::Closed)?;
        if self.closed.load(Ordering::Acquire) {
            return Err(StoreError::Closed);
        }
        let readers = Arc::clone(self);
        tokio::task::spawn_blocking(move || readers.run(verb))
            .await
            .map_err(|error| StoreError::Unavailable(format!("a read broke off: {error}")))?
    }

    fn run<T>(&self, verb: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let idle = self.idle().pop();
        let mut connection = match idle {
            Some(connection) => connection,
            None => open::reader(&self.database)?,
        };
        let snapshot = connection.transaction()?;
        let found = verb(&snapshot);
        // Dropping it ends the read, so that checkpoints can pass.
        drop(snapshot);
        if !self.closed.load(Ordering::Acquire) {
            self.idle().push(connection);
        }
        found
    }

    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.idle().clear();
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
