//! Random weather: crashes, refusals, pauses, changed settings, people. Whatever comes, nothing is lost and order holds.
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use postrider_core::decide::ByHand;
use postrider_core::id::DeliveryId;
use postrider_engine::{EngineOptions, SendOptions};
use postrider_store::{MemoryStore, StoreRead};
use serde_json::json;
use stage::faltering::Faltering;
use stage::*;

/// A small generator of its own, so that a seed replays exactly.
struct Luck(u64);

impl Luck {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

fn mixed(seed: u64, text: &[u8], attempt: u32) -> u64 {
    let mut hash = seed ^ 0xcbf2_9ce4_8422_2325;
    for byte in text.iter().chain(&attempt.to_le_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^ (hash >> 29)
}

async fn run(seed: u64) {
    let mut luck = Luck(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let remote = Remote::new(move |outgoing, _| {
        let chance = mixed(seed, &outgoing.body, outgoing.attempt);
        let after_ms = (chance >> 8) % 900;
        match chance % 10 {
            0..=1 => refused().after(after_ms),
            2 => status(500).after(after_ms),
            _ => status(200).after(after_ms),
        }
    });
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let options =
        EngineOptions { window_deliveries_max: 1 + u32::try_from(seed % 9).unwrap(), ..EngineOptions::default() };
    let mut stage = Stage::over(Arc::clone(&store) as _, memory, remote, options, PausedClock::shared()).await;
    let ordered = json!({"use_queue": true, "max_retries": 2, "retry_sleep_time": 0.5, "use_dlq": false});
    let dlq = json!({"use_queue": true, "max_retries": 1, "dlq_action": "retry", "dlq_retry_interval": 5});
    let unordered = json!({"use_queue": true, "ordered": false, "concurrency": 3, "max_retries": 2});
    stage.connection("ordered", ordered.clone()).await;
    stage.connection("dlq", dlq).await;
    stage.connection("unordered", unordered).await;
    let mut accepted: BTreeMap<&str, Vec<(String, DeliveryId)>> = BTreeMap::new();
    let mut disturbed = std::collections::BTreeSet::new();
    let mut calls = Vec::new();
    for number in 0..120 {
        let name = ["ordered", "dlq", "unordered"][luck.next(3) as usize];
        match luck.next(22) {
            0..=9 => {
                let body = format!("{name}-{number:03}");
                let published =
                    stage.engine.publish(stage.project, &named(name), post(&body), SendOptions::default()).await;
                if let Some(id) = published.unwrap().msg_id {
                    accepted.entry(name).or_default().push((body, id));
                }
            }
            10..=12 => calls.push(stage.send_aside(name, &format!("call-{name}-{number:03}"))),
            13 => stage.crash_and_restart().await,
            14 => stage.pause(name, luck.next(2) == 0).await,
            15 => {
                if let Some((_, id)) = accepted.get(name).and_then(|list| list.last()).cloned() {
                    disturbed.insert(id);
                    let (engine, project) = (stage.engine.clone(), stage.project);
                    let act = [ByHand::Discard, ByHand::SetAside, ByHand::AttemptNow][luck.next(3) as usize];
                    tokio::spawn(async move {
                        let _ = engine.by_hand(project, id, act).await;
                        let _ = engine.edit_body(project, id, Bytes::from_static(b"edited")).await;
                    });
                }
            }
            16 => {
                let retries = luck.next(4);
                let mut changed = ordered.clone();
                changed["max_retries"] = json!(retries);
                stage.change("ordered", changed).await;
            }
            18..=20 => {
                let verb = ["settle", "load", "claim", "enqueue", "renew_worker"][luck.next(5) as usize];
                store.fail(verb, luck.next(12) as u32);
            }
            17 => {
                let _ = stage.store.reopen();
            }
            _ => pass(luck.next(3000) as f64 / 1000.0).await,
        }
        stage.check().await;
    }
    for verb in ["settle", "load", "claim", "enqueue", "renew_worker"] {
        store.fail(verb, 0);
    }
    clear_up(seed, &mut stage, &accepted, &disturbed, calls).await;
}

/// Fair weather at last: everything drains, in order, numbered, and nobody waits any more.
async fn clear_up(
    seed: u64,
    stage: &mut Stage,
    accepted: &BTreeMap<&str, Vec<(String, DeliveryId)>>,
    disturbed: &std::collections::BTreeSet<DeliveryId>,
    calls: Vec<tokio::task::JoinHandle<postrider_core::outcome::Outcome>>,
) {
    for name in ["ordered", "dlq", "unordered"] {
        stage.pause(name, false).await;
    }
    stage.remote.set(|_, _| status(200));
    pass(600.0).await;
    stage.check().await;
    let counts = stage.store.counts(None).await.unwrap();
    assert_eq!((counts.pending, counts.processing), (0, 0), "seed {seed}: every queue drains: {counts:?}");
    // Oracle 2, by first receipt.
    let bodies = stage.remote.bodies();
    let first_receipt = |body: &String| bodies.iter().position(|seen| seen == body);
    let received: Vec<usize> = accepted
        .get("ordered")
        .into_iter()
        .flatten()
        .filter(|(_, id)| !disturbed.contains(id))
        .map(|(body, _)| first_receipt(body).unwrap_or_else(|| panic!("seed {seed}: {body} never arrived")))
        .collect();
    assert!(received.is_sorted(), "seed {seed}: {received:?}");
    // Oracle 4.
    for (_, id) in accepted.values().flatten() {
        let numbers: Vec<u32> = stage.store.attempts(*id).await.unwrap().iter().map(|attempt| attempt.number).collect();
        let attempts = stage.delivery(*id).await.progress.attempts;
        assert_eq!(numbers, (1..=attempts).collect::<Vec<_>>(), "seed {seed}: {id}");
    }
    for call in calls {
        assert!(
            call.is_finished() || {
                pass(120.0).await;
                call.is_finished()
            },
            "seed {seed}: a caller hangs"
        );
    }
}

// proves: Z11, Z14
#[test]
fn z13_whatever_the_weather_nothing_is_lost_and_order_holds() {
    let seeds = std::env::var("WEATHER_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40u64);
    for seed in 1..=seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(seed));
    }
}
