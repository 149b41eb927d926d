//! Cases of sources and of what they bring. They must not depend on what a signature is.

use postrider_core::delivery::{EventRef, Origin, Progress, Status};
use postrider_core::envelope::Payload;
use postrider_core::id::{EventId, SourceId, SubscriptionId};
use postrider_core::source::{Source, SourceSpec};
use postrider_core::{Timestamp, connection::Connection};
use serde_json::json;

use super::fixture::*;
use super::{LIMITS, TestStore};
use crate::*;

pub(super) fn source(world: &World<'_>, name: &str) -> SourceRow {
    let written = json!({"provider": "github", "topic": format!("incoming.{name}")}).as_object().unwrap().clone();
    let id = SourceId::new(at(0), world.id());
    let spec = SourceSpec::parse(name, &written).unwrap();
    let (project_id, name) = (world.project_id, name.to_owned());
    let mut token_hash = [0; 32];
    token_hash[..16].copy_from_slice(&id.as_u128().to_be_bytes());
    let keys = SourceKeys { token_hash, former_token: None, sealed: Some("sealed".to_owned()), former_sealed: None };
    SourceRow {
        source: Source { id, project_id, name, written, spec, version: 1, created_at: at(0), updated_at: at(0) },
        keys,
    }
}

async fn created(world: &World<'_>, name: &str) -> SourceRow {
    let row = source(world, name);
    let entry = super::audit::entry(world, "source.create", 0);
    world.store.change(Change::CreateSource(Box::new(row.clone())), entry).await.unwrap();
    row
}

fn receipt(first: u8, ends_at: Timestamp) -> Option<Receipt> {
    Some(Receipt { hash: [first; 32], ends_at })
}

/// Something new that came in, to be forwarded there.
fn arrival(world: &World<'_>, from: &SourceRow, to: &[&Connection], millis: i64) -> Arrival {
    let topic = world.topic_value(from.source.spec.topic.as_str(), postrider_core::Wait::from_secs(3600));
    let message = world.draft(&topic, millis);
    let body = world.body(b"\xff\x00 came in");
    let forward = |connection: &&Connection| NewDelivery {
        origin: Origin::Incoming,
        event: Some(EventRef {
            id: message.id,
            event_type: topic.name.to_string(),
            happened_at: message.published_at,
            subscription_id: SubscriptionId::from_u128(5),
            payload: Payload::AsArrived,
            line: None,
        }),
        body: body.clone(),
        ..world.fresh(connection, millis)
    };
    let deliveries = to.iter().map(forward).collect();
    let project_id = world.project_id;
    let event = NewEvent { project_id, message, new_topic: Some(topic), body, id_is_given: false, deliveries };
    Arrival { source_id: from.source.id, event, by_id: None, by_signature: None }
}

async fn received(world: &World<'_>, arrival: &Arrival) -> Received {
    world.store.receive(arrival.clone()).await.unwrap()
}

fn id_of(arrival: &Arrival) -> EventId {
    arrival.event.message.id
}

pub async fn r12_a_webhook_and_its_receipts_survive_a_kill_together(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let mut row = source(&world, "hub");
    row.keys.former_token = Some(([7; 32], at(90)));
    row.keys.former_sealed = Some(("sealed before".to_owned(), at(91)));
    let entry = super::audit::entry(&world, "source.create", 0);
    store.change(Change::CreateSource(Box::new(row.clone())), entry).await.unwrap();
    let [a, b] = [world.connection("a", false).await, world.connection("b", true).await];
    let first = Arrival {
        by_id: receipt(1, at(500)),
        by_signature: receipt(2, at(500)),
        ..arrival(&world, &row, &[&a, &b], 3)
    };
    assert!(matches!(received(&world, &first).await, Received::Stored(answers) if answers.len() == 2));
    test.reopen().await;
    let reopened = test.store();
    let world = world.over(&*reopened);
    assert_eq!(reopened.all_sources().await.unwrap(), [row.clone()]);
    for delivery in &first.event.deliveries {
        let found = world.delivery(delivery.id).await;
        assert_eq!(
            (found.event, found.body_id, found.origin),
            (delivery.event.clone(), first.event.body.id, Origin::Incoming)
        );
    }
    let again = Arrival { by_id: receipt(1, at(900)), ..arrival(&world, &row, &[&a], 4) };
    assert_eq!(received(&world, &again).await, Received::SameId(id_of(&first)));
    assert_eq!((world.line(&a).await.len(), world.line(&b).await.len()), (1, 1));
}

pub async fn r12_a_source_is_changed_only_by_whoever_saw_it_and_shares_no_topic(store: &dyn Store) {
    let world = World::new(store).await;
    let row = created(&world, "hub").await;
    let entry = || super::audit::entry(&world, "source", 1);
    let refused =
        |row: SourceRow| async { store.change(Change::CreateSource(Box::new(row)), entry()).await.unwrap_err() };
    assert!(matches!(refused(row.clone()).await, StoreError::Conflict(_)), "the id is there");
    assert!(matches!(refused(source(&world, "hub")).await, StoreError::Conflict(_)), "the name is there");
    let mut same_topic = source(&world, "other");
    same_topic.source.spec.topic = row.source.spec.topic.clone();
    assert!(matches!(refused(same_topic).await, StoreError::Conflict(_)), "the topic is there");
    let mut renamed =
        SourceRow { source: Source { name: "new".to_owned(), version: 2, ..row.source.clone() }, ..row.clone() };
    renamed.keys.token_hash = [9; 32];
    let replace = |row: &SourceRow, version| Change::ReplaceSource { row: Box::new(row.clone()), version };
    assert!(store.change(replace(&renamed, 7), entry()).await.is_err());
    store.change(replace(&renamed, 1), entry()).await.unwrap();
    assert!(store.change(replace(&renamed, 1), entry()).await.is_err());
    assert_eq!(store.all_sources().await.unwrap(), [renamed.clone()]);
    let keys = SourceKeys { sealed: Some("sealed anew".to_owned()), ..renamed.keys.clone() };
    assert!(store.reseal_source(row.source.id, &keys, 1).await.is_err());
    store.reseal_source(row.source.id, &keys, 2).await.unwrap();
    assert_eq!(store.all_sources().await.unwrap(), [SourceRow { keys, ..renamed }]);
    store.change(Change::DeleteSource(row.source.id), entry()).await.unwrap();
    assert_eq!(store.all_sources().await.unwrap(), []);
    let missing = StoreError::NotFound { what: "source" };
    assert_eq!(store.change(Change::DeleteSource(row.source.id), entry()).await, Err(missing.clone()));
    assert_eq!(store.receive(arrival(&world, &row, &[], 2)).await, Err(missing));
}

pub async fn r12_what_came_before_is_known_by_its_id_and_then_by_its_signature(store: &dyn Store) {
    let world = World::new(store).await;
    let row = created(&world, "hub").await;
    let first =
        Arrival { by_id: receipt(1, at(100)), by_signature: receipt(2, at(50)), ..arrival(&world, &row, &[], 0) };
    assert_eq!(received(&world, &first).await, Received::Stored(vec![]));
    let both =
        Arrival { by_id: receipt(1, at(900)), by_signature: receipt(2, at(900)), ..arrival(&world, &row, &[], 10) };
    assert_eq!(received(&world, &both).await, Received::SameId(id_of(&first)), "a resend is no attack");
    let other_id = Arrival { by_id: receipt(3, at(900)), ..both };
    assert_eq!(received(&world, &other_id).await, Received::SameSignature(id_of(&first)));
    let no_id = Arrival { by_signature: receipt(2, at(900)), ..arrival(&world, &row, &[], 49) };
    assert_eq!(received(&world, &no_id).await, Received::SameSignature(id_of(&first)));
    let later =
        Arrival { by_id: receipt(3, at(900)), by_signature: receipt(2, at(900)), ..arrival(&world, &row, &[], 50) };
    assert_eq!(received(&world, &later).await, Received::Stored(vec![]), "it is not remembered any longer");
    assert_eq!(store.prune_receipts(at(100), 1).await.unwrap(), 1);
    assert_eq!(store.prune_receipts(at(100), 9).await.unwrap(), 0, "the others hold until later");
    let page = store.events(world.project_id, &EventFilter::default(), FIRST_PAGE).await.unwrap();
    assert_eq!(page.items.iter().map(|event| event.id).collect::<Vec<_>>(), [id_of(&later), id_of(&first)]);
}

pub async fn r12_a_webhook_without_room_leaves_nothing_not_even_its_receipt(store: &dyn Store) {
    let world = World::new(store).await;
    let row = created(&world, "hub").await;
    let full = world.connection("full", false).await;
    world.stored(&full, i64::try_from(LIMITS.queue_messages_max).unwrap()).await;
    let refused =
        Arrival { by_id: receipt(1, at(900)), by_signature: receipt(2, at(900)), ..arrival(&world, &row, &[&full], 1) };
    assert!(matches!(store.receive(refused).await, Err(StoreError::Full { .. })));
    let again =
        Arrival { by_id: receipt(1, at(900)), by_signature: receipt(2, at(900)), ..arrival(&world, &row, &[], 2) };
    assert_eq!(received(&world, &again).await, Received::Stored(vec![]), "nothing was remembered");
}

pub async fn r12_a_new_forward_takes_the_place_of_a_dead_one_with_the_same_body(store: &dyn Store) {
    let world = World::new(store).await;
    let row = created(&world, "hub").await;
    let connection = world.connection("a", false).await;
    let first = arrival(&world, &row, &[&connection], 1);
    received(&world, &first).await;
    let old = first.event.deliveries[0].clone();
    let lease = world.owner(&connection, 5).await;
    world.attempted(old.id, lease, Status::Dlq).await;
    store.release_queue(lease).await.unwrap();
    let dead = world.delivery(old.id).await;
    let progress = ended(dead.progress.clone(), Status::Failed, at(90));
    let new = NewDelivery {
        id: world.fresh(&connection, 90).id,
        created_at: at(90),
        progress: Progress::accepted(at(90)),
        ..old.clone()
    };
    let settlement = |version| world.decision(old.id, Guard::Version(version), progress.clone());
    let entry = || super::audit::entry(&world, "forward.retry", 90);
    let stale = store.renew_forward(settlement(dead.version + 1).await, new.clone(), entry()).await.unwrap();
    assert_eq!(stale, Renewed::Not(Settled::Stale));
    assert_eq!(world.line(&connection).await, [], "nothing was stored");
    let renewed = store.renew_forward(settlement(dead.version).await, new.clone(), entry()).await.unwrap();
    assert!(matches!(renewed, Renewed::Stored(Enqueued::Stored { .. })), "{renewed:?}");
    assert_eq!(world.line(&connection).await, [new.id]);
    let found = world.delivery(new.id).await;
    assert_eq!((found.body_id, found.progress.attempts, found.event), (old.body.id, 0, old.event.clone()));
    assert_eq!(world.delivery(old.id).await.progress.status, Status::Failed);
    let filter = AuditFilter { action: Some("forward.retry".to_owned()), ..AuditFilter::default() };
    assert_eq!(store.audit_entries(&filter, FIRST_PAGE).await.unwrap().items.len(), 1);
    assert!(store.counts(Some(connection.id)).await.unwrap().is_balanced());
    // The old one goes, and its body stays for the new one.
    let pruned = store.prune(at(1000), at(2000), 10).await.unwrap();
    assert_eq!((pruned.deliveries, pruned.bodies), (1, 0));
    assert_eq!(store.body(old.body.id).await.unwrap(), Some(old.body.bytes));
}
