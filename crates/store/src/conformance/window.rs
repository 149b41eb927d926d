//! Cases of loading and claiming. They must not settle more than they need to.

use postrider_core::Wait;
use postrider_core::delivery::{Progress, Status};

use super::TestStore;
use super::fixture::*;
use crate::*;

pub async fn z14_an_ordered_queue_loads_in_the_order_of_arrival(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 5).await;
    let mut early = world.fresh(&connection, 0);
    early.progress.due_at = at(0) - Wait::from_secs(60);
    store.enqueue(vec![early.clone()]).await.unwrap();
    let lease = world.owner(&connection, 10).await;
    let later = world.delivery(stored[0]).await.progress;
    let held = Progress { due_at: at(9_000_000), ..later };
    world.settle(world.decision(stored[0], Guard::Lease(lease), held).await).await;
    let first = store.load(lease, None, WindowLimit { deliveries_max: 3, ..ALL }).await.unwrap();
    assert_eq!(ids(&first), stored[..3], "due or not");
    let rest = store.load(lease, first[2].delivery.position, ALL).await.unwrap();
    assert_eq!(ids(&rest), [stored[3], stored[4], early.id]);
    for loaded in first.iter().chain(&rest) {
        assert_eq!(loaded.body, loaded.delivery.id.to_string().as_bytes(), "each comes with its own body");
        assert_eq!(loaded.delivery, world.delivery(loaded.delivery.id).await);
    }
    assert!(store.load(lease, rest[2].delivery.position, ALL).await.unwrap().is_empty());
}

pub async fn a_window_keeps_to_its_bytes_but_brings_one(store: &dyn Store) {
    let world = World::new(store).await;
    for ordered in [true, false] {
        let connection = world.connection(if ordered { "o" } else { "u" }, ordered).await;
        let sized =
            |bytes: usize, n: i64| NewDelivery { body: world.body(&vec![7; bytes]), ..world.fresh(&connection, n) };
        let batch = vec![sized(100, 0), sized(10, 1), sized(10, 2), sized(10, 3)];
        let stored: Vec<_> = batch.iter().map(|new| new.id).collect();
        store.enqueue(batch).await.unwrap();
        let lease = world.owner(&connection, 10).await;
        let limit = WindowLimit { deliveries_max: 3, bytes_max: 25 };
        if ordered {
            let first = store.load(lease, None, limit).await.unwrap();
            assert_eq!(ids(&first), stored[..1], "at least one, however large");
            let next = store.load(lease, first[0].delivery.position, limit).await.unwrap();
            assert_eq!(ids(&next), stored[1..3]);
        } else {
            assert_eq!(ids(&store.claim(lease, at(10), limit).await.unwrap()), stored[..1]);
            assert_eq!(ids(&store.claim(lease, at(10), limit).await.unwrap()), stored[1..3]);
        }
    }
}

pub async fn d04_a_claim_takes_fresh_ones_before_retries(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let old = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    for (id, due) in [(old[0], 40), (old[1], 30)] {
        let mut decision = world.attempt_decision(id, lease, Status::Pending).await;
        decision.progress.due_at = at(due);
        world.settle(decision).await;
    }
    let mut not_due = world.fresh(&connection, 100);
    not_due.progress.due_at = at(101);
    let twins = [world.fresh(&connection, 60), world.fresh(&connection, 60)];
    let late = world.fresh(&connection, 61);
    let fresh = [twins[0].id, twins[1].id, late.id];
    let [first, second] = twins;
    store.enqueue(vec![not_due.clone(), late, second, first]).await.unwrap();
    let claimed = store.claim(lease, at(100), ALL).await.unwrap();
    assert_eq!(ids(&claimed), [&fresh[..], &[old[1], old[0]]].concat(), "then by due time, then by id");
    assert_eq!(claimed[0].body, fresh[0].to_string().as_bytes());
    for loaded in &claimed {
        let progress = &loaded.delivery.progress;
        let begun = if fresh.contains(&loaded.delivery.id) { 1 } else { 2 };
        assert_eq!((progress.status, progress.attempts), (Status::Processing, begun));
        assert_eq!(progress.last_attempt_at, Some(at(100)));
        assert_eq!(loaded.delivery, world.delivery(loaded.delivery.id).await, "committed before it is sent");
    }
    assert!(store.claim(lease, at(100), ALL).await.unwrap().is_empty());
    assert_eq!(ids(&store.claim(lease, at(101), ALL).await.unwrap()), [not_due.id]);
}

pub async fn a_claim_raises_the_version(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let id = world.stored(&connection, 1).await[0];
    let before = world.delivery(id).await.version;
    let lease = world.owner(&connection, 5).await;
    assert!(store.claim(lease, at(5), ALL).await.unwrap()[0].delivery.version > before);
}

pub async fn the_next_due_time_is_the_earliest_of_what_is_pending(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("hook", false).await;
    let lease = world.owner(&connection, 0).await;
    assert_eq!(store.next_due(lease).await, Ok(None));
    let due_at = |millis| {
        let mut new = world.fresh(&connection, 0);
        new.progress.due_at = at(millis);
        new
    };
    store.enqueue(vec![due_at(700), due_at(500)]).await.unwrap();
    assert_eq!(store.next_due(lease).await, Ok(Some(at(500))));
    let claimed = ids(&store.claim(lease, at(500), ALL).await.unwrap());
    assert_eq!(store.next_due(lease).await, Ok(Some(at(700))));
    let mut retry = world.attempt_decision(claimed[0], lease, Status::Pending).await;
    retry.progress.due_at = at(600);
    world.settle(retry).await;
    assert_eq!(store.next_due(lease).await, Ok(Some(at(600))), "a retry counts as well");
}

pub async fn d04_the_next_owner_finds_what_was_claimed(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("hook", false).await;
    let stored = world.stored(&connection, 4).await;
    let lease = world.owner(&connection, 5).await;
    let claimed = store.claim(lease, at(5), WindowLimit { deliveries_max: 3, ..ALL }).await.unwrap();
    world.attempted(stored[0], lease, Status::Success).await;
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    let lease = world.owner(&connection, 6).await;
    store.claim(lease, at(6), ALL).await.unwrap();
    let left = store.claimed_by_former_owner(lease, 10).await.unwrap();
    assert_eq!(left, [claimed[1].delivery.clone(), claimed[2].delivery.clone()], "not what this owner has claimed");
    assert_eq!(store.claimed_by_former_owner(lease, 1).await.unwrap().len(), 1);
    let decision = world.attempt_decision(stored[1], lease, Status::Pending).await;
    assert_eq!(decision.attempt.as_ref().unwrap().number, 1, "the attempt that was cut off keeps its number");
    assert!(matches!(world.settle(decision).await, Settled::Applied { .. }));
    assert_eq!(store.claimed_by_former_owner(lease, 10).await.unwrap().len(), 1);
}
