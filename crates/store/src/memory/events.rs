//! Messages with their deliveries, and the subscriptions that push. It must not know which subscriptions a message matches.

use std::collections::BTreeMap;

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{ConnectionId, EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::subscription::PushSubscription;

use super::MemoryStore;
use super::rows::Data;
use crate::kept_programs::{KeptProgram, PREFIX};
use crate::{
    EventFilter, Events, NewDelivery, NewEvent, PAGE_ROWS_MAX, Page, PageRequest, PublishedEvent, StoreError,
    StoredEvent,
};

/// Messages and bytes that one transaction has asked for in each queue so far.
pub(super) type Asked = BTreeMap<ConnectionId, (u64, u64)>;

#[async_trait]
impl Events for MemoryStore {
    async fn publish_event(&self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        self.open()?.publish_event(event)
    }

    async fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        self.open()?.events(project_id, filter, &page)
    }

    async fn event(&self, project_id: ProjectId, id: EventId) -> Result<Option<StoredEvent>, StoreError> {
        let data = self.open()?;
        let place = data.places_of(project_id).into_iter().find(|place| data.messages[place].id == id);
        place.map(|place| data.stored_event(place)).transpose()
    }

    async fn all_push_subscriptions(&self) -> Result<Vec<PushSubscription>, StoreError> {
        Ok(self.open()?.push_subscriptions.values().cloned().collect())
    }

    async fn kept_program(&self, of: SubscriptionId) -> Result<Option<String>, StoreError> {
        let data = self.open()?;
        let kept = data.values.get(&KeptProgram::name(of)).map(|written| KeptProgram::read(written));
        Ok(kept.transpose()?.map(|kept| kept.program))
    }

    async fn prune_kept_programs(&self, kept_before: Timestamp) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let mut gone = Vec::new();
        for (name, written) in data.values.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
            let Some(of) = KeptProgram::kept_before(name, written, kept_before)? else { continue };
            let mut events = data.rows.values().filter_map(|row| row.delivery.event.as_ref());
            if !events.any(|event| event.subscription_id == of) {
                gone.push(name.clone());
            }
        }
        gone.iter().for_each(|name| data.set_value(name, None));
        Ok(gone.len() as u64)
    }
}

impl Data {
    pub(super) fn publish_event(&mut self, event: NewEvent) -> Result<PublishedEvent, StoreError> {
        let project_id = event.project_id;
        let is_known = || self.places_of(project_id).iter().any(|place| self.messages[place].id == event.message.id);
        if event.id_is_given && is_known() {
            return Ok(PublishedEvent::Repeated);
        }
        let has_topic = self.topic_by_name(project_id, &event.message.topic).is_some();
        if !has_topic && event.new_topic.is_none() {
            return Err(StoreError::NotFound { what: "topic" });
        }
        self.check_room(&event.deliveries)?;
        if let (false, Some(topic)) = (has_topic, event.new_topic) {
            self.create_topic(topic)?;
        }
        self.publish(project_id, event.message, event.body)?;
        self.enqueue(event.deliveries).map(PublishedEvent::Stored)
    }

    pub(super) fn check_room(&self, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
        match self.broken_by(deliveries, &mut Asked::new()) {
            Some(limit) => Err(StoreError::Full { limit }),
            None => Ok(()),
        }
    }

    /// The limit that one of these would break behind what has been asked for. Several of them may go to one queue.
    pub(super) fn broken_by(&self, deliveries: &[NewDelivery], asked: &mut Asked) -> Option<&'static str> {
        let mut all = asked.clone();
        for new in deliveries {
            let bytes = new.body.bytes.len() as u64;
            let before = all.entry(new.connection_id).or_default();
            let Some(queue) = self.queues.get(&new.connection_id) else { continue };
            let (waiting, waiting_bytes) = (queue.waiting() + before.0, queue.waiting_bytes + before.1);
            if let Some(limit) = self.limits.broken_by(waiting, waiting_bytes, bytes) {
                return Some(limit);
            }
            *before = (before.0 + 1, before.1 + bytes);
        }
        *asked = all;
        None
    }

    /// Of all messages of a project, from the newest to the oldest.
    fn places_of(&self, project_id: ProjectId) -> Vec<(TopicId, i64)> {
        let of_project =
            |(topic, _): &&(TopicId, i64)| self.topics.get(topic).is_some_and(|t| t.project_id == project_id);
        let mut places: Vec<(TopicId, i64)> = self.messages.keys().filter(of_project).copied().collect();
        places.sort_unstable_by_key(|(_, sequence)| std::cmp::Reverse(*sequence));
        places
    }

    fn stored_event(&self, (topic_id, sequence): (TopicId, i64)) -> Result<StoredEvent, StoreError> {
        let message = self.message(topic_id, sequence)?;
        let Some(topic) = self.topics.get(&topic_id) else { return Err(StoreError::NotFound { what: "topic" }) };
        Ok(StoredEvent {
            id: message.id,
            topic: topic.name.clone(),
            cid: message.cid,
            headers: message.headers,
            published_at: message.published_at,
            body: message.body,
        })
    }

    fn events(
        &self,
        project_id: ProjectId,
        filter: &EventFilter,
        page: &PageRequest,
    ) -> Result<Page<StoredEvent>, StoreError> {
        let end = match &page.cursor {
            Some(cursor) => cursor.parse().map_err(|_| StoreError::NotFound { what: "page" })?,
            None => i64::MAX,
        };
        let limit = page.limit.clamp(1, PAGE_ROWS_MAX) as usize;
        let mut events = Vec::new();
        for place in self.places_of(project_id).into_iter().filter(|(_, sequence)| *sequence < end) {
            let event = self.stored_event(place)?;
            let fits = filter.topic.as_ref().is_none_or(|topic| *topic == event.topic)
                && filter.from.is_none_or(|from| event.published_at >= from)
                && filter.before.is_none_or(|before| event.published_at < before);
            if fits {
                events.push((place.1, event));
            }
        }
        let has_more = events.len() > limit;
        events.truncate(limit);
        let next_cursor = events.last().filter(|_| has_more).map(|(sequence, _)| sequence.to_string());
        Ok(Page { items: events.into_iter().map(|(_, event)| event).collect(), next_cursor })
    }

    pub(super) fn create_push(&mut self, subscription: PushSubscription) -> Result<(), StoreError> {
        self.check_push(&subscription)?;
        if self.push_subscriptions.contains_key(&subscription.id) {
            return Err(StoreError::Conflict(format!("there is a subscription {} already", subscription.id)));
        }
        self.push_subscriptions.insert(subscription.id, subscription);
        Ok(())
    }

    pub(super) fn replace_push(&mut self, subscription: PushSubscription, version: u32) -> Result<(), StoreError> {
        self.check_push(&subscription)?;
        let Some(known) = self.push_subscriptions.get_mut(&subscription.id) else {
            return Err(StoreError::NotFound { what: "subscription" });
        };
        if known.version != version {
            return Err(StoreError::Conflict(format!("the subscription `{}` has changed since", known.name)));
        }
        *known = subscription;
        Ok(())
    }

    pub(super) fn delete_push(&mut self, id: SubscriptionId, now: Timestamp) -> Result<(), StoreError> {
        let going = self.push_subscriptions.get(&id).ok_or(StoreError::NotFound { what: "subscription" })?;
        let kept = KeptProgram::of(going, now)?;
        self.push_subscriptions.remove(&id);
        if let Some((name, written)) = kept {
            self.set_value(&name, Some(written));
        }
        Ok(())
    }

    /// With their connection.
    pub(super) fn delete_push_to(&mut self, connection: ConnectionId, now: Timestamp) -> Result<(), StoreError> {
        let theirs = self.push_subscriptions.values().filter(|one| one.connection_id == connection);
        let theirs: Vec<SubscriptionId> = theirs.map(|one| one.id).collect();
        theirs.into_iter().try_for_each(|id| self.delete_push(id, now))
    }

    fn check_push(&self, subscription: &PushSubscription) -> Result<(), StoreError> {
        let project_id = subscription.project_id;
        let target = self.connections.get(&subscription.connection_id);
        if target.is_none_or(|target| target.project_id != project_id) {
            return Err(StoreError::NotFound { what: "connection" });
        }
        self.refuse_taken_push(subscription)
    }

    /// Under a name that another one of the project has.
    pub(super) fn refuse_taken_push(&self, subscription: &PushSubscription) -> Result<(), StoreError> {
        let project_id = subscription.project_id;
        let mut others = self.push_subscriptions.values().filter(|known| known.id != subscription.id);
        if others.any(|known| known.project_id == project_id && known.name == subscription.name) {
            return Err(StoreError::Conflict(format!("there is a subscription `{}` already", subscription.name)));
        }
        Ok(())
    }
}
