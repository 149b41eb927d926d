//! A schema on the PostgreSQL server of the tests, for the rows that measure a shared store. It must not know what is measured.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio_postgres::{Client, NoTls};

use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::server::{Server, data_directory};

/// The server that tests use as well.
const VARIABLE: &str = "POSTRIDER_TEST_POSTGRES";
/// Servers and workers of one store have one key for secrets.
pub const SECRETS_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
/// Why a row has no value.
pub const NO_SERVER: &str =
    "no PostgreSQL server is reachable: name one with POSTRIDER_TEST_POSTGRES (postgres://user@host/database)";

/// A schema of its own, which `drop` removes.
pub struct Schema {
    pub client: Client,
    server: String,
    name: String,
}

impl Schema {
    /// `None`: there is no server.
    pub async fn make() -> Result<Option<Schema>, Failure> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
        let named = std::env::var(VARIABLE).ok();
        let candidates = match named {
            Some(named) => vec![named],
            None => vec![
                format!("postgres://{user}@/postgres?host=/var/run/postgresql"),
                "postgres://postgres@127.0.0.1/postgres".to_owned(),
            ],
        };
        for server in candidates {
            let Ok((client, connection)) = tokio_postgres::connect(&server, NoTls).await else { continue };
            tokio::spawn(connection);
            let name = format!("bench_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
            let made = format!("CREATE SCHEMA {name}; SET search_path = {name}");
            client.batch_execute(&made).await.map_err(failed)?;
            return Ok(Some(Schema { client, server, name }));
        }
        Ok(None)
    }

    /// As the store's option has it.
    pub fn url(&self) -> String {
        let more = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{more}schema={}", self.server, self.name)
    }

    /// One more connection, with the same tables in sight and every commit on disk.
    pub async fn connect(&self) -> Result<Client, Failure> {
        let (client, connection) = tokio_postgres::connect(&self.server, NoTls).await.map_err(failed)?;
        tokio::spawn(connection);
        let settings = format!("SET search_path = {}; SET synchronous_commit = on", self.name);
        client.batch_execute(&settings).await.map_err(failed)?;
        Ok(client)
    }

    /// A server on this store.
    pub async fn stage(&self, bench: &Bench) -> Result<Stage, Failure> {
        let data = data_directory(&bench.scratch)?;
        let more = [("POSTRIDER_STORE", self.url()), ("POSTRIDER_SECRETS_KEY", SECRETS_KEY.to_owned())];
        let server = Server::start_with(&bench.binary, data.path(), &more).await?;
        Ok(Stage { server, data })
    }

    /// Of the whole database server: how often it has flushed its write-ahead log. `None` before version 14.
    pub async fn wal_syncs(&self) -> Option<f64> {
        let row = self.client.query_one("SELECT wal_sync::double precision FROM pg_stat_wal", &[]).await.ok()?;
        row.try_get(0).ok()
    }

    pub async fn drop(self) -> Result<(), Failure> {
        let gone = format!("SET client_min_messages = error; DROP SCHEMA {} CASCADE", self.name);
        self.client.batch_execute(&gone).await.map_err(failed)
    }
}

pub fn failed(error: tokio_postgres::Error) -> Failure {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::new(format!("PostgreSQL: {error}{cause}"))
}
