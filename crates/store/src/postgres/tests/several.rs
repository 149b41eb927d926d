//! Several servers on one database: nothing overtakes, nothing is owned twice, and what a dead worker writes late changes nothing.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::Wait;
use postrider_core::delivery::Status;
use postrider_core::id::WorkerId;

use super::{LIMITS, PostgresTest, TestSchema, by_the_database, make_store};
use crate::conformance::fixture::*;
use crate::postgres::PostgresStore;
use crate::*;

/// For what must happen sooner or later, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

async fn beside(test: &PostgresTest) -> Arc<PostgresStore> {
    Arc::new(PostgresStore::open(&test.schema.database(), test.options).await.unwrap())
}

// proves: D02, Z11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z11_two_servers_store_in_one_line_that_a_third_follows() {
    let test = make_store(LIMITS).await;
    let (other, third) = (beside(&test).await, beside(&test).await);
    let world = World::new(&*test.store).await;
    let connection = world.connection("billing", true).await;
    let lease = world.owner(&connection, 0).await;
    let mut writers = Vec::new();
    for store in [Arc::clone(&test.store), other] {
        let batches: Vec<Vec<NewDelivery>> =
            (0..40).map(|n| (0..3).map(|_| world.fresh(&connection, n)).collect()).collect();
        writers.push(tokio::spawn(async move {
            let mut places = Vec::new();
            for batch in batches {
                for answer in store.enqueue(batch).await.unwrap() {
                    let Enqueued::Stored { position, ahead, .. } = answer else { panic!("{answer:?}") };
                    places.push((position, ahead));
                }
            }
            places
        }));
    }
    let (mut followed, mut last) = (Vec::new(), None);
    while followed.len() < 240 {
        for loaded in third.load(lease, last, ALL).await.unwrap() {
            last = loaded.delivery.position;
            followed.push(last.unwrap());
        }
    }
    let mut given = Vec::new();
    for writer in writers {
        given.extend(writer.await.unwrap());
    }
    given.sort_unstable();
    assert_eq!(given.iter().map(|(position, _)| *position).collect::<Vec<_>>(), followed, "none was passed by");
    assert!((0..).zip(&given).all(|(rank, (_, ahead))| *ahead == rank), "`ahead` is exact over both");
}

// proves: D02 (an unordered queue), D07
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_count_an_unordered_queue_together() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    let world = World::new(&*test.store).await;
    let connections = [world.connection("a", false).await, world.connection("b", true).await];
    let mut writers = Vec::new();
    for store in [Arc::clone(&test.store), other] {
        let mixed = |n: i64| connections.iter().map(|connection| world.fresh(connection, n)).collect();
        let batches: Vec<Vec<NewDelivery>> = (0..40).map(mixed).collect();
        writers.push(tokio::spawn(async move {
            for batch in batches {
                store.enqueue(batch).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    for connection in &connections {
        assert_eq!(world.summary(connection).await.waiting, 80);
        let mut places: Vec<_> =
            test.store.queue(connection.id, FIRST_PAGE).await.unwrap().items.iter().map(|one| one.position).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 80, "no two in one place");
    }
}

// proves: D15
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d15_two_servers_agree_on_who_was_first() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    let world = World::new(&*test.store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", false).await];
    for number in 0..20_u8 {
        let key = Idempotency { key_hash: [number; 32], request_hash: [1; 32], ends_at: at(9000) };
        let keyed = |connection| vec![NewDelivery { idempotency: Some(key.clone()), ..world.fresh(connection, 1) }];
        let (first, second) = tokio::join!(test.store.enqueue(keyed(&a)), other.enqueue(keyed(&b)));
        let answers = [first.unwrap().remove(0), second.unwrap().remove(0)];
        let stored = answers.iter().filter(|answer| matches!(answer, Enqueued::Stored { .. })).count();
        let repeated = answers.iter().filter(|answer| matches!(answer, Enqueued::Repeated(_))).count();
        assert_eq!((stored, repeated), (1, 1), "{answers:?}");
    }
}

// proves: D05
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d05_a_queue_goes_to_one_of_those_who_ask_at_once() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    let world = World::new(&*test.store).await;
    for n in 0..30 {
        let connection = world.connection(&format!("c{n}"), n % 2 == 0).await;
        world.stored(&connection, 1).await;
    }
    let workers = [world.worker(5).await, world.worker(5).await];
    let mut owned = Vec::new();
    while owned.len() < 30 {
        let (one, two) =
            tokio::join!(test.store.take_queues(workers[0], at(6), 4), other.take_queues(workers[1], at(6), 4));
        for taken in one.unwrap().into_iter().chain(two.unwrap()) {
            owned.push(taken.lease.queue_id);
        }
    }
    owned.sort_unstable();
    owned.dedup();
    assert_eq!(owned.len(), 30, "none was taken twice");
}

/// Law 4, with the database's own clock: the former owner stands still past its lease and wakes up.
// proves: D05
#[tokio::test]
async fn d05_leases_end_by_the_databases_clock_and_late_writes_change_nothing() {
    let schema = TestSchema::new();
    let (asleep, awake) = (by_the_database(&schema).await, by_the_database(&schema).await);
    let world = World::new(&asleep).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    // The callers' own clocks are wrong by years, each in its direction.
    let (past, future) = (at(-900_000_000), at(900_000_000_000));
    let former = WorkerId::from_u128(1);
    asleep.open_worker(former, Wait::from_millis(1500), future).await.unwrap();
    let held = asleep.take_queues(former, future, 10).await.unwrap()[0].lease;
    let next = WorkerId::from_u128(2);
    awake.open_worker(next, Wait::from_secs(60), past).await.unwrap();
    assert!(awake.take_queues(next, future, 10).await.unwrap().is_empty(), "its owner lives");
    let taken = tokio::time::timeout(PATIENCE, async {
        loop {
            let taken = awake.take_queues(next, past, 10).await.unwrap();
            if let Some(taken) = taken.into_iter().next() {
                return taken;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let taken = taken.await.unwrap();
    assert!(taken.taken_over && taken.lease.token > held.token);
    assert_eq!(asleep.renew_worker(former, past).await, Err(StoreError::LeaseLost));
    assert_eq!(world.attempted(stored[0], held, Status::Success).await, Settled::Stale);
    assert!(matches!(asleep.load(held, None, ALL).await, Err(StoreError::LeaseLost)));
    assert_eq!(world.summary(&connection).await.waiting, 2);
    let world = world.over(&awake);
    assert!(matches!(world.attempted(stored[0], taken.lease, Status::Success).await, Settled::Applied { .. }));
}

/// A takeover waits for a settlement that is under way, and what comes later under the old token is stale: never both.
// proves: D05
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d05_a_takeover_and_a_settlement_never_both_hold() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    let world = World::new(&*test.store).await;
    for round in 0..20 {
        let connection = world.connection(&format!("c{round}"), true).await;
        let id = world.stored(&connection, 1).await[0];
        let now = i64::from(round) * 100_000;
        let old = world.owner(&connection, now).await;
        let decision = world.attempt_decision(id, old, Status::Success).await;
        let next = world.worker(now + 50_000).await;
        let (settled, taken) = tokio::join!(
            test.store.settle(vec![decision]),
            other.take_named_queues(next, at(now + 50_000), vec![connection.id])
        );
        let (settled, taken) = (settled.unwrap().remove(0), taken.unwrap().remove(0));
        let left = other.load(taken.lease, None, ALL).await.unwrap().len();
        match settled {
            Settled::Applied { .. } => assert_eq!(left, 0, "what was settled is not sent again"),
            Settled::Stale => assert_eq!(left, 1),
            other => panic!("{other:?}"),
        }
    }
}

/// What is stored while the owner lets go is not forgotten.
// proves: D05, Z13
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn z13_a_queue_that_is_released_while_something_comes_is_taken_again() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    let world = World::new(&*test.store).await;
    let worker = world.worker(5).await;
    for round in 0..40 {
        let connection = world.connection(&format!("c{round}"), round % 2 == 0).await;
        let lease = test.store.take_named_queues(worker, at(5), vec![connection.id]).await.unwrap()[0].lease;
        let new = world.fresh(&connection, 6);
        let (stored, released) = tokio::join!(other.enqueue(vec![new]), test.store.release_queue(lease));
        stored.unwrap();
        released.unwrap();
        let taken = test.store.take_queues(worker, at(7), 10).await.unwrap();
        let found: Vec<_> = taken.iter().map(|taken| taken.lease.queue_id).collect();
        assert_eq!(found, [connection.id], "round {round}");
        let id = world.line(&connection).await[0];
        world.attempted(id, taken[0].lease, Status::Success).await;
    }
}

async fn news(store: &PostgresStore) -> Signal {
    tokio::time::timeout(PATIENCE, store.next_signal()).await.expect("news within the time")
}

// proves: D47
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn d47_what_one_server_does_the_other_is_told() {
    let test = make_store(LIMITS).await;
    let other = beside(&test).await;
    assert_eq!(news(&other).await, Signal::Anything, "it begins to listen");
    let before = other.configuration_version().await.unwrap();
    let world = World::new(&*test.store).await;
    let connection = world.connection("billing", true).await;
    assert_eq!(news(&other).await, Signal::Configuration);
    assert!(other.configuration_version().await.unwrap() > before);
    let told = async |id| loop {
        if let Signal::Queues(queues) = news(&other).await {
            assert_eq!(queues, [id]);
            return;
        }
    };
    world.stored(&connection, 1).await;
    told(connection.id).await;
    // What its own worker has, the first server tells nobody of; what a worker of the other has, it does.
    let own = world.owner(&connection, 5).await;
    world.stored(&connection, 1).await;
    test.store.release_queue(own).await.unwrap();
    told(connection.id).await;
    let worker = WorkerId::from_u128(7);
    other.open_worker(worker, LIFE, at(6)).await.unwrap();
    other.take_named_queues(worker, at(6), vec![connection.id]).await.unwrap();
    let id = world.line(&connection).await[0];
    assert!(test.store.submit_command(world.command(&connection, id, 7), at(7)).await.unwrap());
    told(connection.id).await;
}

// proves: D05
#[tokio::test]
async fn d05_the_workforce_is_who_lives_and_what_is_free() {
    let test = make_store(LIMITS).await;
    let world = World::new(&*test.store).await;
    let connections = [world.connection("a", true).await, world.connection("b", false).await];
    for connection in &connections {
        world.stored(connection, 1).await;
    }
    let lease = world.owner(&connections[0], 0).await;
    let idle = world.worker(1).await;
    let workforce = test.store.workforce(at(2)).await.unwrap().unwrap();
    assert_eq!(workforce, Workforce { workers: vec![(lease.worker_id, 1), (idle, 0)], free: 1 });
    // Both leases have ended: what the dead have is free.
    let workforce = test.store.workforce(at(60_000)).await.unwrap().unwrap();
    assert_eq!(workforce, Workforce { workers: Vec::new(), free: 2 });
}
