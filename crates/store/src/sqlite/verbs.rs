//! The contract's verbs, each handed to the writer or to a reader. It must not do anything else.

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Position};
use postrider_core::id::{
    BodyId, CommandId, ConnectionId, DeliveryId, EventId, ProjectId, QueueId, SubscriptionId, WorkerId,
};
use postrider_core::quota::Allowance;
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};

use super::group::{Batch, Job};
use super::rows::{self, key, read_all, read_one};
use super::topics::{SUBSCRIPTION, TOPIC, read_subscription, read_topic};
use super::{
    SqliteStore, answered, commands, configuration, configure, intake, listing, lookups, ownership, retention, topics,
    window,
};
use crate::configure::{ConfigChange, StoreConfigure};
use crate::records::*;
use crate::{
    Counts, DeadLetterFilter, DeliveryFilter, Page, PageRequest, QueueSummary, Statistics, Store, StoreError, StoreRead,
};

#[async_trait]
impl Store for SqliteStore {
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        let (batch, answer) = Batch::new(batch);
        self.submit(Job::Enqueue(batch)).await?;
        answered(answer).await
    }

    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        self.write(move |work| intake::record_calls(work, &batch)).await
    }

    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
        self.write(move |work| ownership::open_worker(work, worker_id, life, now)).await
    }

    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        self.write(move |work| ownership::renew_worker(work, worker_id, now)).await
    }

    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError> {
        self.write(move |work| ownership::close_worker(work, worker_id)).await
    }

    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.write(move |work| ownership::take_queues(work, worker_id, now, queues_max)).await
    }

    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.write(move |work| ownership::take_named_queues(work, worker_id, now, &queues)).await
    }

    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError> {
        self.write(move |work| ownership::release_queue(work, &lease)).await
    }

    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        self.read(move |connection| window::load(connection, &lease, after, limit)).await
    }

    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        self.write(move |work| window::claim(work, &lease, now, limit)).await
    }

    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        self.read(move |connection| window::next_due(connection, &lease)).await
    }

    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError> {
        self.read(move |connection| window::claimed_by_former_owner(connection, &lease, rows_max)).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        let (batch, answer) = Batch::new(batch);
        self.submit(Job::Settle(batch)).await?;
        answered(answer).await
    }

    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        self.write(move |work| commands::submit(work, &command, now)).await
    }

    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        self.read(move |connection| commands::open(connection, &lease)).await
    }

    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
        self.write(move |work| commands::answer(work, &lease, id, answer)).await
    }

    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
        self.write(move |work| commands::take_answer(work, id)).await
    }

    async fn create_project(&self, project: Project) -> Result<(), StoreError> {
        self.write(move |work| configuration::create_project(work, &project)).await
    }

    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError> {
        let connection = connection.clone();
        self.write(move |work| configuration::create_connection(work, &connection)).await
    }

    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        let connection = connection.clone();
        self.write(move |work| configuration::replace_connection(work, &connection, version)).await
    }

    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
        self.write(move |work| configuration::delete_connection(work, id, forced, now)).await
    }

    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError> {
        let name = name.to_owned();
        self.write(move |work| configuration::set_value(work, &name, value.as_deref())).await
    }

    async fn take_allowance(
        &self,
        name: &str,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<Option<Wait>, StoreError> {
        let name = name.to_owned();
        self.write(move |work| configuration::take_allowance(work, &name, allowance, now)).await
    }

    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError> {
        self.write(move |work| topics::create(work, &topic)).await
    }

    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        let name = name.clone();
        self.write(move |work| topics::delete(work, project_id, &name)).await
    }

    async fn publish(
        &self,
        project_id: ProjectId,
        message: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        self.write(move |work| topics::publish(work, project_id, &message, &body)).await
    }

    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError> {
        self.write(move |work| topics::create_subscription(work, &subscription)).await
    }

    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError> {
        self.write(move |work| topics::delete_subscription(work, id)).await
    }

    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError> {
        self.write(move |work| topics::pull(work, id, now, messages_max)).await
    }

    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError> {
        self.write(move |work| topics::acknowledge(work, id, &messages)).await
    }

    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
        self.write(move |work| retention::prune(work, log_before, now, rows_max)).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.shut().await
    }
}

#[async_trait]
impl StoreConfigure for SqliteStore {
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        self.write(move |work| configure::configure(work, &batch)).await
    }
}

#[async_trait]
impl StoreRead for SqliteStore {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError> {
        let name_or_id = name_or_id.to_owned();
        self.read(move |connection| lookups::project(connection, &name_or_id)).await
    }

    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        self.read(lookups::projects).await
    }

    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
        let sql = format!("SELECT {} FROM connection WHERE id = ?1", rows::CONNECTION);
        self.read(move |connection| read_one(connection, &sql, &[&key(id.as_u128())], rows::read_connection)).await
    }

    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError> {
        let sql = format!("SELECT {} FROM connection ORDER BY id", rows::CONNECTION);
        self.read(move |connection| read_all(connection, &sql, &[], rows::read_connection)).await
    }

    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError> {
        self.read(move |connection| listing::connections(connection, project_id, &page)).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        self.read(move |connection| lookups::delivery(connection, id)).await
    }

    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| listing::deliveries(connection, &filter, &page)).await
    }

    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.read(move |connection| listing::queue(connection, queue_id, &page)).await
    }

    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        let sql = format!("SELECT {} FROM attempt WHERE delivery_id = ?1 ORDER BY number", rows::ATTEMPT);
        self.read(move |connection| read_all(connection, &sql, &[&key(id.as_u128())], rows::read_attempt)).await
    }

    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        self.read(move |connection| lookups::body(connection, id)).await
    }

    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError> {
        self.read(move |connection| lookups::queue_summary(connection, queue_id)).await
    }

    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
        self.read(move |connection| lookups::queue_summaries(connection, project_id)).await
    }

    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError> {
        self.read(move |connection| lookups::counts(connection, connection_id)).await
    }

    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.read(move |connection| lookups::dead_letters(connection, queue_id, arrived_by, filter, after, rows_max))
            .await
    }

    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.read(move |connection| lookups::oldest_dead_letter(connection, queue_id, filter)).await
    }

    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError> {
        let sql = format!("SELECT {TOPIC} FROM topic WHERE project_id = ?1 AND name = ?2");
        let name = name.clone();
        self.read(move |connection| {
            read_one(connection, &sql, &[&key(project_id.as_u128()), &name.as_str()], read_topic)
        })
        .await
    }

    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError> {
        self.read(move |connection| lookups::topics(connection, project_id, &page)).await
    }

    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError> {
        let topic = topic.clone();
        self.read(move |connection| lookups::topic_messages(connection, &topic, &page)).await
    }

    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError> {
        let sql = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE topic_id = ?1 AND name = ?2");
        let (id, name) = (key(topic.id.as_u128()), name.to_owned());
        self.read(move |connection| read_one(connection, &sql, &[&id, &name], read_subscription)).await
    }

    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError> {
        let sql = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE topic_id = ?1 ORDER BY name");
        let id = key(topic.id.as_u128());
        self.read(move |connection| read_all(connection, &sql, &[&id], read_subscription)).await
    }

    async fn value(&self, name: &str) -> Result<Option<String>, StoreError> {
        let name = name.to_owned();
        self.read(move |connection| {
            read_one(connection, "SELECT value FROM value WHERE name = ?1", &[&name], |row| Ok(row.get(0)?))
        })
        .await
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.counters.read())
    }

    /// The writer answers, and there is room for more.
    async fn check(&self) -> Result<(), StoreError> {
        self.space.check()?;
        self.write(|_| Ok(())).await
    }
}
