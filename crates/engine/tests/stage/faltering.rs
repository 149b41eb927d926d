//! A store that answers as unavailable for as long as a test wants.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::alert::Alert;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Position};
use postrider_core::id::{
    BodyId, CommandId, ConnectionId, DeliveryId, EventId, JobId, ProjectId, QueueId, SecurityId, SubscriptionId,
    WorkerId,
};
use postrider_core::job::JobState;
use postrider_core::quota::Allowance;
use postrider_core::security::SecurityDefinition;
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};
use postrider_store::*;

#[path = "faltering_audit.rs"]
mod audit;
#[path = "faltering_events.rs"]
mod events;
#[path = "faltering_people.rs"]
mod people;

pub struct Faltering {
    store: MemoryStore,
    /// How many more calls of a verb fail.
    failing: Mutex<BTreeMap<&'static str, u32>>,
    asked: Mutex<BTreeMap<&'static str, u32>>,
    /// The next call of this verb panics.
    breaking: Mutex<Option<&'static str>>,
    /// How long each answer about the next due time is on its way.
    next_due_late_ms: Mutex<u64>,
}

impl Faltering {
    pub fn new(store: MemoryStore) -> Self {
        Faltering {
            store,
            failing: Mutex::default(),
            asked: Mutex::default(),
            breaking: Mutex::default(),
            next_due_late_ms: Mutex::default(),
        }
    }

    pub fn fail(&self, verb: &'static str, times: u32) {
        self.failing.lock().unwrap().insert(verb, times);
    }

    /// From now on what is answered about the next due time was true this long ago.
    pub fn answer_next_due_late(&self, ms: u64) {
        *self.next_due_late_ms.lock().unwrap() = ms;
    }

    pub fn break_down_at(&self, verb: &'static str) {
        *self.breaking.lock().unwrap() = Some(verb);
    }

    /// How often a verb was called.
    pub fn asked(&self, verb: &'static str) -> u32 {
        self.asked.lock().unwrap().get(verb).copied().unwrap_or_default()
    }

    fn falter(&self, verb: &'static str) -> Result<(), StoreError> {
        let breaks = self.breaking.lock().unwrap().take_if(|breaking| *breaking == verb).is_some();
        assert!(!breaks, "as the test wants it");
        *self.asked.lock().unwrap().entry(verb).or_default() += 1;
        let mut failing = self.failing.lock().unwrap();
        match failing.get_mut(verb) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Err(StoreError::Unavailable("the disk is away".to_owned()))
            }
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl StoreConfigure for Faltering {
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        self.falter("configure")?;
        self.store.configure(batch).await
    }
}

#[async_trait]
impl SecurityDefinitions for Faltering {
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError> {
        self.store.all_security().await
    }
    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        self.store.create_security(definition).await
    }
    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        self.store.replace_security(definition, version).await
    }
    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError> {
        self.store.delete_security(id).await
    }
}

#[async_trait]
impl KeyedAnswers for Faltering {
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError> {
        self.store.claim_answer(key, now).await
    }
    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError> {
        self.store.keep_answer(key_hash, answer).await
    }
}

#[async_trait]
impl KeyedCalls for Faltering {
    async fn reserve_key(
        &self,
        key: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError> {
        self.falter("reserve_key")?;
        self.store.reserve_key(key, delivery_id, now).await
    }
}

#[async_trait]
impl Store for Faltering {
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        self.falter("enqueue")?;
        self.store.enqueue(batch).await
    }
    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        self.falter("record_calls")?;
        self.store.record_calls(batch).await
    }
    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
        self.store.open_worker(worker_id, life, now).await
    }
    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        self.falter("renew_worker")?;
        self.store.renew_worker(worker_id, now).await
    }
    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError> {
        self.store.close_worker(worker_id).await
    }
    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.store.take_queues(worker_id, now, queues_max).await
    }
    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.store.take_named_queues(worker_id, now, queues).await
    }
    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError> {
        self.store.release_queue(lease).await
    }
    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        self.falter("load")?;
        self.store.load(lease, after, limit).await
    }
    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        self.falter("claim")?;
        self.store.claim(lease, now, limit).await
    }
    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        let answer = self.store.next_due(lease).await;
        let late_ms = *self.next_due_late_ms.lock().unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(late_ms)).await;
        answer
    }
    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError> {
        self.store.claimed_by_former_owner(lease, rows_max).await
    }
    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        self.falter("settle")?;
        self.store.settle(batch).await
    }
    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        self.store.submit_command(command, now).await
    }
    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        self.store.commands(lease).await
    }
    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
        self.store.answer_command(lease, id, answer).await
    }
    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
        self.store.take_answer(id).await
    }
    async fn create_project(&self, project: Project) -> Result<(), StoreError> {
        self.store.create_project(project).await
    }
    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError> {
        self.store.create_connection(connection).await
    }
    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        self.store.replace_connection(connection, version).await
    }
    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
        self.store.delete_connection(id, forced, now).await
    }
    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError> {
        self.falter("set_value")?;
        self.store.set_value(name, value).await
    }
    async fn take_allowance(
        &self,
        name: &str,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<Option<Wait>, StoreError> {
        self.store.take_allowance(name, allowance, now).await
    }
    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError> {
        self.store.create_topic(topic).await
    }
    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        self.store.delete_topic(project_id, name).await
    }
    async fn publish(
        &self,
        project_id: ProjectId,
        message: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        self.store.publish(project_id, message, body).await
    }
    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError> {
        self.store.create_subscription(subscription).await
    }
    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError> {
        self.store.delete_subscription(id).await
    }
    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError> {
        self.store.pull(id, now, messages_max).await
    }
    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError> {
        self.store.acknowledge(id, messages).await
    }
    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
        self.falter("prune")?;
        self.store.prune(log_before, now, rows_max).await
    }
    async fn close(&self) -> Result<(), StoreError> {
        self.store.close().await
    }
}

#[async_trait]
impl StoreRead for Faltering {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError> {
        self.store.project(name_or_id).await
    }
    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        self.store.projects().await
    }
    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
        self.store.connection(id).await
    }
    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError> {
        self.store.all_connections().await
    }
    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError> {
        self.store.connections(project_id, page).await
    }
    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        self.store.delivery(id).await
    }
    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.store.deliveries(filter, page).await
    }
    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        self.store.queue(queue_id, page).await
    }
    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        self.store.attempts(id).await
    }
    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        self.store.body(id).await
    }
    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError> {
        self.store.queue_summary(queue_id).await
    }
    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
        self.store.queue_summaries(project_id).await
    }
    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError> {
        self.store.counts(connection_id).await
    }
    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.store.dead_letters(queue_id, arrived_by, filter, after, rows_max).await
    }
    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError> {
        self.store.oldest_dead_letter(queue_id, filter).await
    }
    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError> {
        self.store.topic(project_id, name).await
    }
    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError> {
        self.store.topics(project_id, page).await
    }
    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError> {
        self.store.topic_messages(topic, page).await
    }
    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError> {
        self.store.subscription(topic, name).await
    }
    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError> {
        self.store.subscriptions(topic).await
    }
    async fn value(&self, name: &str) -> Result<Option<String>, StoreError> {
        self.store.value(name).await
    }
    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }
}

#[async_trait]
impl Jobs for Faltering {
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError> {
        self.store.create_job(job, active_max).await
    }
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        self.store.job(id).await
    }
    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError> {
        self.store.jobs(project_id, page).await
    }
    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError> {
        self.store.running_jobs().await
    }
    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError> {
        self.store.job_items(job, items_max).await
    }
    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError> {
        self.store.count_matching(filter, as_of, cursor).await
    }
    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        self.falter("step_job")?;
        self.store.step_job(step).await
    }
    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError> {
        self.store.set_job_state(id, version, state, now).await
    }
    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError> {
        self.store.job_queues(id).await
    }
    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.store.prune_jobs(ended_before, rows_max).await
    }
}

impl StoreVitals for Faltering {}

impl postrider_store::Signals for Faltering {}

impl postrider_store::Spreading for Faltering {}

#[async_trait]
impl Alerts for Faltering {
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError> {
        self.falter("write_alert")?;
        self.store.write_alert(write).await
    }
    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.store.open_alerts().await
    }
    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        self.store.alerts(project_id, open, page).await
    }
    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.store.prune_alerts(before, rows_max).await
    }
}
