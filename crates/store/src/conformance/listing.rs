//! Cases of lists and pages. They must not change more than they need to have something to list.

use postrider_core::Failure;
use postrider_core::delivery::{Delivery, EventRef, Label, Origin, Progress, Status};
use postrider_core::id::{Cid, DeliveryId, SubscriptionId};
use postrider_core::message::{Method, RequestHead};

use super::fixture::*;
use crate::*;

async fn all_pages(store: &dyn Store, filter: &DeliveryFilter, limit: u32) -> Vec<DeliveryId> {
    let mut found = Vec::new();
    let mut page = PageRequest { limit, cursor: None };
    loop {
        let Page { items, next_cursor } = store.deliveries(filter, page).await.unwrap();
        assert!(items.len() <= limit as usize);
        found.extend(items.iter().map(|delivery| delivery.id));
        let Some(cursor) = next_cursor else { return found };
        page = PageRequest { limit, cursor: Some(cursor) };
    }
}

pub async fn v07_deliveries_are_listed_newest_first_over_queue_dlq_and_log(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let mut stored = world.stored(&connection, 7).await;
    let lease = world.owner(&connection, 10).await;
    world.attempted(stored[1], lease, Status::Success).await;
    world.attempted(stored[4], lease, Status::Dlq).await;
    world.attempted(stored[5], lease, Status::Failed).await;
    stored.reverse();
    for limit in [1, 3, 7, 100] {
        assert_eq!(all_pages(store, &DeliveryFilter::default(), limit).await, stored, "pages of {limit}");
    }
    let bad = PageRequest { limit: 1, cursor: Some("no such page".to_owned()) };
    assert!(store.deliveries(&DeliveryFilter::default(), bad).await.is_err());
}

pub async fn a_page_stays_good_while_deliveries_come_and_move(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 4).await;
    let first = PageRequest { limit: 2, cursor: None };
    let page = store.deliveries(&DeliveryFilter::default(), first).await.unwrap();
    store.enqueue(vec![world.fresh(&connection, 100)]).await.unwrap();
    let lease = world.owner(&connection, 110).await;
    world.attempted(stored[2], lease, Status::Success).await;
    world.attempted(stored[1], lease, Status::Success).await;
    let next = PageRequest { limit: 10, cursor: page.next_cursor };
    let rest = store.deliveries(&DeliveryFilter::default(), next).await.unwrap();
    assert_eq!(rest.items.iter().map(|d| d.id).collect::<Vec<_>>(), [stored[1], stored[0]]);
}

pub async fn v07_all_conditions_of_a_filter_hold(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", true).await];
    let (in_a, in_b) = (world.stored(&a, 5).await, world.stored(&b, 1).await);
    let lease = world.owner(&a, 10).await;
    for (id, failure) in [(in_a[0], Failure::Timeout), (in_a[1], Failure::Status), (in_a[2], Failure::Status)] {
        let mut decision = world.attempt_decision(id, lease, Status::Dlq).await;
        decision.progress.failure = Some(failure);
        world.settle(decision).await;
    }
    let only = DeliveryFilter { connection_id: Some(a.id), ..DeliveryFilter::default() };
    let listed = async |filter: DeliveryFilter| all_pages(store, &filter, 2).await;
    assert_eq!(listed(only.clone()).await.len(), 5);
    let dead = DeliveryFilter { statuses: vec![Status::Dlq, Status::Failed], ..only.clone() };
    assert_eq!(listed(dead.clone()).await, [in_a[2], in_a[1], in_a[0]]);
    let refused = DeliveryFilter { failure: Some(Failure::Status), ..dead.clone() };
    assert_eq!(listed(refused).await, [in_a[2], in_a[1]]);
    let between = DeliveryFilter { created_from: Some(at(1)), created_before: Some(at(3)), ..only };
    assert_eq!(listed(between).await, [in_a[2], in_a[1]]);
    let waiting = DeliveryFilter { statuses: vec![Status::Pending], ..DeliveryFilter::default() };
    assert_eq!(listed(waiting).await, [in_a[4], in_a[3], in_b[0]].map(|id| id));
    let foreign =
        DeliveryFilter { project_id: Some(postrider_core::id::ProjectId::from_u128(99)), ..DeliveryFilter::default() };
    assert!(listed(foreign).await.is_empty());
}

pub async fn z14_a_queue_is_listed_as_it_will_be_delivered(store: &dyn Store) {
    let world = World::new(store).await;
    let ordered = world.connection("ordered", true).await;
    let stored = world.stored(&ordered, 5).await;
    let first = store.queue(ordered.id, PageRequest { limit: 2, cursor: None }).await.unwrap();
    let rest = store.queue(ordered.id, PageRequest { limit: 9, cursor: first.next_cursor }).await.unwrap();
    assert_eq!(rest.next_cursor, None);
    let listed: Vec<DeliveryId> = first.items.iter().chain(&rest.items).map(|delivery| delivery.id).collect();
    assert_eq!(listed, stored);
    let unordered = world.connection("unordered", false).await;
    let mut late = world.fresh(&unordered, 0);
    late.progress.due_at = at(500);
    let soon = world.fresh(&unordered, 1);
    store.enqueue(vec![late.clone(), soon.clone()]).await.unwrap();
    assert_eq!(world.line(&unordered).await, [soon.id, late.id]);
    let unknown = store.queue(postrider_core::id::ConnectionId::from_u128(99), FIRST_PAGE).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn z21_dead_letters_are_found_oldest_first(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 6).await;
    let lease = world.owner(&connection, 10).await;
    let any = DeadLetterFilter::default();
    assert_eq!(store.oldest_dead_letter(connection.id, any).await, Ok(None));
    // By number: arrival, retries so far, why.
    let (sent, expired, too_old) = (Failure::Status, Failure::Expired, Failure::TooOld);
    let facts = [(300, 0, sent), (100, 3, sent), (200, 0, expired), (200, 1, sent), (400, 0, sent), (350, 0, too_old)];
    for (id, (arrival, retries, failure)) in stored.iter().zip(facts) {
        let mut decision = world.attempt_decision(*id, lease, Status::Dlq).await;
        decision.progress =
            Progress { dead_at: Some(at(arrival)), dlq_retries: retries, failure: Some(failure), ..decision.progress };
        world.settle(decision).await;
    }
    let found = async |until, filter, after, rows_max| {
        let letters = store.dead_letters(connection.id, at(until), filter, after, rows_max).await.unwrap();
        letters.iter().map(|delivery: &Delivery| delivery.id).collect::<Vec<_>>()
    };
    assert_eq!(found(300, any, None, 10).await, [stored[1], stored[2], stored[3], stored[0]]);
    assert_eq!(found(299, any, None, 2).await, [stored[1], stored[2]]);
    assert_eq!(found(300, any, Some((at(200), stored[2])), 10).await, [stored[3], stored[0]]);
    let due = DeadLetterFilter { dlq_retries_below: Some(3), leave_out_aged: true };
    assert_eq!(found(999, due, None, 10).await, [stored[3], stored[0], stored[4]]);
    assert_eq!(found(999, due, None, 1).await, [stored[3]], "those left out take no room");
    assert_eq!(store.oldest_dead_letter(connection.id, any).await, Ok(Some(at(100))));
    assert_eq!(store.oldest_dead_letter(connection.id, due).await, Ok(Some(at(200))));
}

pub async fn connections_and_topics_are_listed_by_name(store: &dyn Store) {
    let world = World::new(store).await;
    for name in ["b", "c", "a"] {
        world.connection(name, true).await;
        world.topic(name).await;
    }
    let first = store.connections(world.project_id, PageRequest { limit: 2, cursor: None }).await.unwrap();
    let next = PageRequest { limit: 2, cursor: first.next_cursor };
    let second = store.connections(world.project_id, next).await.unwrap();
    let names: Vec<&str> = first.items.iter().chain(&second.items).map(|c| c.name.as_str()).collect();
    assert_eq!((names, second.next_cursor), (vec!["a", "b", "c"], None));
    let first = store.topics(world.project_id, PageRequest { limit: 2, cursor: None }).await.unwrap();
    let second = store.topics(world.project_id, PageRequest { limit: 2, cursor: first.next_cursor }).await.unwrap();
    let names: Vec<&str> = first.items.iter().chain(&second.items).map(|topic| topic.name.as_str()).collect();
    assert_eq!((names, second.next_cursor), (vec!["a", "b", "c"], None));
}

pub async fn each_queue_of_a_project_has_its_summary(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", true).await];
    world.stored(&a, 2).await;
    let lease = world.owner(&b, 5).await;
    let mut summaries = store.queue_summaries(world.project_id).await.unwrap();
    summaries.sort_by_key(|summary| summary.queue_id);
    assert_eq!(summaries, [world.summary(&a).await, world.summary(&b).await]);
    assert_eq!(summaries[0].oldest_waiting_since, Some(at(0)));
    assert_eq!((summaries[1].waiting, summaries[1].owner), (0, Some(lease.worker_id)));
    assert_eq!(summaries[1].oldest_waiting_since, None);
}

pub async fn every_column_can_be_asked_for(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("a", true).await;
    let mut batch: Vec<NewDelivery> = (0..4).map(|millis| world.fresh(&connection, millis)).collect();
    batch[0].origin = Origin::Event;
    batch[0].event = Some(EventRef {
        id: postrider_core::id::EventId::from_u128(1),
        event_type: "a.b".to_owned(),
        happened_at: postrider_core::Timestamp::from_millis(7),
        subscription_id: SubscriptionId::from_u128(2),
        payload: postrider_core::envelope::Payload::Data,
        line: None,
    });
    batch[1].head = RequestHead { method: Method::GET, path: "/x".to_owned(), ..RequestHead::default() };
    batch[2].body = world.body(b"short");
    let ids: Vec<DeliveryId> = batch.iter().map(|new| new.id).collect();
    store.enqueue(batch).await.unwrap();
    let lease = world.owner(&connection, 10).await;
    let mut decision = world.attempt_decision(ids[0], lease, Status::Dlq).await;
    decision.progress.error = Some("The Disk is FULL of 100 % salt".to_owned());
    decision.progress.dlq_retries = 2;
    world.settle(decision).await;
    let mut decision = world.attempt_decision(ids[1], lease, Status::Success).await;
    decision.progress.delivered_at = Some(at(70));
    world.settle(decision).await;
    let progress = world.delivery(ids[3]).await.progress;
    let later = Progress { due_at: at(900), rounds: 4, ..progress };
    let mut edit = world.decision(ids[3], Guard::Lease(lease), later).await;
    edit.edited_body = Some(world.body(b"edited"));
    world.settle(edit).await;

    let all = DeliveryFilter { project_id: Some(world.project_id), ..DeliveryFilter::default() };
    let time = |column, from: Option<i64>, before: Option<i64>| DeliveryFilter {
        times: vec![TimeRange { column, from: from.map(at), before: before.map(at) }],
        ..all.clone()
    };
    let count = |column, min, max| DeliveryFilter { counts: vec![CountRange { column, min, max }], ..all.clone() };
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (DeliveryFilter { id: Some(ids[2]), ..all.clone() }, vec![2]),
        (DeliveryFilter { id: Some(ids[2]), statuses: vec![Status::Dlq], ..all.clone() }, vec![]),
        (DeliveryFilter { origin: Some(Origin::Event), ..all.clone() }, vec![0]),
        (DeliveryFilter { event_type: text("a.b"), ..all.clone() }, vec![0]),
        (DeliveryFilter { event_id: Some(postrider_core::id::EventId::from_u128(1)), ..all.clone() }, vec![0]),
        (DeliveryFilter { event_id: Some(postrider_core::id::EventId::from_u128(3)), ..all.clone() }, vec![]),
        (DeliveryFilter { subscription_id: Some(SubscriptionId::from_u128(2)), ..all.clone() }, vec![0]),
        (DeliveryFilter { subscription_id: Some(SubscriptionId::from_u128(3)), ..all.clone() }, vec![]),
        (DeliveryFilter { event_type: text("a"), ..all.clone() }, vec![]),
        (DeliveryFilter { method: text("GET"), ..all.clone() }, vec![1]),
        (DeliveryFilter { path: text("/x"), ..all.clone() }, vec![1]),
        (DeliveryFilter { path: text(""), ..all.clone() }, vec![3, 2, 0]),
        (DeliveryFilter { error_text: text("disk is full"), ..all.clone() }, vec![0]),
        (DeliveryFilter { error_text: text("100 %"), ..all.clone() }, vec![0]),
        (DeliveryFilter { error_text: text("d%k"), ..all.clone() }, vec![]),
        (DeliveryFilter { label: Some(Label::Waiting), ..all.clone() }, vec![3, 2]),
        (DeliveryFilter { label: Some(Label::Retrying), ..all.clone() }, vec![]),
        (DeliveryFilter { label: Some(Label::Delivered), ..all.clone() }, vec![1]),
        (DeliveryFilter { label: Some(Label::NotDelivered), ..all.clone() }, vec![0]),
        (DeliveryFilter { edited: Some(true), ..all.clone() }, vec![3]),
        (DeliveryFilter { edited: Some(false), ..all.clone() }, vec![2, 1, 0]),
        (time(TimeColumn::LastAttempt, Some(50), None), vec![1, 0]),
        (time(TimeColumn::LastAttempt, None, Some(50)), vec![]),
        (time(TimeColumn::NextAttempt, Some(900), None), vec![3]),
        (time(TimeColumn::NextAttempt, None, Some(900)), vec![2]),
        (time(TimeColumn::Delivered, Some(70), Some(71)), vec![1]),
        (time(TimeColumn::Dead, Some(60), Some(61)), vec![0]),
        (time(TimeColumn::Ended, Some(61), None), vec![]),
        (time(TimeColumn::Ended, Some(60), None), vec![1]),
        (count(CountColumn::Attempts, Some(1), None), vec![1, 0]),
        (count(CountColumn::Attempts, None, Some(0)), vec![3, 2]),
        (count(CountColumn::Rounds, Some(4), Some(4)), vec![3]),
        (count(CountColumn::BodyBytes, Some(5), Some(5)), vec![2]),
        (count(CountColumn::DlqRetries, Some(1), None), vec![0]),
    ];
    for (filter, wanted) in cases {
        let wanted: Vec<DeliveryId> = wanted.into_iter().map(|at: usize| ids[at]).collect();
        for limit in [1, 10] {
            assert_eq!(all_pages(store, &filter, limit).await, wanted, "{filter:?}");
        }
        let counted = store.count_matching(&filter, None, None).await.unwrap();
        assert_eq!(counted.count, wanted.len() as u64, "{filter:?}");
    }
}

/// An attempt under way has not failed yet: the first one is Waiting, the second one Retrying.
pub async fn v08_labels_tell_what_waits_from_what_is_tried_again(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("a", false).await;
    let ids = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 10).await;
    let found = async |label: Label| {
        let filter = DeliveryFilter { label: Some(label), ..DeliveryFilter::default() };
        all_pages(store, &filter, 10).await
    };
    let one = WindowLimit { deliveries_max: 1, ..ALL };
    let claimed = store.claim(lease, at(10), one).await.unwrap()[0].delivery.id;
    assert_eq!(found(Label::Waiting).await.len(), 3, "the first attempt is under way");
    world.attempted(claimed, lease, Status::Pending).await;
    assert_eq!((found(Label::Retrying).await, found(Label::Waiting).await.len()), (vec![claimed], 2));
    let all = store.claim(lease, at(900), ALL).await.unwrap();
    assert_eq!(all.len(), ids.len());
    assert_eq!(
        (found(Label::Retrying).await, found(Label::Waiting).await.len()),
        (vec![claimed], 2),
        "its second one is"
    );
}

pub async fn a_correlation_id_is_found_wherever_it_came_from(store: &dyn Store) {
    let world = World::new(store).await;
    let [a, b] = [world.connection("a", true).await, world.connection("b", true).await];
    // Ours, a caller's in a shape of its own, and a caller's in our shape but of another time.
    let cids = [
        Cid::new(at(1), 7),
        Cid::from_stored("order 5"),
        Cid::from_stored("order 5"),
        Cid::new(at(77_000), 7),
        Cid::new(at(1), 7),
    ];
    let mut ids = Vec::new();
    for (number, cid) in cids.iter().enumerate() {
        let connection = if number == 2 { &b } else { &a };
        let mut new = world.fresh(connection, 1);
        new.cid = cid.clone();
        ids.push(new.id);
        store.enqueue(vec![new]).await.unwrap();
    }
    let lease = world.owner(&a, 10).await;
    world.attempted(ids[1], lease, Status::Success).await;
    world.attempted(ids[4], lease, Status::Dlq).await;
    let of = |cid: &Cid| DeliveryFilter {
        project_id: Some(world.project_id),
        cid: Some(cid.as_str().to_owned()),
        ..DeliveryFilter::default()
    };
    for (cid, wanted) in [(&cids[0], vec![4, 0]), (&cids[1], vec![2, 1]), (&cids[3], vec![3])] {
        let mut wanted: Vec<DeliveryId> = wanted.into_iter().map(|at: usize| ids[at]).collect();
        wanted.sort_by(|a, b| b.cmp(a));
        for limit in [1, 10] {
            assert_eq!(all_pages(store, &of(cid), limit).await, wanted, "{cid}");
        }
        assert_eq!(store.count_matching(&of(cid), None, None).await.unwrap().count, wanted.len() as u64);
    }
    let narrower = DeliveryFilter { connection_id: Some(b.id), ..of(&cids[1]) };
    assert_eq!(all_pages(store, &narrower, 5).await, [ids[2]]);
    let foreign = World::named(store, 2, "other").await;
    let foreign = DeliveryFilter { project_id: Some(foreign.project_id), ..of(&cids[1]) };
    assert!(all_pages(store, &foreign, 5).await.is_empty());
}
