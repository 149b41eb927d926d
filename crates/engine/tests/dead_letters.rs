//! The DLQ: what arrives there, its actions, and what people do with it.
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use bytes::Bytes;
use postrider_core::decide::ByHand;
use postrider_core::delivery::Status;
use postrider_core::topic::TopicName;
use postrider_core::{Failure, Wait};
use postrider_engine::Refusal;
use postrider_store::{PageRequest, StoreRead, TopicMessage};
use serde_json::json;
use stage::*;

fn topic() -> TopicName {
    TopicName::new("claims.failed").unwrap()
}

async fn messages(stage: &Stage) -> Vec<TopicMessage> {
    let topic = stage.store.topic(stage.project, &topic()).await.unwrap().unwrap();
    stage.store.topic_messages(&topic, PageRequest { limit: 100, cursor: None }).await.unwrap().items
}

#[tokio::test(start_paused = true)]
async fn z20_a_dead_letter_says_why_when_and_how_often() {
    let stage = Stage::set(Remote::always(status(503).after(0))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 2})).await;
    let id = stage.publish("a", "x").await;
    pass(30.0).await;
    let progress = stage.delivery(id).await.progress;
    assert_eq!((progress.status, progress.failure), (Status::Dlq, Some(Failure::Status)));
    assert_eq!((progress.error.as_deref(), progress.attempts, progress.rounds), (Some("HTTP 503"), 3, 1));
    assert_eq!(progress.dead_at.map(|at| at.as_millis()), Some(BEGAN_MS + 6000));
    pass(86_400.0).await;
    assert_eq!(stage.status(id).await, Status::Dlq, "kept by default");
}

#[tokio::test(start_paused = true)]
async fn z21_the_action_retry_gives_more_rounds_and_then_it_stays() {
    let stage = Stage::set(Remote::always(refused())).await;
    let settings = json!({
        "use_queue": true, "max_retries": 1, "dlq_action": "retry", "dlq_retries": 2, "dlq_retry_interval": 90,
    });
    stage.connection("a", settings).await;
    let id = stage.publish("a", "x").await;
    pass(3600.0).await;
    // A round takes 2 s; "every" runs from the arrival in the DLQ, to the second.
    assert_eq!(stage.remote.times(), [0, 2000, 92_000, 94_000, 184_000, 186_000]);
    let delivery = stage.delivery(id).await;
    assert_eq!((delivery.progress.status, delivery.progress.dlq_retries), (Status::Dlq, 2));
    assert_eq!(delivery.progress.rounds, 3);
    assert_eq!(delivery.progress.age_from, delivery.created_at, "it keeps its age");
}

#[tokio::test(start_paused = true)]
async fn z21_a_retry_goes_to_the_tail() {
    let stage = Stage::set(Remote::new(|outgoing, _| {
        if &outgoing.body[..] == b"1" && outgoing.attempt == 1 { refused() } else { status(200).after(5000) }
    }))
    .await;
    stage.connection("a", json!({"use_queue": true, "dlq_action": "retry", "dlq_retry_interval": 7})).await;
    for body in ["1", "2", "3", "4"] {
        stage.publish("a", body).await;
    }
    pass(60.0).await;
    assert_eq!(stage.remote.bodies(), ["1", "2", "3", "4", "1"]);
}

#[tokio::test(start_paused = true)]
async fn z21_a_changed_action_applies_to_what_is_already_there() {
    let stage = Stage::set(Remote::always(refused())).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "x").await;
    pass(600.0).await;
    assert_eq!(stage.status(id).await, Status::Dlq);
    stage.change("a", json!({"use_queue": true, "dlq_action": "discard", "dlq_retry_interval": 3600})).await;
    pass(2999.0).await;
    assert_eq!(stage.status(id).await, Status::Dlq);
    pass(2.0).await;
    assert_eq!(stage.status(id).await, Status::Discarded);
    stage.check().await;
}

// proves: Z22
#[tokio::test(start_paused = true)]
async fn z21_forward_moves_it_to_the_topic_with_its_note() {
    let stage = Stage::set(Remote::always(status(500).after(0))).await;
    stage.engine.create_topic(stage.project, topic(), String::new(), Wait::from_secs(86_400)).await.unwrap();
    let settings = json!({"use_queue": true, "dlq_action": "forward", "dlq_forward_to": "claims.failed"});
    stage.connection("a", settings).await;
    let id = stage.publish("a", "the body").await;
    pass(59.0).await;
    assert_eq!(stage.status(id).await, Status::Dlq);
    pass(2.0).await;
    assert_eq!(stage.status(id).await, Status::Forwarded);
    let messages = messages(&stage).await;
    assert_eq!((messages.len(), &messages[0].body[..]), (1, &b"the body"[..]));
    assert_eq!(messages[0].id.as_u128(), id.as_u128(), "the same id each time it is forwarded");
    let headers = &messages[0].headers;
    assert_eq!(headers.get("x-postrider-dlq-reason"), Some("status"));
    assert_eq!(headers.get("x-postrider-dlq-error"), Some("HTTP 500"));
    assert_eq!(headers.get("x-postrider-dlq-failed-at"), Some("2026-03-12T12:00:00.000Z"));
    assert_eq!(
        (headers.get("x-postrider-dlq-attempts"), headers.get("x-postrider-dlq-rounds")),
        (Some("1"), Some("1"))
    );
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z21_forward_without_the_note_if_it_is_not_wanted() {
    let stage = Stage::set(Remote::always(refused())).await;
    stage.engine.create_topic(stage.project, topic(), String::new(), Wait::from_secs(86_400)).await.unwrap();
    let settings = json!({
        "use_queue": true, "dlq_action": "forward", "dlq_forward_to": "claims.failed", "dlq_keep_header": false,
    });
    stage.connection("a", settings).await;
    stage.publish("a", "x").await;
    pass(61.0).await;
    assert!(messages(&stage).await[0].headers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn z22_a_topic_that_does_not_exist_keeps_it_in_the_dlq_with_that_reason() {
    let stage = Stage::set(Remote::always(refused())).await;
    let settings = json!({"use_queue": true, "dlq_action": "forward", "dlq_forward_to": "claims.failed"});
    stage.connection("a", settings).await;
    let id = stage.publish("a", "x").await;
    pass(300.0).await;
    let progress = stage.delivery(id).await.progress;
    assert_eq!(progress.status, Status::Dlq);
    assert_eq!(progress.dlq_note.as_deref(), Some("the topic `claims.failed` does not exist"));
    stage.engine.create_topic(stage.project, topic(), String::new(), Wait::from_secs(86_400)).await.unwrap();
    pass(0.1).await;
    assert_eq!((stage.status(id).await, messages(&stage).await.len()), (Status::Forwarded, 1), "at once");
}

#[tokio::test(start_paused = true)]
async fn z23_a_retry_by_hand_goes_round_once_more_and_does_not_count() {
    let stage = Stage::set(Remote::plays(vec![refused(), status(200)])).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "x").await;
    pass(10.0).await;
    assert_eq!(stage.status(id).await, Status::Dlq);
    let after = stage.engine.by_hand(stage.project, id, ByHand::Retry).await.unwrap();
    assert_eq!((after.progress.status, after.progress.dlq_retries), (Status::Pending, 0));
    pass(1.0).await;
    assert_eq!(stage.status(id).await, Status::Success);
    assert_eq!(stage.store.attempts(id).await.unwrap().len(), 2);
    let refusal = stage.engine.by_hand(stage.project, id, ByHand::Retry).await.unwrap_err();
    assert!(matches!(refusal, Refusal::NotNow(_)), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn z23_edit_then_retry_sends_the_edited_body_and_keeps_the_original() {
    let stage = Stage::set(Remote::plays(vec![status(400), status(200)])).await;
    stage.connection("a", json!({"use_queue": true})).await;
    let id = stage.publish("a", "wrnog").await;
    pass(1.0).await;
    let edited = stage.engine.edit_body(stage.project, id, Bytes::from_static(b"right")).await.unwrap();
    assert_eq!(edited.progress.status, Status::Dlq);
    stage.engine.by_hand(stage.project, id, ByHand::Retry).await.unwrap();
    pass(1.0).await;
    assert_eq!(stage.remote.bodies(), ["wrnog", "right"]);
    let delivery = stage.delivery(id).await;
    assert_eq!(stage.store.body(delivery.original_body_id.unwrap()).await.unwrap().unwrap(), "wrnog");
}

#[tokio::test(start_paused = true)]
async fn z23_discard_and_forward_by_hand() {
    let stage = Stage::set(Remote::always(refused())).await;
    stage.engine.create_topic(stage.project, topic(), String::new(), Wait::from_secs(86_400)).await.unwrap();
    stage.connection("a", json!({"use_queue": true})).await;
    let (first, second) = (stage.publish("a", "1").await, stage.publish("a", "2").await);
    pass(1.0).await;
    stage.engine.by_hand(stage.project, first, ByHand::Discard).await.unwrap();
    let unknown = TopicName::new("nowhere").unwrap();
    let refusal = stage.engine.forward(stage.project, second, &unknown, true).await.unwrap_err();
    assert!(matches!(refusal, Refusal::NotFound { what: "topic", .. }), "{refusal}");
    stage.engine.forward(stage.project, second, &topic(), true).await.unwrap();
    assert_eq!((stage.status(first).await, stage.status(second).await), (Status::Discarded, Status::Forwarded));
    assert_eq!(messages(&stage).await.len(), 1);
    stage.check().await;
}
