//! Idempotency keys of direct calls (D15). It must not know how a call is made.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use super::{SqliteStore, intake};
use crate::{Enqueued, Idempotency, KeyedCalls, Reserved, StoreError};

#[async_trait]
impl KeyedCalls for SqliteStore {
    async fn reserve_key(
        &self,
        given: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError> {
        self.write(move |work| {
            work.space.check()?;
            match intake::repeat_of(work, &given, now)? {
                Some(Enqueued::Repeated(id)) => Ok(Reserved::Repeated(id)),
                Some(_) => Ok(Reserved::KeyReused),
                None => {
                    intake::remember(work, &given, delivery_id)?;
                    Ok(Reserved::First)
                }
            }
        })
        .await
    }
}
