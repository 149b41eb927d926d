//! The engine as others see it: start, take requests in, let operators act, stop.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::decide::ByHand;
use postrider_core::delivery::Delivery;
use postrider_core::id::{Cid, DeliveryId, EventId, ProjectId};
use postrider_core::message::{HeaderList, Message};
use postrider_core::outcome::Outcome;
use postrider_core::topic::TopicName;
use postrider_store::{Idempotency, PullSubscription, Pulled, Store, StoreRead, Topic};
use postrider_wire::Sender;
use serde_json::{Map, Value};

use crate::clock::Clock;
use crate::dice::Dice;
use crate::options::EngineOptions;
use crate::refusal::Refusal;

/// A running engine. Clones share it.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] postrider_store::StoreError),
}

/// A connection as a caller names it; `kind` where the name alone is ambiguous (D16).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRef {
    pub name: String,
    pub kind: Option<ConnectionKind>,
}

/// What an operator wrote about a connection, not yet validated.
#[derive(Clone, Debug, PartialEq)]
pub struct NewConnection {
    pub name: String,
    pub kind: ConnectionKind,
    pub written: Map<String, Value>,
}

#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// The caller's own correlation id, if it has one.
    pub cid: Option<Cid>,
    pub idempotency: Option<Idempotency>,
}

impl Engine {
    /// Opens the worker's lease, takes over what has no living owner, and begins to deliver.
    pub async fn start(
        store: Arc<dyn Store>,
        sender: Arc<dyn Sender>,
        clock: Arc<dyn Clock>,
        dice: Arc<dyn Dice>,
        options: EngineOptions,
    ) -> Result<Engine, StartError> {
        todo!()
    }

    /// Takes nothing more in, lets attempts under way end for at most `grace`, settles them, releases every queue and closes the worker.
    pub async fn stop(&self, grace: Wait) {
        todo!()
    }

    /// Reading goes straight to the store.
    pub fn read(&self) -> &dyn StoreRead {
        todo!()
    }

    /// The project that everything belongs to when none is named; the first one is `default`.
    pub async fn project(&self, name_or_id: &str) -> Result<ProjectId, Refusal> {
        todo!()
    }

    // Calls.

    /// A call: attempted in its turn, its caller told the outcome (Z01-Z05, Z10-Z12, Z30, D10). Dropping the future is a caller that leaves.
    pub async fn send(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        message: Message,
        options: SendOptions,
    ) -> Result<Outcome, Refusal> {
        todo!()
    }

    /// Stores and returns, no call first (Z31).
    pub async fn publish(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        message: Message,
        options: SendOptions,
    ) -> Result<Outcome, Refusal> {
        todo!()
    }

    // Connections.

    pub async fn connection(&self, project: ProjectId, connection: &ConnectionRef) -> Result<Arc<Connection>, Refusal> {
        todo!()
    }
    pub async fn create_connection(&self, project: ProjectId, new: NewConnection) -> Result<Arc<Connection>, Refusal> {
        todo!()
    }
    /// Replaces all settings; a new `name` renames it and keeps its queue (Z18). The kind cannot change.
    pub async fn replace_connection(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        new: NewConnection,
    ) -> Result<Arc<Connection>, Refusal> {
        todo!()
    }
    pub async fn delete_connection(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        forced: bool,
    ) -> Result<(), Refusal> {
        todo!()
    }
    /// Pauses or resumes: while paused, calls are stored and nothing is sent.
    pub async fn set_paused(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        paused: bool,
    ) -> Result<Arc<Connection>, Refusal> {
        todo!()
    }

    // Deliveries, by a person.

    /// Retry, resend, discard, set aside or attempt now; answers with the delivery as it stands then. For a delivery in a leased queue the
    /// owner applies it between attempts (D06).
    pub async fn by_hand(&self, project: ProjectId, id: DeliveryId, act: ByHand) -> Result<Delivery, Refusal> {
        todo!()
    }
    pub async fn edit_body(&self, project: ProjectId, id: DeliveryId, body: Bytes) -> Result<Delivery, Refusal> {
        todo!()
    }
    /// A dead letter goes to a topic, with or without the note in its headers.
    pub async fn forward(
        &self,
        project: ProjectId,
        id: DeliveryId,
        topic: &TopicName,
        keep_header: bool,
    ) -> Result<Delivery, Refusal> {
        todo!()
    }

    // Topics.

    pub async fn create_topic(
        &self,
        project: ProjectId,
        name: TopicName,
        description: String,
        retention: Wait,
    ) -> Result<Topic, Refusal> {
        todo!()
    }
    pub async fn delete_topic(&self, project: ProjectId, name: &TopicName) -> Result<(), Refusal> {
        todo!()
    }
    pub async fn publish_to_topic(
        &self,
        project: ProjectId,
        name: &TopicName,
        headers: HeaderList,
        body: Bytes,
    ) -> Result<EventId, Refusal> {
        todo!()
    }
    pub async fn create_subscription(
        &self,
        project: ProjectId,
        topic: &TopicName,
        name: String,
        redeliver_after: Wait,
    ) -> Result<PullSubscription, Refusal> {
        todo!()
    }
    pub async fn delete_subscription(&self, project: ProjectId, topic: &TopicName, name: &str) -> Result<(), Refusal> {
        todo!()
    }
    pub async fn pull(
        &self,
        project: ProjectId,
        topic: &TopicName,
        subscription: &str,
        messages_max: u32,
    ) -> Result<Vec<Pulled>, Refusal> {
        todo!()
    }
    pub async fn acknowledge(
        &self,
        project: ProjectId,
        topic: &TopicName,
        subscription: &str,
        ids: Vec<EventId>,
    ) -> Result<u64, Refusal> {
        todo!()
    }
}
