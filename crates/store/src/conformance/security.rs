//! Cases of security definitions. They must not depend on what a definition means.

use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::id::{ProjectId, SecurityId};
use postrider_core::security::{SecurityDefinition, SecurityKind};
use postrider_core::settings::security;
use serde_json::json;

use super::TestStore;
use super::fixture::*;
use crate::*;

pub(super) fn definition(world: &World<'_>, number: u128, name: &str) -> SecurityDefinition {
    let written = json!({"username": "lab"}).as_object().unwrap().clone();
    SecurityDefinition {
        id: SecurityId::from_u128(number),
        project_id: world.project_id,
        name: name.to_owned(),
        spec: security::parse(SecurityKind::BasicAuth, &written).unwrap().spec,
        written,
        sealed: "v1.key.sealed".to_owned(),
        version: 1,
        created_at: at(3),
        updated_at: at(3),
    }
}

fn secured(world: &World<'_>, name: &str, by: &str) -> Connection {
    let mut connection = world.connection_value(name, true);
    connection.written.insert("security".to_owned(), json!(by));
    connection.spec = ConnectionSpec::parse(ConnectionKind::Rest, &connection.written).unwrap();
    connection
}

pub async fn p07_a_definition_changes_together_with_its_entry(store: &dyn Store) {
    let world = World::new(store).await;
    let first = definition(&world, 1, "lab.sec");
    let make = |definition: &SecurityDefinition| Change::CreateSecurity(Box::new(definition.clone()));
    let entry = |millis| super::audit::entry(&world, "security", millis);
    store.change(make(&first), entry(1)).await.unwrap();
    assert!(store.change(make(&definition(&world, 2, "lab.sec")), entry(2)).await.is_err());
    let again = SecurityDefinition { sealed: "v1.key.again".to_owned(), version: 2, ..first.clone() };
    let replace = |version| Change::ReplaceSecurity { definition: Box::new(again.clone()), version };
    assert!(store.change(replace(7), entry(3)).await.is_err());
    store.change(replace(1), entry(4)).await.unwrap();
    assert_eq!(store.all_security().await.unwrap(), [again]);
    store.create_connection(&secured(&world, "uses it", "lab.sec")).await.unwrap();
    assert!(store.change(Change::DeleteSecurity(first.id), entry(5)).await.is_err(), "it is in use");
    let entries = store.audit_entries(&AuditFilter::default(), FIRST_PAGE).await.unwrap().items;
    assert_eq!(entries.iter().map(|entry| entry.at).collect::<Vec<_>>(), [at(4), at(1)]);
}

pub async fn definitions_survive_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let (first, second) = (definition(&world, 1, "lab.sec"), definition(&world, 2, "other"));
    store.create_security(&second).await.unwrap();
    store.create_security(&first).await.unwrap();
    let written = json!({"token": null}).as_object().unwrap().clone();
    let spec = security::parse(SecurityKind::Bearer, &written).unwrap().spec;
    let changed = SecurityDefinition {
        spec,
        written: serde_json::Map::new(),
        sealed: "v1.key.other".to_owned(),
        version: 2,
        updated_at: at(9),
        ..second.clone()
    };
    store.replace_security(&changed, 1).await.unwrap();
    assert!(matches!(store.replace_security(&changed, 1).await, Err(StoreError::Conflict(_))), "it has changed since");
    test.reopen().await;
    assert_eq!(test.store().all_security().await.unwrap(), [first, changed]);
}

pub async fn d16_names_of_definitions_are_unique_in_their_project(store: &dyn Store) {
    let world = World::new(store).await;
    let first = definition(&world, 1, "lab.sec");
    store.create_security(&first).await.unwrap();
    for taken in [definition(&world, 2, "lab.sec"), definition(&world, 1, "other")] {
        assert!(matches!(store.create_security(&taken).await, Err(StoreError::Conflict(_))));
    }
    let other = Project {
        id: ProjectId::from_u128(5),
        name: "other".to_owned(),
        settings: ProjectSettings::default(),
        created_at: at(1),
    };
    store.create_project(other.clone()).await.unwrap();
    let elsewhere = SecurityDefinition { project_id: other.id, ..definition(&world, 2, "lab.sec") };
    store.create_security(&elsewhere).await.unwrap();
    let lost = SecurityDefinition { project_id: ProjectId::from_u128(99), ..definition(&world, 3, "lab.sec") };
    assert!(matches!(store.create_security(&lost).await, Err(StoreError::NotFound { .. })));
    assert!(matches!(store.replace_security(&lost, 1).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.all_security().await.unwrap(), [first, elsewhere]);
}

pub async fn a_connection_names_a_definition_of_its_own_project(store: &dyn Store) {
    let world = World::new(store).await;
    let early = secured(&world, "billing", "lab.sec");
    let missing = StoreError::NotFound { what: "security definition" };
    assert_eq!(store.create_connection(&early).await, Err(missing.clone()));
    assert_eq!(store.connection(early.id).await.unwrap(), None);
    let other = Project {
        id: ProjectId::from_u128(5),
        name: "other".to_owned(),
        settings: ProjectSettings::default(),
        created_at: at(1),
    };
    store.create_project(other.clone()).await.unwrap();
    let elsewhere = SecurityDefinition { project_id: other.id, ..definition(&world, 2, "lab.sec") };
    store.create_security(&elsewhere).await.unwrap();
    assert_eq!(store.create_connection(&early).await, Err(missing.clone()), "another project's is not ours");
    store.create_security(&definition(&world, 1, "lab.sec")).await.unwrap();
    store.create_connection(&early).await.unwrap();
    let changed = Connection { id: early.id, version: 2, ..secured(&world, "billing", "nobody's") };
    assert_eq!(store.replace_connection(&changed, 1).await, Err(missing));
    assert_eq!(store.connection(early.id).await.unwrap(), Some(early));
}

pub async fn a_definition_in_use_stays_and_names_its_users(store: &dyn Store) {
    let world = World::new(store).await;
    let used = definition(&world, 1, "lab.sec");
    store.create_security(&used).await.unwrap();
    let claims = secured(&world, "claims", "lab.sec");
    store.create_connection(&secured(&world, "billing", "lab.sec")).await.unwrap();
    store.create_connection(&claims).await.unwrap();
    let Err(StoreError::Conflict(why)) = store.delete_security(used.id).await else { panic!("it is in use") };
    assert_eq!(why, "`lab.sec` is in use by `billing`, `claims`");
    assert_eq!(store.all_security().await.unwrap().len(), 1);
    let freed = Connection { id: claims.id, version: 2, ..world.connection_value("claims", true) };
    store.replace_connection(&freed, 1).await.unwrap();
    let billing = store.connections(world.project_id, FIRST_PAGE).await.unwrap().items[0].id;
    store.delete_connection(billing, false, at(9)).await.unwrap();
    store.delete_security(used.id).await.unwrap();
    assert_eq!(store.all_security().await.unwrap(), []);
    assert!(matches!(store.delete_security(used.id).await, Err(StoreError::NotFound { .. })));
}
