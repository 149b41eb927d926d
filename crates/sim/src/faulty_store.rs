//! A store that falters: delays, refusals, a full disk, a database that is away, and a crash at any call, as the seed says.
//!
//! It passes everything through to a sound store, which the oracle reads behind its back, and shows the oracle what was written.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
use postrider_engine::Clock as _;
use postrider_store::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::sync::Notify;

use crate::clock::SimClock;
use crate::oracle::Oracle;
use crate::plan::{StoreFaults, Trouble, TroubleKind};
use crate::tamper::{Defect, Tampered};

pub struct FaultyStore {
    inner: Tampered,
    oracle: Arc<Oracle>,
    clock: Arc<SimClock>,
    state: Mutex<State>,
    intake_turns: tokio::sync::Mutex<()>,
    /// Told when the store has crashed; the driver then drops the runtime.
    pub crashed: Arc<Notify>,
}

struct State {
    rng: StdRng,
    faults: StoreFaults,
    troubles: Vec<Trouble>,
    /// Calls until the crash, if one is planned.
    calls_left: Option<u32>,
    calls: u64,
    down: bool,
}

/// What a call does, as far as faults tell calls apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Reads,
    Writes,
    /// Brings in something new, which a full disk refuses.
    TakesIn,
}

enum Fate {
    Sound,
    ErrorBefore,
    ErrorAfter,
    Full,
    /// The process dies before the call is carried out, or after it.
    Crash {
        written: bool,
    },
}

impl FaultyStore {
    /// Without faults until it is armed.
    pub fn new(
        inner: Arc<dyn Store>,
        seed: u64,
        oracle: Arc<Oracle>,
        clock: Arc<SimClock>,
        defect: Option<Defect>,
    ) -> Self {
        let state = State {
            rng: StdRng::seed_from_u64(seed),
            faults: StoreFaults::default(),
            troubles: Vec::new(),
            calls_left: None,
            calls: 0,
            down: false,
        };
        FaultyStore {
            inner: Tampered::new(inner, defect),
            oracle,
            clock,
            state: Mutex::new(state),
            intake_turns: tokio::sync::Mutex::new(()),
            crashed: Arc::new(Notify::new()),
        }
    }

    /// Faults begin.
    pub fn arm(&self, faults: StoreFaults, troubles: Vec<Trouble>, crash_after_calls: Option<u32>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.faults = faults;
        state.troubles = troubles;
        state.calls_left = crash_after_calls;
    }

    /// No more faults from now on.
    pub fn heal(&self) {
        self.arm(StoreFaults::default(), Vec::new(), None);
    }

    pub fn calls(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    async fn fate(&self, call: Call) -> Fate {
        let (delay, fate) = self.decide(call);
        if let Some(delay) = delay {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        fate
    }

    fn decide(&self, call: Call) -> (Option<u64>, Fate) {
        let now_ms = self.clock.monotonic().as_millis();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.calls += 1;
        let roll = state.rng.random_range(0..1000u32);
        let delay = state.rng.random_range(0..1000u32) < state.faults.delay;
        let delay = delay.then(|| state.rng.random_range(1..200u64));
        let written = state.rng.random_bool(0.5);
        let dies = match &mut state.calls_left {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        if state.down || dies {
            let written = written && !state.down;
            state.down = true;
            return (None, Fate::Crash { written });
        }
        let trouble = state.troubles.iter().find(|trouble| (trouble.from_ms..trouble.until_ms).contains(&now_ms));
        let fate = match trouble.map(|trouble| trouble.kind) {
            Some(TroubleKind::Away) => Fate::ErrorBefore,
            Some(TroubleKind::Full) if call == Call::TakesIn => Fate::Full,
            _ if roll < state.faults.error_before => Fate::ErrorBefore,
            _ if roll < state.faults.error_before + state.faults.error_after => Fate::ErrorAfter,
            _ => Fate::Sound,
        };
        (delay, fate)
    }

    /// Dead processes do not go on.
    async fn die<T>(&self) -> T {
        self.crashed.notify_one();
        std::future::pending().await
    }

    async fn enqueue_shown(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        let ids: Vec<_> = batch.iter().map(|new| (new.id, new.connection_id)).collect();
        let enqueued = self.inner.enqueue(batch).await?;
        self.oracle.saw_enqueued(&ids, &enqueued);
        Ok(enqueued)
    }

    async fn submit_command_shown(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        let queue_id = command.queue_id;
        let is_submitted = self.inner.inner.submit_command(command, now).await?;
        if !is_submitted {
            self.oracle.saw_no_taker(queue_id);
        }
        Ok(is_submitted)
    }

    async fn settle_shown(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        let settled = self.inner.settle(batch.clone(), |lease| self.oracle.newest_lease(lease)).await;
        self.oracle.saw_settled(&batch, settled.as_deref().ok());
        settled
    }

    async fn step_job_shown(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        self.oracle.sees_job_step(&step);
        let stepped = self.inner.step_job(step.clone()).await?;
        self.oracle.saw_job_step(&step, &stepped);
        Ok(stepped)
    }

    async fn taken_shown(&self, taken: Result<Vec<TakenQueue>, StoreError>) -> Result<Vec<TakenQueue>, StoreError> {
        let taken = taken?;
        self.oracle.saw_taken(&taken).await;
        Ok(taken)
    }

    async fn take_queues_shown(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.taken_shown(self.inner.inner.take_queues(worker_id, now, queues_max).await).await
    }

    async fn take_named_queues_shown(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.taken_shown(self.inner.inner.take_named_queues(worker_id, now, queues).await).await
    }

    async fn load_shown(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        let loaded = self.inner.load(lease, after, limit).await?;
        self.oracle.saw_read_under(lease);
        Ok(loaded)
    }

    async fn claim_shown(
        &self,
        lease: QueueLease,
        now: Timestamp,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        let claimed = self.inner.claim(lease, now, limit).await?;
        self.oracle.saw_read_under(lease);
        Ok(claimed)
    }

    async fn renew_worker_shown(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        let renewed = self.inner.inner.renew_worker(worker_id, now).await;
        if renewed == Err(StoreError::LeaseLost) {
            self.oracle.saw_lease_lost(worker_id).await;
        }
        renewed
    }
}

fn faltered<T>() -> Result<T, StoreError> {
    Err(StoreError::Unavailable("simulated".to_owned()))
}

macro_rules! with_any_fate {
    ($self:ident, $kind:ident, $call:expr) => {
        match $self.fate(Call::$kind).await {
            Fate::Sound => $call.await,
            Fate::ErrorBefore => faltered(),
            Fate::Full => Err(StoreError::Full { limit: "store_free_bytes_min" }),
            Fate::ErrorAfter => {
                $call.await?;
                faltered()
            }
            Fate::Crash { written } => {
                if written {
                    let _ = $call.await;
                }
                $self.die().await
            }
        }
    };
}

#[path = "faulty_audit.rs"]
mod audit;
#[path = "faulty_events.rs"]
mod events;
#[path = "faulty_deferrals.rs"]
mod faulty_deferrals;
#[path = "faulty_people.rs"]
mod people;
#[path = "faulty_sources.rs"]
mod sources;

#[async_trait]
impl StoreRead for FaultyStore {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.project(name_or_id))
    }
    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.projects())
    }
    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.connection(id))
    }
    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.all_connections())
    }
    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.connections(project_id, page))
    }
    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.delivery(id))
    }
    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.deliveries(filter, page))
    }
    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.queue(queue_id, page))
    }
    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.attempts(id))
    }
    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.body(id))
    }
    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.queue_summary(queue_id))
    }
    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.queue_summaries(project_id))
    }
    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.counts(connection_id))
    }
    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.dead_letters(queue_id, arrived_by, filter, after, rows_max))
    }
    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.oldest_dead_letter(queue_id, filter))
    }
    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.topic(project_id, name))
    }
    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.topics(project_id, page))
    }
    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.topic_messages(topic, page))
    }
    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.subscription(topic, name))
    }
    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.subscriptions(topic))
    }
    async fn value(&self, name: &str) -> Result<Option<String>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.value(name))
    }
    async fn check(&self) -> Result<(), StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.check())
    }
}

#[async_trait]
impl StoreConfigure for FaultyStore {
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.configure(batch))
    }
}

#[async_trait]
impl SecurityDefinitions for FaultyStore {
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.all_security())
    }
    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_security(definition))
    }
    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.replace_security(definition, version))
    }
    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.delete_security(id))
    }
}

#[async_trait]
impl KeyedAnswers for FaultyStore {
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError> {
        with_any_fate!(self, TakesIn, self.inner.inner.claim_answer(key, now))
    }
    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.keep_answer(key_hash, answer.clone()))
    }
}

#[async_trait]
impl KeyedCalls for FaultyStore {
    async fn reserve_key(
        &self,
        key: Idempotency,
        delivery_id: DeliveryId,
        now: Timestamp,
    ) -> Result<Reserved, StoreError> {
        with_any_fate!(self, TakesIn, self.inner.inner.reserve_key(key, delivery_id, now))
    }
}

#[async_trait]
impl Store for FaultyStore {
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        // The contract: calls under way are carried out in their order, however long each takes.
        let _turn = self.intake_turns.lock().await;
        with_any_fate!(self, TakesIn, self.enqueue_shown(batch))
    }
    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.record_calls(batch))
    }
    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.open_worker(worker_id, life, now))
    }
    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.renew_worker_shown(worker_id, now))
    }
    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.close_worker(worker_id))
    }
    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        with_any_fate!(self, Writes, self.take_queues_shown(worker_id, now, queues_max))
    }
    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        with_any_fate!(self, Writes, self.take_named_queues_shown(worker_id, now, queues))
    }
    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.release_queue(lease))
    }
    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        with_any_fate!(self, Writes, self.load_shown(lease, after, limit))
    }
    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        with_any_fate!(self, Writes, self.claim_shown(lease, now, limit))
    }
    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.next_due(lease))
    }
    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.claimed_by_former_owner(lease, rows_max))
    }
    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        with_any_fate!(self, Writes, self.settle_shown(batch))
    }
    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        with_any_fate!(self, Writes, self.submit_command_shown(command, now))
    }
    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.commands(lease))
    }
    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.answer_command(lease, id, answer))
    }
    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.take_answer(id))
    }
    async fn create_project(&self, project: Project) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_project(project))
    }
    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_connection(connection))
    }
    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.replace_connection(connection, version))
    }
    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.delete_connection(id, forced, now))
    }
    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.set_value(name, value))
    }
    async fn take_allowance(&self, name: &str, of: Allowance, now: Timestamp) -> Result<Option<Wait>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.take_allowance(name, of, now))
    }
    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_topic(topic))
    }
    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.delete_topic(project_id, name))
    }
    async fn publish(
        &self,
        project_id: ProjectId,
        message: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        with_any_fate!(self, TakesIn, self.inner.inner.publish(project_id, message, body))
    }
    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.create_subscription(subscription))
    }
    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.delete_subscription(id))
    }
    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.pull(id, now, messages_max))
    }
    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.acknowledge(id, messages))
    }
    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune(log_before, now, rows_max))
    }
    async fn close(&self) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.close())
    }
}

#[async_trait]
impl Jobs for FaultyStore {
    async fn create_job(&self, job: NewJob, active_max: u32) -> Result<(), StoreError> {
        with_any_fate!(self, TakesIn, self.inner.inner.create_job(job, active_max))
    }
    async fn job(&self, id: JobId) -> Result<Option<Job>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.job(id))
    }
    async fn jobs(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Job>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.jobs(project_id, page))
    }
    async fn running_jobs(&self) -> Result<Vec<Job>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.running_jobs())
    }
    async fn job_items(&self, job: &Job, items_max: u32) -> Result<JobItems, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.job_items(job, items_max))
    }
    async fn count_matching(
        &self,
        filter: &DeliveryFilter,
        as_of: Option<Timestamp>,
        cursor: Option<String>,
    ) -> Result<Counted, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.count_matching(filter, as_of, cursor))
    }
    async fn step_job(&self, step: JobStep) -> Result<JobStepped, StoreError> {
        with_any_fate!(self, Writes, self.step_job_shown(step))
    }
    async fn set_job_state(&self, id: JobId, version: u32, state: JobState, now: Timestamp) -> Result<Job, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.set_job_state(id, version, state, now))
    }
    async fn job_queues(&self, id: JobId) -> Result<Vec<QueueId>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.job_queues(id))
    }
    async fn prune_jobs(&self, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune_jobs(ended_before, rows_max))
    }
}

impl StoreVitals for FaultyStore {}

impl postrider_store::Signals for FaultyStore {}

impl postrider_store::Spreading for FaultyStore {}

/// Nothing is simulated of alerts: their task does not run.
#[async_trait]
impl Alerts for FaultyStore {
    async fn write_alert(&self, write: AlertWrite) -> Result<bool, StoreError> {
        self.inner.inner.write_alert(write).await
    }
    async fn open_alerts(&self) -> Result<Vec<Alert>, StoreError> {
        self.inner.inner.open_alerts().await
    }
    async fn alerts(
        &self,
        project_id: Option<ProjectId>,
        open: Option<bool>,
        page: PageRequest,
    ) -> Result<Page<Alert>, StoreError> {
        self.inner.inner.alerts(project_id, open, page).await
    }
    async fn prune_alerts(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.inner.inner.prune_alerts(before, rows_max).await
    }
}
