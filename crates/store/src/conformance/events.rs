//! Cases of messages that come to deliveries, and of subscriptions that push. They must not decide which subscription matches.

use postrider_core::delivery::{Delivery, EventRef, Origin, Status};
use postrider_core::envelope::Payload;
use postrider_core::id::{ConnectionId, EventId, SubscriptionId};
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_core::{Wait, connection::Connection};
use serde_json::json;

use super::fixture::*;
use super::{LIMITS, TestStore};
use crate::*;

fn event(world: &World<'_>, topic: &Topic, to: &[&Connection], millis: i64) -> NewEvent {
    let message = world.draft(topic, millis);
    let body = world.body(b"{\"n\":1}");
    let delivery = |connection: &&Connection| NewDelivery {
        origin: Origin::Event,
        event: Some(EventRef {
            id: message.id,
            event_type: topic.name.to_string(),
            happened_at: message.published_at,
            subscription_id: SubscriptionId::from_u128(5),
            payload: Payload::Envelope,
            line: None,
        }),
        body: body.clone(),
        ..world.fresh(connection, millis)
    };
    let deliveries = to.iter().map(delivery).collect();
    NewEvent { project_id: world.project_id, message, new_topic: None, body, id_is_given: false, deliveries }
}

fn stored(answer: PublishedEvent) -> Vec<Enqueued> {
    match answer {
        PublishedEvent::Stored(answers) => answers,
        PublishedEvent::Repeated => panic!("it was published before"),
    }
}

pub async fn d40_an_event_and_its_deliveries_survive_a_kill_together(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let topic = world.topic("order.created").await;
    let reader = world.subscription(&topic, "reader").await.id;
    let [a, b] = [world.connection("a", false).await, world.connection("b", true).await];
    let new = event(&world, &topic, &[&a, &b, &a], 3);
    let answers = stored(store.publish_event(new.clone()).await.unwrap());
    let ahead: Vec<u64> = answers
        .iter()
        .map(|answer| match answer {
            Enqueued::Stored { ahead, .. } => *ahead,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ahead, [0, 0, 1]);
    test.reopen().await;
    let reopened = test.store();
    let world = world.over(&*reopened);
    for delivery in &new.deliveries {
        let found = world.delivery(delivery.id).await;
        assert_eq!((found.event, found.body_id, found.origin), (delivery.event.clone(), new.body.id, Origin::Event));
    }
    let pulled = reopened.pull(reader, at(9), 5).await.unwrap();
    assert_eq!(pulled.iter().map(|one| one.message.id).collect::<Vec<_>>(), [new.message.id], "pullers get it too");
    let found = reopened.event(world.project_id, new.message.id).await.unwrap().unwrap();
    assert_eq!((found.topic, found.body, found.published_at), (topic.name.clone(), new.body.bytes.clone(), at(3)));
}

pub async fn d40_the_body_of_an_event_is_stored_once(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("order.created").await;
    let connection = world.connection("a", false).await;
    let new = event(&world, &topic, &[&connection, &connection], 0);
    stored(store.publish_event(new.clone()).await.unwrap());
    let lease = world.owner(&connection, 5).await;
    for delivery in &new.deliveries {
        world.attempted(delivery.id, lease, postrider_core::delivery::Status::Success).await;
    }
    let pruned = store.prune(at(1000), at(1000), 10).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (2, 0), "the message still refers to it");
    let pruned = store.prune(at(1000), at(0) + Wait::from_secs(7200), 10).await.unwrap();
    assert_eq!((pruned.topic_messages, pruned.bodies), (1, 1));
}

pub async fn d40_an_event_makes_its_topic_or_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic_value("order.created", Wait::from_secs(60));
    let missing = Err(StoreError::NotFound { what: "topic" });
    assert_eq!(store.publish_event(event(&world, &topic, &[], 1)).await, missing);
    let makes = NewEvent { new_topic: Some(topic.clone()), ..event(&world, &topic, &[], 2) };
    assert_eq!(stored(store.publish_event(makes).await.unwrap()), []);
    assert_eq!(store.topic(world.project_id, &topic.name).await.unwrap(), Some(topic.clone()));
    let again = world.topic_value("order.created", Wait::from_secs(90));
    let makes = NewEvent { new_topic: Some(again), ..event(&world, &topic, &[], 3) };
    stored(store.publish_event(makes).await.unwrap());
    let kept = store.topic(world.project_id, &topic.name).await.unwrap().unwrap();
    assert_eq!(kept.retention, topic.retention, "the one that was there stays");
}

pub async fn d40_a_given_id_is_published_once(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("order.created").await;
    let connection = world.connection("a", false).await;
    let given = NewEvent { id_is_given: true, ..event(&world, &topic, &[&connection], 1) };
    stored(store.publish_event(given.clone()).await.unwrap());
    let mut repeat = NewEvent { id_is_given: true, ..event(&world, &topic, &[&connection], 2) };
    repeat.message.id = given.message.id;
    assert_eq!(store.publish_event(repeat).await, Ok(PublishedEvent::Repeated));
    assert_eq!(world.line(&connection).await, [given.deliveries[0].id]);
    let other = World::named(store, 2, "other").await;
    let theirs = other.topic("order.created").await;
    let mut same_id = NewEvent { id_is_given: true, ..event(&other, &theirs, &[], 3) };
    same_id.message.id = given.message.id;
    stored(store.publish_event(same_id).await.unwrap());
}

pub async fn z22_a_forward_is_pushed_in_the_transaction_that_takes_it_out_of_the_dlq(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let topic = world.topic("claims.failed").await;
    let (from, to) = (world.connection("from", true).await, world.connection("to", false).await);
    let id = world.stored(&from, 1).await[0];
    let lease = world.owner(&from, 5).await;
    world.attempted(id, lease, Status::Dlq).await;
    let dead = world.delivery(id).await;
    let pushed = pushed(&world, &topic, &to, &dead, 70);
    let progress = ended(dead.progress.clone(), Status::Forwarded, at(70));
    let decision = world.decision(id, Guard::Version(dead.version), progress).await;
    let forward = Settlement { forward: Some(Box::new(pushed.clone())), ..decision };
    assert!(matches!(world.settle(forward.clone()).await, Settled::Applied { .. }));
    assert_eq!(world.settle(forward).await, Settled::Stale, "and nothing is pushed a second time");
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(world.delivery(id).await.progress.status, Status::Forwarded);
    let got = world.delivery(pushed.deliveries[0].id).await;
    assert_eq!(
        (got.body_id, got.progress.status, got.event.unwrap().id),
        (dead.body_id, Status::Pending, pushed.message.id)
    );
    let summary = world.summary(&to).await;
    assert_eq!((summary.waiting, summary.waiting_bytes), (2, 2 * dead.body_bytes));
    assert_eq!(store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items.len(), 1);
    let lease = world.owner(&to, 80).await;
    for new in &pushed.deliveries {
        world.attempted(new.id, lease, Status::Success).await;
    }
    let pruned = store.prune(at(999_999), at(0), 100).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (3, 0), "the message still refers to it");
    let pruned = store.prune(at(999_999), at(0) + Wait::from_secs(7200), 100).await.unwrap();
    assert_eq!((pruned.topic_messages, pruned.bodies), (1, 1), "with the last that refers to it, and not before");
}

pub async fn z22_a_forward_without_room_leaves_all_where_it_is(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("claims.failed").await;
    let (from, to) = (world.connection("from", true).await, world.connection("to", true).await);
    let stored = world.stored(&from, 2).await;
    let lease = world.owner(&from, 5).await;
    let mut batch = Vec::new();
    for id in &stored {
        world.attempted(*id, lease, Status::Dlq).await;
        let dead = world.delivery(*id).await;
        let progress = ended(dead.progress.clone(), Status::Forwarded, at(70));
        let forward = Some(Box::new(pushed(&world, &topic, &to, &dead, 70)));
        let decision = world.decision(*id, Guard::Version(dead.version), progress).await;
        batch.push(Settlement { forward, ..decision });
    }
    // There is room for three, and each wants two.
    world.stored(&to, i64::try_from(LIMITS.queue_messages_max).unwrap() - 3).await;
    let settled = store.settle(batch.clone()).await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { .. }), "{settled:?}");
    assert_eq!(settled[1], Settled::Full { limit: StoreLimits::QUEUE_MESSAGES_MAX });
    assert_eq!(world.delivery(stored[1]).await.progress.status, Status::Dlq);
    assert_eq!(store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items.len(), 1);
    assert_eq!(world.summary(&to).await.waiting, LIMITS.queue_messages_max - 1);
}

/// Two deliveries to one connection, as for two subscriptions.
fn pushed(world: &World<'_>, topic: &Topic, to: &Connection, dead: &Delivery, millis: i64) -> Forward {
    let NewEvent { message, mut deliveries, .. } = event(world, topic, &[to, to], millis);
    for new in &mut deliveries {
        new.body = NewBody { id: dead.body_id, bytes: dead.id.to_string().into() };
        new.ordered = to.spec.policy.queue.ordered;
    }
    Forward { message, deliveries }
}

pub async fn d07_an_event_without_room_leaves_nothing(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("order.created").await;
    let [full, other] = [world.connection("full", false).await, world.connection("other", false).await];
    let room = i64::try_from(LIMITS.queue_messages_max).unwrap() - 1;
    world.stored(&full, room).await;
    let refused = store.publish_event(event(&world, &topic, &[&other, &full, &full], 500)).await;
    assert_eq!(refused, Err(StoreError::Full { limit: StoreLimits::QUEUE_MESSAGES_MAX }));
    assert_eq!(world.line(&other).await, []);
    assert!(store.events(world.project_id, &EventFilter::default(), FIRST_PAGE).await.unwrap().items.is_empty());
    let fits = stored(store.publish_event(event(&world, &topic, &[&full], 501)).await.unwrap());
    assert!(matches!(fits[..], [Enqueued::Stored { .. }]));
}

pub async fn d40_a_connection_that_is_gone_is_left_out(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("order.created").await;
    let [gone, there] = [world.connection_value("gone", false), world.connection("there", false).await];
    let answers = stored(store.publish_event(event(&world, &topic, &[&gone, &there], 1)).await.unwrap());
    assert!(matches!(answers[..], [Enqueued::NoConnection, Enqueued::Stored { .. }]), "{answers:?}");
}

pub async fn events_are_listed_newest_first_over_all_topics(store: &dyn Store) {
    let world = World::new(store).await;
    let other = World::named(store, 2, "other").await;
    let [orders, bills] = [world.topic("order.created").await, world.topic("bill.paid").await];
    let theirs = other.topic("order.created").await;
    let mut published = Vec::new();
    for millis in 0..6 {
        let topic = if millis % 2 == 0 { &orders } else { &bills };
        let new = event(&world, topic, &[], millis);
        published.insert(0, new.message.id);
        stored(store.publish_event(new).await.unwrap());
        stored(store.publish_event(event(&other, &theirs, &[], millis)).await.unwrap());
    }
    let ids = |page: &Page<StoredEvent>| page.items.iter().map(|one| one.id).collect::<Vec<EventId>>();
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = PageRequest { limit: 4, cursor };
        let page = store.events(world.project_id, &EventFilter::default(), page).await.unwrap();
        listed.extend(ids(&page));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(listed, published);
    let of_type = EventFilter { topic: Some(bills.name.clone()), from: Some(at(2)), before: Some(at(5)) };
    let found = store.events(world.project_id, &of_type, FIRST_PAGE).await.unwrap();
    assert_eq!(ids(&found), [published[2]]);
    let unknown = EventFilter { topic: Some("nothing".parse().unwrap()), ..EventFilter::default() };
    assert_eq!(ids(&store.events(world.project_id, &unknown, FIRST_PAGE).await.unwrap()), []);
    assert_eq!(store.event(other.project_id, published[0]).await.unwrap(), None, "another project's");
    let bad = PageRequest { limit: 4, cursor: Some("x".to_owned()) };
    assert!(store.events(world.project_id, &EventFilter::default(), bad).await.is_err());
}

fn push(world: &World<'_>, number: u128, name: &str, connection: ConnectionId) -> PushSubscription {
    let written = json!({"event_type": "order.**", "max_attempts": 3}).as_object().unwrap().clone();
    PushSubscription {
        id: SubscriptionId::from_u128(number),
        project_id: world.project_id,
        name: name.to_owned(),
        connection_id: connection,
        spec: PushSpec::parse(&written).unwrap(),
        written,
        version: 1,
        created_at: at(1),
        updated_at: at(1),
    }
}

pub async fn p02_a_push_subscription_changes_together_with_its_entry(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("a", false).await;
    let [first, second] = [push(&world, 2, "one", connection.id), push(&world, 1, "two", connection.id)];
    let entry = |millis| super::audit::entry(&world, "subscription", millis);
    let create = |subscription: &PushSubscription| Change::CreatePushSubscription(Box::new(subscription.clone()));
    store.change(create(&first), entry(1)).await.unwrap();
    store.change(create(&second), entry(2)).await.unwrap();
    assert!(store.change(create(&push(&world, 3, "one", connection.id)), entry(3)).await.is_err(), "the name is taken");
    let nowhere = push(&world, 4, "four", ConnectionId::from_u128(9));
    assert!(store.change(create(&nowhere), entry(4)).await.is_err(), "there is no such connection");
    let again = PushSubscription { name: "three".to_owned(), version: 2, ..first.clone() };
    let replace = |version| Change::ReplacePushSubscription { subscription: Box::new(again.clone()), version };
    assert!(store.change(replace(7), entry(5)).await.is_err());
    store.change(replace(1), entry(6)).await.unwrap();
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.all_push_subscriptions().await.unwrap(), [second, again.clone()]);
    store.change(Change::DeletePushSubscription { id: again.id, now: at(7) }, entry(7)).await.unwrap();
    assert!(store.change(Change::DeletePushSubscription { id: again.id, now: at(7) }, entry(8)).await.is_err());
    store.delete_connection(connection.id, false, at(9)).await.unwrap();
    assert_eq!(store.all_push_subscriptions().await.unwrap(), [], "they go with their connection");
    let entries = store.audit_entries(&AuditFilter::default(), FIRST_PAGE).await.unwrap().items;
    assert_eq!(entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), [at(7), at(6), at(2), at(1)]);
}

pub async fn r13_the_transformation_of_a_deleted_subscription_is_kept_while_something_needs_it(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("order.created").await;
    let (first, second) = (world.connection("a", false).await, world.connection("b", false).await);
    let entry = |millis| super::audit::entry(&world, "subscription", millis);
    let with = |mut subscription: PushSubscription, program: &str| {
        subscription.written.insert("transformation".to_owned(), program.into());
        subscription.spec = PushSpec::parse(&subscription.written).unwrap();
        subscription
    };
    let subscriptions = [
        with(push(&world, 5, "used", first.id), ".used"),
        with(push(&world, 6, "unused", first.id), ".unused"),
        with(push(&world, 7, "with its connection", second.id), ".gone"),
        push(&world, 8, "plain", first.id),
    ];
    for (number, one) in (1..).zip(&subscriptions) {
        store.change(Change::CreatePushSubscription(Box::new(one.clone())), entry(number)).await.unwrap();
    }
    // Its delivery refers to the subscription 5.
    let new = event(&world, &topic, &[&first], 10);
    stored(store.publish_event(new.clone()).await.unwrap());
    for (number, one) in (11..).zip([&subscriptions[0], &subscriptions[1], &subscriptions[3]]) {
        store.change(Change::DeletePushSubscription { id: one.id, now: at(20) }, entry(number)).await.unwrap();
    }
    store.change(Change::DeleteConnection { id: second.id, forced: false, now: at(20) }, entry(20)).await.unwrap();
    let kept = async || {
        let mut kept = Vec::new();
        for one in &subscriptions {
            kept.push(store.kept_program(one.id).await.unwrap());
        }
        kept
    };
    let program = |text: &str| Some(text.to_owned());
    assert_eq!(kept().await, [program(".used"), program(".unused"), program(".gone"), None]);
    assert_eq!(store.prune_kept_programs(at(20)).await, Ok(0), "none for so long");
    assert_eq!(store.prune_kept_programs(at(21)).await, Ok(2));
    assert_eq!(kept().await, [program(".used"), None, None, None]);
    let lease = world.owner(&first, 30).await;
    world.attempted(new.deliveries[0].id, lease, Status::Success).await;
    assert_eq!(store.prune_kept_programs(at(99)).await, Ok(0), "what is in the log may be sent again");
    store.prune(at(999_999), at(0), 10).await.unwrap();
    assert_eq!(store.prune_kept_programs(at(99)).await, Ok(1));
}
