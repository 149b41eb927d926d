//! Cases of taking in. They must not deliver anything.

use postrider_core::Wait;
use postrider_core::delivery::{Position, Progress, Status};
use postrider_core::id::{ConnectionId, DeliveryId};

use super::fixture::*;
use super::{LIMITS, TestStore};
use crate::*;

fn stored(answers: &[Enqueued]) -> Vec<(Position, u64)> {
    let place = |answer: &Enqueued| match answer {
        Enqueued::Stored { position, ahead, .. } => (*position, *ahead),
        other => panic!("not stored: {other:?}"),
    };
    answers.iter().map(place).collect()
}

pub async fn z11_each_request_is_told_how_many_wait_ahead(store: &dyn Store) {
    let world = World::new(store).await;
    for ordered in [true, false] {
        let connection = world.connection(if ordered { "ordered" } else { "unordered" }, ordered).await;
        let other = world.connection(if ordered { "o2" } else { "u2" }, ordered).await;
        world.stored(&connection, 2).await;
        let batch = vec![world.fresh(&connection, 5), world.fresh(&other, 5), world.fresh(&connection, 6)];
        let places = stored(&store.enqueue(batch).await.unwrap());
        assert_eq!(places.iter().map(|(_, ahead)| *ahead).collect::<Vec<_>>(), [2, 0, 3], "ordered: {ordered}");
        assert!(places[0].0 < places[2].0);
    }
}

pub async fn z11_what_has_left_the_queue_is_not_ahead(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 10).await;
    world.attempted(ids[0], lease, Status::Success).await;
    world.attempted(ids[1], lease, Status::Dlq).await;
    let answers = store.enqueue(vec![world.fresh(&connection, 20)]).await.unwrap();
    assert_eq!(stored(&answers)[0].1, 1);
}

pub async fn z13_what_was_accepted_reads_back_whole(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let mut new = world.fresh(&connection, 3);
    new.head.path = "/a b?c".to_owned();
    new.head.params = vec![("ключ".to_owned(), "wert=1".to_owned())];
    new.head.headers.push("X-A".to_owned(), "1".to_owned()).unwrap();
    new.ladder = postrider_core::schedule::LadderTerms::of(&postrider_core::policy::DeliveryPolicy::patient());
    new.body.bytes = bytes::Bytes::from_static(b"\0\xff raw");
    let answers = store.enqueue(vec![new.clone()]).await.unwrap();
    let delivery = world.delivery(new.id).await;
    assert_eq!(delivery.position, Some(stored(&answers)[0].0));
    assert_eq!((delivery.cid, delivery.origin, delivery.created_at), (new.cid, new.origin, new.created_at));
    assert_eq!((delivery.head, delivery.ladder, delivery.event), (new.head, new.ladder, new.event));
    assert_eq!((delivery.progress, delivery.body_id, delivery.original_body_id), (new.progress, new.body.id, None));
    assert_eq!(delivery.body_bytes, 6);
    assert_eq!(store.body(new.body.id).await.unwrap(), Some(new.body.bytes));
}

pub async fn z13_a_kill_loses_nothing_that_was_answered(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let ids = world.stored(&connection, 20).await;
    let lease = world.owner(&connection, 30).await;
    world.attempted(ids[0], lease, Status::Success).await;
    world.attempted(ids[1], lease, Status::Pending).await;
    let before = world.delivery(ids[1]).await;
    test.reopen().await;
    let reopened = test.store();
    let world = world.over(&*reopened);
    assert_eq!(world.line(&connection).await, ids[1..]);
    assert_eq!(world.delivery(ids[1]).await, before);
    assert_eq!(reopened.attempts(ids[0]).await.unwrap(), [attempt(1, true)]);
    let answers = reopened.enqueue(vec![world.fresh(&connection, 40)]).await.unwrap();
    let (position, ahead) = stored(&answers)[0];
    assert_eq!(ahead, 19);
    assert!(position > world.delivery(ids[19]).await.position.unwrap(), "positions go on rising");
    assert!(reopened.counts(None).await.unwrap().is_balanced());
}

/// Two writers on one queue while a reader follows the line: were a position given before its commit, the reader would pass it by.
pub async fn d02_commit_order_is_position_order(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let lease = world.owner(&connection, 0).await;
    let writers = [0, 1].map(|writer| {
        let batches: Vec<Vec<NewDelivery>> =
            (0..50).map(|n| (0..3).map(|_| world.fresh(&connection, n * 2 + writer)).collect()).collect();
        let store = store.clone();
        tokio::spawn(async move {
            let mut mine = Vec::new();
            for batch in batches {
                let ids: Vec<DeliveryId> = batch.iter().map(|new| new.id).collect();
                let places = stored(&store.enqueue(batch).await.unwrap());
                mine.extend(ids.into_iter().zip(places));
                tokio::task::yield_now().await;
            }
            mine
        })
    });
    let mut followed = Vec::new();
    let mut last = None;
    while followed.len() < 300 {
        for loaded in store.load(lease, last, ALL).await.unwrap() {
            last = loaded.delivery.position;
            followed.push(loaded.delivery.id);
        }
        tokio::task::yield_now().await;
        let is_over = writers.iter().all(tokio::task::JoinHandle::is_finished);
        if is_over && store.load(lease, last, ALL).await.unwrap().is_empty() {
            break;
        }
    }
    assert_eq!(followed, world.line(&connection).await, "the reader has passed by what was committed behind it");
    let mut answered = Vec::new();
    for writer in writers {
        let mine = writer.await.unwrap();
        assert!(mine.is_sorted_by_key(|(_, (position, _))| *position), "one writer's requests keep their order");
        answered.extend(mine);
    }
    answered.sort_by_key(|(_, (position, _))| *position);
    assert!(answered.iter().enumerate().all(|(rank, (_, (_, ahead)))| *ahead == rank as u64), "`ahead` is exact");
    assert_eq!(answered.into_iter().map(|(id, _)| id).collect::<Vec<_>>(), followed);
}

pub async fn a_missing_connection_refuses_its_own_request_only(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let mut lost = world.fresh(&connection, 1);
    lost.connection_id = ConnectionId::from_u128(99);
    let (lost_id, lost_body) = (lost.id, lost.body.id);
    let answers = store.enqueue(vec![world.fresh(&connection, 0), lost, world.fresh(&connection, 2)]).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { ahead: 0, .. }), "{answers:?}");
    assert_eq!(answers[1], Enqueued::NoConnection);
    assert!(matches!(answers[2], Enqueued::Stored { ahead: 1, .. }), "{answers:?}");
    assert_eq!(store.delivery(lost_id).await.unwrap(), None);
    assert_eq!(store.body(lost_body).await.unwrap(), None, "a refused request leaves no trace");
    assert_eq!(store.counts(None).await.unwrap().accepted, 2);
}

pub async fn a_known_id_refuses_the_whole_batch(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let known = world.fresh(&connection, 0);
    store.enqueue(vec![known.clone()]).await.unwrap();
    let next = world.fresh(&connection, 1);
    let refused = store.enqueue(vec![next.clone(), NewDelivery { body: world.body(b"other"), ..known }]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    assert_eq!(store.delivery(next.id).await.unwrap(), None);
    assert_eq!(world.summary(&connection).await.waiting, 1);
}

fn keyed(new: NewDelivery, key: u8, request: u8, ends_at_ms: i64) -> NewDelivery {
    let idempotency = Idempotency { key_hash: [key; 32], request_hash: [request; 32], ends_at: at(ends_at_ms) };
    NewDelivery { idempotency: Some(idempotency), ..new }
}

pub async fn d15_a_repeat_gets_the_first_id_until_its_key_ends(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let first = keyed(world.fresh(&connection, 0), 1, 1, 1000);
    let batch = vec![
        first.clone(),
        keyed(world.fresh(&connection, 1), 1, 1, 1000),
        keyed(world.fresh(&connection, 2), 1, 2, 1000),
        keyed(world.fresh(&connection, 3), 2, 2, 1000),
    ];
    let (fourth, repeat_body) = (batch[3].id, batch[1].body.id);
    let answers = store.enqueue(batch).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { .. }));
    assert_eq!(answers[1], Enqueued::Repeated(first.id), "within one batch too");
    assert_eq!(answers[2], Enqueued::KeyReused);
    assert!(matches!(answers[3], Enqueued::Stored { ahead: 1, .. }), "{answers:?}");
    assert_eq!(store.body(repeat_body).await.unwrap(), None, "a repeat leaves no trace");
    let later =
        vec![keyed(world.fresh(&connection, 999), 1, 1, 2000), keyed(world.fresh(&connection, 999), 2, 2, 2000)];
    let repeated = store.enqueue(later).await.unwrap();
    assert_eq!(repeated, [Enqueued::Repeated(first.id), Enqueued::Repeated(fourth)]);
    let ended = keyed(world.fresh(&connection, 1000), 1, 9, 2000);
    let answers = store.enqueue(vec![ended.clone()]).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { .. }), "an ended key is free again");
    let repeat = store.enqueue(vec![keyed(world.fresh(&connection, 1001), 1, 9, 2000)]).await.unwrap();
    assert_eq!(repeat, [Enqueued::Repeated(ended.id)]);
    let mut lost = keyed(world.fresh(&connection, 1), 3, 1, 1000);
    lost.connection_id = ConnectionId::from_u128(99);
    let answers = store.enqueue(vec![lost, keyed(world.fresh(&connection, 1), 3, 2, 1000)]).await.unwrap();
    assert_eq!(answers[0], Enqueued::NoConnection);
    assert!(matches!(answers[1], Enqueued::Stored { .. }), "a refused request leaves its key free");
}

pub async fn d15_keys_survive_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let first = keyed(world.fresh(&connection, 0), 1, 1, 1000);
    store.enqueue(vec![first.clone()]).await.unwrap();
    test.reopen().await;
    let store = test.store();
    let answers = store.enqueue(vec![keyed(world.fresh(&connection, 5), 1, 1, 1000)]).await.unwrap();
    assert_eq!(answers, [Enqueued::Repeated(first.id)]);
}

pub async fn d07_a_full_queue_refuses_and_drops_nothing(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let other = world.connection("other", true).await;
    let max = i64::try_from(LIMITS.queue_messages_max).unwrap();
    let ids = world.stored(&connection, max - 1).await;
    let batch = vec![world.fresh(&connection, max), world.fresh(&connection, max), world.fresh(&other, max)];
    let answers = store.enqueue(batch).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { .. }), "{:?}", answers[0]);
    assert_eq!(answers[1], Enqueued::Full { limit: "queue_messages_max" });
    assert!(matches!(answers[2], Enqueued::Stored { .. }), "one queue's limit is not another's");
    assert_eq!(world.summary(&connection).await.waiting, LIMITS.queue_messages_max);
    let lease = world.owner(&connection, max).await;
    world.attempted(ids[0], lease, Status::Success).await;
    let answers = store.enqueue(vec![world.fresh(&connection, max)]).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { .. }), "settling goes on and makes room");
}

pub async fn d07_a_queue_full_of_bytes_refuses(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let max = usize::try_from(LIMITS.queue_bytes_max).unwrap();
    let with_body = |bytes: usize| NewDelivery { body: world.body(&vec![b'x'; bytes]), ..world.fresh(&connection, 0) };
    let batch = vec![with_body(max - 1), with_body(2), with_body(1)];
    let refused = batch[1].body.id;
    let answers = store.enqueue(batch).await.unwrap();
    assert_eq!(answers[1], Enqueued::Full { limit: "queue_bytes_max" });
    assert!(matches!(answers[2], Enqueued::Stored { ahead: 1, .. }), "{:?}", answers[2]);
    assert_eq!(store.body(refused).await.unwrap(), None);
    assert_eq!(world.summary(&connection).await.waiting_bytes, LIMITS.queue_bytes_max);
}

pub async fn d04_a_delivery_is_claimed_as_it_is_stored(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let lease = world.owner(&connection, 0).await;
    let new = claimed(world.fresh(&connection, 5), lease);
    let answers = store.enqueue(vec![new.clone()]).await.unwrap();
    assert!(matches!(answers[0], Enqueued::Stored { claimed: true, .. }), "{answers:?}");
    let delivery = world.delivery(new.id).await;
    assert_eq!((delivery.progress.status, delivery.progress.attempts), (Status::Processing, 1));
    assert!(store.claim(lease, at(10), ALL).await.unwrap().is_empty(), "it is not claimed twice");
    assert!(store.claimed_by_former_owner(lease, 10).await.unwrap().is_empty(), "it is this owner's own claim");
    assert!(matches!(world.attempted(new.id, lease, Status::Success).await, Settled::Applied { .. }));
}

pub async fn d04_a_claim_under_an_ended_lease_waits_unspent(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let old = world.owner(&connection, 0).await;
    let lease = world.owner(&connection, 60_000).await;
    let ordered = world.connection("billing", true).await;
    let ordered_lease = world.owner(&ordered, 60_000).await;
    let stale = claimed(world.fresh(&connection, 60_001), old);
    let not_for_fifo = claimed(world.fresh(&ordered, 60_001), ordered_lease);
    for new in [stale.clone(), not_for_fifo] {
        let answers = store.enqueue(vec![new.clone()]).await.unwrap();
        assert!(matches!(answers[0], Enqueued::Stored { claimed: false, .. }), "{answers:?}");
        assert_eq!(world.delivery(new.id).await.progress, Progress::accepted(at(60_001)));
    }
    let claimed = store.claim(lease, at(60_002), ALL).await.unwrap();
    assert_eq!(ids(&claimed), [stale.id]);
    assert_eq!(claimed[0].delivery.progress.attempts, 1);
}

fn claimed(new: NewDelivery, lease: QueueLease) -> NewDelivery {
    NewDelivery { progress: new.progress.clone().begun(new.created_at), claimed_under: Some(lease), ..new }
}

pub async fn d12_direct_calls_go_straight_to_the_log(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("direct", true).await;
    let mut new = world.fresh(&connection, 0);
    new.progress = ended(new.progress.begun(at(0)).begun(at(1)), Status::Failed, at(9));
    let attempts = vec![attempt(1, false), attempt(2, false)];
    store.record_calls(vec![CallRecord { delivery: new.clone(), attempts: attempts.clone() }]).await.unwrap();
    let delivery = world.delivery(new.id).await;
    assert_eq!((delivery.position, delivery.progress), (None, new.progress));
    assert_eq!(store.attempts(new.id).await.unwrap(), attempts);
    assert_eq!(world.summary(&connection).await.waiting, 0);
    let counts = store.counts(Some(connection.id)).await.unwrap();
    assert_eq!((counts.accepted, counts.failed), (1, 1));
}

pub async fn d12_a_call_with_a_gap_in_its_attempts_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("direct", true).await;
    let mut new = world.fresh(&connection, 0);
    new.progress = ended(new.progress.begun(at(0)).begun(at(1)), Status::Failed, at(9));
    let gap = CallRecord { delivery: new.clone(), attempts: vec![attempt(1, false), attempt(3, false)] };
    assert!(matches!(store.record_calls(vec![gap]).await, Err(StoreError::Corrupt(_))));
    assert_eq!(store.delivery(new.id).await.unwrap(), None);
}

pub async fn bodies_of_one_event_are_stored_once(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let body = world.body(b"shared");
    let batch: Vec<NewDelivery> =
        (0..3).map(|n| NewDelivery { body: body.clone(), ..world.fresh(&connection, n) }).collect();
    let ids: Vec<DeliveryId> = batch.iter().map(|new| new.id).collect();
    store.enqueue(batch).await.unwrap();
    let lease = world.owner(&connection, 5).await;
    for id in &ids {
        world.attempted(*id, lease, Status::Success).await;
    }
    let pruned = store.prune(at(1000), at(1000), 2).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (2, 0), "one delivery still refers to it");
    assert!(store.body(body.id).await.unwrap().is_some());
    let pruned = store.prune(at(1000) + Wait::from_secs(1), at(1000), 2).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (1, 1));
    assert_eq!(store.body(body.id).await.unwrap(), None);
}
