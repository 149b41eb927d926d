//! Alerts over simulated time: each crossing once, whatever happens in between (P09).

mod stage;

use std::sync::Arc;

use postrider_core::ack::{Ack, AckCode};
use postrider_core::alert::{Alert, AlertKind};
use postrider_core::connection::ConnectionKind;
use postrider_core::delivery::Status;
use postrider_core::topic::TopicName;
use postrider_core::{Answer, Reply, Said};
use postrider_engine::{ALERT_TOPIC, EngineOptions, NewConnection};
use postrider_store::{Alerts, MemoryStore, PageRequest, StoreRead};
use serde_json::{Value, json};
use stage::faltering::Faltering;
use stage::*;

async fn alerts(stage: &Stage) -> Vec<Alert> {
    let page = PageRequest { limit: 100, cursor: None };
    stage.store.alerts(Some(stage.project), None, page).await.expect("the alerts are read").items
}

async fn kinds(stage: &Stage) -> Vec<(&'static str, bool)> {
    let mut found: Vec<_> =
        alerts(stage).await.into_iter().map(|alert| (alert.kind.as_str(), alert.recovered_at.is_none())).collect();
    found.sort_unstable();
    found
}

fn acknowledged(code: AckCode, text: &str) -> Play {
    let said = Some(Said::Ack(Ack::single(code, Some(text.to_owned()))));
    Play { after_ms: 1, reply: Reply::Answered(Answer { said, ..Answer::default() }) }
}

// proves: P09, D25, D44
#[tokio::test(start_paused = true)]
async fn p09_d25_a_head_that_was_refused_for_good_rings_at_once_and_once_more_when_it_is_gone() {
    let stage = Stage::set(Remote::always(acknowledged(AckCode::Ae, "unknown patient"))).await;
    let written = json!({"address": "lis:2575", "use_queue": true, "use_dlq": false}).as_object().unwrap().clone();
    let lis = NewConnection { name: "lis".to_owned(), kind: ConnectionKind::Mllp, written };
    stage.engine.create_connection(stage.project, lis).await.unwrap();
    let message = |id: &str| format!("MSH|^~\\&|HIS|GH|LIS|GH|20260312||ADT^A01|{id}|P|2.5\r");
    let head = stage.publish("lis", &message("1")).await;
    let behind = stage.publish("lis", &message("2")).await;
    pass(5.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_rejected", true)], "it never goes by itself");
    pass(9.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_rejected", true)], "once");
    stage.remote.set(|_, _| acknowledged(AckCode::Aa, ""));
    pass(5.0 * 60.0).await;
    assert_eq!((stage.status(head).await, stage.status(behind).await), (Status::Success, Status::Success));
    assert_eq!(kinds(&stage).await, [("head_rejected", false)]);
}

// proves: P09, D43
#[tokio::test(start_paused = true)]
async fn p09_a_blocked_head_rings_once_also_over_a_crash_and_once_when_it_is_delivered() {
    let remote = Remote::always(status(500));
    let mut stage = Stage::set(remote).await;
    let settings = json!({"use_queue": true, "use_dlq": false, "max_retries": 1000, "retry_sleep_time": 1});
    stage.connection("a", settings).await;
    stage.publish("a", "x").await;
    pass(14.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, []);
    pass(2.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_blocked", true)]);
    stage.crash_and_restart().await;
    pass(10.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_blocked", true)], "one alert, not one for each start");
    pass(40.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_blocked", true), ("oldest_waiting", true)]);
    stage.remote.set(|_, _| status(200));
    pass(60.0 * 60.0).await;
    assert_eq!(kinds(&stage).await, [("head_blocked", false), ("oldest_waiting", false)]);
    let topic = stage.store.topic(stage.project, &TopicName::new(ALERT_TOPIC).unwrap()).await.unwrap().unwrap();
    let messages = stage.store.topic_messages(&topic, PageRequest { limit: 100, cursor: None }).await.unwrap().items;
    assert_eq!(messages.len(), 4, "an event for each crossing");
    let event: Value = serde_json::from_slice(&messages[0].body).unwrap();
    assert_eq!(
        (&event["state"], &event["project"], &event["connection"]),
        (&json!("recovered"), &json!("default"), &json!("a"))
    );
}

#[tokio::test(start_paused = true)]
async fn p09_dead_letters_that_keep_coming_ring_once() {
    let stage = Stage::set(Remote::always(status(500))).await;
    stage.connection("a", json!({"use_queue": true, "max_retries": 0})).await;
    let growing = async |stage: &Stage| {
        let found = kinds(stage).await.into_iter().filter(|(kind, _)| *kind == "dead_letters_growing");
        found.map(|(_, is_open)| is_open).collect::<Vec<_>>()
    };
    // 150 in ten minutes, and 100 are too many.
    for _ in 0..80 {
        for _ in 0..5 {
            stage.publish("a", "x").await;
        }
        pass(20.0).await;
    }
    assert_eq!(growing(&stage).await, [true]);
    pass(12.0 * 60.0).await;
    assert_eq!(growing(&stage).await, [false]);
}

#[tokio::test(start_paused = true)]
async fn p09_a_store_that_takes_no_writes_is_on_record_once_it_does_again() {
    let memory = MemoryStore::default();
    let store = Arc::new(Faltering::new(memory.clone()));
    let remote = Remote::always(status(200));
    let stage =
        Stage::over(Arc::clone(&store) as _, memory, remote, EngineOptions::default(), PausedClock::shared()).await;
    for verb in ["set_value", "renew_worker", "write_alert"] {
        store.fail(verb, u32::MAX);
    }
    pass(60.0).await;
    let page = || PageRequest { limit: 100, cursor: None };
    assert_eq!(stage.store.alerts(None, None, page()).await.unwrap().items, []);
    for verb in ["set_value", "renew_worker", "write_alert"] {
        store.fail(verb, 0);
    }
    pass(60.0).await;
    let found = stage.store.alerts(None, None, page()).await.unwrap().items;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind, found[0].recovered_at.is_some()), (AlertKind::StoreUnwritable, true));
}
