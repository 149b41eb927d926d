//! The engine as others see it: start, take requests in, let operators act, stop.

use std::sync::Arc;

use bytes::Bytes;
use postrider_core::Wait;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::decide::ByHand;
use postrider_core::delivery::Delivery;
use postrider_core::id::{Cid, DeliveryId, EventId, JobId, ProjectId};
use postrider_core::job::JobControl;
use postrider_core::message::{HeaderList, Message};
use postrider_core::outcome::Outcome;
use postrider_core::reach::Reached;
use postrider_core::readiness::Room;
use postrider_core::topic::TopicName;
use postrider_core::trace::TraceContext;
use postrider_store::{Idempotency, Job, Jobs, PullSubscription, Pulled, Store, StoreFigures, StoreRead, Topic};
use postrider_wire::{ReachMethod, Sender};
use serde_json::{Map, Value};

use crate::actor::Actor;
use crate::clock::Clock;
use crate::dice::Dice;
use crate::jobs::{self, JobOrder};
use crate::operators::{self, Wish};
use crate::options::EngineOptions;
use crate::refusal::Refusal;
use crate::securing::{self, NewSecurity};
use crate::securities::Security;
use crate::shared::Shared;
use crate::tally::Figures;
use crate::vault::Vault;
use crate::vitals::Standing;
use crate::{configuring, entry, lifecycle, reaching, topics};

/// A running engine. Clones share it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    /// Who does what is done through this clone.
    pub(crate) actor: Arc<Actor>,
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
    /// The trace of the caller, if it sent one.
    pub trace: Option<TraceContext>,
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
        let shared = lifecycle::start(store, sender, clock, dice, options).await?;
        Ok(Engine { shared, actor: Arc::new(Actor::system()) })
    }

    /// The same engine, on behalf of somebody: what is done through it stands in the audit log under that name.
    #[must_use]
    pub fn acting_as(&self, actor: Arc<Actor>) -> Engine {
        Engine { shared: Arc::clone(&self.shared), actor }
    }

    /// Takes nothing more in, lets attempts under way end for at most `grace`, settles them, releases every queue and closes the worker.
    pub async fn stop(&self, grace: Wait) {
        lifecycle::stop(&self.shared, grace).await;
    }

    /// Ends every task at once and writes nothing more, as a crash would: for tests and for simulation.
    pub fn abandon(&self) {
        lifecycle::end(&self.shared);
    }

    /// Reading goes straight to the store.
    pub fn read(&self) -> &dyn StoreRead {
        let store: &dyn Store = &*self.shared.store;
        store
    }

    /// The same for jobs.
    pub fn read_jobs(&self) -> &dyn Jobs {
        let store: &dyn Store = &*self.shared.store;
        store
    }

    /// Posts a mail, tried until it is taken, at most twelve times. `false`: no mail server is configured, nobody of `to` has an address, or the
    /// outbox is full.
    pub fn post_mail(&self, id: String, to: Vec<String>, subject: String, text: String) -> bool {
        self.shared.post_mail(id, to, subject, text)
    }

    /// Whether the process is worth keeping; answered from memory (P06).
    pub fn live(&self) -> Vec<Standing> {
        self.shared.vitals.live()
    }

    /// Whether requests should be sent here now; answered from memory (P06).
    pub fn ready(&self) -> Vec<Standing> {
        self.shared.vitals.ready(self.shared.is_stopping())
    }

    /// What this process has done since it started.
    pub fn figures(&self) -> Figures {
        let spans_dropped = self.shared.options.spans.get().map_or(0, |sink| sink.dropped());
        Figures { spans_dropped, ..self.shared.tally.read() }
    }

    /// The same of the store, where it keeps such figures; one or two system calls.
    pub fn store_figures(&self) -> (Room, Option<StoreFigures>) {
        (self.shared.store.room(), self.shared.store.figures())
    }

    /// All connections of all projects, as they are now, in the order of their ids.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.shared.connections.all()
    }

    /// The project that everything belongs to when none is named; the first one is `default`.
    pub async fn project(&self, name_or_id: &str) -> Result<ProjectId, Refusal> {
        self.shared.projects.find(&*self.shared.store, name_or_id).await
    }

    /// Seals secrets before they are stored, and opens them for the attempt that needs them (D46).
    pub fn vault(&self) -> &Arc<Vault> {
        &self.shared.vault
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
        let outcome = entry::send(&self.shared, project, connection, message, options).await?;
        self.shared.tally.answered(&outcome);
        Ok(outcome)
    }

    /// Stores and returns, no call first (Z31).
    pub async fn publish(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        message: Message,
        options: SendOptions,
    ) -> Result<Outcome, Refusal> {
        let outcome = entry::publish(&self.shared, project, connection, message, options).await?;
        self.shared.tally.answered(&outcome);
        Ok(outcome)
    }

    /// Publishes many to one connection, in order, and waits for room in the intake instead of refusing. One answer each, in order; a
    /// request that is refused leaves the others untouched.
    ///
    /// # Errors
    /// The connection is not there or not active, or the engine is stopping: nothing of the batch was stored.
    pub async fn publish_batch(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        batch: Vec<(Message, SendOptions)>,
    ) -> Result<Vec<Result<Outcome, Refusal>>, Refusal> {
        let answers = entry::publish_batch(&self.shared, project, connection, batch).await?;
        answers.iter().flatten().for_each(|outcome| self.shared.tally.answered(outcome));
        Ok(answers)
    }

    // Connections.

    pub async fn connection(&self, project: ProjectId, connection: &ConnectionRef) -> Result<Arc<Connection>, Refusal> {
        self.shared.connections.find(project, connection)
    }
    pub async fn create_connection(&self, project: ProjectId, new: NewConnection) -> Result<Arc<Connection>, Refusal> {
        configuring::create(&self.shared, &self.actor, project, new).await
    }
    /// Replaces all settings; a new `name` renames it and keeps its queue (Z18). The kind cannot change.
    pub async fn replace_connection(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        new: NewConnection,
    ) -> Result<Arc<Connection>, Refusal> {
        configuring::replace(&self.shared, &self.actor, project, connection, new).await
    }
    pub async fn delete_connection(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        forced: bool,
    ) -> Result<(), Refusal> {
        configuring::delete(&self.shared, &self.actor, project, connection, forced).await
    }
    /// Pauses or resumes: while paused, calls are stored and nothing is sent.
    pub async fn set_paused(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        paused: bool,
    ) -> Result<Arc<Connection>, Refusal> {
        configuring::set_paused(&self.shared, &self.actor, project, connection, paused).await
    }

    /// Tries whether its remote system can be reached now; nothing of it is stored.
    pub async fn ping(
        &self,
        project: ProjectId,
        connection: &ConnectionRef,
        method: ReachMethod,
    ) -> Result<Reached, Refusal> {
        reaching::ping(&self.shared, project, connection, method).await
    }

    /// For new objects: what time it is, and where ids come from.
    pub fn clock_and_dice(&self) -> (&dyn Clock, &dyn Dice) {
        (&*self.shared.clock, &*self.shared.dice)
    }

    // Security definitions. A change holds from the next attempt on.

    /// Of one project, by name.
    pub fn security_definitions(&self, project: ProjectId) -> Vec<Arc<Security>> {
        self.shared.securities.of(project)
    }
    pub fn security_definition(&self, project: ProjectId, name: &str) -> Result<Arc<Security>, Refusal> {
        self.shared.securities.find(project, name)
    }
    pub async fn create_security(&self, project: ProjectId, new: NewSecurity) -> Result<Arc<Security>, Refusal> {
        securing::create(&self.shared, &self.actor, project, new).await
    }
    /// Replaces all keys; the secret stays when it is left out and the type stays.
    pub async fn replace_security(
        &self,
        project: ProjectId,
        name: &str,
        new: NewSecurity,
    ) -> Result<Arc<Security>, Refusal> {
        securing::replace(&self.shared, &self.actor, project, name, new).await
    }
    /// # Errors
    /// `Conflict`, naming them, while connections refer to it.
    pub async fn delete_security(&self, project: ProjectId, name: &str) -> Result<(), Refusal> {
        securing::delete(&self.shared, &self.actor, project, name).await
    }

    // Deliveries, by a person.

    /// Retry, resend, discard, set aside or attempt now; answers with the delivery as it stands then. For a delivery in a leased queue the
    /// owner applies it between attempts (D06).
    pub async fn by_hand(&self, project: ProjectId, id: DeliveryId, act: ByHand) -> Result<Delivery, Refusal> {
        match act {
            ByHand::Edit | ByHand::Forward => Err(Refusal::Conflict("it needs a body or a topic".to_owned())),
            act => operators::grant(&self.shared, &self.actor, project, id, Wish::Act(act)).await,
        }
    }
    pub async fn edit_body(&self, project: ProjectId, id: DeliveryId, body: Bytes) -> Result<Delivery, Refusal> {
        operators::grant(&self.shared, &self.actor, project, id, Wish::Edit(body)).await
    }
    /// A dead letter goes to a topic, with or without the note in its headers.
    pub async fn forward(
        &self,
        project: ProjectId,
        id: DeliveryId,
        topic: &TopicName,
        keep_header: bool,
    ) -> Result<Delivery, Refusal> {
        operators::grant(&self.shared, &self.actor, project, id, Wish::Forward { topic: topic.clone(), keep_header })
            .await
    }

    // Jobs: one act over many deliveries (Z23, P08).

    /// Stores the job and begins it. `Full` with `jobs_active_max` when the project has that many that have not ended.
    pub async fn create_job(&self, project: ProjectId, order: JobOrder) -> Result<Job, Refusal> {
        jobs::create(&self.shared, &self.actor, project, order).await
    }
    pub async fn job(&self, project: ProjectId, id: JobId) -> Result<Job, Refusal> {
        jobs::one(&self.shared, project, id).await
    }
    /// Pauses, resumes or cancels. What has been handed to the owners of queues by then is still done.
    pub async fn control_job(&self, project: ProjectId, id: JobId, control: JobControl) -> Result<Job, Refusal> {
        jobs::control(&self.shared, &self.actor, project, id, control).await
    }
    /// How many deliveries a job like this would be about, and whether all were counted in the time that a dry run gets.
    pub async fn count_for(&self, project: ProjectId, order: &JobOrder) -> Result<(u64, bool), Refusal> {
        jobs::count_for(&self.shared, project, order).await
    }

    // Topics.

    pub async fn create_topic(
        &self,
        project: ProjectId,
        name: TopicName,
        description: String,
        retention: Wait,
    ) -> Result<Topic, Refusal> {
        topics::create(&self.shared, &self.actor, project, name, description, retention).await
    }
    pub async fn delete_topic(&self, project: ProjectId, name: &TopicName) -> Result<(), Refusal> {
        topics::delete(&self.shared, &self.actor, project, name).await
    }
    pub async fn publish_to_topic(
        &self,
        project: ProjectId,
        name: &TopicName,
        headers: HeaderList,
        body: Bytes,
        cid: Option<Cid>,
    ) -> Result<EventId, Refusal> {
        topics::publish(&self.shared, project, name, headers, body, cid).await
    }
    pub async fn create_subscription(
        &self,
        project: ProjectId,
        topic: &TopicName,
        name: String,
        redeliver_after: Wait,
    ) -> Result<PullSubscription, Refusal> {
        topics::subscribe(&self.shared, &self.actor, project, topic, name, redeliver_after).await
    }
    pub async fn delete_subscription(&self, project: ProjectId, topic: &TopicName, name: &str) -> Result<(), Refusal> {
        topics::unsubscribe(&self.shared, &self.actor, project, topic, name).await
    }
    pub async fn pull(
        &self,
        project: ProjectId,
        topic: &TopicName,
        subscription: &str,
        messages_max: u32,
    ) -> Result<Vec<Pulled>, Refusal> {
        topics::pull(&self.shared, project, topic, subscription, messages_max).await
    }
    pub async fn acknowledge(
        &self,
        project: ProjectId,
        topic: &TopicName,
        subscription: &str,
        ids: Vec<EventId>,
    ) -> Result<u64, Refusal> {
        topics::acknowledge(&self.shared, project, topic, subscription, ids).await
    }
}
