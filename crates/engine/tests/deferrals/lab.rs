//! A stage with endpoints, subscriptions and events.
#![allow(clippy::unwrap_used, reason = "a lab for tests")]

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::delivery::Delivery;
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_engine::{
    EngineOptions, KeyWish, Keyring, MasterKey, NewEndpoint, NewEvent, NewSubscription, SigningScheme,
};
use postrider_store::{DeliveryFilter, PageRequest, StoreRead};
use serde_json::{Map, Value};

use crate::stage::{Remote, Stage};

pub fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// With a key to seal secrets with.
pub fn options() -> EngineOptions {
    let keyring = Keyring::parse("key", &MasterKey::from_bytes([7; 32]).written()).unwrap();
    EngineOptions { keyring, ..EngineOptions::default() }
}

pub async fn set(remote: Arc<Remote>) -> Stage {
    Stage::with(remote, options()).await
}

/// An endpoint of this name; its retries, unless the keys say otherwise, are a second apart.
pub async fn endpoint(stage: &Stage, name: &str, keys: Value) -> Arc<Connection> {
    let mut written = map(keys);
    written.entry("url").or_insert_with(|| format!("https://hooks.example.org/{name}").into());
    written.entry("retry_delays").or_insert_with(|| Value::from(vec![1]));
    written.entry("jitter").or_insert(false.into());
    let key = KeyWish::Make(SigningScheme::Symmetric);
    let new = NewEndpoint { name: Some(name.to_owned()), written, key, verify: false };
    stage.engine.create_endpoint(stage.project, new).await.unwrap().0
}

pub async fn subscribe(stage: &Stage, to: &Connection, keys: Value) {
    let new = NewSubscription { name: None, connection: to.id, written: map(keys) };
    stage.engine.subscribe_push(stage.project, new).await.unwrap();
}

pub async fn tell(stage: &Stage, event_type: &str, data: Value) {
    let event = NewEvent {
        event_type: TopicName::new(event_type).unwrap(),
        headers: HeaderList::default(),
        body: Bytes::from(data.to_string()),
        id: None,
        cid: None,
    };
    stage.engine.publish_event(stage.project, event).await.unwrap();
}

/// Everything that goes to this connection, the oldest first.
pub async fn deliveries(stage: &Stage, to: &Connection) -> Vec<Delivery> {
    let filter =
        DeliveryFilter { connection_id: Some(to.id), project_id: Some(stage.project), ..DeliveryFilter::default() };
    let page = PageRequest { limit: 1000, cursor: None };
    let mut found = stage.store.deliveries(&filter, page).await.unwrap().items;
    found.reverse();
    found
}
