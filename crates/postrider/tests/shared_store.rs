//! Several processes on one PostgreSQL database: servers that take requests, and workers that deliver and are killed.
//!
//! The server is found by `POSTRIDER_TEST_POSTGRES`, or at the local socket. `POSTRIDER_KILL_SECONDS` sets how long the kills go on (default
//! 20), `POSTRIDER_KILL_SEED` replays their choices.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use harness::cluster::{Database, PATIENCE, eventually, json, serve_on, worker_on};
use harness::{Api, Receiver, Remote, Server, pseudo_random};
use tokio::process::Child;

const PROJECT: &str = "/api/v1/projects/default";
async fn serve(database: &Database, data: &Path) -> Server {
    serve_on(&database.url(), data).await
}

fn worker(database: &Database, data: &Path) -> Child {
    worker_on(&database.url(), data)
}

async fn create(api: &Api, name: &str, remote: &str, settings: &str) {
    let body = format!(
        r#"{{"name":"{name}","type":"rest","host":"{remote}","url_path":"/{name}","use_queue":true,"retry_sleep_time":0,{settings}}}"#
    );
    let (status, answer) = api.call("POST", &format!("{PROJECT}/connections"), &body).await.unwrap();
    assert_eq!(status, 201, "{answer}");
}

/// Publishes numbers one after the other until told to stop; those that were accepted, by id.
async fn publish(api: Api, name: &'static str, stop: Arc<AtomicBool>) -> Vec<(String, u64)> {
    let mut accepted = Vec::new();
    let path = format!("{PROJECT}/connections/{name}/publish");
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let (status, answer) = api.call("POST", &path, &format!(r#"{{"body":"{number}"}}"#)).await.unwrap();
        assert_eq!(status, 202, "{answer}");
        let result: serde_json::Value = serde_json::from_str(&answer).unwrap();
        accepted.push((result["msg_id"].as_str().unwrap().to_owned(), number));
        number += 1;
    }
    accepted
}

const ORDERED: [&str; 6] = ["o1", "o2", "o3", "o4", "o5", "o6"];
const UNORDERED: [&str; 2] = ["u1", "u2"];
/// What can be sent and not yet settled when its owner dies: as far as a queue runs ahead (D03), or its slots and their decisions.
const IN_FLIGHT_MAX: usize = 5 + 64;

// proves: Z13, Z14, D05
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_workers_on_one_database_are_killed_and_nothing_is_lost() {
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (seconds, seed) =
        (setting("POSTRIDER_KILL_SECONDS").unwrap_or(20), setting("POSTRIDER_KILL_SEED").unwrap_or(7));
    let mut dice = seed;
    let database = Database::new();
    let dirs: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let receiver = Receiver::start().await;
    let server = serve(&database, dirs[0].path()).await;
    let api = Api::new(&server.address);
    for name in ORDERED {
        create(&api, name, &receiver.address, r#""max_retries":3,"retry_backoff_threshold":0"#).await;
    }
    for name in UNORDERED {
        create(&api, name, &receiver.address, r#""max_retries":3,"ordered":false,"concurrency":5"#).await;
    }
    let mut workers: Vec<Child> = dirs[1..].iter().map(|dir| worker(&database, dir.path())).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let asking: Vec<_> = ORDERED
        .into_iter()
        .chain(UNORDERED)
        .map(|name| (name, tokio::spawn(publish(api.clone(), name, Arc::clone(&stop)))))
        .collect();

    let began = Instant::now();
    let mut kills = 0;
    while began.elapsed() < Duration::from_secs(seconds) {
        tokio::time::sleep(Duration::from_millis(300 + pseudo_random(&mut dice) % 1500)).await;
        let victim = usize::try_from(pseudo_random(&mut dice)).unwrap() % workers.len();
        workers[victim].kill().await.unwrap();
        workers[victim] = worker(&database, dirs[victim + 1].path());
        kills += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let mut accepted = BTreeMap::new();
    for (name, asked) in asking {
        accepted.insert(name, asked.await.unwrap());
    }
    for name in accepted.keys() {
        api.wait_until_drained(name, PATIENCE).await;
    }
    check(&api, &receiver, &accepted, kills, seed).await;
    for mut worker in workers {
        worker.kill().await.unwrap();
    }
    server.stop().await;
}

async fn check(
    api: &Api,
    receiver: &Receiver,
    accepted: &BTreeMap<&'static str, Vec<(String, u64)>>,
    kills: usize,
    seed: u64,
) {
    let mut first: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut again: BTreeMap<String, usize> = BTreeMap::new();
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
        let lost: Vec<_> = told.iter().filter(|(id, _)| !seen.contains(id)).collect();
        assert!(lost.is_empty(), "{name}: lost {lost:?} (seed {seed})");
        let received = &first[*name];
        if ORDERED.contains(name) {
            assert!(received.is_sorted(), "{name}: first received out of order (seed {seed})");
        }
        let twice = again.get(*name).copied().unwrap_or_default();
        assert!(twice <= kills * IN_FLIGHT_MAX, "{name}: {twice} received again by {kills} kills");
        let listed = json(api, &format!("{PROJECT}/deliveries?connection={name}&status=SUCCESS&limit=1000")).await;
        assert!(listed["data"].as_array().unwrap().len() >= told.len().min(1000), "{name}: not all ended well");
    }
    let sum: usize = again.values().sum();
    println!("{count} accepted and delivered, {sum} received again, {kills} kills, seed {seed}");
    assert!(kills > 3 && count > 500, "only {count} accepted and {kills} kills: this shows nothing");
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
