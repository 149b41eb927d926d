//! Cases of users and their sessions. They must not depend on what a role allows.

use postrider_core::Timestamp;
use postrider_core::id::{ProjectId, UserId};
use postrider_core::person::Role;

use super::TestStore;
use super::audit::entry;
use super::fixture::*;
use crate::*;

fn user(world: &World<'_>, name: &str, role: Role) -> User {
    User {
        id: UserId::new(at(0), world.id()),
        project_id: None,
        name: name.to_owned(),
        role,
        sees_bodies: false,
        password: PasswordHash("$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA".to_owned()),
        version: 1,
        created_at: at(1),
        password_set_at: at(1),
        last_log_in_at: None,
    }
}

async fn create(world: &World<'_>, user: &User) -> Result<(), StoreError> {
    let new = Box::new(NewUser { user: user.clone(), only_as_first: false });
    world.store.change(Change::CreateUser(new), entry(world, "user.create", 1)).await
}

async fn change(world: &World<'_>, user: &User, version: u32, keeps: Option<TokenHash>) -> Result<(), StoreError> {
    let change = UserChange { user: user.clone(), version, keeps_session: keeps };
    world.store.change(Change::ReplaceUser(Box::new(change)), entry(world, "user.replace", 2)).await
}

async fn delete(world: &World<'_>, user: &User) -> Result<(), StoreError> {
    world.store.change(Change::DeleteUser(user.id), entry(world, "user.delete", 3)).await
}

fn session(user: &User, number: u8, millis: i64) -> Session {
    let address = Some("10.1.2.3".to_owned());
    Session { token: TokenHash([number; 32]), user_id: user.id, opened_at: at(millis), seen_at: at(millis), address }
}

async fn open(world: &World<'_>, session: &Session, version: u32) -> Result<(), StoreError> {
    world.store.open_session(session.clone(), version, entry(world, "user.log_in", 4)).await
}

async fn is_open(store: &dyn Store, number: u8) -> bool {
    store.session(TokenHash([number; 32])).await.unwrap().is_some()
}

async fn noted(store: &dyn Store, action: &str) -> usize {
    let filter = AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
    store.audit_entries(&filter, FIRST_PAGE).await.unwrap().items.len()
}

pub async fn p07_a_user_and_a_session_read_back_whole_and_survive_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    let world = World::new(&*store).await;
    let owner = user(&world, "zoe", Role::Owner);
    let mut viewer =
        User { project_id: Some(world.project_id), sees_bodies: true, ..user(&world, "ada", Role::Viewer) };
    create(&world, &owner).await.unwrap();
    create(&world, &viewer).await.unwrap();
    let mut opened = session(&viewer, 7, 50);
    open(&world, &opened, 1).await.unwrap();
    store.note_session_used(opened.token, at(60)).await.unwrap();
    store.note_session_used(opened.token, at(55)).await.unwrap();
    test.reopen().await;
    let store = test.store();
    opened.seen_at = at(60);
    viewer.last_log_in_at = Some(at(50));
    assert_eq!(store.users().await.unwrap(), [viewer.clone(), owner.clone()], "by name");
    assert_eq!(store.user_by_name("ada").await.unwrap(), Some(viewer.clone()));
    assert_eq!(store.user_by_name("Ada").await.unwrap(), None);
    assert_eq!(store.session(opened.token).await.unwrap(), Some((opened.clone(), viewer.clone())));
    let world = world.over(&*store);
    for _ in 0..2 {
        store.end_session(opened.token, entry(&world, "user.log_out", 5)).await.unwrap();
    }
    assert_eq!(store.session(opened.token).await.unwrap(), None);
    assert_eq!((noted(&*store, "user.log_in").await, noted(&*store, "user.log_out").await), (1, 1));
    open(&world, &opened, 1).await.unwrap();
    delete(&world, &viewer).await.unwrap();
    assert_eq!(store.session(opened.token).await.unwrap(), None, "sessions go with their user");
    assert!(matches!(delete(&world, &viewer).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.users().await.unwrap(), [owner]);
}

pub async fn p07_names_of_users_are_unique_in_the_installation(store: &dyn Store) {
    let world = World::new(store).await;
    let one = user(&world, "ada", Role::Owner);
    create(&world, &one).await.unwrap();
    let twin = User { project_id: Some(world.project_id), ..user(&world, "ada", Role::Viewer) };
    assert!(matches!(create(&world, &twin).await, Err(StoreError::Conflict(_))));
    let lost = User { project_id: Some(ProjectId::from_u128(99)), ..user(&world, "bob", Role::Viewer) };
    assert!(matches!(create(&world, &lost).await, Err(StoreError::NotFound { .. })));
    let other = user(&world, "cy", Role::Owner);
    create(&world, &other).await.unwrap();
    let moved = User { project_id: Some(ProjectId::from_u128(99)), role: Role::Viewer, ..other.clone() };
    assert!(matches!(change(&world, &moved, 1, None).await, Err(StoreError::NotFound { .. })));
    assert_eq!(store.users().await.unwrap(), [one, other]);
}

pub async fn p07_the_installation_keeps_an_owner(store: &dyn Store) {
    let world = World::new(store).await;
    let one = user(&world, "ada", Role::Owner);
    let of_project = User { project_id: Some(world.project_id), ..user(&world, "bob", Role::Owner) };
    create(&world, &one).await.unwrap();
    create(&world, &of_project).await.unwrap();
    let demoted = User { role: Role::Viewer, version: 2, ..one.clone() };
    let moved = User { project_id: Some(world.project_id), version: 2, ..one.clone() };
    for changed in [&demoted, &moved] {
        assert!(matches!(change(&world, changed, 1, None).await, Err(StoreError::Conflict(_))));
    }
    assert!(matches!(delete(&world, &one).await, Err(StoreError::Conflict(_))));
    let other = user(&world, "cy", Role::Owner);
    create(&world, &other).await.unwrap();
    change(&world, &demoted, 1, None).await.unwrap();
    assert!(matches!(delete(&world, &other).await, Err(StoreError::Conflict(_))));
    delete(&world, &of_project).await.unwrap();
    delete(&world, &demoted).await.unwrap();
    assert_eq!(store.users().await.unwrap(), [other]);
}

pub async fn p07_the_first_owner_is_made_once(store: &dyn Store) {
    let world = World::new(store).await;
    let first = |name: &str| Box::new(NewUser { user: user(&world, name, Role::Owner), only_as_first: true });
    let one = first("ada");
    store.change(Change::CreateUser(one.clone()), entry(&world, "user.create", 1)).await.unwrap();
    let again = store.change(Change::CreateUser(first("bob")), entry(&world, "user.create", 2)).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))));
    assert_eq!(store.users().await.unwrap(), [one.user]);
    assert_eq!(noted(store, "user.create").await, 1);
}

pub async fn p07_a_session_opens_only_at_the_version_that_was_looked_at(store: &dyn Store) {
    let world = World::new(store).await;
    let one = user(&world, "ada", Role::Owner);
    create(&world, &one).await.unwrap();
    let changed =
        User { password: PasswordHash("another".to_owned()), password_set_at: at(9), version: 2, ..one.clone() };
    change(&world, &changed, 1, None).await.unwrap();
    assert!(matches!(change(&world, &changed, 1, None).await, Err(StoreError::Conflict(_))));
    assert!(matches!(open(&world, &session(&one, 1, 10), 1).await, Err(StoreError::Conflict(_))));
    assert!(!is_open(store, 1).await);
    open(&world, &session(&one, 1, 10), 2).await.unwrap();
    assert_eq!(noted(store, "user.log_in").await, 1);
    let lost = Session { user_id: UserId::from_u128(9), ..session(&one, 2, 10) };
    assert!(matches!(open(&world, &lost, 1).await, Err(StoreError::NotFound { .. })));
}

pub async fn p07_a_change_of_a_user_ends_the_sessions_but_one(store: &dyn Store) {
    let world = World::new(store).await;
    let (one, other) = (user(&world, "ada", Role::Owner), user(&world, "bob", Role::Viewer));
    for user in [&one, &other] {
        create(&world, user).await.unwrap();
    }
    for number in 1..=3 {
        open(&world, &session(&one, number, 10), 1).await.unwrap();
    }
    open(&world, &session(&other, 9, 10), 1).await.unwrap();
    change(&world, &User { version: 2, ..one.clone() }, 1, Some(TokenHash([2; 32]))).await.unwrap();
    let mut left = Vec::new();
    for number in [1, 2, 3, 9] {
        left.extend(is_open(store, number).await.then_some(number));
    }
    assert_eq!(left, [2, 9]);
    change(&world, &User { version: 3, ..one.clone() }, 2, None).await.unwrap();
    assert!(!is_open(store, 2).await && is_open(store, 9).await);
}

pub async fn p07_sessions_of_one_user_have_a_bound_and_old_ones_go(store: &dyn Store) {
    let world = World::new(store).await;
    let one = user(&world, "ada", Role::Owner);
    create(&world, &one).await.unwrap();
    let count = u8::try_from(SESSIONS_MAX).unwrap() + 2;
    for number in 1..=count {
        open(&world, &session(&one, number, i64::from(number)), 1).await.unwrap();
    }
    assert!(!is_open(store, 1).await && !is_open(store, 2).await && is_open(store, 3).await);
    let never = Timestamp::from_millis(0);
    assert_eq!(store.prune_sessions(never, never, 100).await.unwrap(), 0);
    assert_eq!(store.prune_sessions(at(5), never, 100).await.unwrap(), 2, "3 and 4 are idle");
    assert_eq!(store.prune_sessions(never, at(10), 3).await.unwrap(), 3, "of 5 to 9, not more than asked");
    assert_eq!(store.prune_sessions(never, at(10), 100).await.unwrap(), 2);
    assert!(is_open(store, 10).await && is_open(store, count).await);
}
