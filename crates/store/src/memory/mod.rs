//! The reference store: everything in maps that keep their order, behind one lock, for tests and for simulation.
//!
//! Same calls, same answers, in every run: no hash map, no clock, no dice, no await. It must not be used to keep anything, since it
//! forgets all when its process ends.

mod alerts;
mod answers;
mod audit;
mod calls;
mod commands;
mod configuration;
mod configure;
mod credentials;
mod deferrals;
mod endpoints;
mod events;
mod health;
mod intake;
mod jobs;
mod listing;
mod ownership;
mod people;
mod retention;
mod rows;
mod security;
mod settle;
mod signals;
mod sources;
mod topics;
mod vitals;
mod window;
mod workforce;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Position};
use postrider_core::id::{CommandId, ConnectionId, EventId, ProjectId, QueueId, SubscriptionId, WorkerId};
use postrider_core::quota::Allowance;
use postrider_core::topic::TopicName;
use postrider_core::{Timestamp, Wait};

use crate::configure::{ConfigChange, StoreConfigure};
use crate::records::*;
use crate::{Store, StoreError, StoreLimits, allowances};
use rows::Data;

/// Clones share the data.
#[derive(Clone, Default)]
pub struct MemoryStore {
    data: Arc<Mutex<Data>>,
}

impl MemoryStore {
    pub fn new(limits: StoreLimits) -> Self {
        MemoryStore { data: Arc::new(Mutex::new(Data { limits, ..Data::default() })) }
    }

    /// What a crash and a restart of an embedded store come to: all data is still there and every lease has ended.
    #[must_use]
    pub fn reopen(&self) -> MemoryStore {
        let mut data = self.lock();
        data.end_all_leases();
        data.is_closed = false;
        drop(data);
        self.clone()
    }

    /// A panic under the lock would be a defect that its own caller sees; the others go on with what is there.
    fn lock(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(&self) -> Result<MutexGuard<'_, Data>, StoreError> {
        let data = self.lock();
        if data.is_closed { Err(StoreError::Closed) } else { Ok(data) }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn enqueue(&self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        self.open()?.enqueue(batch)
    }

    async fn record_calls(&self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        self.open()?.record_calls(batch)
    }

    async fn open_worker(&self, worker_id: WorkerId, life: Wait, now: Timestamp) -> Result<WorkerLease, StoreError> {
        self.open()?.open_worker(worker_id, life, now)
    }

    async fn renew_worker(&self, worker_id: WorkerId, now: Timestamp) -> Result<(), StoreError> {
        self.open()?.renew_worker(worker_id, now)
    }

    async fn close_worker(&self, worker_id: WorkerId) -> Result<(), StoreError> {
        self.open()?.close_worker(worker_id);
        Ok(())
    }

    async fn take_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues_max: u32,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.open()?.take_queues(worker_id, now, queues_max)
    }

    async fn take_named_queues(
        &self,
        worker_id: WorkerId,
        now: Timestamp,
        queues: Vec<QueueId>,
    ) -> Result<Vec<TakenQueue>, StoreError> {
        self.open()?.take_named_queues(worker_id, now, &queues)
    }

    async fn release_queue(&self, lease: QueueLease) -> Result<(), StoreError> {
        self.open()?.release_queue(lease)
    }

    async fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        self.open()?.load(lease, after, limit)
    }

    async fn claim(&self, lease: QueueLease, now: Timestamp, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        self.open()?.claim(lease, now, limit)
    }

    async fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        self.open()?.next_due(lease)
    }

    async fn claimed_by_former_owner(&self, lease: QueueLease, rows_max: u32) -> Result<Vec<Delivery>, StoreError> {
        self.open()?.claimed_by_former_owner(lease, rows_max)
    }

    async fn settle(&self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        self.open()?.settle(batch)
    }

    async fn submit_command(&self, command: Command, now: Timestamp) -> Result<bool, StoreError> {
        self.open()?.submit_command(command, now)
    }

    async fn commands(&self, lease: QueueLease) -> Result<Vec<Command>, StoreError> {
        self.open()?.commands(lease)
    }

    async fn answer_command(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
        self.open()?.answer_command(lease, id, answer)
    }

    async fn take_answer(&self, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
        Ok(self.open()?.take_answer(id))
    }

    async fn create_project(&self, project: Project) -> Result<(), StoreError> {
        self.open()?.create_project(project)
    }

    async fn create_connection(&self, connection: &Connection) -> Result<(), StoreError> {
        self.open()?.create_connection(connection)
    }

    async fn replace_connection(&self, connection: &Connection, version: u32) -> Result<(), StoreError> {
        self.open()?.replace_connection(connection, version)
    }

    async fn delete_connection(&self, id: ConnectionId, forced: bool, now: Timestamp) -> Result<(), StoreError> {
        self.open()?.delete_connection(id, forced, now)
    }

    async fn set_value(&self, name: &str, value: Option<String>) -> Result<(), StoreError> {
        self.open()?.set_value(name, value);
        Ok(())
    }

    async fn take_allowance(
        &self,
        name: &str,
        allowance: Allowance,
        now: Timestamp,
    ) -> Result<Option<Wait>, StoreError> {
        let mut data = self.open()?;
        let name = allowances::value_name(name);
        match allowances::take(data.values.get(&name).map(String::as_str), allowance, now)? {
            Ok(written) => data.set_value(&name, Some(written)),
            Err(wait) => return Ok(Some(wait)),
        }
        Ok(None)
    }

    async fn create_topic(&self, topic: Topic) -> Result<(), StoreError> {
        self.open()?.create_topic(topic)
    }

    async fn delete_topic(&self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        self.open()?.delete_topic(project_id, name)
    }

    async fn publish(
        &self,
        project_id: ProjectId,
        message: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        self.open()?.publish(project_id, message, body)
    }

    async fn create_subscription(&self, subscription: PullSubscription) -> Result<(), StoreError> {
        self.open()?.create_subscription(subscription)
    }

    async fn delete_subscription(&self, id: SubscriptionId) -> Result<(), StoreError> {
        self.open()?.delete_subscription(id)
    }

    async fn pull(&self, id: SubscriptionId, now: Timestamp, messages_max: u32) -> Result<Vec<Pulled>, StoreError> {
        self.open()?.pull(id, now, messages_max)
    }

    async fn acknowledge(&self, id: SubscriptionId, messages: Vec<EventId>) -> Result<u64, StoreError> {
        self.open()?.acknowledge(id, &messages)
    }

    async fn prune(&self, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
        Ok(self.open()?.prune(log_before, now, rows_max))
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.open()?.is_closed = true;
        Ok(())
    }
}

#[async_trait]
impl StoreConfigure for MemoryStore {
    async fn configure(&self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        self.open()?.configure(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::TestStore;

    #[async_trait]
    impl TestStore for MemoryStore {
        fn store(&self) -> Arc<dyn Store> {
            Arc::new(self.clone())
        }

        async fn reopen(&mut self) {
            *self = MemoryStore::reopen(self);
        }
    }

    async fn make_store(limits: StoreLimits) -> MemoryStore {
        MemoryStore::new(limits)
    }

    crate::conformance_suite!(make_store);
}
