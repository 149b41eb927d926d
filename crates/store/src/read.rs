//! The verbs that only read, for listings and pages. They never hold up the writers.

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::Wait;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::Delivery;
use postrider_core::id::{BodyId, ConnectionId, DeliveryId, ProjectId, QueueId};
use postrider_core::topic::TopicName;

use crate::StoreError;
use crate::filter::DeliveryFilter;
use crate::records::*;

#[async_trait]
pub trait StoreRead: Send + Sync {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError>;
    async fn projects(&self) -> Result<Vec<Project>, StoreError>;

    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError>;
    /// All connections of all projects, for an engine that starts.
    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError>;
    /// By name within one project.
    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError>;

    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError>;
    /// A filter that looks at more than project, connection, status and time of arrival may stop early, having looked at a bounded number
    /// of rows: then the page is short, or empty, and has a `next_cursor` all the same.
    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError>;
    /// In the order in which the queue will deliver.
    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError>;
    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError>;
    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError>;

    /// Depths from kept counters, never by a scan.
    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError>;
    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError>;
    /// How many deliveries there are in each status, of one connection or of all; by counting, for checks and tests.
    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError>;

    /// Dead letters of a queue that arrived at or before `arrived_by` and that the filter lets through, oldest first, behind `after`.
    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError>;
    /// When the oldest dead letter arrived that the filter lets through.
    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError>;

    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError>;
    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError>;
    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError>;
    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError>;
    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError>;

    /// What the writer has done since the store was opened; `None` for a store that keeps no such figures. Answered from memory.
    fn statistics(&self) -> Option<Statistics> {
        None
    }

    async fn value(&self, name: &str) -> Result<Option<String>, StoreError>;
    /// `Err` says why the store cannot take writes now.
    async fn check(&self) -> Result<(), StoreError>;
}

/// What a store's writer has done since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Statements, `BEGIN` and `COMMIT` included.
    pub statements: u64,
    /// Transactions that changed something, each with one fsync.
    pub commits: u64,
    /// Deliveries stored.
    pub enqueued: u64,
    /// Settlements applied.
    pub settled: u64,
}

/// What the DLQ's action may still touch: those used up would else hide those that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeadLetterFilter {
    /// Only those that the action has retried fewer times than this.
    pub dlq_retries_below: Option<u32>,
    /// Leaves out those with the failure `expired` or `too_old` (D26).
    pub leave_out_aged: bool,
}

/// `cursor` is what the former page gave; lists of deliveries go from the newest to the oldest, queues from head to tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub limit: u32,
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSummary {
    pub queue_id: QueueId,
    pub waiting: u64,
    pub waiting_bytes: u64,
    pub dead: u64,
    /// How long the oldest waiting one has been there needs the head; `None` when nothing waits.
    pub oldest_waiting_since: Option<Timestamp>,
    pub owner: Option<postrider_core::id::WorkerId>,
}

/// The left and right side of oracle 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub accepted: u64,
    pub pending: u64,
    pub processing: u64,
    pub success: u64,
    pub failed: u64,
    pub dlq: u64,
    pub discarded: u64,
    pub forwarded: u64,
    pub expired: u64,
    /// Log rows that retention has removed.
    pub pruned: u64,
}

impl Counts {
    /// Oracle 1: nothing accepted is ever unaccounted for.
    pub const fn is_balanced(&self) -> bool {
        self.accepted
            == self.pending
                + self.processing
                + self.success
                + self.failed
                + self.dlq
                + self.discarded
                + self.forwarded
                + self.expired
                + self.pruned
    }
}

/// Kept so that callers need not import it for page sizes.
pub const PAGE_ROWS_MAX: u32 = 1000;

/// How long the log keeps what has ended (V07).
pub const LOG_RETENTION: Wait = Wait::from_secs(30 * 24 * 3600);
