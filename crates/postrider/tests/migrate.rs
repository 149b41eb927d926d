//! A whole store from SQLite to PostgreSQL by the real binary: killed half-way, gone on with, and served (P03, D08).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use cli_parts::{Cli, Ran, program};
use harness::{Api, KEY, Mirror, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};

const SECRETS_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
/// More than one batch of the mover.
const REQUESTS: usize = 6000;
const TOGETHER: usize = 500;

/// A schema of its own on the tests' database, gone at the end.
struct Target {
    server: String,
    schema: String,
}

impl Target {
    fn new(name: &str) -> Target {
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
            let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            format!("postgres://{user}@/postgres?host=/var/run/postgresql")
        });
        Target { server, schema: format!("migrate_{name}_{}", std::process::id()) }
    }

    fn url(&self) -> String {
        let more = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{more}schema={}", self.server, self.schema)
    }

    fn sql(&self, sql: &str) -> String {
        let mut asking = std::process::Command::new("psql");
        let sql = format!("SET client_min_messages = error; SET search_path = {}; {sql}", self.schema);
        let said = asking.args(["--quiet", "--tuples-only", "--no-align", &self.server, "-c", &sql]).output().unwrap();
        assert!(said.status.success(), "{sql}: {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.sql(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema));
    }
}

async fn serve(data: &Path, more: &[&str]) -> Server {
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(more);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "warn").env("POSTRIDER_SECRETS_KEY", SECRETS_KEY);
    Server::of(command).await
}

fn cli(server: &Server) -> Cli {
    Cli { server: server.address.clone(), key: KEY.to_owned() }
}

fn migrate(source: &Path, target: &Target, more: &[&str]) -> tokio::process::Command {
    let mut command = program();
    command.args(["migrate", "--from", &format!("sqlite:{}", source.display()), "--to", &target.url()]).args(more);
    command
}

async fn json(api: &Api, path: &str) -> Value {
    let (status, body) = api.call("GET", path, "").await.unwrap();
    assert_eq!(status, 200, "GET {path}: {body}");
    serde_json::from_str(&body).unwrap()
}

/// Every page of a list.
async fn all(api: &Api, path: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = json(api, &format!("{path}{}limit=200{cursor}", if path.contains('?') { '&' } else { '?' })).await;
        found.extend(page["data"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

/// What the API says of everything that a person set up or sent.
async fn survey(server: &Server) -> BTreeMap<&'static str, Vec<Value>> {
    let api = Api::new(&server.address);
    let mut seen = BTreeMap::new();
    for what in [
        "connections",
        "deliveries",
        "endpoints",
        "subscriptions",
        "sources",
        "topics",
        "topics/orders/messages",
        "keys",
        "security",
        "dlq",
        "connections/waiting/queue",
        "jobs",
    ] {
        seen.insert(what, all(&api, &format!("/api/v1/projects/default/{what}")).await);
    }
    seen
}

/// One of everything, thousands of requests that wait in order, and some that were delivered or not.
async fn fill(data: &Path, remote: &Mirror) -> BTreeMap<&'static str, Vec<Value>> {
    let server = serve(data, &[]).await;
    let (cli, api) = (cli(&server), Api::new(&server.address));
    let (queue, here) = ("use_queue=true", "url_path=/");
    cli.connection("waiting", &remote.address, &[here, queue]).await;
    cli.connection("delivered", &remote.address, &[here, queue]).await;
    cli.connection("dead", "http://127.0.0.1:9", &[here, queue, "max_retries=0"]).await;
    cli.done(&["connections", "pause", "waiting"]).await;
    cli.done(&["security", "create", "basic_auth", "login", "username=ada", "password=pa55word"]).await;
    cli.done(&["topics", "create", "orders"]).await;
    cli.done(&["keys", "create", "reader", "--scope", "read"]).await;
    let post = async |path: &str, body: &Value| {
        let (status, answer) =
            api.call("POST", &format!("/api/v1/projects/default{path}"), &body.to_string()).await.unwrap();
        assert!((200..300).contains(&status), "POST {path}: {status} {answer}");
    };
    post("/endpoints", &json!({"url": "https://example.org/hook", "description": "one"})).await;
    post("/topics/orders/publish", &json!({"body": "kept"})).await;
    for name in ["delivered", "dead"] {
        for number in 0..20 {
            post(&format!("/connections/{name}/publish"), &json!({"body": format!("{name} {number}")})).await;
        }
    }
    let lines = |from: usize| -> String {
        (from..from + TOGETHER).map(|number| format!("{}\n", json!({"body": format!("waits {number}")}))).collect()
    };
    for from in (0..REQUESTS).step_by(TOGETHER) {
        let path = "/api/v1/projects/default/connections/waiting/publish/batch";
        let (status, answer) = api.call_as("POST", path, &lines(from), "application/x-ndjson").await.unwrap();
        assert!((200..300).contains(&status), "{status} {answer}");
    }
    let rest = async || {
        let ended = all(&api, "/api/v1/projects/default/deliveries?status=SUCCESS").await.len();
        let dead = all(&api, "/api/v1/projects/default/dlq").await.len();
        (ended, dead)
    };
    for _ in 0..600 {
        if rest().await == (20, 20) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(rest().await, (20, 20));
    let seen = survey(&server).await;
    server.stop().await;
    seen
}

/// What the move itself changes: every queue is paused.
fn without_pause(mut seen: BTreeMap<&'static str, Vec<Value>>) -> BTreeMap<&'static str, Vec<Value>> {
    for what in ["connections", "endpoints"] {
        for one in seen.get_mut(what).unwrap() {
            for changed in ["state", "version", "updated_at", "updatedAt", "paused", "queue"] {
                one.as_object_mut().unwrap().remove(changed);
            }
        }
    }
    seen
}

/// Until a line on standard error says this, then kill -9. Whether it got so far.
async fn killed_at(mut command: tokio::process::Command, line: &str) -> bool {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(told) = lines.next_line().await.unwrap() {
        if told.contains(line) {
            child.kill().await.unwrap();
            return true;
        }
    }
    false
}

// proves: P03, D08
#[tokio::test(flavor = "multi_thread")]
async fn p03_a_store_is_moved_to_postgres_over_a_kill_and_serves_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    let (remote, target) = (Mirror::start().await, Target::new("kill"));
    let before = fill(&data, &remote).await;
    let sent = remote.count();
    let file = data.join("postrider.db");

    // One kill among the bodies, one among the deliveries, and one while it is read back.
    assert!(killed_at(migrate(&file, &target, &[]), "moving body: 0 of").await);
    let refused = serve_refused(&elsewhere, &target).await;
    assert!(refused.code == 5 && refused.stderr.contains("not whole yet"), "{refused:?}");
    assert!(killed_at(migrate(&file, &target, &[]), "moving delivery:").await);
    assert!(target.sql("SELECT count(*) FROM body").parse::<usize>().unwrap() >= REQUESTS);
    assert!(killed_at(migrate(&file, &target, &[]), "verifying delivery").await);
    let ran = Ran::of(migrate(&file, &target, &["--json"]), b"").await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("going on with a move that was cut off"), "{ran:?}");
    let told = ran.json();
    assert_eq!(told["tables"]["delivery"]["rows"], REQUESTS + 20, "{told}");
    assert!(told["paused"].as_u64().unwrap() >= 3, "{told}");

    // The source is not served any more, nor moved again.
    let mut again = program();
    again.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&data).env("POSTRIDER_SECRETS_KEY", SECRETS_KEY);
    let refused = Ran::of(again, b"").await;
    assert!(refused.code == 5 && refused.stderr.contains("it was moved to the postgres database"), "{refused:?}");
    let refused = Ran::of(migrate(&file, &target, &[]), b"").await;
    assert!(refused.code == 4 && refused.error().contains("already"), "{refused:?}");

    let server = serve(&elsewhere, &["--store", &target.url()]).await;
    let after = survey(&server).await;
    for (what, seen) in without_pause(before) {
        assert_eq!(without_pause(after.clone())[what], seen, "{what} after the move");
    }
    assert_eq!(remote.count(), sent, "something was sent before anybody resumed");
    server.stop().await;
    let server = serve(&elsewhere, &["--store", &target.url(), "--resume"]).await;
    cli(&server).done(&["connections", "resume", "waiting"]).await;
    tokio::time::timeout(Duration::from_secs(120), remote.until(sent + REQUESTS)).await.unwrap();
    let bodies: Vec<String> =
        remote.requests()[sent..].iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned()).collect();
    let wanted: Vec<String> = (0..REQUESTS).map(|number| format!("waits {number}")).collect();
    assert!(bodies == wanted, "they are not delivered in the order in which they waited");
    server.stop().await;
}

async fn serve_refused(data: &Path, target: &Target) -> Ran {
    let mut command = program();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(["--store", &target.url()]);
    Ran::of(command, b"").await
}

// proves: P03 (what is refused, and how it is told)
#[tokio::test(flavor = "multi_thread")]
async fn p03_a_move_is_refused_from_a_store_in_use_and_into_one_with_something_in_it() {
    let dir = tempfile::tempdir().unwrap();
    let (data, elsewhere) = (dir.path().join("data"), dir.path().join("elsewhere"));
    let target = Target::new("refused");
    let file = data.join("postrider.db");
    let ran = Ran::of(migrate(&file, &target, &[]), b"").await;
    assert!(ran.code == 5 && ran.error().contains("there is no file"), "{ran:?}");
    let server = serve(&data, &[]).await;
    let ran = Ran::of(migrate(&file, &target, &[]), b"").await;
    assert!(ran.code == 5 && ran.error().contains("in use"), "{ran:?}");
    server.stop().await;
    serve(&elsewhere, &["--store", &target.url()]).await.stop().await;
    let ran = Ran::of(migrate(&file, &target, &[]), b"").await;
    assert!(ran.code == 4 && ran.error().contains("not empty") && ran.error().contains("project"), "{ran:?}");
    // It may still be served.
    serve(&data, &[]).await.stop().await;

    for (words, code, said) in [
        (&["migrate", "--from", "postgres://h/d", "--to", "postgres://h/d"][..], 4, "allowed is sqlite:PATH"),
        (&["migrate", "--from", "sqlite:a.db", "--to", "sqlite:b.db"], 4, "allowed is postgres://"),
        (&["migrate", "--from", "sqlite:a.db", "--to", "mysql://ada:hunter2@h"], 4, "--to"),
        (&["migrate", "--from", "sqlite:a.db"], 2, "--to is missing"),
        (&["migrate", "--from", "sqlite:not-there.db", "--take-back"], 5, "there is no file"),
    ] {
        let mut command = program();
        command.args(words);
        let ran = Ran::of(command, b"").await;
        assert!(ran.code == code && ran.error().contains(said), "{words:?}: {ran:?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:?}");
    }
}
