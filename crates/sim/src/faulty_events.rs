//! The faulty store's verbs about endpoints and events, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::endpoint::{LastTest, Verification};
use postrider_core::id::{ConnectionId, EventId, ProjectId, SubscriptionId};
use postrider_core::subscription::PushSubscription;
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

impl FaultyStore {
    async fn publish_event_shown(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        let ids: Vec<_> = event.deliveries.iter().map(|new| (new.id, new.connection_id)).collect();
        let published = self.inner.inner.publish_event(event).await?;
        if let PublishedEvent::Stored(answers) = &published {
            self.oracle.saw_enqueued(&ids, answers);
        }
        Ok(published)
    }
}

#[async_trait]
impl Endpoints for FaultyStore {
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.all_endpoints())
    }
    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.endpoint(id))
    }
    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_endpoint(row))
    }
    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.replace_endpoint_keys(id, keys, version))
    }
    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note_endpoint_test(id, test))
    }
    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note_verification(id, verification, url))
    }
}

#[async_trait]
impl EndpointHealths for FaultyStore {
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.failing_endpoints(after, rows_max))
    }
    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.switch_off_endpoint(was, off))
    }
    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.untold_endpoints(now, rows_max))
    }
    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.take_telling(was, until))
    }
    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.end_telling(id, epoch))
    }
}

#[async_trait]
impl Events for FaultyStore {
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        with_any_fate!(self, TakesIn, self.publish_event_shown(event))
    }
    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.events(project_id, filter, page))
    }
    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.event(project_id, id))
    }
    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.all_push_subscriptions())
    }
    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.kept_program(of))
    }
    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune_kept_programs(kept_before))
    }
}
