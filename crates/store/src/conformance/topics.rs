//! Cases of topics and of the subscriptions that pull them. They must not deliver anything.

use postrider_core::id::{EventId, SubscriptionId};
use postrider_core::topic::TopicName;

use super::TestStore;
use super::fixture::*;
use crate::*;

fn pulled_ids(pulled: &[Pulled]) -> Vec<EventId> {
    pulled.iter().map(|pulled| pulled.message.id).collect()
}

pub async fn z22_a_message_is_given_out_until_it_is_acknowledged(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("orders").await;
    let reader = world.subscription(&topic, "reader").await.id;
    let mut published = Vec::new();
    for millis in 0..3 {
        published.push(world.published(&topic, millis).await);
    }
    let first = store.pull(reader, at(10), 2).await.unwrap();
    assert_eq!(pulled_ids(&first), published[..2], "oldest first");
    assert!(first.iter().all(|pulled| pulled.times_given == 1 && pulled.message.body == b"news"[..]));
    assert_eq!(pulled_ids(&store.pull(reader, at(10), 10).await.unwrap()), published[2..]);
    assert!(store.pull(reader, at(30_009), 10).await.unwrap().is_empty(), "they are given out for 30 s");
    assert_eq!(store.acknowledge(reader, vec![published[0], EventId::from_u128(9)]).await, Ok(1));
    assert_eq!(store.acknowledge(reader, vec![published[0]]).await, Ok(0), "once is enough");
    let again = store.pull(reader, at(30_010), 10).await.unwrap();
    assert_eq!(pulled_ids(&again), published[1..]);
    assert!(again.iter().all(|pulled| pulled.times_given == 2));
    assert_eq!(store.acknowledge(reader, published.clone()).await, Ok(2));
    assert!(store.pull(reader, at(90_000), 10).await.unwrap().is_empty());
}

pub async fn z22_every_existing_subscription_gets_each_message(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let [topic, other] = [world.topic("orders").await, world.topic("other").await];
    let before = world.published(&topic, 0).await;
    let [a, b] = [world.subscription(&topic, "a").await.id, world.subscription(&topic, "b").await.id];
    let foreign = world.subscription(&other, "a").await.id;
    let message = world.published(&topic, 1).await;
    assert_eq!(store.acknowledge(a, vec![message]).await, Ok(1));
    test.reopen().await;
    let store = test.store();
    assert!(store.pull(a, at(5), 10).await.unwrap().is_empty());
    assert_eq!(pulled_ids(&store.pull(b, at(5), 10).await.unwrap()), [message], "nothing from before it existed");
    assert!(store.pull(foreign, at(5), 10).await.unwrap().is_empty());
    let listed = store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items;
    assert_eq!(listed.iter().map(|message| message.id).collect::<Vec<_>>(), [message, before], "newest first");
    assert!(listed[0].sequence > listed[1].sequence);
}

pub async fn z22_what_is_missing_or_taken_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("orders").await;
    let reader = world.subscription(&topic, "reader").await;
    let twin = world.topic_value("orders", topic.retention);
    assert!(matches!(store.create_topic(twin).await, Err(StoreError::Conflict(_))));
    let twin = PullSubscription { id: SubscriptionId::from_u128(5), ..reader.clone() };
    assert!(matches!(store.create_subscription(twin).await, Err(StoreError::Conflict(_))));
    let missing = world.topic_value("missing", topic.retention);
    let (draft, body) = (world.draft(&missing, 0), world.body(b"lost"));
    let refused = store.publish(world.project_id, draft, body.clone()).await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
    assert_eq!(store.body(body.id).await.unwrap(), None);
    let lost = PullSubscription { topic_id: missing.id, id: SubscriptionId::from_u128(6), ..reader.clone() };
    assert!(matches!(store.create_subscription(lost).await, Err(StoreError::NotFound { .. })));
    let unknown = SubscriptionId::from_u128(99);
    assert!(matches!(store.pull(unknown, at(0), 1).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(store.acknowledge(unknown, Vec::new()).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(store.delete_subscription(unknown).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(store.delete_topic(world.project_id, &missing.name).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.topic(world.project_id, &topic.name).await.unwrap(), Some(topic.clone()));
    assert_eq!(store.subscription(&topic, "reader").await.unwrap(), Some(reader.clone()));
    assert_eq!(store.subscriptions(&topic).await.unwrap(), [reader]);
}

pub async fn a_topic_goes_with_its_messages_and_subscriptions(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("orders").await;
    let reader = world.subscription(&topic, "reader").await;
    let body = world.body(b"news");
    store.publish(world.project_id, world.draft(&topic, 0), body.clone()).await.unwrap();
    store.delete_topic(world.project_id, &topic.name).await.unwrap();
    assert_eq!(store.topic(world.project_id, &TopicName::new("orders").unwrap()).await.unwrap(), None);
    assert!(matches!(store.pull(reader.id, at(0), 1).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.body(body.id).await.unwrap(), None);
    let again = world.topic("orders").await;
    assert!(store.topic_messages(&again, FIRST_PAGE).await.unwrap().items.is_empty());
}

pub async fn a_deleted_subscription_owes_nothing(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("orders").await;
    let reader = world.subscription(&topic, "reader").await;
    world.published(&topic, 0).await;
    store.delete_subscription(reader.id).await.unwrap();
    let pruned = store.prune(at(0), at(0) + topic.retention, 10).await.unwrap();
    assert_eq!(pruned.topic_messages, 1);
}
