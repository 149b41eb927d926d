//! The verbs that write. Each verb takes a batch and is one transaction; a store may join several calls in one commit.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::delivery::Position;
use postrider_core::id::{CommandId, ConnectionId, EventId, ProjectId, QueueId, SubscriptionId, WorkerId};
use postrider_core::quota::Allowance;
use postrider_core::topic::TopicName;
use postrider_core::{Wait, delivery::Delivery};

use crate::StoreError;
use crate::alerts::Alerts;
use crate::answers::KeyedAnswers;
use crate::audit::AuditLog;
use crate::calls::KeyedCalls;
use crate::configure::StoreConfigure;
use crate::credentials::Credentials;
use crate::deferrals::Deferrals;
use crate::endpoints::Endpoints;
use crate::events::Events;
use crate::health::EndpointHealths;
use crate::jobs::Jobs;
use crate::people::People;
use crate::read::StoreRead;
use crate::records::*;
use crate::security::SecurityDefinitions;
use crate::signals::Signals;
use crate::sources::Sources;
use crate::vitals::StoreVitals;
use crate::workforce::Spreading;

#[async_trait]
pub trait Store:
    StoreRead
    + StoreConfigure
    + Jobs
    + SecurityDefinitions
    + KeyedCalls
    + KeyedAnswers
    + Credentials
    + People
    + AuditLog
    + Endpoints
    + EndpointHealths
    + Events
    + Deferrals
    + Sources
    + StoreVitals
    + Alerts
    + Signals
    + Spreading
{
    // Intake.

    /// Stores requests durably, in the order given; answers come in the same order. Positions are given in commit order (D02). A caller may
    /// have several calls under way: they are carried out in the order in which they were first polled.
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError>;

    /// Enters finished direct calls in the log (D12).
    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError>;

    // Ownership (D05).

    /// Registers a worker; `Conflict` when the id is in use. An embedded store ends every former lease at open, since its exclusive file lock proves the owners dead.
    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError>;

    /// Extends the worker's lease by its life. `LeaseLost` when it had ended (`now` later than the last renewal plus the life): the worker
    /// must drop all it holds and come back under a new id.
    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError>;

    /// A graceful stop: releases all queues at once; what was claimed and not begun goes back to PENDING unspent by the caller first.
    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError>;

    /// Takes up to `queues_max` queues that have something waiting and no living owner, each under a new token, higher than every token
    /// of that queue before; oldest waiting head first. `LeaseLost` when the worker's own lease has ended.
    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError>;

    /// Takes these queues where they have no living owner but this worker itself, whether or not anything waits; the others are left out
    /// of the answer. A worker that lost track of a queue of its own gets it back so, under a new token.
    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError>;

    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError>;

    // The owner's window.

    /// Deliveries of an ordered queue behind `after`, in order, due or not, PENDING or still PROCESSING from a time without order.
    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError>;

    /// Takes due deliveries of an unordered queue: `Progress::begun` is committed before anything is sent (D04). Fresh ones (no attempt
    /// yet) go before old retries, then by due time.
    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError>;

    /// When the next delivery of an unordered queue is due; `None` when none is PENDING.
    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError>;

    /// What a former owner had claimed and not settled: PROCESSING rows, without their bodies, to be decided as interrupted.
    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError>;

    // Decisions.

    /// Writes decisions, each whole or not at all; several in one transaction, in the order given. Leaving the queue for the log or the
    /// DLQ, coming back from either, and a new position at the tail follow from `progress.status` and `placement`; what comes back always
    /// gets a position at the tail. `Corrupt`, and nothing of the batch written, when an attempt's number is not the next one of its
    /// delivery, when `progress.attempts` is below it, or when a DLQ row has no `dead_at` or a terminal one no `ended_at`.
    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError>;

    // Operators (D06).

    /// Stores a command when the delivery waits in a queue with a living owner: `true`. `false`: it does not, change it by version instead.
    /// An owner found dead loses the queue here and now, so that the change by version passes; the next owner sees `taken_over`.
    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError>;

    /// Commands that wait for this owner, oldest first. They stay until answered.
    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError>;

    /// Answers a command that changes nothing (`AlreadyDelivered`, `NotWaiting`). Others are answered in their settlement.
    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError>;

    /// The answer, once there is one; taking it removes the command.
    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError>;

    // Configuration.

    async fn create_project(&self, project: Project) -> Result<(), StoreError>;

    /// Creates a connection and its queue. `Conflict` when the name is taken in its project and kind; `NotFound` when it names a security
    /// definition that its project does not have, here and when it is replaced.
    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError>;

    /// Replaces a connection, rename and pause included, if `version` is still the stored one; its queue stays. Turning `ordered` on gives
    /// positions in the order of arrival.
    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError>;

    /// Refuses with `Conflict` while anything is in its queue or DLQ, unless `forced`: then they end as DISCARDED in the log (Z18).
    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError>;

    /// Named values such as the admin key's hash. `None` removes.
    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError>;

    /// Takes one of what the allowance has under this name, over all servers. Otherwise nothing is taken, and the answer is how long it is until
    /// one can be.
    async fn take_allowance(
        &self,
        name: &str,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<Option<Wait>, StoreError>;

    // Topics.

    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError>;
    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError>;
    /// `NotFound` when the topic does not exist.
    async fn publish(&self, project_id: ProjectId, message: TopicMessageDraft, body: NewBody)
    -> Result<(), StoreError>;
    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError>;
    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError>;
    /// Gives out messages that are neither acknowledged nor given out within `redeliver_after`, oldest first.
    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError>;
    /// How many of them were still unacknowledged.
    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError>;

    // Retention.

    /// Removes at most `rows_max` log rows that ended before `log_before`, with their attempts and unshared bodies; topic messages past their
    /// topic's retention that no subscription still owes (D41); ended idempotency keys; commands issued before `log_before`, answered or
    /// not. Each kind at most `rows_max`. Never what waits, nor the DLQ.
    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError>;

    /// Flushes, checkpoints and closes; later calls answer `Closed`.
    async fn close(&self) -> Result<(), StoreError>;
}
