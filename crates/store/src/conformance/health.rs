//! Cases of how endpoints do: health is written with the attempt that says it, and what is late changes nothing (V03, V04, D29).

use postrider_core::connection::Connection;
use postrider_core::delivery::Status;
use postrider_core::endpoint::{EndpointState, SwitchedOff, Verification};
use postrider_core::health::{Counting, EndpointHealth, SwitchOffReason};
use postrider_core::id::DeliveryId;

use super::TestStore;
use super::endpoints::endpoint;
use super::fixture::*;
use crate::*;

async fn made(world: &World<'_>, name: &str) -> (Connection, EndpointRow) {
    let (connection, row) = endpoint(world, name);
    world.store.create_connection(&connection).await.unwrap();
    world.store.create_endpoint(&row).await.unwrap();
    (connection, row)
}

fn failing(since: i64, count: u32) -> EndpointHealth {
    EndpointHealth { failing_since: Some(at(since)), failed_in_a_row: count }
}

fn off(world: &World<'_>, reason: SwitchOffReason, millis: i64) -> OffWrite {
    OffWrite {
        off: SwitchedOff { reason, at: at(millis) },
        entry: super::audit::entry(world, "endpoint.switch_off", millis),
    }
}

async fn entries(world: &World<'_>) -> usize {
    let filter = AuditFilter { action: Some("endpoint.switch_off".to_owned()), ..AuditFilter::default() };
    world.store.audit_entries(&filter, FIRST_PAGE).await.unwrap().items.len()
}

/// An attempt of this delivery failed under this lease and says this of its endpoint.
async fn failed(world: &World<'_>, id: DeliveryId, lease: QueueLease, health: HealthWrite) -> Settlement {
    let decision = world.attempt_decision(id, lease, Status::Pending).await;
    Settlement { health: Some(Box::new(health)), ..decision }
}

async fn state(world: &World<'_>, row: &EndpointRow) -> EndpointState {
    world.store.endpoint(row.id).await.unwrap().unwrap().state
}

pub async fn v04_health_is_written_with_the_attempt_and_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let (connection, row) = made(&world, "a").await;
    let (other, other_row) = made(&world, "b").await;
    let stored = world.stored(&connection, 3).await;
    let of_other = world.stored(&other, 1).await;
    let lease = world.owner(&connection, 5).await;
    let lease_of_other = world.owner(&other, 5).await;
    let mut batch = Vec::new();
    for (count, id) in (1..).zip(&stored) {
        let health = HealthWrite { epoch: 0, health: failing(60, count), off: None };
        let mut one = failed(&world, *id, lease, health).await;
        one.progress.counting = Counting::CountedAt(at(60));
        batch.push(one);
    }
    let health = HealthWrite { epoch: 0, health: failing(61, 1), off: None };
    batch.insert(1, failed(&world, of_other[0], lease_of_other, health).await);
    for settled in store.settle(batch).await.unwrap() {
        assert!(matches!(settled, Settled::Applied { .. }), "{settled:?}");
    }
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(state(&world, &row).await.health, failing(60, 3));
    assert_eq!(state(&world, &other_row).await.health, failing(61, 1));
    assert_eq!(world.delivery(stored[0]).await.progress.counting, Counting::CountedAt(at(60)));
    assert_eq!(store.failing_endpoints(None, 1).await.unwrap().len(), 1);
    assert_eq!(store.failing_endpoints(Some(row.id.min(other_row.id)), 9).await.unwrap().len(), 1);
    // One that is no longer the owner says nothing of the endpoint either.
    let health = HealthWrite { epoch: 0, health: failing(60, 99), off: None };
    let stale = QueueLease { token: FencingToken(lease.token.0 - 1), ..lease };
    let late = failed(&world, stored[0], stale, health).await;
    assert_eq!(world.settle(late).await, Settled::Stale);
    assert_eq!(state(&world, &row).await.health, failing(60, 3));
}

pub async fn v03_a_late_success_does_not_undo_a_410(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let (connection, row) = made(&world, "a").await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    let gone =
        HealthWrite { epoch: 0, health: failing(60, 1), off: Some(Box::new(off(&world, SwitchOffReason::Gone, 60))) };
    let mut batch = vec![world.attempt_decision(stored[0], lease, Status::Dlq).await];
    batch[0].health = Some(Box::new(gone));
    let reset = HealthWrite { epoch: 0, health: EndpointHealth::default(), off: None };
    let mut late = world.attempt_decision(stored[1], lease, Status::Success).await;
    late.health = Some(Box::new(reset));
    batch.push(late);
    let settled = store.settle(batch).await.unwrap();
    assert!(settled.iter().all(|one| matches!(one, Settled::Applied { .. })), "both attempts are written: {settled:?}");
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    let wanted = EndpointState {
        off: Some(SwitchedOff { reason: SwitchOffReason::Gone, at: at(60) }),
        health: failing(60, 1),
        epoch: 1,
        ..row.state
    };
    assert_eq!(state(&world, &row).await, wanted);
    assert_eq!(entries(&world).await, 1);
    assert_eq!(store.endpoint(row.id).await.unwrap().unwrap().tell_at, Some(at(60)));
    // A second 410 of the same epoch is late as well.
    let lease = world.owner(&connection, 20_000).await;
    let again =
        HealthWrite { epoch: 0, health: failing(60, 2), off: Some(Box::new(off(&world, SwitchOffReason::Gone, 70))) };
    let again = failed(&world, stored[2], lease, again).await;
    assert!(matches!(world.settle(again).await, Settled::Applied { .. }));
    assert_eq!((state(&world, &row).await, entries(&world).await), (wanted, 1));
}

pub async fn v04_the_timer_switches_off_what_still_stands_as_it_saw_it(store: &dyn Store) {
    let world = World::new(store).await;
    let (connection, row) = made(&world, "a").await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    let health = HealthWrite { epoch: 0, health: failing(60, 1), off: None };
    world.settle(failed(&world, stored[0], lease, health).await).await;
    let seen = store.failing_endpoints(None, 9).await.unwrap().remove(0);
    // It succeeds, and fails again: what was seen is no more.
    let mut success = world.attempt_decision(stored[1], lease, Status::Success).await;
    success.health = Some(Box::new(HealthWrite { epoch: 0, health: EndpointHealth::default(), off: None }));
    world.settle(success).await;
    assert!(!store.switch_off_endpoint(&seen, off(&world, SwitchOffReason::FailingFor, 90)).await.unwrap());
    assert!(store.failing_endpoints(None, 9).await.unwrap().is_empty());
    let health = HealthWrite { epoch: 0, health: failing(80, 1), off: None };
    world.settle(failed(&world, stored[2], lease, health).await).await;
    assert!(!store.switch_off_endpoint(&seen, off(&world, SwitchOffReason::FailingFor, 90)).await.unwrap());
    let seen = store.failing_endpoints(None, 9).await.unwrap().remove(0);
    assert!(store.switch_off_endpoint(&seen, off(&world, SwitchOffReason::FailingFor, 90)).await.unwrap());
    assert!(!store.switch_off_endpoint(&seen, off(&world, SwitchOffReason::FailingFor, 91)).await.unwrap(), "once");
    let state = state(&world, &row).await;
    assert_eq!(state.off, Some(SwitchedOff { reason: SwitchOffReason::FailingFor, at: at(90) }));
    assert_eq!((state.health, state.epoch, entries(&world).await), (failing(80, 1), 1, 1));
}

pub async fn v06_on_again_the_count_starts_over_in_a_new_epoch(store: &dyn Store) {
    let world = World::new(store).await;
    let (mut connection, row) = made(&world, "a").await;
    let seen = EndpointRow { state: row.state, ..row.clone() };
    assert!(store.switch_off_endpoint(&seen, off(&world, SwitchOffReason::Gone, 7)).await.unwrap());
    store.note_verification(row.id, Verification::Verified, "https://hooks.example.org/in").await.unwrap();
    let change = |connection: &Connection, version, verification, switches_on| Change::ReplaceEndpoint {
        connection: Box::new(connection.clone()),
        version,
        verification,
        switches_on,
    };
    connection.version = 2;
    let entry = |millis| super::audit::entry(&world, "endpoint.enable", millis);
    assert!(store.change(change(&connection, 9, None, true), entry(8)).await.is_err(), "another version");
    assert!(state(&world, &row).await.off.is_some(), "and then nothing was written");
    store.change(change(&connection, 1, None, true), entry(9)).await.unwrap();
    let on = EndpointState { verification: Verification::Verified, epoch: 2, ..row.state };
    let found = store.endpoint(row.id).await.unwrap().unwrap();
    assert_eq!((found.state, found.tell_at), (on, None));
    connection.version = 3;
    store.change(change(&connection, 2, Some(Verification::Pending), false), entry(10)).await.unwrap();
    let found = store.endpoint(row.id).await.unwrap().unwrap();
    let asked = EndpointState { verification: Verification::Pending, ..on };
    assert_eq!((found.state, found.verified_url), (asked, None));
}

pub async fn v04_the_owner_is_told_by_one_who_has_taken_it_over(store: &dyn Store) {
    let world = World::new(store).await;
    let (_, row) = made(&world, "a").await;
    assert!(store.untold_endpoints(at(99), 9).await.unwrap().is_empty());
    store.switch_off_endpoint(&row, off(&world, SwitchOffReason::Gone, 7)).await.unwrap();
    assert!(store.untold_endpoints(at(6), 9).await.unwrap().is_empty(), "not before its time");
    let seen = store.untold_endpoints(at(7), 9).await.unwrap().remove(0);
    assert!(store.take_telling(&seen, at(50)).await.unwrap());
    assert!(!store.take_telling(&seen, at(60)).await.unwrap(), "another has it");
    assert!(store.untold_endpoints(at(49), 9).await.unwrap().is_empty());
    let again = store.untold_endpoints(at(50), 9).await.unwrap().remove(0);
    store.end_telling(row.id, again.state.epoch - 1).await.unwrap();
    assert_eq!(store.untold_endpoints(at(50), 9).await.unwrap().len(), 1, "that was another switching-off");
    store.end_telling(row.id, again.state.epoch).await.unwrap();
    assert!(store.untold_endpoints(at(99), 9).await.unwrap().is_empty());
    assert!(!store.take_telling(&again, at(99)).await.unwrap());
}
