//! Topics: publish, subscribe, pull, acknowledge (P02). Ids and times are given here, all else is the store's.
//!
//! It must not know who publishes.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::id::{Cid, EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_store::{Change, PullSubscription, Pulled, StoreError, Topic};

use serde_json::{Value, json};

use crate::actor::Actor;
use crate::audit::Describe as _;
use crate::events::{self, NewEvent, TopicPolicy};
use crate::refusal::Refusal;
use crate::shared::Shared;

pub(crate) async fn create(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    name: TopicName,
    description: String,
    retention: Wait,
) -> Result<Topic, Refusal> {
    let now = shared.now();
    let id = TopicId::new(now, shared.dice.bits());
    let topic = Topic { id, project_id, name, description, retention, created_at: now };
    let entry = shared.audit_entry(actor, Some(project_id), "topic.create").about(id, topic.name.as_str());
    shared.store.change(Change::CreateTopic(topic.clone()), entry.with_after(shown(&topic))).await?;
    // Dead letters may wait for just this topic.
    for connection in shared.connections.all() {
        shared.sweeps.settings_changed(connection.id);
    }
    Ok(topic)
}

/// As the audit log keeps it.
pub(crate) fn shown(topic: &Topic) -> Value {
    let retention_seconds = topic.retention.as_millis() / 1000;
    json!({"name": topic.name, "description": topic.description, "retention_seconds": retention_seconds})
}

pub(crate) async fn delete(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    name: &TopicName,
) -> Result<(), Refusal> {
    let topic = find(shared, project_id, name).await?;
    let entry = shared.audit_entry(actor, Some(project_id), "topic.delete").about(topic.id, name.as_str());
    let change = Change::DeleteTopic { project_id, name: name.clone() };
    shared.store.change(change, entry).await.map_err(|error| named(error, name))
}

pub(crate) async fn publish(
    shared: &Arc<Shared>,
    project_id: ProjectId,
    name: &TopicName,
    headers: HeaderList,
    body: Bytes,
    cid: Option<Cid>,
) -> Result<EventId, Refusal> {
    let message = NewEvent { event_type: name.clone(), headers, body, id: None, cid };
    Ok(events::publish(shared, project_id, message, TopicPolicy::MustExist).await?.id)
}

pub(crate) async fn subscribe(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    name: &TopicName,
    subscription: String,
    redeliver_after: Wait,
) -> Result<PullSubscription, Refusal> {
    let topic = find(shared, project_id, name).await?;
    let now = shared.now();
    let subscription = PullSubscription {
        id: SubscriptionId::new(now, shared.dice.bits()),
        project_id,
        topic_id: topic.id,
        name: subscription,
        redeliver_after,
        created_at: now,
    };
    let entry = shared.audit_entry(actor, Some(project_id), "subscription.create");
    let entry = entry.about(subscription.id, &subscription.name);
    let after = json!({"name": subscription.name, "topic": name, "redeliver_after_seconds": redeliver_after.as_millis() / 1000});
    shared.store.change(Change::CreateSubscription(subscription.clone()), entry.with_after(after)).await?;
    Ok(subscription)
}

pub(crate) async fn unsubscribe(
    shared: &Shared,
    actor: &Actor,
    project_id: ProjectId,
    name: &TopicName,
    subscription: &str,
) -> Result<(), Refusal> {
    let found = find_subscription(shared, project_id, name, subscription).await?;
    let entry = shared.audit_entry(actor, Some(project_id), "subscription.delete").about(found.id, &found.name);
    Ok(shared.store.change(Change::DeleteSubscription(found.id), entry).await?)
}

pub(crate) async fn pull(
    shared: &Shared,
    project_id: ProjectId,
    name: &TopicName,
    subscription: &str,
    messages_max: u32,
) -> Result<Vec<Pulled>, Refusal> {
    let found = find_subscription(shared, project_id, name, subscription).await?;
    Ok(shared.store.pull(found.id, shared.now(), messages_max).await?)
}

pub(crate) async fn acknowledge(
    shared: &Shared,
    project_id: ProjectId,
    name: &TopicName,
    subscription: &str,
    ids: Vec<EventId>,
) -> Result<u64, Refusal> {
    let found = find_subscription(shared, project_id, name, subscription).await?;
    Ok(shared.store.acknowledge(found.id, ids).await?)
}

async fn find(shared: &Shared, project_id: ProjectId, name: &TopicName) -> Result<Topic, Refusal> {
    let found = shared.store.topic(project_id, name).await?;
    found.ok_or_else(|| Refusal::NotFound { what: "topic", name: name.to_string() })
}

async fn find_subscription(
    shared: &Shared,
    project_id: ProjectId,
    name: &TopicName,
    subscription: &str,
) -> Result<PullSubscription, Refusal> {
    let topic = find(shared, project_id, name).await?;
    let found = shared.store.subscription(&topic, subscription).await?;
    found.ok_or_else(|| Refusal::NotFound { what: "subscription", name: subscription.to_owned() })
}

fn named(error: StoreError, name: &TopicName) -> Refusal {
    match error {
        StoreError::NotFound { what } => Refusal::NotFound { what, name: name.to_string() },
        other => other.into(),
    }
}
