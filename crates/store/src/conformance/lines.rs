//! Cases of lines within a queue without order, and of what owners say of what is held up (R15, R04). They must not decide who waits.

use postrider_core::connection::Connection;
use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::delivery::{EventRef, Origin, Position, Progress, Status};
use postrider_core::envelope::Payload;
use postrider_core::id::{DeliveryId, EventId, SubscriptionId};
use postrider_core::ordering::Line;

use super::TestStore;
use super::fixture::*;
use crate::*;

fn in_line(world: &World<'_>, connection: &Connection, line: Option<i64>, millis: i64) -> NewDelivery {
    NewDelivery {
        origin: Origin::Event,
        event: Some(EventRef {
            id: EventId::from_u128(world.id()),
            event_type: "order.created".to_owned(),
            happened_at: at(millis),
            subscription_id: SubscriptionId::from_u128(5),
            payload: Payload::Data,
            line: line.map(Line),
        }),
        ..world.fresh(connection, millis)
    }
}

/// Stores one in each of these lines, in this order.
async fn stored(world: &World<'_>, connection: &Connection, lines: &[Option<i64>]) -> Vec<DeliveryId> {
    let batch: Vec<NewDelivery> = (0..).zip(lines).map(|(ms, line)| in_line(world, connection, *line, ms)).collect();
    let ids = batch.iter().map(|new| new.id).collect();
    for answer in world.store.enqueue(batch).await.unwrap() {
        assert!(matches!(answer, Enqueued::Stored { .. }), "{answer:?}");
    }
    ids
}

async fn claimed(world: &World<'_>, lease: QueueLease) -> Vec<DeliveryId> {
    let mut found = ids(&world.store.claim(lease, at(9_000), ALL).await.unwrap());
    found.sort();
    found
}

pub async fn r15_of_each_line_only_the_foremost_is_claimed(store: &dyn Store) {
    let world = World::new(store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(1), Some(1), None, Some(2), Some(1), Some(2), None]).await;
    let lease = world.owner(&hook, 10).await;
    assert_eq!(claimed(&world, lease).await, [all[0], all[2], all[3], all[6]]);
    assert!(claimed(&world, lease).await.is_empty(), "while these are under way");
    // One that is to be tried again keeps its place, and the others wait for it.
    let begun = world.delivery(all[0]).await.progress;
    let again = Progress { status: Status::Pending, due_at: at(60_000), ..begun };
    let settlement = world.decision(all[0], Guard::Lease(lease), again).await;
    world.settle(Settlement { attempt: Some(attempt(1, false)), ..settlement }).await;
    assert!(claimed(&world, lease).await.is_empty());
    assert_eq!(store.next_due(lease).await.unwrap(), Some(at(60_000)), "those behind it are not due");
    // Whatever ends one lets the next one go.
    world.attempted(all[3], lease, Status::Success).await;
    assert_eq!(claimed(&world, lease).await, [all[5]]);
    let dead = ended(world.delivery(all[0]).await.progress, Status::Dlq, at(70));
    world.settle(world.decision(all[0], Guard::Lease(lease), dead).await).await;
    assert_eq!(claimed(&world, lease).await, [all[1]]);
    let discarded = ended(world.delivery(all[1]).await.progress, Status::Discarded, at(80));
    world.settle(world.decision(all[1], Guard::Lease(lease), discarded).await).await;
    assert_eq!(claimed(&world, lease).await, [all[4]]);
}

pub async fn r15_one_in_the_middle_leaves_the_others_in_their_order(store: &dyn Store) {
    let world = World::new(store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(7), Some(7), Some(7)]).await;
    let lease = world.owner(&hook, 10).await;
    let gone = ended(world.delivery(all[1]).await.progress, Status::Discarded, at(20));
    world.settle(world.decision(all[1], Guard::Lease(lease), gone).await).await;
    assert_eq!(claimed(&world, lease).await, [all[0]]);
    world.attempted(all[0], lease, Status::Success).await;
    assert_eq!(claimed(&world, lease).await, [all[2]]);
}

pub async fn r15_what_comes_back_goes_to_the_end_of_its_line(store: &dyn Store) {
    let world = World::new(store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(7), Some(7), Some(7)]).await;
    let lease = world.owner(&hook, 10).await;
    claimed(&world, lease).await;
    world.attempted(all[0], lease, Status::Dlq).await;
    claimed(&world, lease).await;
    world.attempted(all[1], lease, Status::Success).await;
    store.release_queue(lease).await.unwrap();
    // From the DLQ and from the log, behind what waits (D27).
    for id in [all[0], all[1]] {
        let back =
            Progress { status: Status::Pending, dead_at: None, ended_at: None, ..world.delivery(id).await.progress };
        let settled = world.by_version(id, back, Placement::Tail).await;
        assert!(matches!(settled, Settled::Applied { position: Some(Position(4..)), .. }), "{settled:?}");
    }
    let lease = world.owner(&hook, 100).await;
    for id in [all[2], all[0], all[1]] {
        assert_eq!(claimed(&world, lease).await, [id]);
        world.attempted(id, lease, Status::Success).await;
    }
    assert!(claimed(&world, lease).await.is_empty());
}

pub async fn r15_a_line_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(1), Some(1), Some(1)]).await;
    let lease = world.owner(&hook, 10).await;
    assert_eq!(claimed(&world, lease).await, [all[0]]);
    world.attempted(all[0], lease, Status::Success).await;
    assert_eq!(claimed(&world, lease).await, [all[1]]);
    test.reopen().await;
    let reopened = test.store();
    let world = world.over(&*reopened);
    // With several workers the former owner's lease has to end first.
    let worker = world.worker(60_000).await;
    let taken = reopened.take_queues(worker, at(60_000), 10).await.unwrap();
    let lease = taken.iter().find(|taken| taken.lease.queue_id == hook.id).unwrap().lease;
    assert!(claimed(&world, lease).await.is_empty(), "the claim of the former owner is still open");
    let former = reopened.claimed_by_former_owner(lease, 10).await.unwrap();
    assert_eq!(former.iter().map(|delivery| delivery.id).collect::<Vec<_>>(), [all[1]]);
    world.attempted(all[1], lease, Status::Dlq).await;
    assert_eq!(claimed(&world, lease).await, [all[2]]);
}

pub async fn r15_order_of_a_whole_queue_can_be_turned_on_and_off_over_lines(store: &dyn Store) {
    let world = World::new(store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(1), Some(1), None, Some(2)]).await;
    let ordered = Connection { version: 2, ..world.connection_value("hook", true) };
    let ordered = Connection { id: hook.id, ..ordered };
    store.replace_connection(&ordered, 1).await.unwrap();
    let lease = world.owner(&hook, 10).await;
    assert_eq!(ids(&store.load(lease, None, ALL).await.unwrap()), all);
    store.release_queue(lease).await.unwrap();
    store.replace_connection(&Connection { version: 3, ..hook.clone() }, 2).await.unwrap();
    let lease = world.owner(&hook, 20).await;
    assert_eq!(claimed(&world, lease).await, [all[0], all[2], all[3]]);
}

pub async fn r15_a_queue_is_listed_with_those_who_wait_for_others(store: &dyn Store) {
    let world = World::new(store).await;
    let hook = world.connection("hook", false).await;
    let all = stored(&world, &hook, &[Some(1), Some(1), None, Some(2), Some(1), Some(2)]).await;
    let mut listed = Vec::new();
    let mut cursor = None;
    loop {
        let page = store.queue(hook.id, PageRequest { limit: 2, cursor }).await.unwrap();
        listed.extend(page.items.iter().map(|delivery| delivery.id));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let foremost = [all[0], all[2], all[3]];
    assert_eq!(listed.len(), all.len(), "each once");
    assert!(listed[..3].iter().all(|id| foremost.contains(id)), "those that may go first");
    assert_eq!(listed[3..], [all[1], all[4], all[5]]);
    let mut behind = store.waits_behind(all.clone()).await.unwrap();
    behind.sort();
    assert_eq!(behind, [(all[1], all[0]), (all[4], all[0]), (all[5], all[3])]);
    let fifo = world.connection("fifo", true).await;
    let in_order = world.stored(&fifo, 3).await;
    let mut behind = store.waits_behind(in_order.clone()).await.unwrap();
    behind.sort();
    assert_eq!(behind, [(in_order[1], in_order[0]), (in_order[2], in_order[0])]);
}

pub async fn r04_what_an_owner_says_holds_as_long_as_its_lease(store: &dyn Store) {
    let world = World::new(store).await;
    let [hook, other] = [world.connection("hook", false).await, world.connection("other", false).await];
    world.stored(&hook, 1).await;
    let lease = world.owner(&hook, 10).await;
    let rate = Deferral { by: DeferredBy::EndpointRateLimit, until: None };
    let breaker = Deferral { by: DeferredBy::Breaker, until: Some(at(5_000)) };
    let queues = vec![hook.id, other.id];
    assert!(store.deferrals(queues.clone()).await.unwrap().is_empty());
    for said in [rate, breaker] {
        store.note_deferral(lease, Some(said)).await.unwrap();
        assert_eq!(store.deferrals(queues.clone()).await.unwrap(), [(hook.id, said)]);
    }
    store.note_deferral(lease, None).await.unwrap();
    assert!(store.deferrals(queues.clone()).await.unwrap().is_empty());
    store.note_deferral(lease, Some(rate)).await.unwrap();
    store.release_queue(lease).await.unwrap();
    assert!(store.deferrals(queues.clone()).await.unwrap().is_empty(), "nobody says so any more");
    let next = world.owner(&hook, 20).await;
    assert!(store.deferrals(queues).await.unwrap().is_empty(), "nor does the next owner");
    assert_eq!(store.note_deferral(lease, Some(rate)).await, Err(StoreError::LeaseLost));
    store.note_deferral(next, Some(rate)).await.unwrap();
}
