//! Several processes on one database: where it is, and the servers and workers over it.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use super::{Api, KEY, Server};

pub const LEASE_SECONDS: &str = "3";
/// For what must come sooner or later, on a loaded machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

const SECRETS_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// A schema of its own on the tests' database, gone at the end.
pub struct Database {
    server: String,
    schema: String,
}

impl Database {
    pub fn new() -> Database {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
            let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            format!("postgres://{user}@/postgres?host=/var/run/postgresql")
        });
        let schema = format!("shared_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        Database { server, schema }
    }

    pub fn url(&self) -> String {
        let more = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{more}schema={}", self.server, self.schema)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema);
        let mut dropping = std::process::Command::new("psql");
        let dropped = dropping.args(["--quiet", &self.server, "-c", &sql]).stderr(Stdio::null()).status();
        if !dropped.is_ok_and(|status| status.success()) {
            println!("the schema {} stays", self.schema);
        }
    }
}

pub fn command(verb: &str, url: &str, data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.arg(verb).args(["--store", url, "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "error").env("POSTRIDER_LEASE_SECONDS", LEASE_SECONDS);
    command
}

pub async fn serve_on(url: &str, data: &Path) -> Server {
    let mut command = command("serve", url, data);
    command.args(["--listen", "127.0.0.1:0"]);
    // Signing keys are sealed under one key for all of them.
    command.env("POSTRIDER_SECRETS_KEY", SECRETS_KEY).env("POSTRIDER_ALLOW_PRIVATE", "127.0.0.0/8");
    Server::of(command).await
}

pub fn worker_on(url: &str, data: &Path) -> Child {
    command("worker", url, data).stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

pub async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

pub async fn json(api: &Api, path: &str) -> serde_json::Value {
    let (status, body) = api.call("GET", path, "").await.unwrap();
    assert_eq!(status, 200, "GET {path}: {body}");
    serde_json::from_str(&body).unwrap()
}
