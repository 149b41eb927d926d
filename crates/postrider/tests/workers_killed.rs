//! Three workers and a server on one PostgreSQL database, one of the workers killed with SIGKILL again and again (Z13).
//!
//! The database is found by `POSTRIDER_TEST_POSTGRES`, or at the local socket. `POSTRIDER_KILL_MESSAGES` sets how many requests are
//! published, `POSTRIDER_KILL_SEED` replays the kills' choices; `cargo xtask crash --postgres` sets both.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use harness::{Api, KEY, Receiver, Server, pseudo_random};
use tokio::process::{Child, Command};

const PROJECT: &str = "/api/v1/projects/default";
const LEASE_SECONDS: &str = "3";
const SECRETS_KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
const ORDERED: [&str; 6] = ["o1", "o2", "o3", "o4", "o5", "o6"];
const UNORDERED: [&str; 2] = ["u1", "u2"];
/// What can be sent and not yet settled when its owner dies: as far as a queue runs ahead (D03), or its slots and their decisions.
const IN_FLIGHT_MAX: usize = 5 + 64;
/// Requests of one batch.
const TOGETHER: u64 = 250;
/// What the ordinary run publishes: a minute or so of two cores, with a debug build.
const MESSAGES: u64 = 100_000;
/// Without a receipt for this long, what is missing will not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// A schema of its own on the tests' database, gone at the end.
struct Database {
    server: String,
    schema: String,
}

impl Database {
    fn new() -> Database {
        let server = std::env::var("POSTRIDER_TEST_POSTGRES").unwrap_or_else(|_| {
            let user = std::env::var("USER").unwrap_or_else(|_| "postgres".to_owned());
            format!("postgres://{user}@/postgres?host=/var/run/postgresql")
        });
        Database { server, schema: format!("killed_{}", std::process::id()) }
    }

    fn url(&self) -> String {
        let more = if self.server.contains('?') { '&' } else { '?' };
        format!("{}{more}schema={}", self.server, self.schema)
    }

    fn sql(&self, sql: &str) -> Option<String> {
        let sql = format!("SET client_min_messages = error; SET search_path = {}; {sql}", self.schema);
        let mut asking = std::process::Command::new("psql");
        let said = asking.args(["--quiet", "--tuples-only", "--no-align", &self.server, "-c", &sql]).output().ok()?;
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.sql(&format!("DROP SCHEMA IF EXISTS {} CASCADE", self.schema)).is_none() {
            println!("the schema {} stays", self.schema);
        }
    }
}

fn command(verb: &str, database: &Database, data: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.arg(verb).args(["--store", &database.url(), "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "error").env("POSTRIDER_LEASE_SECONDS", LEASE_SECONDS);
    command.env("POSTRIDER_SECRETS_KEY", SECRETS_KEY);
    command
}

fn worker(database: &Database, data: &Path) -> Child {
    command("worker", database, data).stdout(Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

async fn create(api: &Api, name: &str, remote: &str, settings: &str) {
    let body = format!(
        r#"{{"name":"{name}","type":"rest","host":"{remote}","url_path":"/{name}","use_queue":true,"retry_sleep_time":0,"max_retries":3,{settings}}}"#
    );
    let (status, answer) = api.call("POST", &format!("{PROJECT}/connections"), &body).await.unwrap();
    assert_eq!(status, 201, "{answer}");
}

/// Publishes so many numbers, one batch after the other; the ids that were told, in order.
async fn publish(api: Api, name: &'static str, messages: u64) -> Vec<String> {
    let path = format!("{PROJECT}/connections/{name}/publish/batch");
    let mut accepted = Vec::new();
    for first in (0..messages).step_by(TOGETHER as usize) {
        let lines: String =
            (first..messages.min(first + TOGETHER)).map(|number| format!("{{\"body\":\"{number}\"}}\n")).collect();
        let (status, answer) = api.call_as("POST", &path, &lines, "application/x-ndjson").await.unwrap();
        assert_eq!(status, 200, "{answer}");
        let result: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let ids = result["results"].as_array().unwrap().iter().map(|one| one["msg_id"].as_str().unwrap().to_owned());
        accepted.extend(ids);
    }
    assert_eq!(accepted.len() as u64, messages, "{name}: not all lines were accepted");
    accepted
}

/// Kills one of them after a while, and starts it anew, until told to stop. How many kills that were.
async fn kill_on(
    mut workers: Vec<Child>,
    database: Arc<Database>,
    dirs: Vec<tempfile::TempDir>,
    seed: u64,
    stop: Arc<AtomicBool>,
) -> usize {
    let (mut dice, mut kills) = (seed, 0);
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(300 + pseudo_random(&mut dice) % 3000)).await;
        let victim = usize::try_from(pseudo_random(&mut dice)).unwrap() % workers.len();
        workers[victim].kill().await.unwrap();
        workers[victim] = worker(&database, dirs[victim].path());
        kills += 1;
    }
    for mut worker in workers {
        worker.kill().await.unwrap();
    }
    kills
}

/// Until so many different requests were received and no queue has any left.
async fn delivered(api: &Api, receiver: &Receiver, messages: u64) {
    let (mut seen, mut seen_at) = (0, Instant::now());
    loop {
        let received = receiver.count();
        if received > seen {
            (seen, seen_at) = (received, Instant::now());
        }
        if received as u64 >= messages {
            break;
        }
        assert!(seen_at.elapsed() < PATIENCE, "{received} of {messages} were received, and no more come");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for name in ORDERED.into_iter().chain(UNORDERED) {
        api.wait_until_drained(name, PATIENCE).await;
    }
}

// proves: Z13, Z14, D05
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_workers_on_one_database_are_killed_and_nothing_is_lost() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let messages = setting("POSTRIDER_KILL_MESSAGES").unwrap_or(MESSAGES);
    let seed = setting("POSTRIDER_KILL_SEED").unwrap_or(7);
    println!("to replay: cargo xtask crash --postgres --messages {messages} --seed {seed}");
    let database = Arc::new(Database::new());
    let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let home = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let mut serving = command("serve", &database, home.path());
    serving.args(["--listen", "127.0.0.1:0"]);
    let server = Server::of(serving).await;
    let api = Api::new(&server.address);
    for name in ORDERED {
        create(&api, name, &receiver.address, r#""retry_backoff_threshold":0"#).await;
    }
    for name in UNORDERED {
        create(&api, name, &receiver.address, r#""ordered":false,"concurrency":5"#).await;
    }
    let workers: Vec<Child> = dirs.iter().map(|dir| worker(&database, dir.path())).collect();
    let (began, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
    let killing = tokio::spawn(kill_on(workers, Arc::clone(&database), dirs, seed, Arc::clone(&stop)));
    let each = messages / (ORDERED.len() + UNORDERED.len()) as u64;
    let asking: Vec<_> = ORDERED
        .into_iter()
        .chain(UNORDERED)
        .map(|name| (name, tokio::spawn(publish(api.clone(), name, each))))
        .collect();
    let mut accepted = BTreeMap::new();
    for (name, asked) in asking {
        accepted.insert(name, asked.await.unwrap());
    }
    let stored_after = began.elapsed();
    delivered(&api, &receiver, each * accepted.len() as u64).await;
    stop.store(true, Ordering::Relaxed);
    let kills = killing.await.unwrap();
    println!(
        "all stored after {:.0} s, all delivered after {:.0} s",
        stored_after.as_secs_f64(),
        began.elapsed().as_secs_f64()
    );
    check(&database, &receiver, &accepted, kills, seed);
    server.stop().await;
}

fn check(
    database: &Database,
    receiver: &Receiver,
    accepted: &BTreeMap<&'static str, Vec<String>>,
    kills: usize,
    seed: u64,
) {
    let (mut first, mut again): (HashMap<String, Vec<u64>>, HashMap<String, usize>) = Default::default();
    let mut seen = HashSet::new();
    for (path, (id, number)) in receiver.receipts() {
        let name = path.trim_start_matches('/').to_owned();
        if seen.insert(id) {
            first.entry(name).or_default().push(number);
        } else {
            *again.entry(name).or_default() += 1;
        }
    }
    let mut count = 0;
    for (name, told) in accepted {
        count += told.len();
        let lost: Vec<_> = told.iter().filter(|id| !seen.contains(*id)).take(20).collect();
        assert!(lost.is_empty(), "{name}: lost {lost:?} (seed {seed})");
        let received = &first[*name];
        assert_eq!(received.len(), told.len(), "{name}: something was received that nobody was told of (seed {seed})");
        if ORDERED.contains(name) {
            assert!(received.is_sorted(), "{name}: first received out of order (seed {seed})");
        }
        let twice = again.get(*name).copied().unwrap_or_default();
        assert!(twice <= kills * IN_FLIGHT_MAX, "{name}: {twice} received again by {kills} kills (seed {seed})");
    }
    // The database's own books: all of them ended well, and every attempt is on record, numbered without gaps.
    let ended = "SELECT count(*) FILTER (WHERE status = 'SUCCESS') || ' ' || count(*) || ' ' || (SELECT count(*) FROM delivery) FROM delivery_log";
    assert_eq!(database.sql(ended).unwrap(), format!("{count} {count} 0"), "seed {seed}");
    let gaps = "SELECT count(*) FROM (SELECT delivery_id FROM attempt GROUP BY delivery_id \
         HAVING count(*) <> max(number) OR min(number) <> 1) AS gaps";
    assert_eq!(database.sql(gaps).unwrap(), "0", "attempts with gaps (seed {seed})");
    let sum: usize = again.values().sum();
    println!("{count} accepted and delivered, {sum} received again, {kills} kills, seed {seed}");
    assert!(kills > 3 && count > 500, "only {count} accepted and {kills} kills: this shows nothing");
}
