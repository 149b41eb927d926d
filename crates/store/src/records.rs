//! What goes into the store and comes out of it: plain values, no behaviour.

use bytes::Bytes;
use postrider_core::alert::AlertThresholds;
use postrider_core::attempt::Attempt;
use postrider_core::delivery::{Delivery, EventRef, Origin, Position, Progress};
use postrider_core::id::{
    BodyId, Cid, CommandId, ConnectionId, DeliveryId, EventId, JobId, ProjectId, QueueId, SubscriptionId, TopicId,
    WorkerId,
};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::schedule::LadderTerms;
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use serde::{Deserialize, Serialize};

use crate::health::HealthWrite;

/// A request to store durably before anybody is told (law 3).
#[derive(Clone, Debug)]
pub struct NewDelivery {
    pub id: DeliveryId,
    pub project_id: ProjectId,
    pub connection_id: ConnectionId,
    pub cid: Cid,
    pub origin: Origin,
    pub created_at: Timestamp,
    pub head: RequestHead,
    pub body: NewBody,
    pub event: Option<EventRef>,
    pub ladder: Option<LadderTerms>,
    pub progress: Progress,
    /// Whether the queue keeps strict order.
    pub ordered: bool,
    /// The owner of an unordered queue with a free slot takes the delivery as it is stored: `progress` has begun its first attempt
    /// already, and the lease is checked as in `claim`. When the lease has ended, or the queue is ordered, the delivery is stored as
    /// PENDING with that attempt taken back, and `Enqueued::Stored::claimed` is `false`: it must not be sent by this owner.
    pub claimed_under: Option<QueueLease>,
    pub idempotency: Option<Idempotency>,
}

/// A body; deliveries of one event name the same id, and it is stored once.
#[derive(Clone, Debug)]
pub struct NewBody {
    pub id: BodyId,
    pub bytes: Bytes,
}

/// A caller's promise that a repeat is the same request (D15). Scope, key and request are hashed by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Idempotency {
    pub key_hash: [u8; 32],
    pub request_hash: [u8; 32],
    pub ends_at: Timestamp,
}

/// What became of one request of an `enqueue` batch. The batch is one transaction; a refused one leaves no trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// `ahead`: how many were waiting in the queue at that moment, those stored earlier in the same batch included (Z11).
    /// `claimed`: it was taken under `claimed_under`; `false` when none was named or that lease had ended: then it waits unspent.
    /// `held_under`: the token under which a worker had the queue at that moment; from then on only this worker changes it (D06).
    Stored { position: Position, ahead: u64, claimed: bool, held_under: Option<FencingToken> },
    /// The same idempotency key and the same request came before: that delivery's id.
    Repeated(DeliveryId),
    /// The same idempotency key with another request.
    KeyReused,
    /// A limit of the queue or of the store (D07).
    Full { limit: &'static str },
    /// The connection is gone.
    NoConnection,
}

/// A call on a connection with the queue off, entered after the fact (D12). Written straight to the log.
#[derive(Clone, Debug)]
pub struct CallRecord {
    pub delivery: NewDelivery,
    pub attempts: Vec<Attempt>,
}

/// A worker's own lease: one row, renewed by heartbeat (D05).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLease {
    pub worker_id: WorkerId,
    pub life: Wait,
}

/// The right to write to one queue: a stale token changes nothing (law 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueLease {
    pub queue_id: QueueId,
    pub worker_id: WorkerId,
    pub token: FencingToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(pub i64);

/// A queue just taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenQueue {
    pub lease: QueueLease,
    /// The former owner did not release it: its head, or what it had claimed, may have been in flight (D04).
    pub taken_over: bool,
    /// Something in it is PROCESSING under a former token: `claimed_by_former_owner` tells what.
    pub has_claims: bool,
    /// Commands to a former owner wait for an answer.
    pub has_commands: bool,
}

/// A delivery with its body, ready to be sent.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub delivery: Delivery,
    pub body: Bytes,
}

/// How much a load or claim may bring into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    pub deliveries_max: u32,
    /// At least one delivery comes, however large its body.
    pub bytes_max: u64,
}

/// One decision, to be written in one transaction (law 2).
#[derive(Clone, Debug)]
pub struct Settlement {
    pub delivery_id: DeliveryId,
    pub queue_id: QueueId,
    pub guard: Guard,
    pub progress: Progress,
    pub placement: Placement,
    pub attempt: Option<Attempt>,
    /// The delivery's content goes to this topic in the same transaction (Z22).
    pub forward: Option<Box<Forward>>,
    /// A new body row; the one accepted stays as the original (D06).
    pub edited_body: Option<NewBody>,
    /// The command that this settles, answered in the same transaction.
    pub answers: Option<(CommandId, CommandAnswer)>,
    /// What the attempt makes of its endpoint.
    pub health: Option<Box<HealthWrite>>,
}

/// A message on its way to a topic, made of a delivery whose body it shares.
#[derive(Clone, Debug)]
pub struct Forward {
    pub message: TopicMessageDraft,
    /// For the topic's subscriptions that push (D40), each with the delivery's own body. All are stored, or nothing is written.
    pub deliveries: Vec<NewDelivery>,
}

impl From<TopicMessageDraft> for Box<Forward> {
    fn from(message: TopicMessageDraft) -> Self {
        Box::new(Forward { message, deliveries: Vec::new() })
    }
}

/// What must still hold for a settlement to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The owner of the queue writes under its token to what waits there (PENDING, PROCESSING); all else is `Stale`.
    Lease(QueueLease),
    /// Anybody writes to a delivery that does not wait in a queue with an owner, if it has not changed since (D06). An owner whose lease
    /// has run out counts until `submit_command`, a takeover or a reopening of the store has ended it.
    Version(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Where it is; leaving the queue for the DLQ or the log needs no placement.
    Keep,
    /// A new position behind everything that waits.
    Tail,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// With the delivery's new version.
    Applied { version: u32, position: Option<Position> },
    /// The guard did not hold; nothing was written.
    Stale,
    /// The topic to forward to does not exist; nothing was written.
    NoTopic,
    /// A queue that the forward would go to has no room, or the disk has none; nothing was written.
    Full { limit: &'static str },
    /// There is no such delivery in that queue, or its connection has been deleted and it cannot come back.
    Gone,
}

/// An operator's change to a delivery that its queue's owner holds (D06).
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    pub id: CommandId,
    pub queue_id: QueueId,
    pub delivery_id: DeliveryId,
    pub act: CommandAct,
    pub issued_at: Timestamp,
    /// The job that asks. Its answer is counted there, in the transaction of the answer, and waits for nobody.
    pub job_id: Option<JobId>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CommandAct {
    Edit { body: Bytes },
    Discard,
    SetAside,
    AttemptNow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandAnswer {
    Applied,
    /// The attempt under way succeeded first (409 `already_delivered`).
    AlreadyDelivered,
    /// The delivery was no longer in the queue.
    NotWaiting,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topic {
    pub id: TopicId,
    pub project_id: ProjectId,
    pub name: TopicName,
    pub description: String,
    pub retention: Wait,
    pub created_at: Timestamp,
}

/// A message to publish on a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMessageDraft {
    pub topic: TopicName,
    pub id: EventId,
    pub cid: Cid,
    pub headers: HeaderList,
    pub published_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicMessage {
    pub sequence: i64,
    pub id: EventId,
    pub cid: Cid,
    pub headers: HeaderList,
    pub published_at: Timestamp,
    pub body: Bytes,
}

/// A subscription that pulls: each message is given out until it is acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PullSubscription {
    pub id: SubscriptionId,
    pub project_id: ProjectId,
    pub topic_id: TopicId,
    pub name: String,
    /// An unacknowledged message is given out again after this long.
    pub redeliver_after: Wait,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulled {
    pub message: TopicMessage,
    /// How often it has been given out, this time included.
    pub times_given: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    pub id: ProjectId,
    pub name: String,
    pub settings: ProjectSettings,
    pub created_at: Timestamp,
}

/// What an operator says about a project (D45).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectSettings {
    /// Who is written to about it.
    pub owner_email: Option<String>,
    /// Whether its webhooks are paid for; `false`: `not_entitled`.
    pub entitled: bool,
    /// Webhook attempts a second over all endpoints; `None`: no limit.
    pub rate_limit_per_second: Option<u32>,
    /// Webhook attempts at a time over all endpoints; `None`: no limit.
    pub concurrency: Option<u32>,
    /// When somebody is told about its queues (P09).
    pub alerts: AlertThresholds,
}

impl Default for ProjectSettings {
    fn default() -> Self {
        ProjectSettings {
            owner_email: None,
            entitled: true,
            rate_limit_per_second: None,
            concurrency: None,
            alerts: AlertThresholds::default(),
        }
    }
}

/// How many rows one step of retention removed; zero of each means there is nothing more to do now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    pub deliveries: u64,
    pub attempts: u64,
    pub bodies: u64,
    pub topic_messages: u64,
    pub idempotency_keys: u64,
}
