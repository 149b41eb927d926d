//! Nobody is told a guess: a commit whose answer was lost is looked up, and what was rolled back is done again.

use postrider_core::delivery::Status;

use super::cut::{Cut, Wire};
use super::{LIMITS, TestSchema};
use crate::conformance::fixture::*;
use crate::postgres::{LeaseClock, PostgresOptions, PostgresStore};
use crate::*;

const OPTIONS: PostgresOptions =
    PostgresOptions { limits: LIMITS, connections_max: 8, lease_clock: LeaseClock::Caller };

/// Stores, claims, settles and publishes while every one of the commits is cut.
async fn each_is_done_once(cut: Cut) {
    let schema = TestSchema::new();
    let wire = Wire::laid(cut).await;
    let store = PostgresStore::open(&wire.database(&schema), OPTIONS).await.unwrap();
    let world = World::new(&store).await;
    let connection = world.connection("hook", false).await;
    let topic = world.topic("news").await;
    let lease = world.owner(&connection, 0).await;

    wire.cut_next(1);
    let stored = world.stored(&connection, 2).await;
    assert!(wire.is_done(), "a commit was cut");
    assert_eq!(world.summary(&connection).await.waiting, 2);

    wire.cut_next(1);
    let claimed = store.claim(lease, at(10), ALL).await.unwrap();
    assert_eq!(ids(&claimed), stored);
    assert!(claimed.iter().all(|loaded| loaded.delivery.progress.attempts == 1), "claimed once");

    wire.cut_next(1);
    let settled = world.attempted(stored[0], lease, Status::Success).await;
    assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
    assert_eq!(store.attempts(stored[0]).await.unwrap().len(), 1);

    wire.cut_next(1);
    world.published(&topic, 20).await;
    assert_eq!(store.topic_messages(&topic, FIRST_PAGE).await.unwrap().items.len(), 1);

    wire.cut_next(1);
    world.connection("made once", true).await;
    assert!(wire.is_done());
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.accepted, counts.processing, counts.success), (2, 1, 1));
    assert!(counts.is_balanced());
}

// proves: R16 (what was written is told as written)
#[tokio::test]
async fn d05_a_commit_whose_answer_is_lost_counts_once() {
    each_is_done_once(Cut::AfterCommit).await;
}

#[tokio::test]
async fn d05_a_commit_that_never_arrived_is_made_again() {
    each_is_done_once(Cut::BeforeCommit).await;
}

/// A session that was ended from outside, as by a restart, is no reason to refuse the next call.
#[tokio::test]
async fn connections_from_before_a_restart_are_replaced_unseen() {
    let test = super::make_store(LIMITS).await;
    let world = World::new(&*test.store).await;
    let connection = world.connection("billing", true).await;
    world.stored(&connection, 1).await;
    let name = &test.schema.name;
    let ended = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{name}' AND pid <> pg_backend_pid()"
    );
    test.schema.run(&ended).await.unwrap();
    world.stored(&connection, 1).await;
    assert_eq!(world.summary(&connection).await.waiting, 2);
}
