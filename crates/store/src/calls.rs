//! The verb for idempotency keys of direct calls. It must not know how a call is made.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use crate::{Idempotency, StoreError};

/// What a key says of a direct call that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It was free, and is now this call's, durably.
    First,
    /// The same key and the same request came before, as this delivery.
    Repeated(DeliveryId),
    /// The same key with another request.
    KeyReused,
}

#[async_trait]
pub trait KeyedCalls: Send + Sync {
    /// Takes an idempotency key for a direct call, before its attempt (D15). The keys are those of `enqueue`.
    async fn reserve_key(
        &self,
        key: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError>;
}
