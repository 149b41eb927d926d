//! What survives a crash: the data of a memory store, the file of an SQLite one, or a schema of a PostgreSQL database.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use postrider_store::postgres::LeaseClock;
use postrider_store::{
    Database, MemoryStore, PostgresOptions, PostgresStore, SqliteOptions, SqliteStore, Store, StoreLimits,
};
use tempfile::TempDir;

use crate::plan::StoreKind;

pub enum Disk {
    Memory(MemoryStore),
    Sqlite { file: PathBuf, _removed_with: TempDir },
    Postgres(Box<Schema>),
}

impl Disk {
    pub fn new(kind: StoreKind) -> Result<Disk, String> {
        match kind {
            StoreKind::Memory => Ok(Disk::Memory(MemoryStore::new(StoreLimits::default()))),
            StoreKind::Sqlite => {
                let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
                Ok(Disk::Sqlite { file: directory.path().join("store.db"), _removed_with: directory })
            }
            StoreKind::Postgres => Ok(Disk::Postgres(Box::new(Schema::new()?))),
        }
    }

    /// Opens the store as a new process does: every former lease has ended. The former store must be gone.
    pub fn open(&self) -> Result<Arc<dyn Store>, String> {
        match self {
            Disk::Memory(store) => Ok(Arc::new(store.reopen())),
            Disk::Sqlite { file, .. } => {
                // The host's own disk is none of a run's business.
                let options = SqliteOptions { free_bytes_min: 0, ..SqliteOptions::default() };
                let store = SqliteStore::open_inline(Some(file), options).map_err(|error| error.to_string())?;
                Ok(Arc::new(store))
            }
            Disk::Postgres(schema) => schema.open(),
        }
    }
}

/// A schema of its own on the tests' database. Its connections live on a runtime with the real clock; the run's own stands still while a
/// verb is answered, and leases end by the run's time.
pub struct Schema {
    server: String,
    name: String,
    /// `None` only while it is dropped.
    carrier: Option<tokio::runtime::Runtime>,
    /// Closed when the next one is opened: all it was asked was answered.
    opened: Mutex<Option<Arc<PostgresStore>>>,
}

impl Schema {
    fn new() -> Result<Schema, String> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
            let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            format!("postgres://{user}@/postgres?host=/var/run/postgresql")
        });
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let carrier = builder.worker_threads(1).enable_all().build().map_err(|error| error.to_string())?;
        let name = format!("sim_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        Ok(Schema { server, name, carrier: Some(carrier), opened: Mutex::new(None) })
    }

    fn open(&self) -> Result<Arc<dyn Store>, String> {
        let carrier = self.carrier.as_ref().ok_or("the schema is gone")?;
        self.close(carrier);
        let more = if self.server.contains('?') { '&' } else { '?' };
        let url = format!("{}{more}schema={}", self.server, self.name);
        let database = Database::parse(&url).map_err(|error| error.to_string())?;
        let options =
            PostgresOptions { lease_clock: LeaseClock::Caller, connections_max: 8, ..PostgresOptions::default() };
        let store = carrier.block_on(PostgresStore::open_inline(&database, options));
        let store = Arc::new(store.map_err(|error| error.to_string())?);
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&store));
        Ok(store)
    }

    fn close(&self, carrier: &tokio::runtime::Runtime) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(store) = opened {
            // Whoever stopped the run has closed it already.
            let _ = carrier.block_on(store.close());
        }
    }

    async fn remove(&self) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = tokio_postgres::connect(&self.server, tokio_postgres::NoTls).await?;
        tokio::spawn(connection);
        let sql = format!("SET client_min_messages = error; DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        client.batch_execute(&sql).await
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let Some(carrier) = self.carrier.take() else { return };
        self.close(&carrier);
        if let Err(error) = carrier.block_on(self.remove()) {
            println!("the schema {} stays: {error}", self.name);
        }
        carrier.shutdown_background();
    }
}
