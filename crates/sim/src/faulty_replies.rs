//! The faulty store's verbs about callers in other processes, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::delivery::Position;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

#[async_trait]
impl Replies for FaultyStore {
    async fn awaited(&self, ids: Vec<DeliveryId>) -> Result<Vec<DeliveryId>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.awaited(ids))
    }
    async fn begin_awaited(&self, id: DeliveryId) -> Result<bool, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.begin_awaited(id))
    }
    async fn dismiss_awaited(&self, queue_id: QueueId, behind: Option<Position>) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.dismiss_awaited(queue_id, behind))
    }
    async fn take_reply(&self, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.take_reply(id, patience))
    }
}
