//! A bulk retry of many dead letters with kill -9 in its middle, over and over: each is retried once and the job comes to its end (Z23, law 2).
//!
//! `POSTRIDER_BULK_LETTERS` sets how many (default 5,000).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use harness::{Bench, KEY, Receiver};
use postrider::{Call, Client, DeliveryQuery, Job, JobAct, JobTarget, PageQuery};
use serde_json::{Value, json};

/// When the server is killed, in parts of all.
const KILLED_AT: [f64; 5] = [0.05, 0.25, 0.45, 0.7, 0.9];
const PATIENCE: Duration = Duration::from_secs(600);

fn client(bench: &Bench) -> Client {
    Client::new(&bench.server.address, KEY).unwrap()
}

async fn until(what: &str, mut reached: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !reached().await {
        assert!(began.elapsed() < PATIENCE, "{what} takes too long");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn in_state(client: &Client, name: &str) -> u64 {
    let connection = client.connection("letters").await.unwrap();
    serde_json::to_value(&connection).unwrap()["state"][name].as_u64().unwrap()
}

/// The versions of all that are in this status. A version rises with every change.
async fn versions(client: &Client, status: &str) -> BTreeMap<String, u64> {
    let mut versions = BTreeMap::new();
    let mut cursor = None;
    loop {
        let page = PageQuery { limit: Some(1000), cursor };
        let asked = DeliveryQuery { statuses: vec![status.to_owned()], page, ..DeliveryQuery::default() };
        let found = client.deliveries(&asked).await.unwrap();
        versions.extend(found.data.into_iter().map(|one| (one.id, one.more["version"].as_u64().unwrap())));
        cursor = found.next_cursor;
        if cursor.is_none() {
            return versions;
        }
    }
}

async fn dead_letters(bench: &Bench, letters: u64) {
    // Nobody listens there.
    let settings = json!({"use_queue": true, "max_retries": 0, "ordered": false, "concurrency": 64});
    bench.connection("letters", "http://127.0.0.1:1", settings).await;
    let client = client(bench);
    let mut first = 0;
    while first < letters {
        let last = (first + 5000).min(letters);
        let lines: String = (first..last).map(|number| format!("{{\"body\": \"{number}\"}}\n")).collect();
        let stored = client.publish_batch("letters", lines.into_bytes(), None).await.unwrap();
        assert_eq!(stored.accepted, last - first);
        first = last;
    }
    until("dying", async || in_state(&client, "dead").await == letters).await;
}

/// Kills the server again and again while the job goes on. How long publishing to another connection took meanwhile.
async fn killed(mut bench: Bench, job: &Job, letters: u64) -> (Bench, Vec<Duration>) {
    let mut took = Vec::new();
    for part in KILLED_AT {
        let client = client(&bench);
        let wanted = (letters as f64 * part) as u64;
        until("the job", async || {
            let began = Instant::now();
            client.publish("live", &Call::post("1")).await.unwrap();
            took.push(began.elapsed());
            client.job(&job.id).await.unwrap().done >= wanted
        })
        .await;
        bench = bench.kill_and_restart().await;
    }
    (bench, took)
}

// proves: Z23, P08, R11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z23_each_dead_letter_is_retried_once_over_kill_nine() {
    let letters = std::env::var("POSTRIDER_BULK_LETTERS").map_or(5_000, |text| text.parse::<u64>().unwrap());
    let receiver = Receiver::start().await;
    let bench = Bench::start().await;
    bench.connection("live", &receiver.address, json!({"use_queue": true})).await;
    let began = Instant::now();
    dead_letters(&bench, letters).await;
    println!("{letters} dead letters after {:?}", began.elapsed());
    let before = versions(&client(&bench), "DLQ").await;
    assert_eq!(before.len() as u64, letters);
    // Nothing is sent while it goes on, so that the versions tell how often each was touched.
    assert_eq!(bench.call("POST", "/connections/letters/pause", &Value::Null).await.0, 200);
    let host = json!({"host": receiver.address});
    assert_eq!(bench.call("PATCH", "/connections/letters", &host).await.0, 200);

    let began = Instant::now();
    let asked = DeliveryQuery { connection: Some("letters".to_owned()), ..DeliveryQuery::default() };
    let job = client(&bench).begin_job(&JobAct::Retry, &JobTarget::Filter(Box::new(asked))).await.unwrap();
    let (bench, mut took) = killed(bench, &job, letters).await;
    let client = client(&bench);
    let job = client.wait_for_job(&job.id, |_| {}).await.unwrap();
    took.sort();
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    println!(
        "{} retried with {} kills after {:?}; publishing beside it took p50 {:?}, p99 {:?}",
        job.done,
        KILLED_AT.len(),
        began.elapsed(),
        at(50),
        at(99)
    );
    assert_eq!((job.state.as_str(), job.done, job.matched), ("DONE", letters, Some(letters)), "{job:?}");
    assert!(job.skipped.is_empty() && job.outstanding == 0, "{job:?}");
    assert_eq!((in_state(&client, "dead").await, in_state(&client, "waiting").await), (0, letters));
    let after = versions(&client, "PENDING").await;
    let once: BTreeMap<String, u64> = before.into_iter().map(|(id, version)| (id, version + 1)).collect();
    assert!(after == once, "some were touched twice, or not at all");

    let began = Instant::now();
    assert_eq!(bench.call("POST", "/connections/letters/resume", &Value::Null).await.0, 200);
    until("delivering", async || in_state(&client, "waiting").await == 0).await;
    println!("delivered after {:?}", began.elapsed());
    let mut received: Vec<String> = receiver.receipts().into_iter().map(|(_, (id, _))| id).collect();
    received.retain(|id| once.contains_key(id));
    received.sort();
    received.dedup();
    // Twice only where a machine at its limits let the lease end in flight (law 6).
    assert_eq!(received.len() as u64, letters, "each is sent");
}
