//! Cases of callers who wait in another process than their queue's owner. They must not depend on how a caller is woken.

use bytes::Bytes;
use postrider_core::delivery::{Position, Status};
use postrider_core::id::DeliveryId;
use postrider_core::message::HeaderList;
use postrider_core::outcome::OutcomeState;
use postrider_core::{Answer, Failure};

use super::TestStore;
use super::fixture::*;
use crate::*;

fn reply(state: OutcomeState) -> CallReply {
    let mut headers = HeaderList::default();
    headers.push("Content-Type".to_owned(), "text/plain".to_owned()).unwrap();
    let answer =
        Answer { status: Some(503), headers, said: None, body: Bytes::from_static(b"\0not now\xff"), incomplete: true };
    CallReply {
        state,
        error: Some("the remote answered 503".to_owned()),
        failure: Some(Failure::Status),
        answer: Some(answer),
    }
}

/// Stores calls whose callers wait elsewhere.
async fn called(world: &World<'_>, connection: &postrider_core::connection::Connection, count: i64) -> Vec<DeliveryId> {
    let awaited = |millis| NewDelivery { awaited_until: Some(at(1_000)), ..world.fresh(connection, millis) };
    let batch: Vec<NewDelivery> = (0..count).map(awaited).collect();
    let ids = batch.iter().map(|new| new.id).collect();
    world.store.enqueue(batch).await.unwrap();
    ids
}

async fn replied(world: &World<'_>, id: DeliveryId, lease: QueueLease, status: Status, must_be_read: bool) -> Settled {
    let state = if status == Status::Success { OutcomeState::IsOk } else { OutcomeState::NotDelivered };
    let write = ReplyWrite { reply: reply(state), ends_at: at(2_000), must_be_read };
    let decision = world.attempt_decision(id, lease, status).await;
    world.settle(Settlement { reply: Some(Box::new(write)), ..decision }).await
}

pub async fn d11_a_reply_is_written_with_its_settlement_and_read_once(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = called(&world, &connection, 2).await;
    let nobody = world.stored(&connection, 1).await[0];
    let all = vec![ids[0], nobody, ids[1]];
    assert_eq!(sorted(store.awaited(all.clone()).await.unwrap()), ids, "a published one has no caller");
    let lease = world.owner(&connection, 0).await;
    assert_eq!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Waiting));
    assert_eq!(store.begin_awaited(ids[0]).await, Ok(true));
    assert_eq!(store.begin_awaited(nobody).await, Ok(false));
    assert_eq!(store.take_reply(ids[0], Patience::LeavesBeforeItsTurn).await, Ok(Awaited::Begun));
    assert!(matches!(replied(&world, ids[0], lease, Status::Success, false).await, Settled::Applied { .. }));
    assert_eq!(store.awaited(all).await.unwrap(), [ids[1]], "an answered one waits no more");
    assert_eq!(store.begin_awaited(ids[0]).await, Ok(false));
    let told = Awaited::Answered(Box::new(reply(OutcomeState::IsOk)));
    assert_eq!(store.take_reply(ids[0], Patience::LeavesBeforeItsTurn).await, Ok(told));
    assert_eq!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Gone));
    assert_eq!(world.delivery(ids[0]).await.progress.status, Status::Success);
}

pub async fn d11_a_stale_settlement_tells_nobody(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = called(&world, &connection, 1).await;
    let lease = world.owner(&connection, 0).await;
    store.release_queue(lease).await.unwrap();
    assert_eq!(replied(&world, ids[0], lease, Status::Success, false).await, Settled::Stale);
    assert_eq!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Waiting));
}

pub async fn d11_what_only_its_caller_was_to_have_is_not_given_to_nobody(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = called(&world, &connection, 2).await;
    let lease = world.owner(&connection, 0).await;
    assert_eq!(store.take_reply(ids[0], Patience::Leaves).await, Ok(Awaited::Gone));
    assert_eq!(replied(&world, ids[0], lease, Status::Failed, true).await, Settled::Stale);
    assert_eq!(world.summary(&connection).await.waiting, 2, "it keeps its place");
    assert_eq!(store.attempts(ids[0]).await.unwrap(), []);
    assert!(matches!(replied(&world, ids[0], lease, Status::Success, false).await, Settled::Applied { .. }));
    assert!(matches!(replied(&world, ids[1], lease, Status::Failed, true).await, Settled::Applied { .. }));
    let told = Awaited::Answered(Box::new(reply(OutcomeState::NotDelivered)));
    assert_eq!(store.take_reply(ids[1], Patience::Waits).await, Ok(told));
}

// proves: D10
pub async fn d11_callers_are_dismissed_from_a_place_on(store: &dyn Store) {
    let world = World::new(store).await;
    let [one, other] = [world.connection("billing", true).await, world.connection("ledger", true).await];
    let ids = called(&world, &one, 4).await;
    let elsewhere = called(&world, &other, 1).await[0];
    let lease = world.owner(&one, 0).await;
    replied(&world, ids[0], lease, Status::Success, false).await;
    let second = world.delivery(ids[1]).await.position;
    assert_eq!(store.dismiss_awaited(one.id, second).await, Ok(2));
    for (id, stands) in [(ids[1], Awaited::Waiting), (ids[2], Awaited::Gone), (ids[3], Awaited::Gone)] {
        assert_eq!(store.take_reply(id, Patience::Waits).await, Ok(stands));
    }
    assert_eq!(store.dismiss_awaited(one.id, None).await, Ok(1));
    assert!(matches!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Answered(_))), "answered ones stay");
    assert_eq!(store.take_reply(elsewhere, Patience::Waits).await, Ok(Awaited::Waiting));
    assert_eq!(store.dismiss_awaited(other.id, Some(Position(i64::MAX))).await, Ok(0));
    assert_eq!(world.summary(&one).await.waiting, 3, "requests keep their places");
}

pub async fn d11_nobody_waits_longer_than_the_row_says(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = called(&world, &connection, 2).await;
    let lease = world.owner(&connection, 0).await;
    replied(&world, ids[0], lease, Status::Success, false).await;
    store.prune(at(0), at(999), 1000).await.unwrap();
    assert_eq!(store.take_reply(ids[1], Patience::Waits).await, Ok(Awaited::Waiting));
    store.prune(at(0), at(1_000), 1000).await.unwrap();
    assert_eq!(store.take_reply(ids[1], Patience::Waits).await, Ok(Awaited::Gone));
    store.prune(at(0), at(2_000), 1000).await.unwrap();
    assert_eq!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Gone), "unread, an answer goes too");
}

pub async fn d11_a_reply_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let ids = called(&world, &connection, 2).await;
    let lease = world.owner(&connection, 0).await;
    replied(&world, ids[0], lease, Status::Success, false).await;
    test.reopen().await;
    let store = test.store();
    assert!(matches!(store.take_reply(ids[0], Patience::Waits).await, Ok(Awaited::Answered(_))));
    assert_eq!(store.take_reply(ids[1], Patience::Waits).await, Ok(Awaited::Waiting));
}

fn sorted(mut ids: Vec<DeliveryId>) -> Vec<DeliveryId> {
    ids.sort_unstable();
    ids
}
