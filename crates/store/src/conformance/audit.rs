//! Cases of the audit log: an entry is there exactly when its change is. They must not depend on who may do what.

use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Progress, Status};
use postrider_core::id::{AuditId, ConnectionId, JobId, ProjectId};
use postrider_core::job::{JobAct, JobState};
use serde_json::json;

use super::TestStore;
use super::fixture::*;
use crate::*;

pub(super) fn entry(world: &World<'_>, action: &str, millis: i64) -> AuditEntry {
    let actor = AuditActor { id: "key_a".to_owned(), name: "Ada's".to_owned(), address: Some("10.1.2.3".to_owned()) };
    AuditEntry {
        id: AuditId::new(at(millis), world.id()),
        at: at(millis),
        project_id: Some(world.project_id),
        actor,
        action: action.to_owned(),
        object: Some(format!("object {millis}")),
        object_name: None,
        before: None,
        after: Some(json!({"host": "http://a", "password": "***"})),
        times: 1,
    }
}

async fn all(store: &dyn Store) -> Vec<AuditEntry> {
    store.audit_entries(&AuditFilter::default(), FIRST_PAGE).await.unwrap().items
}

pub async fn p07_a_change_and_its_entry_are_written_together(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let connection = world.connection_value("billing", true);
    let twin = world.connection_value("billing", true);
    let made = entry(&world, "connection.create", 1);
    store.change(Change::CreateConnection(Box::new(connection.clone())), made.clone()).await.unwrap();
    let refused = store.change(Change::CreateConnection(Box::new(twin)), entry(&world, "connection.create", 2)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    let lost = Change::DeleteConnection { id: ConnectionId::from_u128(77), forced: true, now: at(3) };
    assert!(store.change(lost, entry(&world, "connection.delete", 3)).await.is_err());
    let settings =
        ProjectSettings { owner_email: Some("ada@example.org".to_owned()), entitled: false, ..Default::default() };
    let project = Project { id: world.project_id, name: "renamed".to_owned(), settings, created_at: at(0) };
    let changed = entry(&world, "project.replace", 4);
    store.change(Change::ReplaceProject(project.clone()), changed.clone()).await.unwrap();
    let nobody = Project { id: ProjectId::from_u128(99), ..project.clone() };
    assert!(store.change(Change::ReplaceProject(nobody), entry(&world, "project.replace", 5)).await.is_err());
    test.reopen().await;
    let store = test.store();
    assert_eq!(all(&*store).await, [changed, made]);
    assert_eq!(store.all_connections().await.unwrap(), [connection]);
    assert_eq!(store.project("renamed").await.unwrap(), Some(project));
}

pub async fn p07_a_batch_and_its_entries_are_written_together(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let known = world.connection("billing", true).await;
    let fresh = world.connection_value("fresh", true);
    let batch = |version| {
        vec![
            ConfigChange::CreateConnection(Box::new(fresh.clone())),
            ConfigChange::ReplaceConnection {
                connection: Box::new(Connection { version: 2, ..known.clone() }),
                version,
            },
        ]
    };
    let refused = vec![entry(&world, "configuration.import", 1), entry(&world, "connection.create", 2)];
    assert!(matches!(store.configure_by_hand(batch(7), refused).await, Err(StoreError::Conflict(_))));
    assert_eq!(all(&*store).await, []);
    let entries = vec![entry(&world, "configuration.import", 3), entry(&world, "connection.create", 4)];
    store.configure_by_hand(batch(1), entries.clone()).await.unwrap();
    test.reopen().await;
    let store = test.store();
    assert_eq!(all(&*store).await, [entries[1].clone(), entries[0].clone()]);
    assert_eq!(store.all_connections().await.unwrap().len(), 2);
}

pub async fn p07_a_job_and_its_entry_are_written_together(store: &dyn Store) {
    let world = World::new(store).await;
    let id = JobId::new(at(1), world.id());
    let new = NewJob {
        id,
        project_id: world.project_id,
        act: JobAct::Discard,
        scope: JobScope::Ids { requested: 0 },
        ids: Vec::new(),
        who: "Ada's".to_owned(),
        created_at: at(1),
    };
    let make = |active_max| Change::CreateJob { job: Box::new(new.clone()), active_max };
    assert!(store.change(make(0), entry(&world, "job.create", 1)).await.is_err());
    assert_eq!((all(store).await, store.job(id).await.unwrap()), (Vec::new(), None));
    let made = entry(&world, "job.create", 2);
    store.change(make(1), made.clone()).await.unwrap();
    let pause = |version| Change::SetJobState { id, version, state: JobState::Paused, now: at(3) };
    assert!(matches!(store.change(pause(9), entry(&world, "job.pause", 3)).await, Err(StoreError::Conflict(_))));
    let paused = entry(&world, "job.pause", 4);
    store.change(pause(1), paused.clone()).await.unwrap();
    assert_eq!(all(store).await, [paused, made]);
    assert_eq!(store.job(id).await.unwrap().unwrap().state, JobState::Paused);
}

pub async fn p07_a_settlement_by_hand_leaves_its_entry_only_when_it_applies(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let id = world.stored(&connection, 1).await[0];
    let progress = Progress { status: Status::Discarded, ended_at: Some(at(9)), ..Progress::accepted(at(0)) };
    let settlement = |version| Settlement {
        delivery_id: id,
        queue_id: connection.id,
        guard: Guard::Version(version),
        progress: progress.clone(),
        placement: Placement::Keep,
        attempt: None,
        forward: None,
        edited_body: None,
        answers: None,
        health: None,
        reply: None,
    };
    let version = store.delivery(id).await.unwrap().unwrap().version;
    let stale = store.settle_by_hand(settlement(version + 7), entry(&world, "delivery.discard", 1)).await;
    assert_eq!(stale, Ok(Settled::Stale));
    assert_eq!(all(store).await, []);
    let done = entry(&world, "delivery.discard", 2);
    let applied = store.settle_by_hand(settlement(version), done.clone()).await.unwrap();
    assert!(matches!(applied, Settled::Applied { .. }));
    assert_eq!(all(store).await, [done]);
}

pub async fn p07_a_command_leaves_its_entry_when_its_owner_applies_it(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let ids = world.stored(&connection, 3).await;
    let unheld = world.command(&connection, ids[0], 20);
    assert_eq!(store.submit_by_hand(unheld.clone(), entry(&world, "delivery.discard", 20), at(20)).await, Ok(false));
    let lease = world.owner(&connection, 20).await;
    let mut noted = Vec::new();
    for (number, answer) in
        [CommandAnswer::Applied, CommandAnswer::AlreadyDelivered, CommandAnswer::NotWaiting].into_iter().enumerate()
    {
        let act = CommandAct::Edit { body: Bytes::from_static(b"new") };
        let command = Command { act, ..world.command(&connection, ids[number], 21) };
        let note = entry(&world, "delivery.edit", 21 + number as i64);
        assert_eq!(store.submit_by_hand(command.clone(), note.clone(), at(21)).await, Ok(true));
        assert_eq!(all(store).await, noted, "not before it is answered");
        store.answer_command(lease, command.id, answer).await.unwrap();
        if answer == CommandAnswer::Applied {
            noted.push(note);
        }
        assert_eq!(all(store).await, noted, "{answer:?}");
        assert_eq!(store.take_answer(command.id).await, Ok(Some(answer)));
    }
}

pub async fn p07_the_audit_log_is_listed_newest_first_by_page_and_filter(store: &dyn Store) {
    let world = World::new(store).await;
    let other = World::named(store, 2, "other").await;
    let mut entries: Vec<AuditEntry> = (1..=5).map(|n| entry(&world, "connection.replace", n)).collect();
    entries[1].action = "connections".to_owned();
    entries[2].actor.id = "key_b".to_owned();
    entries[3].action = "delivery.body.view".to_owned();
    entries.push(entry(&other, "connection.replace", 6));
    entries.push(AuditEntry { project_id: None, ..entry(&world, "key.refused", 7) });
    store.note(entries.clone()).await.unwrap();
    let mut walked = Vec::new();
    let mut page = PageRequest { limit: 2, cursor: None };
    loop {
        let found = store.audit_entries(&AuditFilter::default(), page.clone()).await.unwrap();
        walked.extend(found.items);
        match found.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => break,
        }
    }
    entries.reverse();
    assert_eq!(walked, entries);
    let mine = AuditFilter { project_id: Some(world.project_id), ..Default::default() };
    let mut cases = Vec::new();
    for (actor, action) in
        [(None, None), (Some("key_b"), None), (None, Some("connection")), (Some("key_a"), Some("delivery.body"))]
    {
        for (object, from, before) in
            [(None, None, None), (Some("object 3"), None, None), (None, Some(at(3)), Some(at(5)))]
        {
            let (actor, action) = (actor.map(str::to_owned), action.map(str::to_owned));
            cases.push(AuditFilter { actor, action, object: object.map(str::to_owned), from, before, ..mine.clone() });
        }
    }
    cases.extend([mine, AuditFilter { actor: Some("key_a".to_owned()), ..Default::default() }]);
    for filter in cases {
        let expected: Vec<_> = entries.iter().filter(|entry| filter.lets_through(entry)).cloned().collect();
        assert_eq!(store.audit_entries(&filter, FIRST_PAGE).await.unwrap().items, expected, "{filter:?}");
    }
    let foreign = PageRequest { limit: 2, cursor: Some("nonsense".to_owned()) };
    assert!(matches!(store.audit_entries(&AuditFilter::default(), foreign).await, Err(StoreError::NotFound { .. })));
}

pub async fn p07_old_entries_go_in_bounded_steps(store: &dyn Store) {
    let world = World::new(store).await;
    let entries: Vec<AuditEntry> = (1..=5).map(|n| entry(&world, "connection.replace", n)).collect();
    store.note(entries.clone()).await.unwrap();
    assert_eq!(store.prune_audit(at(4), 2).await, Ok(2));
    assert_eq!(store.prune_audit(at(4), 2).await, Ok(1));
    assert_eq!(store.prune_audit(at(4), 2).await, Ok(0));
    assert_eq!(all(store).await, [entries[4].clone(), entries[3].clone()]);
}
