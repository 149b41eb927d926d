//! The suite that every store passes, each case in a schema of its own. The server is found by `POSTRIDER_TEST_POSTGRES`, or at the local
//! socket; the test command starts one where none is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;

use super::{Database, LeaseClock, PostgresOptions, PostgresStore};
use crate::conformance::TestStore;
use crate::{Store, StoreLimits};

/// Where tests find their server.
fn server() -> String {
    std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
        let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
        format!("postgres://{user}@/postgres?host=/var/run/postgresql")
    })
}

/// A schema of its own, which goes with the value.
struct TestSchema {
    name: String,
}

impl TestSchema {
    fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        TestSchema { name: format!("test_{}_{number}", std::process::id()) }
    }

    fn database(&self) -> Database {
        let server = server();
        let more = if server.contains('?') { '&' } else { '?' };
        Database::parse(&format!("{server}{more}schema={}", self.name)).unwrap()
    }
}

impl Drop for TestSchema {
    fn drop(&mut self) {
        let (database, name) = (self.database(), self.name.clone());
        // A runtime of its own: the test's may be at its end.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let (client, connection) = database.connect().await.unwrap();
                let carried = tokio::spawn(connection);
                let sql = format!(
                    "SET lock_timeout = '30s'; SET client_min_messages = error; DROP SCHEMA IF EXISTS {name} CASCADE"
                );
                if let Err(error) = client.batch_execute(&sql).await {
                    println!("the schema {name} stays: {error}");
                }
                drop(client);
                let _ = carried.await;
            });
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

crate::conformance_suite!(crate::postgres::tests::make_store);
