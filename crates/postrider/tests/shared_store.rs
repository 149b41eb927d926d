//! Several servers on one PostgreSQL database (workers that are killed: `workers_killed`).
//!
//! The database is found by `POSTRIDER_TEST_POSTGRES`, or at the local socket.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::{Api, KEY, Receiver, Remote, Server};
use tokio::process::Command;

const PROJECT: &str = "/api/v1/projects/default";
const LEASE_SECONDS: &str = "3";
/// For what must come sooner or later, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(120);

const SECRETS_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// A schema of its own on the tests' database, gone at the end.
struct Database {
    server: String,
    schema: String,
}

impl Database {
    fn new() -> Database {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
            let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            format!("postgres://{user}@/postgres?host=/var/run/postgresql")
        });
        let schema = format!("shared_{}_{}", std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
        Database { server, schema }
    }

    fn url(&self) -> String {
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

fn command(verb: &str, database: &Database, data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.arg(verb).args(["--store", &database.url(), "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "error").env("POSTRIDER_LEASE_SECONDS", LEASE_SECONDS);
    command
}

async fn serve(database: &Database, data: &Path) -> Server {
    let mut command = command("serve", database, data);
    command.args(["--listen", "127.0.0.1:0"]);
    // Signing keys are sealed under one key for all of them.
    command.env("POSTRIDER_SECRETS_KEY", SECRETS_KEY).env("POSTRIDER_ALLOW_PRIVATE", "127.0.0.0/8");
    Server::of(command).await
}

async fn create(api: &Api, name: &str, remote: &str, settings: &str) {
    let body = format!(
        r#"{{"name":"{name}","type":"rest","host":"{remote}","url_path":"/{name}","use_queue":true,"retry_sleep_time":0,{settings}}}"#
    );
    let (status, answer) = api.call("POST", &format!("{PROJECT}/connections"), &body).await.unwrap();
    assert_eq!(status, 201, "{answer}");
}

async fn eventually<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < deadline, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn json(api: &Api, path: &str) -> serde_json::Value {
    let (status, body) = api.call("GET", path, "").await.unwrap();
    assert_eq!(status, 200, "GET {path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// What one server changes holds on the other at once, and without being told within seconds; queues go to whoever joins.
// proves: D47, D05, P07
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d47_a_change_on_one_server_holds_on_the_other() {
    let database = Database::new();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let receiver = Receiver::start().await;
    let servers = [serve(&database, dirs[0].path()).await, serve(&database, dirs[1].path()).await];
    let apis = [Api::new(&servers[0].address), Api::new(&servers[1].address)];
    create(&apis[0], "shared", &receiver.address, r#""max_retries":1"#).await;
    let path = format!("{PROJECT}/connections/shared");
    eventually("the connection on the other server", async || {
        let (status, _) = apis[1].call("GET", &path, "").await.unwrap();
        (status == 200).then_some(())
    })
    .await;
    // Taken by one and delivered, by whichever of them owns the queue, in one line.
    for number in 0..20 {
        let api = &apis[number % 2];
        let (status, answer) =
            api.call("POST", &format!("{path}/publish"), &format!(r#"{{"body":"{number}"}}"#)).await.unwrap();
        assert_eq!(status, 202, "{answer}");
    }
    apis[0].wait_until_drained("shared", PATIENCE).await;
    let received: Vec<u64> = receiver.receipts().into_iter().map(|(_, (_, number))| number).collect();
    assert_eq!(received, (0..20).collect::<Vec<u64>>());

    let (status, answer) = apis[1].call("POST", &format!("{path}/pause"), "").await.unwrap();
    assert_eq!(status, 200, "{answer}");
    eventually("the pause on the first server", async || {
        (json(&apis[0], &path).await["state"]["paused"] == serde_json::Value::Bool(true)).then_some(())
    })
    .await;
    let (status, _) = apis[0].call("POST", &format!("{path}/publish"), r#"{"body":"99"}"#).await.unwrap();
    assert_eq!(status, 202);
    let (status, _) = apis[0].call("DELETE", &format!("{path}?force=true"), "").await.unwrap();
    assert!(status == 200 || status == 204, "{status}");
    eventually("the connection's end on the other server", async || {
        let (status, _) = apis[1].call("GET", &path, "").await.unwrap();
        (status == 404).then_some(())
    })
    .await;
    assert_eq!(receiver.receipts().len(), 20, "nothing was sent while it was paused");
    for server in servers {
        server.stop().await;
    }
}

/// An endpoint's health is one, whichever server makes its attempts; switched off by one, it gets nothing from the other.
// proves: V03, V04, V05, V06, D47
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v03_an_endpoint_that_one_server_switches_off_is_off_on_the_other() {
    let database = Database::new();
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let remote = Remote::start().await;
    let servers = [serve(&database, dirs[0].path()).await, serve(&database, dirs[1].path()).await];
    let apis = [Api::new(&servers[0].address), Api::new(&servers[1].address)];
    let call = async |server: usize, method: &str, path: &str, body: &str| {
        let (status, answer) = apis[server].call(method, &format!("{PROJECT}{path}"), body).await.unwrap();
        assert!((200..300).contains(&status), "{method} {path}: {answer}");
        serde_json::from_str::<serde_json::Value>(&answer).unwrap()
    };
    let body = format!(
        r#"{{"url": "{}/500/500/500/500/500/410/200", "preset": "patient", "maxAttempts": 1}}"#,
        remote.address
    );
    let id = call(0, "POST", "/endpoints", &body).await["id"].as_str().unwrap().to_owned();
    call(0, "POST", "/subscriptions", &format!(r#"{{"endpointId": "{id}", "eventType": "a"}}"#)).await;
    let health_path = format!("/endpoints/{id}/health");
    let made = async |server: usize| {
        call(server, "POST", "/events", r#"{"type": "a", "data": 1}"#).await["deliveriesCreated"].as_u64().unwrap()
    };
    // The other one hears of it; what it publishes before makes no delivery.
    let mut published = 0;
    eventually("the subscription on the other server", async || {
        published += made(1).await;
        (published == 1).then_some(())
    })
    .await;
    for number in 2..=5 {
        assert_eq!(made(number % 2).await, 1);
        eventually("the failures on both servers", async || {
            let first = call(0, "GET", &health_path, "").await["failedInARow"].as_u64();
            let second = call(1, "GET", &health_path, "").await["failedInARow"].as_u64();
            (first == Some(number as u64) && first == second).then_some(())
        })
        .await;
    }
    assert_eq!(made(0).await, 1);
    for server in [0, 1] {
        let off = eventually("the switching-off", async || {
            let health = call(server, "GET", &health_path, "").await;
            (health["enabled"] == false).then_some(health)
        })
        .await;
        assert_eq!(off["switchedOff"]["reason"], "gone", "{off}");
        eventually("no deliveries any more", async || (made(server).await == 0).then_some(())).await;
    }
    call(1, "POST", &format!("/endpoints/{id}/enable"), "").await;
    eventually("it is on on the first server too", async || (made(0).await == 1).then_some(())).await;
    eventually("the delivery", async || {
        let found = call(1, "GET", "/deliveries?status=SUCCESS", "").await;
        (!found["data"].as_array().unwrap().is_empty()).then_some(())
    })
    .await;
    let health = call(0, "GET", &health_path, "").await;
    assert_eq!(health["failedInARow"], 0, "{health}");
    for server in servers {
        server.stop().await;
    }
}

/// Without a key of ours, which no channel takes.
async fn ask(server: &Server, path: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.address.strip_prefix("http://").unwrap()).await.unwrap();
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn z41_a_channel_is_every_servers_and_what_one_accepted_any_of_them_runs() {
    let dir = tempfile::tempdir().unwrap();
    let database = Database::new();
    let mirror = harness::Mirror::start().await;
    let one = serve(&database, &dir.path().join("one")).await;
    let other = serve(&database, &dir.path().join("other")).await;
    let api = Api::new(&one.address);
    let service = format!(r#"{{"name": "mirror", "address": "{}"}}"#, mirror.address);
    let channel =
        r#"{"name": "Orders", "type": "rest", "url_path": "/orders/{id}", "service": "mirror", "use_queue": true}"#;
    for (path, body) in [("/services", service.as_str()), ("/channels", channel)] {
        let (status, answer) = api.call("POST", &format!("{PROJECT}{path}"), body).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }
    let deadline = Instant::now() + PATIENCE;
    while !ask(&other, "/orders/first", "0").await.starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < deadline, "the other server does not know the channel");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    for n in 1..=10 {
        for server in [&one, &other] {
            let answer = ask(server, &format!("/orders/{n}"), "x").await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"is_ok\": true"), "{answer}");
        }
    }
    tokio::time::timeout(PATIENCE, mirror.until(21)).await.unwrap();
    let cids: BTreeSet<String> =
        mirror.requests().iter().map(|got| got.header("x-postrider-cid").unwrap().to_owned()).collect();
    assert_eq!(cids.len(), 21, "each under an id of its own");
    // One of them ends, and the other goes on with the queue.
    one.kill_nine().await;
    assert!(ask(&other, "/orders/last", "x").await.starts_with("HTTP/1.1 200"));
    tokio::time::timeout(PATIENCE, mirror.until(22)).await.unwrap();
}
