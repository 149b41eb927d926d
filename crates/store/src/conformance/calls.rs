//! Cases of idempotency keys of direct calls. They must not depend on how a call is made.

use postrider_core::id::DeliveryId;

use super::TestStore;
use super::fixture::*;
use crate::*;

fn asked(key: u8, request: u8, ends_at_ms: i64) -> Idempotency {
    Idempotency { key_hash: [key; 32], request_hash: [request; 32], ends_at: at(ends_at_ms) }
}

const fn id(number: u128) -> DeliveryId {
    DeliveryId::from_u128(number)
}

pub async fn d15_a_key_is_reserved_once_until_it_ends(store: &dyn Store) {
    assert_eq!(store.reserve_key(asked(1, 1, 1000), id(1), at(0)).await, Ok(Reserved::First));
    assert_eq!(store.reserve_key(asked(1, 1, 1500), id(2), at(500)).await, Ok(Reserved::Repeated(id(1))));
    assert_eq!(store.reserve_key(asked(1, 2, 1500), id(3), at(500)).await, Ok(Reserved::KeyReused));
    assert_eq!(store.reserve_key(asked(2, 2, 1500), id(4), at(500)).await, Ok(Reserved::First));
    assert_eq!(store.reserve_key(asked(1, 9, 2000), id(5), at(1000)).await, Ok(Reserved::First), "it had ended");
    assert_eq!(store.reserve_key(asked(1, 9, 2000), id(6), at(1999)).await, Ok(Reserved::Repeated(id(5))));
}

pub async fn d15_direct_and_stored_requests_share_their_keys(store: &dyn Store) {
    let world = World::new(store).await;
    let connection = world.connection("billing", true).await;
    let stored = NewDelivery { idempotency: Some(asked(1, 1, 1000)), ..world.fresh(&connection, 0) };
    store.enqueue(vec![stored.clone()]).await.unwrap();
    assert_eq!(store.reserve_key(asked(1, 1, 1000), id(7), at(1)).await, Ok(Reserved::Repeated(stored.id)));
    assert_eq!(store.reserve_key(asked(2, 1, 1000), id(7), at(1)).await, Ok(Reserved::First));
    let repeat = NewDelivery { idempotency: Some(asked(2, 1, 1000)), ..world.fresh(&connection, 2) };
    assert_eq!(store.enqueue(vec![repeat]).await.unwrap(), [Enqueued::Repeated(id(7))]);
    assert_eq!(store.delivery(id(7)).await.unwrap(), None, "nothing but the key is kept");
}

pub async fn d15_a_reserved_key_survives_a_kill(test: &mut dyn TestStore) {
    let store = test.store();
    assert_eq!(store.reserve_key(asked(1, 1, 1000), id(1), at(0)).await, Ok(Reserved::First));
    test.reopen().await;
    let store = test.store();
    assert_eq!(store.reserve_key(asked(1, 1, 1000), id(2), at(1)).await, Ok(Reserved::Repeated(id(1))));
}
