//! Topics: publish, subscribe, pull, acknowledge (P02). Ids and times are given here, all else is the store's.
//!
//! It must not know who publishes.

use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::id::{EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::message::HeaderList;
use postrider_core::topic::TopicName;
use postrider_store::{NewBody, PullSubscription, Pulled, StoreError, Topic, TopicMessageDraft};

use crate::refusal::Refusal;
use crate::shared::Shared;

pub(crate) async fn create(
    shared: &Shared,
    project_id: ProjectId,
    name: TopicName,
    description: String,
    retention: Wait,
) -> Result<Topic, Refusal> {
    let now = shared.now();
    let id = TopicId::new(now, shared.dice.bits());
    let topic = Topic { id, project_id, name, description, retention, created_at: now };
    shared.store.create_topic(topic.clone()).await?;
    // Dead letters may wait for just this topic.
    for connection in shared.connections.all() {
        shared.sweeps.settings_changed(connection.id);
    }
    Ok(topic)
}

pub(crate) async fn delete(shared: &Shared, project_id: ProjectId, name: &TopicName) -> Result<(), Refusal> {
    shared.store.delete_topic(project_id, name).await.map_err(|error| named(error, name))
}

pub(crate) async fn publish(
    shared: &Shared,
    project_id: ProjectId,
    name: &TopicName,
    headers: HeaderList,
    body: Bytes,
) -> Result<EventId, Refusal> {
    let (given, allowed) = (body.len() as u64, shared.options.body_bytes_max);
    if given > allowed {
        return Err(Refusal::TooLarge { given, allowed });
    }
    let now = shared.now();
    let id = EventId::new(now, shared.dice.bits());
    let draft = TopicMessageDraft { topic: name.clone(), id, cid: shared.new_cid(now), headers, published_at: now };
    let body = NewBody { id: shared.new_body_id(now), bytes: body };
    shared.store.publish(project_id, draft, body).await.map_err(|error| named(error, name))?;
    Ok(id)
}

pub(crate) async fn subscribe(
    shared: &Shared,
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
    shared.store.create_subscription(subscription.clone()).await?;
    Ok(subscription)
}

pub(crate) async fn unsubscribe(
    shared: &Shared,
    project_id: ProjectId,
    name: &TopicName,
    subscription: &str,
) -> Result<(), Refusal> {
    let found = find_subscription(shared, project_id, name, subscription).await?;
    Ok(shared.store.delete_subscription(found.id).await?)
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
