//! The contract's verbs, each handed to a lane or to a reader. It must not do anything else.

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::FutureExt as _;
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
use super::window::Claim;
use super::{
    PostgresStore, commands, configuration, configure, intake, listing, lookups, ownership, retention, topics, window,
};
use crate::configure::{ConfigChange, StoreConfigure};
use crate::records::*;
use crate::{
    Counts, DeadLetterFilter, DeliveryFilter, Page, PageRequest, QueueSummary, Statistics, Store, StoreError, StoreRead,
};

#[async_trait]
impl Store for PostgresStore {
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        let (batch, answer) = Batch::new(batch);
        self.submit(&self.lanes.intake, Job::Enqueue(batch), answer).await
    }

    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        self.write(batch, |work, batch| intake::record_calls(work, batch).boxed()).await
    }

    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
        let data = (worker_id, life, now);
        self.lease(data, |work, (id, life, now)| ownership::open_worker(work, *id, *life, *now).boxed()).await
    }

    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        self.lease((worker_id, now), |work, (id, now)| ownership::renew_worker(work, *id, *now).boxed()).await
    }

    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError> {
        self.lease(worker_id, |work, id| ownership::close_worker(work, *id).boxed()).await
    }

    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        let data = (worker_id, now, queues_max);
        self.lease(data, |work, (id, now, max)| ownership::take_queues(work, *id, *now, *max).boxed()).await
    }

    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        let data = (worker_id, now, queues);
        self.lease(data, |work, (id, now, named)| ownership::take_named_queues(work, *id, *now, named).boxed()).await
    }

    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError> {
        self.lease(lease, |work, lease| ownership::release_queue(work, lease).boxed()).await
    }

    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        let data = (lease, after, limit);
        self.read(data, |work, (lease, after, limit)| window::load(work, lease, *after, *limit).boxed()).await
    }

    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        let (batch, answer) = Batch::new(vec![Claim { lease, now, limit }]);
        let claimed = self.submit(&self.lanes.settle, Job::Claim(batch), answer).await;
        claimed?.pop().flatten().ok_or(StoreError::LeaseLost)
    }

    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        self.read(lease, |work, lease| window::next_due(work, lease).boxed()).await
    }

    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError> {
        let data = (lease, rows_max);
        self.read(data, |work, (lease, max)| window::claimed_by_former_owner(work, lease, *max).boxed()).await
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        let (batch, answer) = Batch::new(batch);
        self.submit(&self.lanes.settle, Job::Settle(batch), answer).await
    }

    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        self.write((command, now), |work, (command, now)| commands::submit(work, command, *now).boxed()).await
    }

    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        self.read(lease, |work, lease| commands::open(work, lease).boxed()).await
    }

    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
        let data = (lease, id, answer);
        self.write(data, |work, (lease, id, answer)| commands::answer(work, lease, *id, *answer).boxed()).await
    }

    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
        self.write(id, |work, id| commands::take_answer(work, *id).boxed()).await
    }

    async fn create_project(&self, project: Project) -> Result<(), StoreError> {
        self.write(project, |work, project| configuration::create_project(work, project).boxed()).await
    }

    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError> {
        self.write(connection.clone(), |work, connection| configuration::create_connection(work, connection).boxed())
            .await
    }

    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        let data = (connection.clone(), version);
        self.write(data, |work, (connection, version)| {
            configuration::replace_connection(work, connection, *version).boxed()
        })
        .await
    }

    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
        let data = (id, forced, now);
        self.write(data, |work, (id, forced, now)| configuration::delete_connection(work, *id, *forced, *now).boxed())
            .await
    }

    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError> {
        let data = (name.to_owned(), value);
        self.write(data, |work, (name, value)| configuration::set_value(work, name, value.as_deref()).boxed()).await
    }

    async fn take_allowance(
        &self,
        name: &str,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<Option<Wait>, StoreError> {
        let data = (name.to_owned(), allowance, now);
        self.write(data, |work, (name, allowance, now)| {
            configuration::take_allowance(work, name, *allowance, *now).boxed()
        })
        .await
    }

    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError> {
        self.write(topic, |work, topic| topics::create(work, topic).boxed()).await
    }

    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        self.write((project_id, name.clone()), |work, (id, name)| topics::delete(work, *id, name).boxed()).await
    }

    async fn publish(
        &self,
        project_id: ProjectId,
        message: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        let data = (project_id, message, body);
        self.write(data, |work, (id, message, body)| topics::publish(work, *id, message, body).boxed()).await
    }

    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError> {
        self.write(subscription, |work, subscription| topics::create_subscription(work, subscription).boxed()).await
    }

    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError> {
        self.write(id, |work, id| topics::delete_subscription(work, *id).boxed()).await
    }

    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError> {
        let data = (id, now, messages_max);
        self.write(data, |work, (id, now, max)| topics::pull(work, *id, *now, *max).boxed()).await
    }

    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError> {
        self.write((id, messages), |work, (id, messages)| topics::acknowledge(work, *id, messages).boxed()).await
    }

    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
        self.look_after_partitions(log_before).await?;
        let data = (log_before, now, rows_max);
        self.write(data, |work, (before, now, max)| retention::prune(work, *before, *now, *max).boxed()).await
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.shut().await
    }
}

#[async_trait]
impl StoreConfigure for PostgresStore {
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        self.write(batch, |work, batch| configure::configure(work, batch).boxed()).await
    }
}

#[async_trait]
impl StoreRead for PostgresStore {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError> {
        self.read(name_or_id.to_owned(), |work, name| lookups::project(work, name).boxed()).await
    }

    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        self.read((), |work, ()| lookups::projects(work).boxed()).await
    }

    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
        self.read(id, |work, id| lookups::connection(work, *id).boxed()).await
    }

    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError> {
        self.read((), |work, ()| lookups::all_connections(work).boxed()).await
    }

    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError> {
        self.read((project_id, page), |work, (id, page)| listing::connections(work, *id, page).boxed()).await
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        self.read(id, |work, id| lookups::delivery(work, *id).boxed()).await
    }

    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        let data = (filter.clone(), page);
        self.read_together(data, |work, (filter, page)| listing::deliveries(work, filter, page).boxed()).await
    }

    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.read_together((queue_id, page), |work, (id, page)| listing::queue(work, *id, page).boxed()).await
    }

    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        self.read(id, |work, id| lookups::attempts(work, *id).boxed()).await
    }

    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        self.read(id, |work, id| lookups::body(work, *id).boxed()).await
    }

    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError> {
        self.read(queue_id, |work, id| lookups::queue_summary(work, *id).boxed()).await
    }

    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
        self.read(project_id, |work, id| lookups::queue_summaries(work, *id).boxed()).await
    }

    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError> {
        self.read_together(connection_id, |work, id| lookups::counts(work, *id).boxed()).await
    }

    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let data = (queue_id, arrived_by, filter, after, rows_max);
        self.read(data, |work, (id, by, filter, after, max)| {
            lookups::dead_letters(work, *id, *by, *filter, *after, *max).boxed()
        })
        .await
    }

    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError> {
        let data = (queue_id, filter);
        self.read(data, |work, (id, filter)| lookups::oldest_dead_letter(work, *id, *filter).boxed()).await
    }

    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError> {
        self.read((project_id, name.clone()), |work, (id, name)| lookups::topic(work, *id, name).boxed()).await
    }

    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError> {
        self.read((project_id, page), |work, (id, page)| lookups::topics(work, *id, page).boxed()).await
    }

    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError> {
        self.read((topic.clone(), page), |work, (topic, page)| lookups::topic_messages(work, topic, page).boxed()).await
    }

    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError> {
        let data = (topic.id, name.to_owned());
        self.read(data, |work, (topic, name)| lookups::subscription(work, *topic, name).boxed()).await
    }

    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError> {
        self.read(topic.id, |work, topic| lookups::subscriptions(work, *topic).boxed()).await
    }

    async fn value(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.read(name.to_owned(), |work, name| lookups::value(work, name).boxed()).await
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.context.counters.read())
    }

    /// The database answers, and takes writes.
    async fn check(&self) -> Result<(), StoreError> {
        self.read((), |work, ()| lookups::check(work).boxed()).await
    }
}
