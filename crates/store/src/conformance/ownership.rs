//! Cases of leases and fencing tokens. They must not care what is written under them.

use postrider_core::delivery::Status;
use postrider_core::id::WorkerId;

use super::TestStore;
use super::fixture::*;
use crate::*;

const LIFE_MS: i64 = 15_000;

pub async fn d05_only_queues_with_something_waiting_are_taken_oldest_first(store: &dyn Store) {
    let world = World::new(store).await;
    let young = world.connection("young", true).await;
    let _empty = world.connection("empty", true).await;
    let old = world.connection("old", false).await;
    let dead_only = world.connection("dead only", true).await;
    let ids = world.stored(&dead_only, 1).await;
    let lease = world.owner(&dead_only, 5).await;
    world.attempted(ids[0], lease, Status::Dlq).await;
    store.release_queue(lease).await.unwrap();
    store.enqueue(vec![world.fresh(&young, 200)]).await.unwrap();
    store.enqueue(vec![world.fresh(&old, 100)]).await.unwrap();
    let worker = world.worker(300).await;
    let first = store.take_queues(worker, at(300), 1).await.unwrap();
    assert_eq!(first.iter().map(|taken| taken.lease.queue_id).collect::<Vec<_>>(), [old.id]);
    let rest = store.take_queues(worker, at(300), 10).await.unwrap();
    assert_eq!(rest.iter().map(|taken| taken.lease.queue_id).collect::<Vec<_>>(), [young.id]);
    assert!(rest.iter().all(|taken| !taken.taken_over), "nobody had them before");
    assert_eq!(world.summary(&young).await.owner, Some(worker));
}

pub async fn d05_a_living_owner_keeps_its_queue(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 1).await;
    let lease = world.owner(&connection, 0).await;
    store.renew_worker(lease.worker_id, at(10_000)).await.unwrap();
    let other = world.worker(10_000 + LIFE_MS).await;
    assert!(store.take_queues(other, at(10_000 + LIFE_MS), 10).await.unwrap().is_empty());
    let named = store.take_named_queues(other, at(10_000 + LIFE_MS), vec![connection.id]).await.unwrap();
    assert!(named.is_empty());
    let taken = store.take_queues(other, at(10_001 + LIFE_MS), 10).await.unwrap();
    assert_eq!(taken.len(), 1, "the lease has ended a millisecond later");
    assert!(taken[0].taken_over);
    assert!(taken[0].lease.token > lease.token);
}

pub async fn d05_a_renewal_after_the_end_is_refused(store: &dyn Store) {
    let world = World::new(store).await;
    let worker = world.worker(0).await;
    store.renew_worker(worker, at(LIFE_MS)).await.unwrap();
    assert_eq!(store.renew_worker(worker, at(2 * LIFE_MS + 1)).await, Err(StoreError::LeaseLost));
    assert_eq!(store.take_queues(worker, at(2 * LIFE_MS + 1), 1).await, Err(StoreError::LeaseLost));
    assert_eq!(store.renew_worker(WorkerId::from_u128(77), at(0)).await, Err(StoreError::LeaseLost));
}

pub async fn d05_a_released_queue_is_not_taken_over(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 1).await;
    let first = world.owner(&connection, 0).await;
    store.release_queue(first).await.unwrap();
    assert_eq!(world.summary(&connection).await.owner, None);
    assert_eq!(store.release_queue(first).await, Err(StoreError::LeaseLost));
    let worker = world.worker(1).await;
    let second = store.take_queues(worker, at(1), 1).await.unwrap();
    assert!(!second[0].taken_over);
    assert!(second[0].lease.token > first.token);
    store.close_worker(worker).await.unwrap();
    let third = store.take_queues(world.worker(2).await, at(2), 1).await.unwrap();
    assert!(!third[0].taken_over, "a graceful stop releases");
    assert!(third[0].lease.token > second[0].lease.token);
}

pub async fn d05_named_queues_are_taken_also_when_empty(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", true).await];
    let held = world.owner(&a, 0).await;
    let worker = world.worker(0).await;
    let asked = vec![a.id, b.id, postrider_core::id::ConnectionId::from_u128(99)];
    let taken = store.take_named_queues(worker, at(0), asked).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].lease.queue_id, taken[0].taken_over), (b.id, false));
    assert!(store.load(held, None, ALL).await.unwrap().is_empty(), "the other owner's lease still holds");
}

pub async fn d05_a_worker_id_is_used_once(store: &dyn Store) {
    let world = World::new(store).await;
    let worker = world.worker(0).await;
    assert!(matches!(store.open_worker(worker, LIFE, at(1)).await, Err(StoreError::Conflict(_))));
}

/// Law 4: a stale token changes nothing, whichever verb it comes with.
pub async fn d05_a_stale_token_changes_nothing(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", false).await;
    let ids = world.stored(&connection, 2).await;
    let old = world.owner(&connection, 0).await;
    let command = world.command(&connection, ids[0], 5);
    assert!(store.submit_command(command.clone(), at(5)).await.unwrap());
    let new = world.owner(&connection, LIFE_MS + 1).await;
    let forged = QueueLease { worker_id: old.worker_id, ..new };
    for lease in [old, forged] {
        let before = world.delivery(ids[0]).await;
        assert_eq!(world.attempted(ids[0], lease, Status::Success).await, Settled::Stale);
        assert_eq!(world.delivery(ids[0]).await, before);
        assert!(store.attempts(ids[0]).await.unwrap().is_empty());
        assert!(matches!(store.load(lease, None, ALL).await, Err(StoreError::LeaseLost)));
        assert!(matches!(store.claim(lease, at(90_000), ALL).await, Err(StoreError::LeaseLost)));
        assert_eq!(store.next_due(lease).await, Err(StoreError::LeaseLost));
        assert!(matches!(store.claimed_by_former_owner(lease, 9).await, Err(StoreError::LeaseLost)));
        assert!(matches!(store.commands(lease).await, Err(StoreError::LeaseLost)));
        let answered = store.answer_command(lease, command.id, CommandAnswer::NotWaiting).await;
        assert_eq!(answered, Err(StoreError::LeaseLost));
        assert_eq!(store.release_queue(lease).await, Err(StoreError::LeaseLost));
    }
    assert_eq!(world.summary(&connection).await.owner, Some(new.worker_id));
    assert!(matches!(world.attempted(ids[0], new, Status::Success).await, Settled::Applied { .. }));
}

pub async fn d05_a_lease_given_back_is_stale_for_its_own_worker_too(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 1).await;
    let first = world.owner(&connection, 0).await;
    store.release_queue(first).await.unwrap();
    assert_eq!(world.attempted(stored[0], first, Status::Success).await, Settled::Stale);
    let second = store.take_queues(first.worker_id, at(1), 1).await.unwrap()[0].lease;
    assert!(matches!(store.load(first, None, ALL).await, Err(StoreError::LeaseLost)));
    assert_eq!(world.attempted(stored[0], first, Status::Success).await, Settled::Stale, "the token decides");
    store.close_worker(second.worker_id).await.unwrap();
    assert_eq!(world.attempted(stored[0], second, Status::Success).await, Settled::Stale);
    assert_eq!(world.summary(&connection).await.waiting, 1);
}

/// A kill ends every lease of an embedded store; the next owner is told, and the tokens go on rising.
pub async fn z13_a_kill_ends_every_lease(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let ids = world.stored(&connection, 2).await;
    let old = world.owner(&connection, 0).await;
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(store.renew_worker(old.worker_id, at(1)).await, Err(StoreError::LeaseLost));
    assert_eq!(world.attempted(ids[0], old, Status::Success).await, Settled::Stale);
    let worker = world.worker(1).await;
    let taken = store.take_queues(worker, at(1), 10).await.unwrap();
    assert_eq!(taken.len(), 1, "nobody waits for the dead owner's lease to run out");
    assert!(taken[0].taken_over);
    assert!(taken[0].lease.token > old.token);
}

pub async fn z13_a_graceful_stop_is_remembered(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 1).await;
    let lease = world.owner(&connection, 0).await;
    store.close_worker(lease.worker_id).await.unwrap();
    store.close().await.unwrap();
    assert_eq!(store.check().await, Err(StoreError::Closed));
    assert_eq!(store.renew_worker(lease.worker_id, at(0)).await, Err(StoreError::Closed));
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(store.check().await, Ok(()));
    let taken = store.take_queues(world.worker(1).await, at(1), 10).await.unwrap();
    assert_eq!((taken.len(), taken[0].taken_over), (1, false));
}

pub async fn d05_who_takes_a_queue_learns_what_a_former_owner_left(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let other = world.connection("other", false).await;
    let stored = world.stored(&connection, 2).await;
    world.stored(&other, 1).await;
    let lease = world.owner(&connection, 5).await;
    store.claim(lease, at(5), WindowLimit { deliveries_max: 1, bytes_max: u64::MAX }).await.unwrap();
    assert!(store.submit_command(world.command(&connection, stored[1], 7), at(6)).await.unwrap());
    store.release_queue(lease).await.unwrap();
    let worker = world.worker(7).await;
    let taken = store.take_named_queues(worker, at(7), vec![connection.id, other.id]).await.unwrap();
    let left: Vec<_> = taken.iter().map(|one| (one.lease.queue_id, one.has_claims, one.has_commands)).collect();
    assert_eq!(left, [(connection.id, true, true), (other.id, false, false)]);
}

pub async fn d06_what_is_stored_tells_who_held_its_queue(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let held_under = async |now| match store.enqueue(vec![world.fresh(&connection, now)]).await.unwrap()[0] {
        Enqueued::Stored { held_under, .. } => held_under,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(held_under(1).await, None);
    let lease = world.owner(&connection, 2).await;
    assert_eq!(held_under(3).await, Some(lease.token));
    store.release_queue(lease).await.unwrap();
    assert_eq!(held_under(4).await, None);
}

pub async fn d05_a_worker_gets_its_own_queue_again_under_a_new_token(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 1).await;
    let first = world.owner(&connection, 1).await;
    // By name only: among the free queues it is not.
    assert!(store.take_queues(first.worker_id, at(2), 10).await.unwrap().is_empty());
    let again = store.take_named_queues(first.worker_id, at(2), vec![connection.id]).await.unwrap();
    assert!(again[0].taken_over && again[0].lease.token > first.token);
    assert_eq!(
        store.load(first, None, WindowLimit { deliveries_max: 1, bytes_max: 1 }).await.err(),
        Some(StoreError::LeaseLost)
    );
}
