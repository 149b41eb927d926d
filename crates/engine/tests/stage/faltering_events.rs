//! The faltering store's verbs about endpoints, events, sources and what holds deliveries up.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::deferral::Deferral;
use postrider_core::endpoint::{LastTest, Verification};
use postrider_core::id::{ConnectionId, DeliveryId, EventId, ProjectId, QueueId, SourceId, SubscriptionId};
use postrider_core::subscription::PushSubscription;
use postrider_store::*;

use super::Faltering;

#[async_trait]
impl Endpoints for Faltering {
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError> {
        self.store.all_endpoints().await
    }
    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError> {
        self.store.endpoint(id).await
    }
    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError> {
        self.store.create_endpoint(row).await
    }
    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        self.store.replace_endpoint_keys(id, keys, version).await
    }
    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError> {
        self.store.note_endpoint_test(id, test).await
    }
    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError> {
        self.store.note_verification(id, verification, url).await
    }
}

#[async_trait]
impl EndpointHealths for Faltering {
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError> {
        self.store.failing_endpoints(after, rows_max).await
    }
    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError> {
        self.falter("switch_off_endpoint")?;
        self.store.switch_off_endpoint(was, off).await
    }
    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError> {
        self.store.untold_endpoints(now, rows_max).await
    }
    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError> {
        self.store.take_telling(was, until).await
    }
    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError> {
        self.store.end_telling(id, epoch).await
    }
}

#[async_trait]
impl Events for Faltering {
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        self.falter("publish_event")?;
        self.store.publish_event(event).await
    }
    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        self.store.events(project_id, filter, page).await
    }
    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        self.store.event(project_id, id).await
    }
    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError> {
        self.store.all_push_subscriptions().await
    }
    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError> {
        self.store.kept_program(of).await
    }
    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError> {
        self.store.prune_kept_programs(kept_before).await
    }
}

#[async_trait]
impl Deferrals for Faltering {
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
        self.falter("note_deferral")?;
        self.store.note_deferral(lease, deferral).await
    }
    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError> {
        self.store.deferrals(queues).await
    }
    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError> {
        self.store.waits_behind(ids).await
    }
}

#[async_trait]
impl Sources for Faltering {
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        self.store.all_sources().await
    }
    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError> {
        self.store.reseal_source(id, keys, version).await
    }
    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError> {
        self.falter("receive")?;
        self.store.receive(arrival).await
    }
    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        self.store.renew_forward(settlement, new, entry).await
    }
    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.store.prune_receipts(now, rows_max).await
    }
}
