//! Idempotency keys of direct calls (D15). It must not know how a call is made.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use super::{PostgresStore, keyed};
use crate::{Idempotency, KeyedCalls, Reserved, StoreError};

#[async_trait]
impl KeyedCalls for PostgresStore {
    async fn reserve_key(
        &self,
        given: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError> {
        let data = (given, delivery_id, now);
        self.write(data, |work, (given, id, now)| keyed::reserve(work, given, *id, *now).boxed()).await
    }
}
