//! The verbs that only read. It must not change a row.

use std::cmp::Reverse;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{BodyId, ConnectionId, DeliveryId, ProjectId, QueueId};
use postrider_core::topic::TopicName;
use postrider_core::{Failure, Timestamp};

use super::MemoryStore;
use super::rows::{Data, Queue};
use crate::records::*;
use crate::{
    Counts, DeadLetterFilter, DeliveryFilter, PAGE_ROWS_MAX, Page, PageRequest, QueueSummary, StoreError, StoreRead,
};

#[async_trait]
impl StoreRead for MemoryStore {
    async fn project(&self, name_or_id: &str) -> Result<Option<Project>, StoreError> {
        let data = self.open()?;
        let is_meant = |project: &&Project| project.name == name_or_id || project.id.to_string() == name_or_id;
        Ok(data.projects.values().find(is_meant).cloned())
    }

    async fn projects(&self) -> Result<Vec<Project>, StoreError> {
        let mut projects: Vec<Project> = self.open()?.projects.values().cloned().collect();
        projects.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(projects)
    }

    async fn connection(&self, id: ConnectionId) -> Result<Option<Connection>, StoreError> {
        Ok(self.open()?.connections.get(&id).cloned())
    }

    async fn all_connections(&self) -> Result<Vec<Connection>, StoreError> {
        Ok(self.open()?.connections.values().cloned().collect())
    }

    async fn connections(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Connection>, StoreError> {
        let data = self.open()?;
        let of_project = data.connections.values().filter(|connection| connection.project_id == project_id).cloned();
        let key = |connection: &Connection| (connection.name.clone(), connection.kind().as_str().to_owned());
        paged(of_project.collect(), key, &page)
    }

    async fn delivery(&self, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
        Ok(self.open()?.rows.get(&id).map(|row| row.delivery.clone()))
    }

    async fn deliveries(&self, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        let data = self.open()?;
        let rows = data.rows.values().map(|row| &row.delivery).filter(|delivery| filter.lets_through(delivery));
        paged(rows.cloned().collect(), |d| Reverse((d.created_at.as_millis(), d.id.as_u128())), &page)
    }

    async fn queue(&self, queue_id: QueueId, page: PageRequest) -> Result<Page<Delivery>, StoreError> {
        let data = self.open()?;
        let queue = data.queue(queue_id)?;
        let line = queue.line.values().filter_map(|id| data.rows.get(id));
        let waiting: Vec<Delivery> = line.map(|row| row.delivery.clone()).collect();
        let is_ordered = data.connections.get(&queue_id).is_none_or(|c| c.spec.policy.queue.ordered);
        paged(waiting, |delivery| delivery_order(delivery, is_ordered, queue.may_go(delivery)), &page)
    }

    async fn attempts(&self, id: DeliveryId) -> Result<Vec<Attempt>, StoreError> {
        Ok(self.open()?.attempts.range((id, 0)..=(id, u32::MAX)).map(|(_, attempt)| attempt.clone()).collect())
    }

    async fn body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        Ok(self.open()?.bodies.get(&id).map(|body| body.bytes.clone()))
    }

    async fn queue_summary(&self, queue_id: QueueId) -> Result<QueueSummary, StoreError> {
        let data = self.open()?;
        Ok(data.summary(queue_id, data.queue(queue_id)?))
    }

    async fn queue_summaries(&self, project_id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
        let data = self.open()?;
        let of_project = data.connections.values().filter(|connection| connection.project_id == project_id);
        of_project.map(|connection| Ok(data.summary(connection.id, data.queue(connection.id)?))).collect()
    }

    async fn counts(&self, connection_id: Option<ConnectionId>) -> Result<Counts, StoreError> {
        let data = self.open()?;
        let is_meant = |id: ConnectionId| connection_id.is_none_or(|meant| meant == id);
        let mut counts = Counts::default();
        for (_, ledger) in data.ledger.iter().filter(|(id, _)| is_meant(**id)) {
            counts.accepted += ledger.accepted;
            counts.pruned += ledger.pruned;
        }
        for row in data.rows.values().filter(|row| is_meant(row.delivery.connection_id)) {
            *count_of(&mut counts, row.delivery.progress.status) += 1;
        }
        Ok(counts)
    }

    async fn dead_letters(
        &self,
        queue_id: QueueId,
        arrived_by: Timestamp,
        filter: DeadLetterFilter,
        after: Option<(Timestamp, DeliveryId)>,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let data = self.open()?;
        let dead = data.dead(queue_id, filter)?.filter(|(key, _)| after.is_none_or(|after| *key > after));
        let arrived = dead.take_while(|((dead_at, _), _)| *dead_at <= arrived_by);
        Ok(arrived.take(rows_max as usize).map(|(_, delivery)| delivery.clone()).collect())
    }

    async fn oldest_dead_letter(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<Option<Timestamp>, StoreError> {
        let data = self.open()?;
        Ok(data.dead(queue_id, filter)?.next().map(|((dead_at, _), _)| dead_at))
    }

    async fn topic(&self, project_id: ProjectId, name: &TopicName) -> Result<Option<Topic>, StoreError> {
        Ok(self.open()?.topic_by_name(project_id, name).cloned())
    }

    async fn topics(&self, project_id: ProjectId, page: PageRequest) -> Result<Page<Topic>, StoreError> {
        let data = self.open()?;
        let of_project = data.topics.values().filter(|topic| topic.project_id == project_id).cloned();
        paged(of_project.collect(), |topic| topic.name.as_str().to_owned(), &page)
    }

    async fn topic_messages(&self, topic: &Topic, page: PageRequest) -> Result<Page<TopicMessage>, StoreError> {
        let data = self.open()?;
        let of_topic = data.messages.range((topic.id, i64::MIN)..=(topic.id, i64::MAX));
        let messages: Result<Vec<_>, _> =
            of_topic.map(|((_, sequence), _)| data.message(topic.id, *sequence)).collect();
        paged(messages?, |message| Reverse(message.sequence), &page)
    }

    async fn subscription(&self, topic: &Topic, name: &str) -> Result<Option<PullSubscription>, StoreError> {
        let data = self.open()?;
        let is_meant = |s: &&PullSubscription| s.topic_id == topic.id && s.name == name;
        Ok(data.subscriptions.values().find(is_meant).cloned())
    }

    async fn subscriptions(&self, topic: &Topic) -> Result<Vec<PullSubscription>, StoreError> {
        let data = self.open()?;
        let mut found: Vec<PullSubscription> =
            data.subscriptions.values().filter(|subscription| subscription.topic_id == topic.id).cloned().collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    async fn value(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.open()?.values.get(name).cloned())
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.open().map(drop)
    }
}

impl Data {
    fn summary(&self, queue_id: QueueId, queue: &Queue) -> QueueSummary {
        QueueSummary {
            queue_id,
            waiting: queue.waiting(),
            waiting_bytes: queue.waiting_bytes,
            dead: queue.dead.len() as u64,
            oldest_waiting_since: self.oldest_waiting_since(queue),
            owner: queue.owner,
        }
    }

    fn dead(
        &self,
        queue_id: QueueId,
        filter: DeadLetterFilter,
    ) -> Result<impl Iterator<Item = ((Timestamp, DeliveryId), &Delivery)>, StoreError> {
        let rows = self.queue(queue_id)?.dead.iter().filter_map(|key| Some((*key, &self.rows.get(&key.1)?.delivery)));
        Ok(rows.filter(move |(_, delivery)| {
            let progress = &delivery.progress;
            filter.dlq_retries_below.is_none_or(|below| progress.dlq_retries < below)
                && !(filter.leave_out_aged && progress.failure.is_some_and(Failure::is_of_age))
        }))
    }
}

/// Ordered queues go by position; others as `claim` takes them.
/// What waits behind others of its line goes last.
fn delivery_order(delivery: &Delivery, is_ordered: bool, may_go: bool) -> (u8, i64, u128) {
    if is_ordered || !may_go {
        return (2, delivery.position.map_or(i64::MAX, |position| position.0), 0);
    }
    (u8::from(delivery.progress.attempts > 0), delivery.progress.due_at.as_millis(), delivery.id.as_u128())
}

fn count_of(counts: &mut Counts, status: Status) -> &mut u64 {
    match status {
        Status::Pending => &mut counts.pending,
        Status::Processing => &mut counts.processing,
        Status::Success => &mut counts.success,
        Status::Failed => &mut counts.failed,
        Status::Dlq => &mut counts.dlq,
        Status::Discarded => &mut counts.discarded,
        Status::Forwarded => &mut counts.forwarded,
        Status::Expired => &mut counts.expired,
    }
}

/// One page of `items` in the order of their keys. The cursor is the last key of the former page, so it stays good while rows come and go.
pub(super) fn paged<T, K>(mut items: Vec<T>, key: impl Fn(&T) -> K, page: &PageRequest) -> Result<Page<T>, StoreError>
where
    K: Ord + serde::Serialize + serde::de::DeserializeOwned,
{
    if let Some(cursor) = &page.cursor {
        let last: K = serde_json::from_str(cursor).map_err(|_| StoreError::NotFound { what: "page" })?;
        items.retain(|item| key(item) > last);
    }
    items.sort_by_key(&key);
    let limit = page.limit.clamp(1, PAGE_ROWS_MAX) as usize;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let last = items.last().filter(|_| has_more).map(|item| serde_json::to_string(&key(item)));
    let next_cursor = last.transpose().map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok(Page { items, next_cursor })
}
