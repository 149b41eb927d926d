//! Cases of API keys. They must not depend on what a scope allows.

use postrider_core::access::{Scope, ScopeSet};
use postrider_core::id::{KeyId, ProjectId};

use super::TestStore;
use super::audit::entry;
use super::fixture::*;
use crate::*;

pub(super) fn key(world: &World<'_>, name: &str) -> ApiKey {
    let number = world.id();
    ApiKey {
        id: KeyId::new(at(0), number),
        project_id: Some(world.project_id),
        name: name.to_owned(),
        scopes: ScopeSet::of(&[Scope::Send, Scope::Operate]),
        hash: KeyHash([u8::try_from(number % 251).unwrap(); 32]),
        hint: "prk_0123".to_owned(),
        former: None,
        version: 1,
        created_at: at(1),
        rotated_at: None,
        expires_at: Some(at(90)),
        last_used_at: None,
    }
}

async fn create(world: &World<'_>, key: &ApiKey) -> Result<(), StoreError> {
    world.store.change(Change::CreateKey(Box::new(key.clone())), entry(world, "key.create", 1)).await
}

pub async fn p07_a_key_reads_back_whole_and_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let mut one = key(&world, "one");
    let everywhere = ApiKey { project_id: None, expires_at: None, ..key(&world, "one") };
    create(&world, &one).await.unwrap();
    create(&world, &everywhere).await.unwrap();
    let former = Some(FormerKey { hash: one.hash, works_until: at(60) });
    one = ApiKey { hash: KeyHash([255; 32]), former, version: 2, rotated_at: Some(at(5)), ..one };
    let change = Change::ReplaceKey { key: Box::new(one.clone()), version: 1 };
    store.change(change.clone(), entry(&world, "key.rotate", 2)).await.unwrap();
    let again = store.change(change, entry(&world, "key.rotate", 3)).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "it has changed since");
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.api_keys().await.unwrap(), [one.clone(), everywhere.clone()]);
    let world = world.over(&*store);
    store.change(Change::DeleteKey(one.id), entry(&world, "key.revoke", 4)).await.unwrap();
    let gone = store.change(Change::DeleteKey(one.id), entry(&world, "key.revoke", 5)).await;
    assert!(matches!(gone, Err(StoreError::NotFound { .. })));
    assert_eq!(store.api_keys().await.unwrap(), [everywhere]);
}

pub async fn p07_names_of_keys_are_unique_in_their_project(store: &dyn Store) {
    let world = World::new(store).await;
    let one = key(&world, "one");
    create(&world, &one).await.unwrap();
    assert!(matches!(create(&world, &key(&world, "one")).await, Err(StoreError::Conflict(_))));
    let installations = ApiKey { project_id: None, ..key(&world, "one") };
    create(&world, &installations).await.unwrap();
    let twin = ApiKey { project_id: None, ..key(&world, "one") };
    assert!(matches!(create(&world, &twin).await, Err(StoreError::Conflict(_))));
    let lost = ApiKey { project_id: Some(ProjectId::from_u128(99)), ..key(&world, "two") };
    assert!(matches!(create(&world, &lost).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.api_keys().await.unwrap(), [one, installations]);
}

pub async fn p07_the_last_use_only_moves_forward(store: &dyn Store) {
    let world = World::new(store).await;
    let one = key(&world, "one");
    create(&world, &one).await.unwrap();
    for (used, known) in [(7, 7), (5, 7), (9, 9)] {
        store.note_keys_used(vec![(KeyId::from_u128(1), at(3)), (one.id, at(used))]).await.unwrap();
        let found = store.api_keys().await.unwrap();
        assert_eq!(found, [ApiKey { last_used_at: Some(at(known)), ..one.clone() }]);
    }
}
