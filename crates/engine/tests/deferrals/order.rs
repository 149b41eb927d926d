//! Ordered delivery: a later one waits for the earlier one of its line, through retry waits, whatever ends it (R15).
#![allow(clippy::unwrap_used, reason = "tests")]

use postrider_core::Failure;
use postrider_core::connection::Connection;
use postrider_core::decide::ByHand;
use postrider_core::deferral::DeferredBy;
use postrider_core::delivery::{Delivery, Status};
use serde_json::json;

use crate::lab::{deliveries, endpoint, set, subscribe, tell};
use crate::stage::*;

fn by_key() -> serde_json::Value {
    json!({"ordered": true, "ordering_key": "/k", "payload": "data", "retry_delays": [30], "max_attempts": 2})
}

async fn told(stage: &Stage, keys: &[(&str, u32)]) {
    for (key, n) in keys {
        tell(stage, "order.created", json!({"k": key, "n": n})).await;
    }
}

async fn keyed(stage: &Stage) -> std::sync::Arc<Connection> {
    let to = endpoint(stage, "a", by_key()).await;
    subscribe(stage, &to, json!({"event_type": "order.*"})).await;
    to
}

fn body(key: &str, n: u32) -> String {
    json!({"k": key, "n": n}).to_string()
}

/// Fails the first `times` attempts of this body.
fn fails(failing: String, times: u32) -> std::sync::Arc<Remote> {
    Remote::new(move |outgoing, _| {
        status(if &outgoing.body[..] == failing.as_bytes() && outgoing.attempt <= times { 503 } else { 200 })
    })
}

async fn statuses(stage: &Stage, to: &Connection) -> Vec<Status> {
    deliveries(stage, to).await.iter().map(|one| one.progress.status).collect()
}

#[tokio::test(start_paused = true)]
async fn r15_a_later_one_waits_for_the_earlier_one_of_its_key_through_its_retry_waits() {
    let stage = set(fails(body("a", 1), 1)).await;
    let to = keyed(&stage).await;
    told(&stage, &[("a", 1), ("a", 2), ("b", 1), ("a", 3), ("b", 2)]).await;
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), [body("a", 1), body("b", 1), body("b", 2)], "other keys go on");
    let all = deliveries(&stage, &to).await;
    let found = stage.engine.deferred(&all).await.unwrap();
    for waiting in [&all[1], &all[3]] {
        let deferred = found[&waiting.id];
        assert_eq!((deferred.by, deferred.behind), (DeferredBy::Ordering, Some(all[0].id)));
        assert_eq!(waiting.progress.attempts, 0);
    }
    pass(25.0).await;
    assert_eq!(stage.remote.bodies()[3..], [body("a", 1), body("a", 2), body("a", 3)]);
    assert!(statuses(&stage, &to).await.iter().all(|status| *status == Status::Success));
}

#[tokio::test(start_paused = true)]
async fn r15_every_way_of_ending_releases_the_next() {
    // Delivered, given up on, discarded, set aside; each is followed by the next.
    let stage = set(Remote::new(|outgoing, _| {
        let text = String::from_utf8_lossy(&outgoing.body).into_owned();
        if text.contains("\"n\":2") {
            status(400)
        } else if text.contains("later") {
            status(503)
        } else {
            status(200)
        }
    }))
    .await;
    let to = keyed(&stage).await;
    told(&stage, &[("k", 1), ("k", 2)]).await;
    tell(&stage, "order.created", json!({"k": "k", "later": 1})).await;
    tell(&stage, "order.created", json!({"k": "k", "later": 2})).await;
    told(&stage, &[("k", 5)]).await;
    pass(5.0).await;
    let all = deliveries(&stage, &to).await;
    let of = |all: &[Delivery]| all.iter().map(|one| one.progress.status).collect::<Vec<_>>();
    assert_eq!(of(&all), [Status::Success, Status::Dlq, Status::Pending, Status::Pending, Status::Pending]);
    stage.engine.by_hand(stage.project, all[2].id, ByHand::Discard).await.unwrap();
    pass(1.0).await;
    assert_eq!(deliveries(&stage, &to).await[3].progress.attempts, 1);
    stage.engine.by_hand(stage.project, all[3].id, ByHand::SetAside).await.unwrap();
    pass(1.0).await;
    let wanted = [Status::Success, Status::Dlq, Status::Discarded, Status::Dlq, Status::Success];
    assert_eq!(statuses(&stage, &to).await, wanted);
}

#[tokio::test(start_paused = true)]
async fn r15_one_discarded_in_the_middle_releases_nobody_too_early() {
    let stage = set(fails(body("a", 1), 1)).await;
    let to = keyed(&stage).await;
    told(&stage, &[("a", 1), ("a", 2), ("a", 3)]).await;
    pass(1.0).await;
    let all = deliveries(&stage, &to).await;
    stage.engine.by_hand(stage.project, all[1].id, ByHand::Discard).await.unwrap();
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), [body("a", 1)]);
    pass(30.0).await;
    assert_eq!(stage.remote.bodies(), [body("a", 1), body("a", 1), body("a", 3)]);
}

#[tokio::test(start_paused = true)]
async fn d27_a_retried_dead_letter_goes_behind_those_of_its_key() {
    let stage = set(Remote::new(|outgoing, _| {
        let bad = outgoing.attempt == 1 && outgoing.body.ends_with(b"\"n\":1}");
        status(if bad { 400 } else { 200 }).after(5_000)
    }))
    .await;
    let to = keyed(&stage).await;
    told(&stage, &[("a", 1), ("a", 2), ("a", 3)]).await;
    pass(6.0).await;
    let all = deliveries(&stage, &to).await;
    assert_eq!(all[0].progress.status, Status::Dlq);
    stage.engine.by_hand(stage.project, all[0].id, ByHand::Retry).await.unwrap();
    pass(30.0).await;
    assert_eq!(stage.remote.bodies(), [body("a", 1), body("a", 2), body("a", 3), body("a", 1)]);
    assert!(statuses(&stage, &to).await.iter().all(|status| *status == Status::Success));
}

#[tokio::test(start_paused = true)]
async fn d28_what_is_too_old_says_whom_it_waited_for() {
    for keys in [
        json!({"ordered": true, "retry_delays": [2_592_000], "max_attempts": 20}),
        json!({"ordered": true, "ordering_key": "/k", "retry_delays": [2_592_000], "max_attempts": 20}),
    ] {
        let stage = set(Remote::always(status(503))).await;
        let to = endpoint(&stage, "a", keys).await;
        subscribe(&stage, &to, json!({"event_type": "order.*"})).await;
        told(&stage, &[("a", 1), ("a", 2)]).await;
        pass(97.0 * 3600.0).await;
        let all = deliveries(&stage, &to).await;
        for one in &all {
            assert_eq!((one.progress.status, one.progress.failure), (Status::Dlq, Some(Failure::TooOld)));
        }
        let said = all[1].progress.error.as_deref().unwrap();
        assert!(said.contains(&format!("waited behind {}", all[0].id)), "{said}");
        assert!(!all[0].progress.error.as_deref().unwrap().contains("waited behind"));
    }
}

#[tokio::test(start_paused = true)]
async fn r15_a_subscription_keeps_its_order_on_an_endpoint_without() {
    let stage = set(Remote::new(|outgoing, _| {
        let first = outgoing.attempt == 1 && outgoing.body.ends_with(b"\"n\":1}");
        status(if first { 503 } else { 200 })
    }))
    .await;
    let to = endpoint(&stage, "a", json!({"payload": "data", "retry_delays": [30]})).await;
    subscribe(&stage, &to, json!({"event_type": "order.*", "ordering_enabled": true})).await;
    subscribe(&stage, &to, json!({"event_type": "free.*"})).await;
    told(&stage, &[("a", 1), ("b", 2)]).await;
    tell(&stage, "free.one", json!({"free": true})).await;
    pass(5.0).await;
    assert_eq!(stage.remote.bodies(), [body("a", 1), json!({"free": true}).to_string()]);
    pass(30.0).await;
    assert_eq!(stage.remote.bodies()[2..], [body("a", 1), body("b", 2)]);
    assert_eq!(statuses(&stage, &to).await, [Status::Success; 3]);
}

#[tokio::test(start_paused = true)]
async fn r15_order_holds_over_a_crash() {
    let mut stage = set(fails(body("a", 1), 1)).await;
    let to = keyed(&stage).await;
    told(&stage, &[("a", 1), ("a", 2), ("b", 1), ("a", 3)]).await;
    pass(3.0).await;
    stage.crash_and_restart().await;
    pass(3.0).await;
    stage.crash_and_restart().await;
    pass(40.0).await;
    let of_a: Vec<String> = stage.remote.bodies().into_iter().filter(|body| body.contains("\"a\"")).collect();
    assert_eq!(of_a, [body("a", 1), body("a", 1), body("a", 2), body("a", 3)]);
    assert!(statuses(&stage, &to).await.iter().all(|status| *status == Status::Success));
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn r15_a_busy_key_does_not_hold_up_the_slots_of_others() {
    let stage = set(Remote::always(status(200).after(1_000))).await;
    let to = keyed(&stage).await;
    for n in 0..50 {
        told(&stage, &[("busy", n)]).await;
    }
    told(&stage, &[("x", 1), ("y", 1), ("z", 1)]).await;
    pass(1.5).await;
    let seen = stage.remote.bodies();
    for key in ["x", "y", "z"] {
        assert!(seen.contains(&body(key, 1)), "{seen:?}");
    }
    assert!(stage.remote.most_at_once() <= 5);
    pass(60.0).await;
    assert!(statuses(&stage, &to).await.iter().all(|status| *status == Status::Success));
}
