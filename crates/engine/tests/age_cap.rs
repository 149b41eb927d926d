//! The age cap of ladders: given up at its time, whatever is left, and never for the time in which a person held the connection.

mod stage;

use postrider_core::delivery::Status;
use postrider_core::id::DeliveryId;
use postrider_core::retry_after::RetryAfterRule;
use postrider_core::{Failure, Wait};
use postrider_engine::{EngineOptions, LadderLimits};
use serde_json::{Value, json};
use stage::*;

/// The cap of the preset `forward`, in seconds.
const CAP: f64 = 86_400.0;

/// An attempt at once, one 50,000 s later, and then one that would come after the cap.
fn ladder(ordered: bool) -> Value {
    json!({"retry_preset": "forward", "retry_delays": [50_000], "jitter": false, "max_attempts": 10, "ordered": ordered})
}

async fn end_of(stage: &Stage, id: DeliveryId) -> (Status, Option<Failure>, u32) {
    let progress = stage.delivery(id).await.progress;
    (progress.status, progress.failure, progress.attempts)
}

#[tokio::test(start_paused = true)]
async fn r09_a_ladder_is_given_up_at_its_cap_in_both_kinds_of_queue() {
    for ordered in [false, true] {
        let stage = Stage::set(Remote::always(status(503))).await;
        stage.connection("a", ladder(ordered)).await;
        let id = stage.publish("a", "1").await;
        pass(CAP - 1.0).await;
        assert_eq!(end_of(&stage, id).await, (Status::Pending, Some(Failure::Status), 2), "ordered: {ordered}");
        pass(2.0).await;
        assert_eq!(end_of(&stage, id).await, (Status::Dlq, Some(Failure::TooOld), 2), "ordered: {ordered}");
        let error = stage.delivery(id).await.progress.error.unwrap();
        assert!(error.starts_with("older than the age cap (86400 s); before that: "), "{error}");
        pass(CAP).await;
        assert_eq!(stage.remote.count(), 2, "nothing is sent after the cap");
        stage.check().await;
    }
}

// proves: R08, R09
#[tokio::test(start_paused = true)]
async fn r09_the_caps_and_the_longest_retry_after_are_what_the_environment_says() {
    let limits = LadderLimits {
        forward_cap: Wait::from_secs(60_000),
        retry_after_max: Wait::from_secs(100),
        ..LadderLimits::default()
    };
    let options = EngineOptions { ladders: limits, ..EngineOptions::default() };
    let stage = Stage::with(Remote::always(status(503)), options).await;
    stage.connection("a", ladder(false)).await;
    stage.connection("patient", json!({"retry_preset": "patient"})).await;
    let id = stage.publish("a", "1").await;
    pass(59_999.0).await;
    assert_eq!(end_of(&stage, id).await.0, Status::Pending);
    pass(2.0).await;
    assert_eq!(end_of(&stage, id).await, (Status::Dlq, Some(Failure::TooOld), 2));
    let of = |name: &str| {
        let all = stage.engine.connections();
        all.iter().find(|known| known.name == name).unwrap().spec.policy.clone()
    };
    assert_eq!(of("a").retry_after, RetryAfterRule::LaterOnly { max: Wait::from_secs(100) });
    assert_eq!(
        (of("patient").age_cap, of("patient").retry_after),
        (Some(Wait::from_secs(96 * 3600)), RetryAfterRule::Ignored)
    );
}

// An ordered one that waited behind another as long as that is as old as it.
#[tokio::test(start_paused = true)]
async fn r09_those_behind_the_head_are_given_up_in_their_place() {
    let stage = Stage::set(Remote::always(status(503))).await;
    stage.connection("a", ladder(true)).await;
    let first = stage.publish("a", "1").await;
    let second = stage.publish("a", "2").await;
    pass(CAP + 1.0).await;
    assert_eq!(end_of(&stage, first).await, (Status::Dlq, Some(Failure::TooOld), 2));
    assert_eq!(end_of(&stage, second).await, (Status::Dlq, Some(Failure::TooOld), 0));
    assert_eq!(stage.remote.count(), 2);
}

// proves: R09, D22
#[tokio::test(start_paused = true)]
async fn r09_a_pause_by_hand_costs_nobody_the_cap() {
    for ordered in [false, true] {
        let stage = Stage::set(Remote::always(status(503))).await;
        stage.connection("a", ladder(ordered)).await;
        stage.pause("a", true).await;
        let id = stage.publish("a", "1").await;
        pass(2.0 * CAP).await;
        assert_eq!(end_of(&stage, id).await, (Status::Pending, None, 0), "ordered: {ordered}");
        stage.pause("a", false).await;
        pass(CAP - 1.0).await;
        assert_eq!(end_of(&stage, id).await, (Status::Pending, Some(Failure::Status), 2), "ordered: {ordered}");
        pass(2.0).await;
        assert_eq!(end_of(&stage, id).await, (Status::Dlq, Some(Failure::TooOld), 2), "ordered: {ordered}");
    }
}

#[tokio::test(start_paused = true)]
async fn r09_a_restart_does_not_lose_the_cap() {
    for ordered in [false, true] {
        let mut stage = Stage::set(Remote::always(status(503))).await;
        stage.connection("a", ladder(ordered)).await;
        let id = stage.publish("a", "1").await;
        pass(60_000.0).await;
        stage.crash_and_restart().await;
        pass(CAP - 60_000.0 + 1.0).await;
        let (status, failure, _) = end_of(&stage, id).await;
        assert_eq!((status, failure), (Status::Dlq, Some(Failure::TooOld)), "ordered: {ordered}");
    }
}
