//! Cases of projects, connections and named values. They must not depend on what settings mean, but for `ordered`.

use postrider_core::connection::Connection;
use postrider_core::delivery::Status;
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::quota::Allowance;
use postrider_core::{Failure, Wait};

use super::TestStore;
use super::fixture::*;
use crate::*;

pub async fn d16_names_are_unique_in_their_project(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let twin = world.connection_value("billing", false);
    assert!(matches!(store.create_connection(&twin).await, Err(StoreError::Conflict(_))));
    assert_eq!(store.connection(twin.id).await.unwrap(), None);
    let other = Project {
        id: ProjectId::from_u128(5),
        name: "other".to_owned(),
        settings: ProjectSettings::default(),
        created_at: at(1),
    };
    store.create_project(other.clone()).await.unwrap();
    let elsewhere = Connection { project_id: other.id, ..twin };
    store.create_connection(&elsewhere).await.unwrap();
    let next = world.connection("next", true).await;
    let renamed = Connection { name: "billing".to_owned(), version: 2, ..next.clone() };
    assert!(matches!(store.replace_connection(&renamed, 1).await, Err(StoreError::Conflict(_))));
    assert_eq!(store.connection(next.id).await.unwrap(), Some(next));
    assert_eq!(store.connection(connection.id).await.unwrap(), Some(connection));
    let lost = Connection { project_id: ProjectId::from_u128(99), ..world.connection_value("lost", true) };
    assert!(matches!(store.create_connection(&lost).await, Err(StoreError::NotFound { .. })));
}

pub async fn projects_are_found_by_name_and_by_id(store: &dyn Store) {
    let world = World::new(store).await;
    let twin = Project {
        id: ProjectId::from_u128(5),
        name: "conformance".to_owned(),
        settings: ProjectSettings::default(),
        created_at: at(1),
    };
    assert!(matches!(store.create_project(twin).await, Err(StoreError::Conflict(_))));
    let found = store.project("conformance").await.unwrap().unwrap();
    assert_eq!(found.id, world.project_id);
    assert_eq!(store.project(&world.project_id.to_string()).await.unwrap(), Some(found.clone()));
    assert_eq!(store.project("nobody's").await.unwrap(), None);
    assert!(store.projects().await.unwrap().contains(&found));
}

pub async fn z18_a_change_keeps_the_queue(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let changed =
        Connection { name: "Rechnungen".to_owned(), paused: true, version: 2, updated_at: at(9), ..connection.clone() };
    store.replace_connection(&changed, 1).await.unwrap();
    let late = Connection { version: 2, ..connection.clone() };
    assert!(matches!(store.replace_connection(&late, 1).await, Err(StoreError::Conflict(_))), "it has changed since");
    let early = Connection { version: 4, ..connection.clone() };
    assert!(matches!(store.replace_connection(&early, 3).await, Err(StoreError::Conflict(_))));
    test.reopen().await;
    let store = test.store();
    let world = world.over(&*store);
    assert_eq!(store.connection(connection.id).await.unwrap(), Some(changed.clone()));
    assert_eq!(store.all_connections().await.unwrap(), [changed]);
    assert_eq!(world.line(&connection).await, stored);
    let lost = world.connection_value("lost", true);
    assert!(matches!(store.replace_connection(&lost, 1).await, Err(StoreError::NotFound { .. })));
}

pub async fn z11_turning_order_on_lines_up_by_arrival(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", false).await;
    let mut batch: Vec<NewDelivery> = (0..6).map(|_| world.fresh(&connection, 7)).collect();
    batch.reverse();
    for (due, new) in batch.iter_mut().enumerate() {
        new.progress.due_at = at(50 - due as i64);
    }
    let arrived: Vec<_> = batch.iter().map(|new| new.id).collect();
    for new in batch {
        store.enqueue(vec![new]).await.unwrap();
    }
    let mut value = world.connection_value("billing", true);
    value.id = connection.id;
    value.version = 2;
    store.replace_connection(&value, 1).await.unwrap();
    let next = world.stored(&value, 1).await;
    let lease = world.owner(&value, 9).await;
    let loaded = store.load(lease, None, ALL).await.unwrap();
    assert_eq!(ids(&loaded), [&arrived[..], &next[..]].concat());
    assert!(loaded.is_sorted_by(|a, b| a.delivery.position < b.delivery.position));
    assert!(loaded.iter().all(|loaded| loaded.delivery.position.is_some()));
    assert_eq!(world.line(&value).await, ids(&loaded));
}

pub async fn z11_turning_order_on_leaves_out_nothing_that_was_claimed(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", false).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    let claimed = store.claim(lease, at(9), WindowLimit { deliveries_max: 1, ..ALL }).await.unwrap();
    assert_eq!(ids(&claimed), stored[..1]);
    let mut value = world.connection_value("billing", true);
    value.id = connection.id;
    value.version = 2;
    store.replace_connection(&value, 1).await.unwrap();
    let loaded = store.load(lease, None, ALL).await.unwrap();
    assert_eq!(ids(&loaded), stored);
    assert_eq!(loaded[0].delivery.progress.status, Status::Processing);
}

pub async fn z21_a_dead_letter_comes_back_after_order_was_given_up(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = world.stored(&connection, 2).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Dlq).await;
    let mut value = world.connection_value("billing", false);
    value.id = connection.id;
    value.version = 2;
    store.replace_connection(&value, 1).await.unwrap();
    let back = ended(world.delivery(stored[0]).await.progress, Status::Pending, at(70));
    let settled = world.by_version(stored[0], back, Placement::Tail).await;
    assert!(matches!(settled, Settled::Applied { position: Some(_), .. }));
    let mut line = world.line(&value).await;
    line.sort_unstable();
    assert_eq!(line, stored, "it is listed");
    let mut claimed = ids(&store.claim(lease, at(80), ALL).await.unwrap());
    claimed.sort_unstable();
    assert_eq!(claimed, stored, "and claimed by its due time");
}

pub async fn z18_a_connection_with_requests_is_deleted_only_by_force(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let other = world.connection("other", true).await;
    world.stored(&other, 1).await;
    let stored = world.stored(&connection, 3).await;
    let lease = world.owner(&connection, 5).await;
    world.attempted(stored[0], lease, Status::Success).await;
    world.attempted(stored[1], lease, Status::Dlq).await;
    let command = world.command(&connection, stored[2], 6);
    assert!(store.submit_command(command.clone(), at(6)).await.unwrap());
    let refused = store.delete_connection(connection.id, false, at(70)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    assert_eq!(world.summary(&connection).await.waiting, 1);
    store.delete_connection(connection.id, true, at(70)).await.unwrap();
    assert_eq!(store.connection(connection.id).await.unwrap(), None);
    for id in &stored[1..] {
        let delivery = world.delivery(*id).await;
        assert_eq!((delivery.progress.status, delivery.progress.ended_at), (Status::Discarded, Some(at(70))));
        assert_eq!((delivery.position, delivery.progress.failure), (None, Some(Failure::Discarded)));
    }
    assert_eq!(world.delivery(stored[0]).await.progress.status, Status::Success);
    assert_eq!(store.take_answer(command.id).await, Ok(Some(CommandAnswer::NotWaiting)), "nobody waits in vain");
    assert!(matches!(store.load(lease, None, ALL).await, Err(StoreError::LeaseLost)));
    assert!(matches!(store.queue_summary(connection.id).await, Err(StoreError::NotFound { .. })));
    let back = ended(world.delivery(stored[0]).await.progress, Status::Pending, at(80));
    assert_eq!(world.by_version(stored[0], back, Placement::Tail).await, Settled::Gone, "it has no queue any more");
    let counts = store.counts(None).await.unwrap();
    assert_eq!((counts.accepted, counts.pending, counts.discarded, counts.success), (4, 1, 2, 1));
    assert!(store.counts(Some(connection.id)).await.unwrap().is_balanced());
    world.connection("billing", true).await;
}

pub async fn an_empty_connection_is_deleted(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let id = world.stored(&connection, 1).await[0];
    let lease = world.owner(&connection, 5).await;
    world.attempted(id, lease, Status::Success).await;
    store.delete_connection(connection.id, false, at(70)).await.unwrap();
    assert_eq!(world.delivery(id).await.progress.status, Status::Success, "the log is kept");
    assert_eq!(store.enqueue(vec![world.fresh(&connection, 80)]).await.unwrap(), [Enqueued::NoConnection]);
    let unknown = store.delete_connection(ConnectionId::from_u128(99), true, at(70)).await;
    assert!(matches!(unknown, Err(StoreError::NotFound { .. })));
}

pub async fn named_values_are_kept_until_removed(test: &mut dyn TestStore) {
    let store = test.store();
    store.set_value("admin_key_hash", Some("abc".to_owned())).await.unwrap();
    store.set_value("admin_key_hash", Some("def".to_owned())).await.unwrap();
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.value("admin_key_hash").await.unwrap().as_deref(), Some("def"));
    store.set_value("admin_key_hash", None).await.unwrap();
    assert_eq!(store.value("admin_key_hash").await.unwrap(), None);
}

pub async fn v09_an_allowance_is_taken_by_all_together_and_kept(test: &mut dyn TestStore) {
    let allowance = Allowance { most: 3, within: Wait::from_secs(60) };
    let store = test.store();
    let asked = (0..8).map(|_| store.take_allowance("a", allowance, at(1000)));
    let answers = futures_util::future::join_all(asked).await;
    assert_eq!(answers.iter().filter(|answer| **answer == Ok(None)).count(), 3, "{answers:?}");
    assert!(answers.iter().all(|answer| matches!(answer, Ok(None)) || *answer == Ok(Some(Wait::from_secs(60)))));
    assert_eq!(store.take_allowance("b", allowance, at(1000)).await, Ok(None), "another name");
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.take_allowance("a", allowance, at(31_000)).await, Ok(Some(Wait::from_secs(30))));
    assert_eq!(store.take_allowance("a", allowance, at(61_000)).await, Ok(None));
}
