//! kill -9 of the real binary under load: every accepted id is accounted for, order is kept, and only what was in flight comes twice.
//!
//! The checker keeps its own books from what it was told over HTTP and what its own receiver saw; it never asks the server for counts.
//! `POSTRIDER_KILL_ROUNDS` sets how many kills (default 20), `POSTRIDER_KILL_SEED` replays the moments.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use harness::{Api, Receiver, Server, pseudo_random};

/// How far a FIFO queue may run ahead of its settlements, and the one under way (D03).
const IN_FLIGHT_FIFO_MAX: usize = 17;
/// The slots of the unordered connection.
const IN_FLIGHT_UNORDERED_MAX: usize = 5;

#[derive(Default)]
struct Books {
    /// Per connection: (sequence, msg_id) of every request whose acknowledgment arrived.
    accepted: BTreeMap<&'static str, Vec<(u64, String)>>,
}

const CONNECTIONS: [&str; 4] = ["fifo-ok", "fifo-flaky", "unordered", "hopeless"];

// proves: Z11, Z13, Z20
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_nothing_accepted_is_lost_over_kill_nine() {
    let rounds: u64 = std::env::var("POSTRIDER_KILL_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(20);
    let mut seed: u64 = std::env::var("POSTRIDER_KILL_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(7);
    let dir = tempfile::tempdir().unwrap();
    let receiver = Receiver::start().await;
    let mut books = Books::default();
    let mut next: BTreeMap<&'static str, u64> = CONNECTIONS.iter().map(|name| (*name, 0)).collect();

    for round in 0..rounds {
        let server = Server::start(dir.path()).await;
        let api = Api::new(&server.address);
        if round == 0 {
            create_connections(&api, &receiver.address).await;
        }
        let life = Duration::from_millis(80 + pseudo_random(&mut seed) % 700);
        let publishers: Vec<_> =
            CONNECTIONS.iter().map(|name| tokio::spawn(publish_until_refused(api.clone(), name, next[name]))).collect();
        tokio::time::sleep(life).await;
        server.kill_nine().await;
        for (name, publisher) in CONNECTIONS.iter().zip(publishers) {
            let (accepted, reached) = publisher.await.unwrap();
            books.accepted.entry(name).or_default().extend(accepted);
            next.insert(name, reached);
        }
    }

    receiver.heal();
    let server = Server::start(dir.path()).await;
    let api = Api::new(&server.address);
    for name in CONNECTIONS {
        api.wait_until_drained(name, Duration::from_secs(120)).await;
    }
    check(&books, &receiver, &api, rounds).await;
    server.stop().await;
}

async fn create_connections(api: &Api, receiver: &str) {
    let common = format!(r#""type":"rest","host":"{receiver}","use_queue":true,"retry_sleep_time":0,"timeout":5"#);
    let extra = [
        r#""max_retries":3"#,
        // Waits of 0 s and 1 s: rounds are cut short by the kills and resume.
        r#""max_retries":5,"use_dlq":false"#,
        r#""max_retries":3,"ordered":false,"concurrency":5"#,
        r#""max_retries":0"#,
    ];
    for (name, extra) in CONNECTIONS.iter().zip(extra) {
        let body = format!(r#"{{"name":"{name}","url_path":"/{name}",{common},{extra}}}"#);
        let (status, answer) = api.call("POST", "/api/v1/projects/default/connections", &body).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }
}

/// One publisher a connection, each waiting for the acknowledgment before the next, so that the order of acceptance is known.
async fn publish_until_refused(api: Api, name: &'static str, first: u64) -> (Vec<(u64, String)>, u64) {
    let mut accepted = Vec::new();
    let mut sequence = first;
    loop {
        let body = format!(r#"{{"body":"{sequence}"}}"#);
        let path = format!("/api/v1/projects/default/connections/{name}/publish");
        let answer = api.call("POST", &path, &body).await;
        sequence += 1;
        let Ok((status, answer)) = answer else { return (accepted, sequence) };
        assert_eq!(status, 202, "{answer}");
        let id = serde_json::from_str::<serde_json::Value>(&answer).unwrap()["msg_id"].as_str().unwrap().to_owned();
        accepted.push((sequence - 1, id));
    }
}

async fn check(books: &Books, receiver: &Receiver, api: &Api, rounds: u64) {
    let receipts = receiver.receipts();
    for name in CONNECTIONS {
        let accepted = &books.accepted[name];
        assert!(
            accepted.len() as u64 > rounds,
            "{name}: only {} were accepted; the test shows nothing",
            accepted.len()
        );
        let seen: Vec<&(String, u64)> =
            receipts.iter().filter(|(path, _)| path == &format!("/{name}")).map(|(_, r)| r).collect();
        let ids: BTreeSet<&str> = seen.iter().map(|(id, _)| id.as_str()).collect();

        let mut lost = Vec::new();
        for (sequence, id) in accepted {
            let status = api.delivery_status(id).await;
            let wanted = if name == "hopeless" { "DLQ" } else { "SUCCESS" };
            if status.as_deref() != Some(wanted) || !ids.contains(id.as_str()) {
                lost.push((sequence, id, status));
            }
        }
        assert!(lost.is_empty(), "{name}: not where they must be: {lost:?}");

        if name.starts_with("fifo") {
            let mut known = BTreeSet::new();
            let first_receipts: Vec<u64> =
                seen.iter().filter(|(id, _)| known.insert(id.clone())).map(|(_, sequence)| *sequence).collect();
            let overtaken = first_receipts.windows(2).find(|pair| pair[0] > pair[1]);
            assert_eq!(overtaken, None, "{name}: one was received before its predecessor");
        }

        let doubled = receiver.answered_ok_again(&format!("/{name}"));
        let allowed = rounds as usize * if name == "unordered" { IN_FLIGHT_UNORDERED_MAX } else { IN_FLIGHT_FIFO_MAX };
        assert!(
            doubled <= allowed,
            "{name}: {doubled} were sent again after a 2xx, at most {allowed} can have been in flight"
        );
        println!("{name}: {} accepted, 0 lost, {doubled} sent again after an answer, {rounds} kills", accepted.len());
    }
}
