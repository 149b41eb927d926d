//! What people do to requests that wait in a queue, while its owner works on it (D06).

mod stage;

use bytes::Bytes;
use postrider_core::decide::{ByHand, Refused};
use postrider_core::delivery::Status;
use postrider_core::id::DeliveryId;
use postrider_engine::Refusal;
use postrider_store::StoreRead;
use serde_json::json;
use stage::*;

fn aside(
    stage: &Stage,
    id: DeliveryId,
    act: ByHand,
) -> tokio::task::JoinHandle<Result<postrider_core::delivery::Delivery, Refusal>> {
    let (engine, project) = (stage.engine.clone(), stage.project);
    tokio::spawn(async move { engine.by_hand(project, id, act).await })
}

#[tokio::test(start_paused = true)]
async fn z23_discard_during_an_attempt_that_succeeds_is_refused() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(status(200).after(5000))).await;
        stage.connection("a", json!({"use_queue": true, "ordered": ordered})).await;
        let id = stage.publish("a", "x").await;
        pass(1.0).await;
        let discard = aside(&stage, id, ByHand::Discard);
        pass(1.0).await;
        assert!(!discard.is_finished(), "it waits for the attempt's end");
        let refusal = discard.await.unwrap().unwrap_err();
        assert_eq!(refusal, Refusal::NotNow(Refused::AlreadyDelivered), "ordered: {ordered}");
        assert_eq!(stage.status(id).await, Status::Success);
    }
}

#[tokio::test(start_paused = true)]
async fn z23_discard_during_an_attempt_that_fails_comes_before_any_further_one() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::always(refused().after(5000))).await;
        stage
            .connection("a", json!({"use_queue": true, "max_retries": 5, "ordered": ordered, "retry_sleep_time": 0}))
            .await;
        let id = stage.publish("a", "x").await;
        pass(1.0).await;
        let after = aside(&stage, id, ByHand::Discard).await.unwrap().unwrap();
        assert_eq!(after.progress.status, Status::Discarded, "ordered: {ordered}");
        pass(60.0).await;
        assert_eq!(stage.remote.count(), 1);
        stage.check().await;
    }
}

#[tokio::test(start_paused = true)]
async fn z23_an_edit_of_a_waiting_request_is_what_is_sent() {
    let stage = Stage::set(Remote::always(status(200).after(2000))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    stage.publish("a", "1").await;
    let second = stage.publish("a", "2").await;
    pass(1.0).await;
    let began = stage.now();
    stage.engine.edit_body(stage.project, second, Bytes::from_static(b"two")).await.unwrap();
    assert_eq!(stage.now(), began, "another one's attempt does not hold it up");
    pass(10.0).await;
    assert_eq!(stage.remote.bodies(), ["1", "two"]);
}

#[tokio::test(start_paused = true)]
async fn z23_the_head_can_be_set_aside_and_what_is_behind_goes_on() {
    let stage =
        Stage::set(Remote::new(|outgoing, _| if &outgoing.body[..] == b"bad" { refused() } else { status(200) })).await;
    stage.connection("a", json!({"use_queue": true, "use_dlq": false, "max_retries": 5})).await;
    let bad = stage.publish("a", "bad").await;
    stage.publish("a", "good").await;
    pass(1.0).await;
    let after = stage.engine.by_hand(stage.project, bad, ByHand::SetAside).await.unwrap();
    assert_eq!(after.progress.status, Status::Dlq);
    pass(1.0).await;
    assert_eq!(stage.remote.bodies(), ["bad", "good"]);
}

#[tokio::test(start_paused = true)]
async fn z23_attempt_now_does_not_wait_for_the_schedule() {
    for ordered in [true, false] {
        let stage = Stage::set(Remote::plays(vec![refused(), status(200)])).await;
        let settings = json!({"use_queue": true, "max_retries": 5, "retry_sleep_time": 8, "ordered": ordered});
        stage.connection("a", settings).await;
        let id = stage.publish("a", "x").await;
        pass(1.0).await;
        stage.engine.by_hand(stage.project, id, ByHand::AttemptNow).await.unwrap();
        pass(0.5).await;
        assert_eq!((stage.remote.times(), stage.status(id).await), (vec![0, 1000], Status::Success));
    }
}

#[tokio::test(start_paused = true)]
async fn z23_a_request_far_behind_the_window_can_be_discarded() {
    let stage = Stage::set(Remote::always(status(200).after(100))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let mut ids = Vec::new();
    for number in 0..300 {
        ids.push(stage.publish("a", &number.to_string()).await);
    }
    pass(1.05).await;
    stage.engine.by_hand(stage.project, ids[250], ByHand::Discard).await.unwrap();
    pass(60.0).await;
    let bodies = stage.remote.bodies();
    assert_eq!((bodies.len(), bodies.contains(&"250".to_owned())), (299, false));
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z23_resend_of_what_was_delivered_sends_the_same_again() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "x").await;
    pass(1.0).await;
    let delivered_at = stage.delivery(id).await.progress.delivered_at;
    stage.engine.by_hand(stage.project, id, ByHand::Resend).await.unwrap();
    pass(1.0).await;
    let progress = stage.delivery(id).await.progress;
    assert_eq!((progress.status, progress.attempts, progress.delivered_at), (Status::Success, 2, delivered_at));
    assert_eq!(stage.remote.bodies(), ["x", "x"]);
    assert_eq!(stage.store.attempts(id).await.unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn z23_nothing_of_another_project_is_found() {
    let stage = Stage::set(Remote::always(status(200))).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "x").await;
    let other = postrider_core::id::ProjectId::from_u128(5);
    let refusal = stage.engine.by_hand(other, id, ByHand::Discard).await.unwrap_err();
    assert!(matches!(refusal, Refusal::NotFound { what: "delivery", .. }), "{refusal}");
}
