//! The suite that every store passes, each case in a schema of its own; and what only a database with several users has to show.
//!
//! The server is found by `POSTRIDER_TEST_POSTGRES`, or at the local socket; the test command starts one where none is.

mod at_size;
mod cut;
mod opening;
mod outcomes;
mod partitions;
mod plans;
mod several;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::{Database, LeaseClock, PostgresOptions, PostgresStore};
use crate::conformance::{LIMITS, TestStore};
use crate::{Store, StoreLimits};

/// Where tests find their server.
fn server() -> String {
    std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
        let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
        format!("postgres://{user}@/postgres?host=/var/run/postgresql")
    })
}

/// A schema of its own, which goes with the value.
pub(crate) struct TestSchema {
    name: String,
}

impl TestSchema {
    pub(crate) fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        TestSchema { name: format!("test_{}_{number}", std::process::id()) }
    }

    fn url(&self) -> String {
        let server = server();
        let more = if server.contains('?') { '&' } else { '?' };
        // The name in the list of sessions tells whose they are.
        format!("{server}{more}schema={0}&application_name={0}", self.name)
    }

    pub(crate) fn database(&self) -> Database {
        Database::parse(&self.url()).unwrap()
    }

    /// Runs statements on a connection of their own.
    pub(crate) async fn run(&self, sql: &str) -> Result<(), tokio_postgres::Error> {
        let (client, connection) = self.database().connect().await.unwrap();
        let carried = tokio::spawn(connection);
        let done = client.batch_execute(sql).await;
        drop(client);
        let _ = carried.await;
        done
    }
}

impl Drop for TestSchema {
    fn drop(&mut self) {
        let gone = TestSchema { name: self.name.clone() };
        // A runtime of its own: the test's may be at its end.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let name = &gone.name;
            let sql = format!(
                "SET lock_timeout = '30s'; SET client_min_messages = error; DROP SCHEMA IF EXISTS {name} CASCADE"
            );
            if let Err(error) = runtime.block_on(gone.run(&sql)) {
                println!("the schema {name} stays: {error}");
            }
            std::mem::forget(gone);
        });
        let _ = dropping.join();
    }
}

struct PostgresTest {
    store: Arc<PostgresStore>,
    schema: TestSchema,
    options: PostgresOptions,
}

#[async_trait]
impl TestStore for PostgresTest {
    fn store(&self) -> Arc<dyn Store> {
        self.store.clone()
    }

    /// The leases of what was killed run out here and now.
    async fn reopen(&mut self) {
        self.store = Arc::new(PostgresStore::open(&self.schema.database(), self.options).await.unwrap());
        self.store.end_all_leases().await.unwrap();
    }
}

async fn make_store(limits: StoreLimits) -> PostgresTest {
    let schema = TestSchema::new();
    let options = PostgresOptions { limits, connections_max: 8, lease_clock: LeaseClock::Caller };
    let store = Arc::new(PostgresStore::open(&schema.database(), options).await.unwrap());
    PostgresTest { store, schema, options }
}

/// One whose leases end by the database's clock.
async fn by_the_database(schema: &TestSchema) -> PostgresStore {
    let options = PostgresOptions { limits: LIMITS, connections_max: 8, lease_clock: LeaseClock::Database };
    PostgresStore::open(&schema.database(), options).await.unwrap()
}

crate::conformance_suite!(crate::postgres::tests::make_store);
