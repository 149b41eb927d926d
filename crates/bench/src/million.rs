//! A data directory in which a million messages wait for one connection, loaded once and shared by the rows that need it.
//!
//! It must not know what is measured with it.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::full_load;
use crate::load::{Plan, Until};
use crate::messages;
use crate::process;
use crate::server::{BATCH_TYPE, Server, of, publish_paths, uri};

/// The connection for which they wait; paused, to the receiver.
pub const CONNECTION: &str = "million";
const LOAD_AT_MOST: Duration = Duration::from_secs(900);
/// Lines of one request of a batch load.
const LINES: u64 = 1000;

pub struct Million {
    pub data: TempDir,
    pub messages: u64,
    /// Resident memory of the server before and after loading, in KiB.
    pub empty_kib: u64,
    pub loaded_kib: u64,
    /// Accepted a second while loading.
    pub per_second: f64,
}

/// Loads it unless it is there. No server runs on it afterwards.
pub async fn prepare(bench: &mut Bench) -> Result<(), Failure> {
    if bench.million.is_some() {
        return Ok(());
    }
    let messages = bench.number(1_000_000, 100_000);
    bench.progress.step(format!("loading {messages} messages"));
    let Stage { server, data } = bench.stage().await?;
    server.create_connection(CONNECTION, &bench.receiver.origin(), unordered()).await?;
    server.pause(CONNECTION).await?;
    // What a server does not need before its first request is no memory of what waits.
    fill(bench, &server, CONNECTION, 1).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let empty_kib = process::resident_kib(server.pid)?;
    let per_second = fill(bench, &server, CONNECTION, messages).await?;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let loaded_kib = process::resident_kib(server.pid)?;
    server.stop().await?;
    bench.million = Some(Million { data, messages, empty_kib, loaded_kib, per_second });
    Ok(())
}

/// The keys of an unordered connection with a socket for each attempt at once.
pub fn unordered() -> Value {
    json!({"ordered": false, "concurrency": 16, "pool_size": 16})
}

/// Publishes so many, in batches where the server takes them, and returns how many were accepted a second.
pub async fn fill(bench: &Bench, server: &Server, connection: &str, messages: u64) -> Result<f64, Failure> {
    let book = bench.receiver.open_book(0);
    if messages >= LINES && server.takes_batches(connection).await? {
        let paths: Arc<[Uri]> = Arc::new([uri(&of(connection, "publish/batch"))]);
        let until = Until { messages: messages / LINES, at_most: LOAD_AT_MOST };
        let mut plan = Plan::publish(server.address, paths, until);
        plan.content_type = BATCH_TYPE;
        plan.callers = 4;
        plan.request = |batch| messages::publish_lines(batch * LINES, LINES);
        let loaded = full_load::publish(bench, plan, &book).await?;
        return all(loaded.accepted * LINES, messages, loaded.per_second() * LINES as f64);
    }
    let paths = publish_paths(&[connection.to_owned()]);
    let plan = Plan::publish(server.address, paths, Until { messages, at_most: LOAD_AT_MOST });
    let loaded = full_load::publish(bench, plan, &book).await?;
    all(loaded.accepted, messages, loaded.per_second())
}

fn all(accepted: u64, wanted: u64, per_second: f64) -> Result<f64, Failure> {
    if accepted < wanted {
        return Err(Failure::new(format!("only {accepted} of {wanted} messages were accepted in 15 minutes")));
    }
    Ok(per_second)
}
