//! Messages that come to deliveries: published, and fanned out to subscriptions that push, in one transaction (D40).
//!
//! Which subscriptions match is decided by the caller. It must not know what a delivery is sent to.

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::id::{Cid, EventId, ProjectId, SubscriptionId};
use postrider_core::message::HeaderList;
use postrider_core::subscription::PushSubscription;
use postrider_core::topic::TopicName;

use crate::StoreError;
use crate::read::{Page, PageRequest};
use crate::records::{Enqueued, NewBody, NewDelivery, Topic, TopicMessageDraft};

#[async_trait]
pub trait Events: Send + Sync {
    /// Stores the message and its deliveries, all or none; the body once, whatever many share it. `Full` with the limit's name when one of
    /// the deliveries has no room; `NotFound` when there is no such topic and `new_topic` makes none. A delivery whose connection is gone
    /// is left out, as `Enqueued::NoConnection`.
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError>;

    /// Messages of all topics of a project, from the newest to the oldest.
    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError>;

    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError>;

    /// All subscriptions that push, of all projects, in the order of their ids, for an engine that starts. What changes them goes through
    /// `AuditLog::change`.
    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError>;

    /// The transformation that a subscription had when it was deleted, by itself or with its connection.
    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError>;

    /// Removes the transformations that were kept before that time and that no delivery refers to, neither waiting nor dead nor in the log;
    /// how many went. Looks through all deliveries if any has been kept for so long.
    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError>;
}

/// A message on its way in.
#[derive(Clone, Debug)]
pub struct NewEvent {
    pub project_id: ProjectId,
    pub message: TopicMessageDraft,
    /// Made when there is none of the message's name.
    pub new_topic: Option<Topic>,
    pub body: NewBody,
    /// The id was given by the publisher: a message of the project that has it already is a repeat.
    pub id_is_given: bool,
    /// Each with the message's own body, or one made of it.
    pub deliveries: Vec<NewDelivery>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishedEvent {
    /// One answer for each delivery, in order.
    Stored(Vec<Enqueued>),
    /// The id has been published before: nothing was written.
    Repeated,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub topic: Option<TopicName>,
    pub from: Option<Timestamp>,
    pub before: Option<Timestamp>,
}

/// A message with the name of its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredEvent {
    pub id: EventId,
    pub topic: TopicName,
    pub cid: Cid,
    pub headers: HeaderList,
    pub published_at: Timestamp,
    pub body: Bytes,
}
