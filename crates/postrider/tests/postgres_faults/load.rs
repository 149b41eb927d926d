//! Publishers that write down what they were told, and the check of it against what was received.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinHandle;

use crate::harness::cluster::PATIENCE;
use crate::harness::{Api, Receiver};
use crate::plant::{PROJECT, Plant};

pub const ORDERED: [&str; 3] = ["o1", "o2", "o3"];
const UNORDERED: &str = "u1";
/// What can be sent and not yet settled when its owner loses its lease: as far as a queue runs ahead (D03), or its slots and their decisions.
const IN_FLIGHT_MAX: usize = 5 + 64;

#[derive(Default)]
struct Told {
    /// By id.
    accepted: Vec<(String, u64)>,
    refused: Vec<u64>,
    slowest: Duration,
}

pub struct Load {
    stop: Arc<AtomicBool>,
    publishers: Vec<(&'static str, JoinHandle<Told>)>,
    receiver: Receiver,
}

impl Load {
    pub async fn begin(plant: &Plant) -> Load {
        let receiver = Receiver::start().await;
        for name in ORDERED {
            plant.connection(name, &receiver.address, json!({})).await;
        }
        plant.connection(UNORDERED, &receiver.address, json!({"ordered": false, "concurrency": 5})).await;
        let stop = Arc::new(AtomicBool::new(false));
        let names = ORDERED.into_iter().chain([UNORDERED]);
        let publishers = names.map(|name| (name, tokio::spawn(publish(plant.api.clone(), name, Arc::clone(&stop)))));
        let publishers = publishers.collect();
        Load { stop, publishers, receiver }
    }

    /// How many were received by now, again or not.
    pub fn received(&self) -> usize {
        self.receiver.receipts().len()
    }

    /// Ends the load, waits until all is delivered, and checks the books. How many were refused.
    pub async fn end(self, plant: &Plant, troubles: usize) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let mut books = BTreeMap::new();
        for (name, publisher) in self.publishers {
            books.insert(name, publisher.await.unwrap());
        }
        for name in books.keys() {
            plant.api.wait_until_drained(name, PATIENCE).await;
        }
        check(&self.receiver, &books, troubles)
    }
}

/// Numbers, one after the other. A number that was refused is not used again.
async fn publish(api: Api, name: &'static str, stop: Arc<AtomicBool>) -> Told {
    let path = format!("{PROJECT}/connections/{name}/publish");
    let mut told = Told::default();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let began = Instant::now();
        let (status, answer) = api.call("POST", &path, &format!(r#"{{"body":"{number}"}}"#)).await.unwrap();
        told.slowest = told.slowest.max(began.elapsed());
        let result: serde_json::Value = serde_json::from_str(&answer).unwrap();
        match status {
            202 => told.accepted.push((result["msg_id"].as_str().unwrap().to_owned(), number)),
            503 => {
                assert!(result["msg_id"].is_null() && result["is_in_queue"] == false, "{answer}");
                told.refused.push(number);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            _ => panic!("{status}: {answer}"),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    told
}

fn check(receiver: &Receiver, books: &BTreeMap<&'static str, Told>, troubles: usize) -> usize {
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
    let (mut accepted, mut refused, mut slowest) = (0, 0, Duration::ZERO);
    for (name, told) in books {
        let lost: Vec<_> = told.accepted.iter().filter(|(id, _)| !seen.contains(id)).collect();
        assert!(lost.is_empty(), "{name}: lost {lost:?}");
        let received = &first[*name];
        assert_eq!(received.len(), told.accepted.len(), "{name}: what was refused was stored all the same");
        let numbers: BTreeSet<u64> = received.iter().copied().collect();
        let half: Vec<_> = told.refused.iter().filter(|number| numbers.contains(number)).collect();
        assert!(half.is_empty(), "{name}: refused and delivered: {half:?}");
        if ORDERED.contains(name) {
            assert!(received.is_sorted(), "{name}: first received out of order");
        }
        let twice = again.get(*name).copied().unwrap_or_default();
        assert!(twice <= troubles * IN_FLIGHT_MAX, "{name}: {twice} received again in {troubles} troubles");
        accepted += told.accepted.len();
        refused += told.refused.len();
        slowest = slowest.max(told.slowest);
    }
    let sum: usize = again.values().sum();
    println!("{accepted} accepted and delivered, {sum} again, {refused} refused, the slowest answer after {slowest:?}");
    assert!(accepted > 200, "only {accepted}: this shows nothing");
    refused
}
