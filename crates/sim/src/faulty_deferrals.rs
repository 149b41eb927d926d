//! The faulty store's verbs about what holds deliveries up, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::deferral::Deferral;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

#[async_trait]
impl Deferrals for FaultyStore {
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note_deferral(lease, deferral))
    }
    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.deferrals(queues))
    }
    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.waits_behind(ids))
    }
}
