//! Cases of the rows of webhook endpoints. They must not depend on what a key is.

use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::endpoint::{EndpointState, LastTest, SwitchedOff, Verification};
use postrider_core::health::{EndpointHealth, SwitchOffReason};
use serde_json::json;

use super::TestStore;
use super::fixture::*;
use crate::*;

pub(crate) fn endpoint(world: &World<'_>, name: &str) -> (Connection, EndpointRow) {
    let written = json!({"url": "https://hooks.example.org/in"}).as_object().unwrap().clone();
    let spec = ConnectionSpec::parse(ConnectionKind::Webhook, &written).unwrap();
    let connection = Connection { written, spec, ..world.connection_value(name, false) };
    let keys = EndpointKeys { sealed: format!("sealed {name}"), former: None };
    let row = EndpointRow {
        id: connection.id,
        project_id: world.project_id,
        keys,
        state: EndpointState::default(),
        verified_url: None,
        tell_at: None,
        version: 1,
    };
    (connection, row)
}

pub async fn d46_an_endpoint_comes_with_its_keys_and_goes_with_its_connection(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let entry = |millis| super::audit::entry(&world, "endpoint", millis);
    let (connection, mut row) = endpoint(&world, "a");
    row.state = EndpointState {
        verification: Verification::Pending,
        off: Some(SwitchedOff { reason: SwitchOffReason::Gone, at: at(5) }),
        health: EndpointHealth { failing_since: Some(at(4)), failed_in_a_row: 7 },
        last_test: Some(LastTest { at: at(6), succeeded: false }),
        epoch: 3,
    };
    row.verified_url = Some("https://hooks.example.org/before".to_owned());
    row.tell_at = Some(at(8));
    let create = |connection: &Connection, row: &EndpointRow| Change::CreateEndpoint {
        connection: Box::new(connection.clone()),
        row: Box::new(row.clone()),
    };
    store.change(create(&connection, &row), entry(1)).await.unwrap();
    assert!(store.change(create(&connection, &row), entry(2)).await.is_err());
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.all_endpoints().await.unwrap(), [row.clone()]);
    assert_eq!(store.endpoint(row.id).await.unwrap(), Some(row.clone()));
    store.delete_connection(row.id, false, at(9)).await.unwrap();
    assert_eq!(store.endpoint(row.id).await.unwrap(), None);
}

pub async fn d46_keys_are_replaced_only_by_whoever_saw_them(store: &dyn Store) {
    let world = World::new(store).await;
    let (connection, row) = endpoint(&world, "a");
    assert!(store.create_endpoint(&row).await.is_err(), "there is no such connection");
    store.create_connection(&connection).await.unwrap();
    store.create_endpoint(&row).await.unwrap();
    assert!(store.create_endpoint(&row).await.is_err(), "it has its keys");
    let former = Some(FormerSigningKey { sealed: "sealed a".to_owned(), signs_until: at(90) });
    let keys = EndpointKeys { sealed: "sealed again".to_owned(), former };
    assert!(store.replace_endpoint_keys(row.id, &keys, 4).await.is_err());
    store.replace_endpoint_keys(row.id, &keys, 1).await.unwrap();
    let rest = world.connection("rest", false).await;
    assert!(store.create_endpoint(&EndpointRow { id: rest.id, ..row.clone() }).await.is_err(), "another kind");
    let change = Change::ReplaceEndpointKeys { id: row.id, keys: row.keys.clone(), version: 1 };
    assert!(store.change(change, super::audit::entry(&world, "endpoint", 1)).await.is_err());
    assert_eq!(store.endpoint(row.id).await.unwrap(), Some(EndpointRow { keys, version: 2, ..row }));
}

pub async fn v06_a_test_and_a_verification_change_nothing_else(store: &dyn Store) {
    let world = World::new(store).await;
    let (connection, row) = endpoint(&world, "a");
    store.create_connection(&connection).await.unwrap();
    let test = LastTest { at: at(7), succeeded: true };
    assert!(store.note_endpoint_test(row.id, test).await.is_err(), "it has no row yet");
    store.create_endpoint(&row).await.unwrap();
    store.note_endpoint_test(row.id, test).await.unwrap();
    store.note_verification(row.id, Verification::Verified, "https://hooks.example.org/in").await.unwrap();
    let state = EndpointState { verification: Verification::Verified, last_test: Some(test), ..row.state };
    let verified_url = Some("https://hooks.example.org/in".to_owned());
    assert_eq!(store.endpoint(row.id).await.unwrap(), Some(EndpointRow { state, verified_url, ..row }));
}
