//! Rate limits, concurrency and the circuit breaker: what they hold back uses no attempt and moves no ladder (R04).
#![allow(clippy::unwrap_used, reason = "tests")]

use postrider_core::breaker::OPEN_TIMES_MAX;
use postrider_core::deferral::DeferredBy;
use postrider_core::delivery::Status;
use postrider_store::{Deferrals as _, ProjectSettings, StoreRead};
use serde_json::json;

use crate::lab::{deliveries, endpoint, set, subscribe, tell};
use crate::stage::*;

async fn limit_project(stage: &Stage, settings: ProjectSettings) {
    let known = stage.store.project("default").await.unwrap().unwrap();
    stage.engine.configure_project(&known, settings).await.unwrap();
}

/// An endpoint that takes every `order.*` event.
async fn shop(
    stage: &Stage,
    name: &str,
    keys: serde_json::Value,
) -> std::sync::Arc<postrider_core::connection::Connection> {
    let to = endpoint(stage, name, keys).await;
    subscribe(stage, &to, json!({"event_type": "order.*"})).await;
    to
}

async fn deferred_by(stage: &Stage, to: &postrider_core::connection::Connection) -> Vec<Option<DeferredBy>> {
    let all = deliveries(stage, to).await;
    let found = stage.engine.deferred(&all).await.unwrap();
    all.iter().map(|one| found.get(&one.id).map(|deferred| deferred.by)).collect()
}

#[tokio::test(start_paused = true)]
async fn r04_an_endpoint_is_sent_no_more_a_second_than_it_says() {
    let stage = set(Remote::always(status(200))).await;
    let to = shop(&stage, "a", json!({"rate_limit_per_second": 2, "concurrency": 5})).await;
    for n in 0..7 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(0.2).await;
    assert_eq!(stage.remote.count(), 1);
    let waiting = deferred_by(&stage, &to).await;
    assert_eq!(waiting.iter().filter(|by| **by == Some(DeferredBy::EndpointRateLimit)).count(), 6);
    pass(5.0).await;
    assert_eq!(stage.remote.count(), 7);
    assert!(stage.remote.gaps().iter().all(|gap| *gap >= 499), "{:?}", stage.remote.gaps());
    let all = deliveries(&stage, &to).await;
    assert!(all.iter().all(|one| one.progress.status == Status::Success && one.progress.attempts == 1));
    assert!(deferred_by(&stage, &to).await.iter().all(Option::is_none));
}

#[tokio::test(start_paused = true)]
async fn r04_a_project_has_one_rate_over_all_its_endpoints_and_each_gets_its_turn() {
    let stage = set(Remote::always(status(200))).await;
    limit_project(&stage, ProjectSettings { rate_limit_per_second: Some(4), ..ProjectSettings::default() }).await;
    let (a, b) = (shop(&stage, "a", json!({})).await, endpoint(&stage, "b", json!({})).await);
    subscribe(&stage, &b, json!({"event_type": "late.*"})).await;
    for n in 0..40 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(1.0).await;
    assert!(deferred_by(&stage, &a).await.contains(&Some(DeferredBy::ProjectRateLimit)));
    for n in 0..3 {
        tell(&stage, "late.one", json!(n)).await;
    }
    pass(2.0).await;
    let seen = stage.remote.seen();
    let of_b = seen.iter().filter(|seen| seen.connection == "b").count();
    assert_eq!(of_b, 3, "a backlog of one does not push the other aside: {seen:?}");
    assert!(seen.len() <= 14, "{} in 3 s", seen.len());
    pass(12.0).await;
    assert_eq!(stage.remote.count(), 43);
}

#[tokio::test(start_paused = true)]
async fn r04_slots_of_a_project_are_not_all_taken_by_one_that_hangs() {
    let stage = set(Remote::new(
        |outgoing, _| {
            if outgoing.connection.name == "hangs" { timed_out(20_000) } else { status(200) }
        },
    ))
    .await;
    limit_project(&stage, ProjectSettings { concurrency: Some(4), ..ProjectSettings::default() }).await;
    let hangs = shop(&stage, "hangs", json!({"concurrency": 50})).await;
    let well = endpoint(&stage, "well", json!({})).await;
    subscribe(&stage, &well, json!({"event_type": "late.*"})).await;
    for n in 0..20 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(1.0).await;
    assert_eq!(stage.remote.count(), 2, "half of the slots, and no more");
    assert!(deferred_by(&stage, &hangs).await.contains(&Some(DeferredBy::ProjectConcurrency)));
    for n in 0..10 {
        tell(&stage, "late.one", json!(n)).await;
    }
    pass(2.0).await;
    let seen = stage.remote.seen();
    assert_eq!(seen.iter().filter(|seen| seen.connection == "well").count(), 10, "{seen:?}");
    assert!(stage.remote.most_at_once() <= 4);
    pass(400.0).await;
    stage.remote.set(|_, _| status(200));
    pass(4_000.0).await;
    assert!(deliveries(&stage, &hangs).await.iter().all(|one| !one.progress.status.is_waiting()));
}

#[tokio::test(start_paused = true)]
async fn r04_a_circuit_opens_and_one_probe_closes_it() {
    let stage = set(Remote::always(status(503))).await;
    let keys = json!({"breaker_failures": 3, "breaker_seconds": 10, "retry_delays": [1], "max_attempts": 20});
    let to = shop(&stage, "a", keys).await;
    for n in 0..10 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(2.0).await;
    let before = stage.remote.count();
    assert!((3..=7).contains(&before), "those under way when it opened: {before}");
    let waiting = deferred_by(&stage, &to).await;
    assert!(waiting.iter().filter(|by| **by == Some(DeferredBy::Breaker)).count() >= 5, "{waiting:?}");
    let until = stage.engine.deferred(&deliveries(&stage, &to).await).await.unwrap().values().next().unwrap().until;
    assert!(until.is_some_and(|until| until > stage.now()));
    pass(15.0).await;
    assert_eq!(stage.remote.count(), before + 1, "one probe");
    let attempts: u32 = deliveries(&stage, &to).await.iter().map(|one| one.progress.attempts).sum();
    assert_eq!(attempts as usize, before + 1, "no attempt was used up by waiting");
    stage.remote.set(|_, _| status(200));
    pass(10.0 * 1.5 * f64::from(OPEN_TIMES_MAX)).await;
    let all = deliveries(&stage, &to).await;
    assert!(all.iter().all(|one| one.progress.status == Status::Success), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn r04_an_open_circuit_is_written_once_and_looked_at_seldom() {
    let stage = set(Remote::always(status(500))).await;
    let keys = json!({"breaker_failures": 1, "breaker_seconds": 3600, "max_attempts": 2, "concurrency": 1});
    let to = shop(&stage, "a", keys).await;
    tell(&stage, "order.created", json!(0)).await;
    tell(&stage, "order.created", json!(1)).await;
    pass(5.0).await;
    let said = stage.store.deferrals(vec![to.id]).await.unwrap();
    assert_eq!(said.iter().map(|(_, deferral)| deferral.by).collect::<Vec<_>>(), [DeferredBy::Breaker]);
}

#[tokio::test(start_paused = true)]
async fn r04_an_ordered_endpoint_is_held_back_all_the_same() {
    let stage = set(Remote::always(status(200))).await;
    let to = shop(&stage, "a", json!({"rate_limit_per_second": 1, "ordered": true})).await;
    for n in 0..4 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(0.5).await;
    assert_eq!(stage.remote.count(), 1);
    let waiting = deferred_by(&stage, &to).await;
    assert_eq!(
        waiting[1..],
        [Some(DeferredBy::EndpointRateLimit), Some(DeferredBy::Ordering), Some(DeferredBy::Ordering)]
    );
    pass(4.0).await;
    assert_eq!(stage.remote.times().windows(2).filter(|pair| pair[1] - pair[0] < 999).count(), 0);
    assert_eq!(stage.remote.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn r04_a_limited_endpoint_slows_no_other() {
    let stage = set(Remote::always(status(200))).await;
    let slow = shop(&stage, "slow", json!({"rate_limit_per_second": 1})).await;
    let fast = shop(&stage, "fast", json!({})).await;
    for n in 0..30 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(2.0).await;
    let done = |all: Vec<postrider_core::delivery::Delivery>| {
        all.iter().filter(|one| one.progress.status == Status::Success).count()
    };
    assert_eq!(done(deliveries(&stage, &fast).await), 30);
    assert!(done(deliveries(&stage, &slow).await) <= 3);
}

#[tokio::test(start_paused = true)]
async fn v05_what_may_not_be_sent_ends_whatever_holds_it_back() {
    let stage = set(Remote::always(status(500))).await;
    let keys = json!({"breaker_failures": 1, "breaker_seconds": 3600, "concurrency": 1});
    let to = shop(&stage, "a", keys.clone()).await;
    for n in 0..5 {
        tell(&stage, "order.created", json!(n)).await;
    }
    pass(1.0).await;
    let id = postrider_core::id::EndpointId::of(to.id);
    let mut off = crate::lab::map(keys);
    off.extend(crate::lab::map(json!({"url": "https://hooks.example.org/a", "enabled": false, "retry_delays": [1]})));
    stage.engine.replace_endpoint(stage.project, id, None, off).await.unwrap();
    pass(5.0).await;
    let all = deliveries(&stage, &to).await;
    assert!(all.iter().all(|one| one.progress.status == Status::Dlq), "{all:?}");
}
