//! Operational events: published to topics like any event, to who names them.

use postrider_core::delivery::Status;
use postrider_core::topic::TopicName;
use postrider_engine::Refusal;
use postrider_store::StoreRead;
use serde_json::{Value, json};

use crate::lab::{deliveries, endpoint, set, subscribe, tell};
use crate::stage::*;

const DEAD: &str = "delivery.dead_lettered";

fn fails_at(name: &'static str) -> std::sync::Arc<Remote> {
    Remote::new(move |outgoing, _| status(if outgoing.connection.name == name { 400 } else { 200 }))
}

#[tokio::test(start_paused = true)]
async fn r10_a_dead_letter_is_told_to_who_subscribes_to_it() {
    let stage = set(fails_at("shop")).await;
    let shop = endpoint(&stage, "shop", json!({})).await;
    let ops = endpoint(&stage, "ops", json!({"payload": "data"})).await;
    let everything = endpoint(&stage, "everything", json!({})).await;
    subscribe(&stage, &shop, json!({"event_type": "order.*"})).await;
    subscribe(&stage, &ops, json!({"event_type": "delivery.*"})).await;
    subscribe(&stage, &everything, json!({"event_type": "**"})).await;
    tell(&stage, "order.created", json!({"n": 1})).await;
    pass(5.0).await;
    let dead = &deliveries(&stage, &shop).await[0];
    assert_eq!(dead.progress.status, Status::Dlq);
    let told = deliveries(&stage, &ops).await;
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].progress.status, told[0].event.as_ref().unwrap().event_type.as_str()), (Status::Success, DEAD));
    let seen = stage.remote.seen().into_iter().find(|seen| seen.connection == "ops").unwrap();
    let data: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!((&data["deliveryId"], &data["eventType"]), (&json!(dead.id), &json!("order.created")));
    assert_eq!((&data["failure"], &data["attempts"]), (&json!("status"), &json!(1)));
    // Who takes all that is published here does not hear of our troubles.
    assert_eq!(deliveries(&stage, &everything).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r10_a_dead_letter_about_a_dead_letter_is_told_to_nobody() {
    let stage = set(Remote::always(status(400))).await;
    let ops = endpoint(&stage, "ops", json!({})).await;
    subscribe(&stage, &ops, json!({"event_type": "delivery.*"})).await;
    subscribe(&stage, &ops, json!({"event_type": "order.*"})).await;
    tell(&stage, "order.created", json!({})).await;
    pass(60.0).await;
    let all = deliveries(&stage, &ops).await;
    let types: Vec<&str> = all.iter().map(|one| one.event.as_ref().unwrap().event_type.as_str()).collect();
    assert_eq!(types, ["order.created", DEAD]);
    assert!(all.iter().all(|one| one.progress.status == Status::Dlq));
}

#[tokio::test(start_paused = true)]
async fn r10_without_anybody_who_listens_nothing_is_stored_for_it() {
    let stage = set(fails_at("shop")).await;
    let shop = endpoint(&stage, "shop", json!({})).await;
    subscribe(&stage, &shop, json!({"event_type": "order.*"})).await;
    tell(&stage, "order.created", json!({})).await;
    pass(5.0).await;
    let topic = TopicName::new(DEAD).unwrap();
    assert_eq!(stage.store.topic(stage.project, &topic).await.unwrap(), None);
    // Whoever makes the topic, as one who pulls does, gets them from then on.
    stage
        .engine
        .create_topic(stage.project, topic.clone(), String::new(), postrider_core::Wait::from_secs(600))
        .await
        .unwrap();
    pass(15.0).await;
    tell(&stage, "order.created", json!({})).await;
    pass(5.0).await;
    let found = stage.store.topic(stage.project, &topic).await.unwrap().unwrap();
    let page = postrider_store::PageRequest { limit: 10, cursor: None };
    assert_eq!(stage.store.topic_messages(&found, page).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn r10_nobody_else_publishes_under_our_names() {
    let stage = set(Remote::always(status(200))).await;
    let event = postrider_engine::NewEvent {
        event_type: TopicName::new("endpoint.switched_off").unwrap(),
        headers: postrider_core::message::HeaderList::default(),
        body: bytes::Bytes::from_static(b"{}"),
        id: None,
        cid: None,
    };
    let refused = stage.engine.publish_event(stage.project, event).await.unwrap_err();
    assert!(matches!(refused, Refusal::Invalid(errors) if errors[0].field == "type"), "names the field");
}
