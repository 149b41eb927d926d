//! Cases of written decisions. They must not ask whether a decision was wise.

use postrider_core::Failure;
use postrider_core::delivery::{Progress, Status};
use postrider_core::id::{ConnectionId, DeliveryId};
use postrider_core::topic::TopicName;

use super::TestStore;
use super::fixture::*;
use crate::*;

/// Law 2: the attempt, the state, the place and the counters, together.
pub async fn z13_a_success_moves_to_the_log_with_its_attempt(store: &dyn Store) {
    let world = World::new(store).await;
    for ordered in [true, false] {
        let connection = world.connection(if ordered { "o" } else { "u" }, ordered).await;
        let stored = world.stored(&connection, 2).await;
        let lease = world.owner(&connection, 5).await;
        let version = world.delivery(stored[0]).await.version;
        let settled = world.attempted(stored[0], lease, Status::Success).await;
        assert_eq!(settled, Settled::Applied { version: version + 1, position: None });
        let delivery = world.delivery(stored[0]).await;
        assert_eq!((delivery.position, delivery.version), (None, version + 1));
        assert_eq!((delivery.progress.status, delivery.progress.ended_at), (Status::Success, Some(at(60))));
        assert_eq!(store.attempts(stored[0]).await.unwrap(), [attempt(1, true)]);
        assert_eq!(world.line(&connection).await, [stored[1]]);
        let summary = world.summary(&connection).await;
        let left = world.delivery(stored[1]).await;
        assert_eq!((summary.waiting, summary.waiting_bytes, summary.dead), (1, left.body_bytes, 0));
        assert_eq!(summary.oldest_waiting_since, Some(left.created_at));
    }
}

pub async fn z16_a_failed_head_keeps_its_place(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    let position = world.delivery(stored[0]).await.position;
    for number in 1..=3 {
        let mut decision = world.attempt_decision(stored[0], lease, Status::Pending).await;
        decision.progress.rounds = number;
        decision.progress.due_at = at(8000 * i64::from(number));
        decision.progress.failure = Some(Failure::Status);
        let wanted = decision.progress.clone();
        assert!(matches!(world.settle(decision).await, Settled::Applied { position: p, .. } if p == position));
        assert_eq!(world.delivery(stored[0]).await.progress, wanted);
    }
    assert_eq!(world.line(&connection).await, stored);
    let numbers: Vec<u32> = store.attempts(stored[0]).await.unwrap().iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
}

pub async fn z20_a_dead_letter_leaves_the_queue_with_its_note(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    let mut decision = world.attempt_decision(stored[0], lease, Status::Dlq).await;
    decision.progress.rounds = 1;
    decision.progress.error = Some("the remote answered 503".to_owned());
    let wanted = decision.progress.clone();
    assert!(matches!(world.settle(decision).await, Settled::Applied { position: None, .. }));
    let delivery = world.delivery(stored[0]).await;
    assert_eq!((delivery.position, delivery.progress), (None, wanted));
    let summary = world.summary(&connection).await;
    assert_eq!((summary.waiting, summary.dead), (1, 1));
    assert_eq!(ids(&store.load(lease, None, ALL).await.unwrap()), stored[1..]);
}

pub async fn z21_a_dead_letter_comes_back_at_the_tail(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Dlq).await;
    world.attempted(stored[1], lease, Status::Dlq).await;
    for id in &stored[..2] {
        let back = ended(world.delivery(*id).await.progress, Status::Pending, at(70));
        let settled = world.by_version(*id, Progress { dlq_retries: 1, ..back }, Placement::Tail).await;
        assert!(matches!(settled, Settled::Applied { position: Some(_), .. }), "also while the queue has an owner");
    }
    assert_eq!(world.line(&connection).await, [stored[2], stored[0], stored[1]], "several keep their order");
    let summary = world.summary(&connection).await;
    assert_eq!((summary.waiting, summary.dead), (3, 0));
    assert!(matches!(world.attempted(stored[0], lease, Status::Success).await, Settled::Applied { .. }));
    let numbers: Vec<u32> = store.attempts(stored[0]).await.unwrap().iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2], "attempts are numbered on");
}

pub async fn d27_a_resend_brings_a_delivery_back_from_the_log(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Success).await;
    store.release_queue(lease).await.unwrap();
    let back = ended(world.delivery(stored[0]).await.progress, Status::Pending, at(70));
    world.by_version(stored[0], back, Placement::Keep).await;
    assert_eq!(world.line(&connection).await, [stored[1], stored[0]], "its old place is gone");
    let pruned = store.prune(at(999_999), at(999_999), 100).await.unwrap();
    assert_eq!(pruned.deliveries, 0, "it is not in the log any more");
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.accepted, counts.pending, counts.success), (2, 2, 0));
}

pub async fn a_waiting_delivery_is_sent_to_the_tail(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    let progress = world.delivery(stored[0]).await.progress;
    let decision = world.decision(stored[0], Guard::Lease(lease), progress).await;
    let settled = world.settle(Settlement { placement: Placement::Tail, ..decision }).await;
    let position = world.delivery(stored[0]).await.position;
    assert!(matches!(settled, Settled::Applied { position: p, .. } if p == position));
    assert_eq!(world.line(&connection).await, [stored[1], stored[2], stored[0]]);
    assert_eq!(world.summary(&connection).await.waiting, 3);
    let after = world.delivery(stored[2]).await.position;
    assert_eq!(ids(&store.load(lease, after, ALL).await.unwrap()), [stored[0]]);
}

pub async fn d06_a_version_is_compared(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let before = world.delivery(stored[0]).await;
    let discarded = ended(before.progress.clone(), Status::Discarded, at(9));
    let wrong = world.decision(stored[0], Guard::Version(before.version + 1), discarded.clone()).await;
    assert_eq!(world.settle(wrong).await, Settled::Stale);
    assert_eq!(world.delivery(stored[0]).await, before);
    let right = world.decision(stored[0], Guard::Version(before.version), discarded.clone()).await;
    assert!(matches!(world.settle(right.clone()).await, Settled::Applied { .. }));
    assert_eq!(world.settle(right).await, Settled::Stale, "the same change twice");
    let back = ended(before.progress, Status::Pending, at(9));
    let decision = world.decision(stored[0], Guard::Version(before.version + 1), back).await;
    let next = Settlement { guard: Guard::Version(before.version + 2), ..decision.clone() };
    let settled = store.settle(vec![decision.clone(), decision, next]).await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { .. }));
    assert_eq!(settled[1], Settled::Stale, "also within one batch");
    assert!(matches!(settled[2], Settled::Applied { version, .. } if version == before.version + 3));
}

pub async fn d06_only_the_owner_changes_what_waits_in_its_queue(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    let discarded = ended(world.delivery(stored[0]).await.progress, Status::Discarded, at(9));
    assert_eq!(world.by_version(stored[0], discarded.clone(), Placement::Keep).await, Settled::Stale);
    let command = world.command(&connection, stored[0], 6);
    assert!(store.submit_command(command, at(6)).await.unwrap());
    let too_late = at(5) + LIFE + postrider_core::Wait::from_millis(1);
    let command = world.command(&connection, stored[0], 16_000);
    assert!(!store.submit_command(command, too_late).await.unwrap(), "the owner is dead");
    assert!(matches!(
        world.by_version(stored[0], discarded, Placement::Keep).await,
        Settled::Applied { position: None, .. }
    ));
    assert_eq!(world.attempted(stored[1], lease, Status::Success).await, Settled::Stale, "its token has ended");
}

pub async fn a_lease_reaches_only_what_waits(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let other = world.connection("other", true).await;
    let stored = world.stored(&connection, 1).await;
    let lease = world.owner(&connection, 5).await;
    let foreign = world.owner(&other, 5).await;
    assert_eq!(world.attempted(stored[0], foreign, Status::Success).await, Settled::Stale);
    let twice = world.attempt_decision(stored[0], lease, Status::Success).await;
    let settled = store.settle(vec![twice.clone(), twice]).await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { .. }));
    assert_eq!(settled[1], Settled::Stale, "it has ended already");
    assert_eq!(store.attempts(stored[0]).await.unwrap().len(), 1);
}

pub async fn what_is_not_there_is_gone(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let other = world.connection("other", true).await;
    let stored = world.stored(&connection, 1).await;
    let lease = world.owner(&connection, 5).await;
    let decision = world.attempt_decision(stored[0], lease, Status::Success).await;
    let batch = vec![
        Settlement { delivery_id: DeliveryId::from_u128(99), ..decision.clone() },
        Settlement { queue_id: other.id, ..decision.clone() },
        Settlement { queue_id: ConnectionId::from_u128(99), ..decision.clone() },
        decision,
    ];
    let settled = store.settle(batch).await.unwrap();
    assert_eq!(settled[..3], [Settled::Gone, Settled::Gone, Settled::Gone]);
    assert!(matches!(settled[3], Settled::Applied { .. }), "the others of the batch are written");
}

pub async fn d05_a_stale_one_leaves_the_others_of_its_batch_alone(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", true).await];
    let (in_a, in_b) = (world.stored(&a, 1).await, world.stored(&b, 2).await);
    let old = world.owner(&a, 0).await;
    world.owner(&a, 20_000).await;
    let lease = world.owner(&b, 20_000).await;
    let batch = vec![
        world.attempt_decision(in_b[0], lease, Status::Success).await,
        world.attempt_decision(in_a[0], old, Status::Success).await,
        world.attempt_decision(in_b[1], lease, Status::Success).await,
    ];
    let settled = store.settle(batch).await.unwrap();
    assert!(matches!(settled[0], Settled::Applied { .. }) && matches!(settled[2], Settled::Applied { .. }));
    assert_eq!(settled[1], Settled::Stale);
    assert_eq!((world.summary(&a).await.waiting, world.summary(&b).await.waiting), (1, 0));
}

pub async fn settlements_of_one_delivery_apply_in_their_order(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let id = world.stored(&connection, 1).await[0];
    let lease = world.owner(&connection, 5).await;
    let first = world.attempt_decision(id, lease, Status::Pending).await;
    let mut second = first.clone();
    second.progress = ended(first.progress.clone().begun(at(70)), Status::Success, at(80));
    second.attempt = Some(attempt(2, true));
    let version = world.delivery(id).await.version;
    let settled = store.settle(vec![first, second]).await.unwrap();
    assert_eq!(settled[1], Settled::Applied { version: version + 2, position: None });
    let numbers: Vec<u32> = store.attempts(id).await.unwrap().iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2]);
}

/// Oracle 4; and an error leaves nothing of its batch behind.
pub async fn a_gap_in_the_attempts_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[1], lease, Status::Pending).await;
    let before = (world.delivery(stored[0]).await, world.delivery(stored[1]).await);
    let good = world.attempt_decision(stored[0], lease, Status::Success).await;
    let bad = world.attempt_decision(stored[1], lease, Status::Success).await;
    for number in [1, 3] {
        let bad = Settlement { attempt: Some(attempt(number, true)), ..bad.clone() };
        let refused = store.settle(vec![good.clone(), bad]).await;
        assert!(matches!(refused, Err(StoreError::Corrupt(_))), "{refused:?}");
    }
    let mut too_few = bad;
    too_few.progress.attempts = 1;
    assert!(matches!(store.settle(vec![good, too_few]).await, Err(StoreError::Corrupt(_))));
    assert_eq!((world.delivery(stored[0]).await, world.delivery(stored[1]).await), before);
    assert!(store.attempts(stored[0]).await.unwrap().is_empty());
    assert_eq!(world.summary(&connection).await.waiting, 2);
}

pub async fn an_end_without_its_time_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let id = world.stored(&connection, 1).await[0];
    let lease = world.owner(&connection, 5).await;
    for status in [Status::Dlq, Status::Failed] {
        let mut decision = world.attempt_decision(id, lease, status).await;
        decision.progress.dead_at = None;
        decision.progress.ended_at = None;
        assert!(matches!(store.settle(vec![decision]).await, Err(StoreError::Corrupt(_))), "{status:?}");
    }
}

pub async fn z23_an_edit_keeps_what_was_accepted(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let shared = world.body(b"as it was accepted");
    let batch: Vec<NewDelivery> =
        (0..2).map(|n| NewDelivery { body: shared.clone(), ..world.fresh(&connection, n) }).collect();
    let stored = [batch[0].id, batch[1].id];
    store.enqueue(batch).await.unwrap();
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Pending).await;
    let mut edits = Vec::new();
    for text in [&b"edited"[..], &b"edited again"[..]] {
        let edited = world.body(text);
        edits.push(edited.id);
        let progress = world.delivery(stored[0]).await.progress;
        let decision = world.decision(stored[0], Guard::Lease(lease), progress).await;
        world.settle(Settlement { edited_body: Some(edited), ..decision }).await;
    }
    let delivery = world.delivery(stored[0]).await;
    assert_eq!((delivery.body_id, delivery.original_body_id), (edits[1], Some(shared.id)));
    assert_eq!(delivery.body_bytes, 12);
    assert_eq!(store.attempts(stored[0]).await.unwrap().len(), 1, "attempts stay");
    assert_eq!(world.delivery(stored[1]).await.body_id, shared.id, "siblings keep theirs");
    assert_eq!(store.body(shared.id).await.unwrap(), Some(shared.bytes));
    assert_eq!(store.body(edits[0]).await.unwrap(), None, "nobody refers to the first edit");
    assert_eq!(world.summary(&connection).await.waiting_bytes, 12 + 18);
    assert_eq!(store.load(lease, None, ALL).await.unwrap()[0].body, &b"edited again"[..]);
    assert_eq!(world.line(&connection).await, stored, "its place too");
}

pub async fn z22_a_forward_is_in_the_topic_and_not_in_the_dlq(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let topic = world.topic("orders.failed").await;
    let subscription = world.subscription(&topic, "reader").await;
    let id = world.stored(&connection, 1).await[0];
    let lease = world.owner(&connection, 5).await;
    world.attempted(id, lease, Status::Dlq).await;
    let dead = world.delivery(id).await;
    let forwarded = ended(dead.progress.clone(), Status::Forwarded, at(70));
    let decision = world.decision(id, Guard::Version(dead.version), forwarded).await;
    let mut lost = world.draft(&topic, 70);
    lost.topic = TopicName::new("no.such.topic").unwrap();
    let refused = world.settle(Settlement { forward: Some(lost.into()), ..decision.clone() }).await;
    assert_eq!(refused, Settled::NoTopic);
    assert_eq!(world.delivery(id).await, dead, "it stays in the DLQ");
    let draft = world.draft(&topic, 70);
    let forward = Settlement { forward: Some(draft.clone().into()), ..decision };
    assert!(matches!(world.settle(forward.clone()).await, Settled::Applied { position: None, .. }));
    assert_eq!(world.settle(forward).await, Settled::Stale);
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(world.delivery(id).await.progress.status, Status::Forwarded);
    assert_eq!(world.summary(&connection).await.dead, 0);
    let pulled = store.pull(subscription.id, at(80), 10).await.unwrap();
    assert_eq!(pulled.len(), 1, "once, though it was asked for twice");
    let message = &pulled[0].message;
    assert_eq!((message.id, &message.headers, message.published_at), (draft.id, &draft.headers, at(70)));
    assert_eq!(message.body, id.to_string().as_bytes());
    store.prune(at(999_999), at(80), 100).await.unwrap();
    assert_eq!(store.delivery(id).await.unwrap(), None);
    assert!(store.body(dead.body_id).await.unwrap().is_some(), "the message needs the body still");
}

pub async fn z22_a_forward_carries_the_edited_body(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let topic = world.topic("orders.failed").await;
    let id = world.stored(&connection, 1).await[0];
    let progress = ended(world.delivery(id).await.progress, Status::Forwarded, at(9));
    let guard = Guard::Version(world.delivery(id).await.version);
    let decision = world.decision(id, guard, progress).await;
    let draft = world.draft(&topic, 9);
    world
        .settle(Settlement { forward: Some(draft.into()), edited_body: Some(world.body(b"mended")), ..decision })
        .await;
    let messages = store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items;
    assert_eq!(messages[0].body, &b"mended"[..]);
}

pub async fn d03_settlements_survive_a_kill_in_their_order(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 6).await;
    let lease = world.owner(&connection, 5).await;
    let mut batch = Vec::new();
    for id in &stored[..4] {
        batch.push(world.attempt_decision(*id, lease, Status::Success).await);
    }
    store.settle(batch).await.unwrap();
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(world.line(&connection).await, stored[4..]);
    let summary = world.summary(&connection).await;
    let bytes = world.delivery(stored[4]).await.body_bytes;
    assert_eq!((summary.waiting, summary.waiting_bytes), (2, 2 * bytes), "kept counters are exact after a kill");
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.success, counts.pending), (4, 2));
}
