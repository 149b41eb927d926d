//! Cases of what goes and what stays. They must not wait for time to pass: `now` is an argument.

use postrider_core::Wait;
use postrider_core::delivery::Status;

use super::fixture::*;
use crate::*;

pub async fn v07_the_log_goes_in_bounded_steps_oldest_first(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 5).await;
    let lease = world.owner(&connection, 5).await;
    for (id, end) in stored.iter().zip([300, 100, 200, 400, 500]) {
        let mut decision = world.attempt_decision(*id, lease, Status::Success).await;
        decision.progress.ended_at = Some(at(end));
        world.settle(decision).await;
    }
    let first = store.prune(at(400), at(400), 2).await.unwrap();
    assert_eq!((first.deliveries, first.attempts, first.bodies), (2, 2, 2));
    assert_eq!(store.delivery(stored[1]).await.unwrap(), None);
    assert_eq!(store.delivery(stored[2]).await.unwrap(), None);
    assert!(store.attempts(stored[1]).await.unwrap().is_empty());
    let second = store.prune(at(400), at(400), 2).await.unwrap();
    assert_eq!(second.deliveries, 1, "what ended at the very time stays");
    assert_eq!(store.prune(at(400), at(400), 2).await.unwrap(), Pruned::default());
    assert!(store.delivery(stored[3]).await.unwrap().is_some());
    let counts = store.counts(Some(connection.id)).await.unwrap();
    assert_eq!((counts.accepted, counts.success, counts.pruned), (5, 2, 3));
    assert!(counts.is_balanced());
}

pub async fn d07_what_waits_and_the_dlq_are_never_pruned(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Dlq).await;
    store.claim(lease, at(5), WindowLimit { deliveries_max: 1, ..ALL }).await.unwrap();
    let far = at(0) + Wait::from_secs(400 * 24 * 3600);
    assert_eq!(store.prune(far, far, 100).await.unwrap(), Pruned::default());
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.dlq, counts.processing, counts.pending), (1, 1, 1));
    for id in stored {
        assert!(store.body(world.delivery(id).await.body_id).await.unwrap().is_some());
    }
}

pub async fn z23_an_edited_delivery_takes_both_bodies_with_it(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let id = world.stored(&connection, 1).await[0];
    let before = world.delivery(id).await;
    let discarded = ended(before.progress, Status::Discarded, at(9));
    let decision = world.decision(id, Guard::Version(before.version), discarded).await;
    let edited = world.body(b"edited");
    world.settle(Settlement { edited_body: Some(edited.clone()), ..decision }).await;
    let pruned = store.prune(at(100), at(100), 10).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (1, 2));
    assert_eq!(store.body(edited.id).await.unwrap(), None);
    assert_eq!(store.body(before.body_id).await.unwrap(), None);
}

pub async fn d41_a_message_that_is_owed_stays(store: &dyn Store) {
    let world = World::new(store).await;
    let topic = world.topic("orders").await;
    world.published(&topic, 0).await;
    let reader = world.subscription(&topic, "reader").await.id;
    let owed = world.published(&topic, 0).await;
    world.published(&topic, 1).await;
    let end = at(0) + topic.retention;
    let early = store.prune(at(0), end - Wait::from_millis(1), 10).await.unwrap();
    assert_eq!(early.topic_messages, 0, "retention has not passed yet");
    let pruned = store.prune(at(0), end, 10).await.unwrap();
    assert_eq!((pruned.topic_messages, pruned.bodies), (1, 1), "the one that nobody subscribed to");
    assert_eq!(store.pull(reader, end, 10).await.unwrap().len(), 2);
    store.acknowledge(reader, vec![owed]).await.unwrap();
    let later = end + Wait::from_secs(1);
    assert_eq!(store.prune(at(0), later, 10).await.unwrap().topic_messages, 1);
    assert_eq!(store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items.len(), 1);
}

pub async fn d06_old_commands_go(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 1).await;
    let lease = world.owner(&connection, 5).await;
    let [old, young] = [world.command(&connection, stored[0], 10), world.command(&connection, stored[0], 20)];
    for command in [&old, &young] {
        assert!(store.submit_command(command.clone(), at(20)).await.unwrap());
        store.answer_command(lease, command.id, CommandAnswer::Applied).await.unwrap();
    }
    store.prune(at(20), at(30), 10).await.unwrap();
    assert_eq!(store.take_answer(old.id).await, Ok(None), "nobody came for it");
    assert_eq!(store.take_answer(young.id).await, Ok(Some(CommandAnswer::Applied)));
}

pub async fn d15_ended_keys_go(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let keyed = |n: u8, end| {
        let idempotency = Idempotency { key_hash: [n; 32], request_hash: [n; 32], ends_at: at(end) };
        NewDelivery { idempotency: Some(idempotency), ..world.fresh(&connection, 0) }
    };
    store.enqueue(vec![keyed(1, 100), keyed(2, 100), keyed(3, 200)]).await.unwrap();
    assert_eq!(store.prune(at(0), at(99), 10).await.unwrap().idempotency_keys, 0);
    assert_eq!(store.prune(at(0), at(100), 1).await.unwrap().idempotency_keys, 1);
    assert_eq!(store.prune(at(0), at(100), 10).await.unwrap().idempotency_keys, 1);
    let answers = store.enqueue(vec![keyed(3, 200)]).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Repeated(_)), "one that runs on stays");
}
