//! What is forwarded to a topic goes to the topic's subscriptions that push, as any message does (Z21, Z22, D40).
#![allow(clippy::unwrap_used, reason = "tests")]

mod stage;

use std::sync::Arc;

use postrider_core::Wait;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::job::{JobAct, SkipReason};
use postrider_core::topic::TopicName;
use postrider_engine::{EngineOptions, JobOrder, JobTarget, NewSubscription, Refusal};
use postrider_store::{DeliveryFilter, MemoryStore, PageRequest, StoreLimits, StoreRead};
use serde_json::{Value, json};
use stage::*;

fn topic() -> TopicName {
    TopicName::new("claims.failed").unwrap()
}

/// `desk` answers, everything else refuses.
fn remote() -> Arc<Remote> {
    Remote::new(|outgoing, _| if outgoing.connection.name == "desk" { status(200) } else { refused() })
}

fn forwards(every: u32) -> Value {
    json!({"use_queue": true, "dlq_action": "forward", "dlq_forward_to": "claims.failed", "dlq_retry_interval": every})
}

async fn set(limits: StoreLimits) -> Stage {
    let memory = MemoryStore::new(limits);
    let options = EngineOptions::default();
    let stage = Stage::over(Arc::new(memory.clone()), memory, remote(), options, PausedClock::shared()).await;
    stage.engine.create_topic(stage.project, topic(), String::new(), Wait::from_secs(86_400)).await.unwrap();
    stage
}

async fn subscribe(stage: &Stage, to: &Connection) {
    let written = json!({"event_type": "claims.*"}).as_object().unwrap().clone();
    let new = NewSubscription { name: None, connection: to.id, written };
    stage.engine.subscribe_push(stage.project, new).await.unwrap();
}

async fn deliveries(stage: &Stage, to: &Connection) -> Vec<Delivery> {
    let filter = DeliveryFilter { connection_id: Some(to.id), ..DeliveryFilter::default() };
    stage.store.deliveries(&filter, PageRequest { limit: 1000, cursor: None }).await.unwrap().items
}

#[tokio::test(start_paused = true)]
async fn z21_the_action_forward_reaches_the_subscriptions_that_push() {
    let stage = set(StoreLimits::default()).await;
    stage.connection("a", forwards(60)).await;
    let desk = stage.connection("desk", json!({"use_queue": true})).await;
    subscribe(&stage, &desk).await;
    subscribe(&stage, &desk).await;
    let id = stage.publish("a", "claim 7").await;
    pass(61.0).await;
    assert_eq!(stage.status(id).await, Status::Forwarded);
    let got = deliveries(&stage, &desk).await;
    assert_eq!(got.len(), 2, "one for each subscription");
    let original = stage.delivery(id).await;
    for one in &got {
        assert_eq!((one.progress.status, &one.cid, one.body_id), (Status::Success, &original.cid, original.body_id));
        assert_eq!(one.head.headers.get("x-postrider-dlq-reason"), Some("unreachable"), "with the note");
        assert_eq!(
            one.event.as_ref().map(|event| event.id.as_u128()),
            Some(id.as_u128()),
            "Z22: the same id each time"
        );
    }
    let seen = stage.remote.seen().into_iter().filter(|seen| seen.body == "claim 7").count();
    assert_eq!(seen, 3, "the attempt that failed, and one for each subscription");
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z23_a_forward_by_hand_and_by_a_job_are_pushed_too() {
    let stage = set(StoreLimits::default()).await;
    let from = stage.connection("a", json!({"use_queue": true})).await;
    let desk = stage.connection("desk", json!({"use_queue": true})).await;
    subscribe(&stage, &desk).await;
    let id = stage.publish("a", "1").await;
    for text in ["2", "3"] {
        stage.publish("a", text).await;
    }
    pass(5.0).await;
    stage.engine.forward(stage.project, id, &topic(), false).await.unwrap();
    pass(1.0).await;
    assert_eq!(deliveries(&stage, &desk).await.len(), 1);
    let filter = DeliveryFilter { connection_id: Some(from.id), ..DeliveryFilter::default() };
    let filter = DeliveryFilter { statuses: vec![Status::Dlq], ..filter };
    let act = JobAct::Forward { topic: topic(), keep_header: true };
    let order = JobOrder { act, target: JobTarget::Filter(Box::new(filter)) };
    let job = stage.engine.create_job(stage.project, order).await.unwrap();
    pass(10.0).await;
    assert_eq!(stage.engine.job(stage.project, job.id).await.unwrap().done, 2);
    let got = deliveries(&stage, &desk).await;
    assert_eq!(got.len(), 3);
    assert!(got.iter().all(|one| one.progress.status == Status::Success), "{got:?}");
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z22_a_forward_without_room_stays_in_the_dlq_and_says_so() {
    let stage = set(StoreLimits { queue_messages_max: 2, ..StoreLimits::default() }).await;
    stage.connection("a", forwards(60)).await;
    let by_hand = stage.connection("b", json!({"use_queue": true})).await;
    let full = stage.connection("full", json!({"use_queue": true, "is_active": false})).await;
    let desk = stage.connection("desk", json!({"use_queue": true})).await;
    subscribe(&stage, &full).await;
    subscribe(&stage, &desk).await;
    let filling = [stage.publish("a", "1").await, stage.publish("a", "2").await];
    pass(62.0).await;
    assert_eq!(deliveries(&stage, &full).await.len(), 2);
    let id = stage.publish("a", "3").await;
    let other = stage.publish("b", "4").await;
    pass(62.0).await;
    let progress = stage.delivery(id).await.progress;
    assert_eq!(progress.status, Status::Dlq);
    let note = "a queue that the topic `claims.failed` is pushed to is full (`queue_messages_max`)";
    assert_eq!(progress.dlq_note.as_deref(), Some(note));
    assert_eq!(deliveries(&stage, &desk).await.len(), filling.len(), "none of it is pushed: all or nothing");
    let refusal = stage.engine.forward(stage.project, other, &topic(), true).await.unwrap_err();
    assert_eq!(refusal, Refusal::Full { limit: "queue_messages_max" });
    let filter = DeliveryFilter { connection_id: Some(by_hand.id), ..DeliveryFilter::default() };
    let act = JobAct::Forward { topic: topic(), keep_header: true };
    let order = JobOrder { act, target: JobTarget::Filter(Box::new(filter)) };
    let job = stage.engine.create_job(stage.project, order).await.unwrap();
    pass(5.0).await;
    let job = stage.engine.job(stage.project, job.id).await.unwrap();
    assert_eq!((job.done, job.skipped.get(&SkipReason::NoRoom)), (0, Some(&1)), "{job:?}");
    stage.check().await;
}

#[tokio::test(start_paused = true)]
async fn z21_what_came_from_a_topic_and_failed_does_not_go_round_for_ever() {
    let stage = set(StoreLimits::default()).await;
    let from = stage.connection("a", forwards(60)).await;
    subscribe(&stage, &from).await;
    subscribe(&stage, &from).await;
    stage.publish("a", "x").await;
    pass(3600.0).await;
    let all = deliveries(&stage, &from).await;
    assert_eq!(all.len(), 3, "itself, and what its one forward pushed");
    assert!(all.iter().all(|one| one.progress.status == Status::Forwarded));
    let topic = stage.store.topic(stage.project, &topic()).await.unwrap().unwrap();
    let messages = stage.store.topic_messages(&topic, PageRequest { limit: 100, cursor: None }).await.unwrap().items;
    assert_eq!(messages.len(), 3, "each is on the topic, for those who pull");
}
