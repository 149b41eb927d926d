//! The faulty store's verbs about sources and what they bring, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::SourceId;
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

impl FaultyStore {
    async fn receive_shown(&self, arrival: Arrival) -> Result<Received, StoreError> {
        let ids: Vec<_> = arrival.event.deliveries.iter().map(|new| (new.id, new.connection_id)).collect();
        let received = self.inner.inner.receive(arrival).await?;
        if let Received::Stored(answers) = &received {
            self.oracle.saw_enqueued(&ids, answers);
        }
        Ok(received)
    }
}

#[async_trait]
impl Sources for FaultyStore {
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.all_sources())
    }
    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.reseal_source(id, keys, version))
    }
    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError> {
        with_any_fate!(self, TakesIn, self.receive_shown(arrival))
    }
    /// As the two verbs that it is made of, each under its own fate.
    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        _: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        let settled = self.settle(vec![settlement]).await?.pop().unwrap_or(Settled::Gone);
        if !matches!(settled, Settled::Applied { .. }) {
            return Ok(Renewed::Not(settled));
        }
        let stored = self.enqueue(vec![new]).await?.pop().unwrap_or(Enqueued::NoConnection);
        Ok(Renewed::Stored(stored))
    }
    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune_receipts(now, rows_max))
    }
}
