//! Idempotency keys of direct calls (D15). It must not know how a call is made.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use super::MemoryStore;
use crate::{Enqueued, Idempotency, KeyedCalls, Reserved, StoreError};

#[async_trait]
impl KeyedCalls for MemoryStore {
    async fn reserve_key(
        &self,
        key: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError> {
        let mut data = self.open()?;
        Ok(match data.repeat_of(&key, now) {
            Some(Enqueued::Repeated(id)) => Reserved::Repeated(id),
            Some(_) => Reserved::KeyReused,
            None => {
                data.keep_key(&key, delivery_id);
                Reserved::First
            }
        })
    }
}
