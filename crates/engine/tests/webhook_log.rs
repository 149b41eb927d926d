//! The log of webhooks over simulated time: how long it is kept, and what is sent again from it (V07, V09, P08).
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use postrider_core::Wait;
use postrider_core::decide::ByHand;
use postrider_core::delivery::Status;
use postrider_core::job::JobAct;
use postrider_engine::{EngineOptions, JobOrder, JobTarget};
use postrider_store::{DeliveryFilter, StoreRead};
use serde_json::json;
use stage::scene::{Scene, options};
use stage::*;

const DAY_S: f64 = 86_400.0;

/// What has ended goes after 30 days with its attempts and its body; what is in the DLQ stays, and keeps the body that both share.
#[tokio::test(start_paused = true)]
async fn v07_the_log_is_kept_for_thirty_days_and_failed_messages_for_as_long_as_somebody_needs() {
    // Two months with a heartbeat each five seconds would show nothing more.
    let scene = Scene::with(EngineOptions { looks_at_itself: false, lease: Wait::from_secs(3600), ..options() }).await;
    scene.endpoint("a", json!({})).await;
    scene.endpoint("b", json!({"max_attempts": 1, "switch_off_failing_for": 0})).await;
    scene.answers("b", status(500));
    assert_eq!(scene.publish("x").await, 2);
    pass(60.0).await;
    let before = scene.deliveries().await;
    assert_eq!(before.len(), 2);
    assert_eq!(before[0].body_id, before[1].body_id, "the body is stored once");
    pass(30.0 * DAY_S - 3600.0).await;
    assert_eq!(scene.deliveries().await.len(), 2, "within thirty days all is there");
    pass(2.0 * 3600.0).await;
    let after = scene.deliveries().await;
    assert_eq!(after.iter().map(|one| one.progress.status).collect::<Vec<_>>(), [Status::Dlq]);
    let gone = before.iter().find(|one| one.id != after[0].id).unwrap();
    assert!(scene.stage.store.attempts(gone.id).await.unwrap().is_empty());
    assert!(scene.stage.store.body(after[0].body_id).await.unwrap().is_some(), "the dead letter needs it still");
    scene.answers("b", status(200));
    scene.stage.engine.by_hand(scene.stage.project, after[0].id, ByHand::Retry).await.unwrap();
    pass(31.0 * DAY_S).await;
    assert!(scene.deliveries().await.is_empty());
    assert_eq!(scene.stage.store.body(after[0].body_id).await.unwrap(), None);
    scene.stage.check().await;
}

/// A replay by time range: what was accepted in it is sent again, the same body under the same ids, and nothing else.
// proves: P08, V09, D27
#[tokio::test(start_paused = true)]
async fn p08_a_replay_sends_what_was_accepted_in_a_time_range_again() {
    let scene = Scene::set().await;
    scene.endpoint("a", json!({})).await;
    let mut times = Vec::new();
    for n in 0..6 {
        times.push(scene.stage.now());
        scene.publish(&format!("{n}")).await;
        pass(60.0).await;
    }
    let first = scene.stage.remote.seen();
    let filter = DeliveryFilter {
        created_from: Some(times[1]),
        created_before: Some(times[4]),
        statuses: vec![Status::Success],
        ..DeliveryFilter::default()
    };
    let order = JobOrder { act: JobAct::Resend, target: JobTarget::Filter(Box::new(filter)) };
    let job = scene.stage.engine.create_job(scene.stage.project, order).await.unwrap();
    pass(60.0).await;
    let job = scene.stage.engine.job(scene.stage.project, job.id).await.unwrap();
    assert_eq!((job.done, job.skipped_in_all()), (3, 0), "{job:?}");
    let again = scene.stage.remote.seen().split_off(first.len());
    let bodies = |seen: &[Seen]| {
        let mut bodies: Vec<_> = seen.iter().map(|one| (one.id, one.body.clone())).collect();
        bodies.sort();
        bodies
    };
    assert_eq!(bodies(&again), bodies(&first[1..4]));
    assert!(again.iter().all(|one| one.attempt == 2), "attempts are numbered on");
}
