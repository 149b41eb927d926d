//! Topics, their messages and the subscriptions that pull them. It must not know who publishes or why.

use postrider_core::Timestamp;
use postrider_core::delivery::Delivery;
use postrider_core::id::{BodyId, EventId, ProjectId, SubscriptionId, TopicId};
use postrider_core::topic::TopicName;

use super::rows::{Data, Message, Owed};
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn topic_by_name(&self, project_id: ProjectId, name: &TopicName) -> Option<&Topic> {
        self.topics.values().find(|topic| topic.project_id == project_id && topic.name == *name)
    }

    pub(super) fn create_topic(&mut self, topic: Topic) -> Result<(), StoreError> {
        if !self.projects.contains_key(&topic.project_id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        if self.topics.contains_key(&topic.id) || self.topic_by_name(topic.project_id, &topic.name).is_some() {
            return Err(StoreError::Conflict(format!("there is a topic `{}` already", topic.name)));
        }
        self.topics.insert(topic.id, topic);
        Ok(())
    }

    /// Its messages and subscriptions go with it.
    pub(super) fn delete_topic(&mut self, project_id: ProjectId, name: &TopicName) -> Result<(), StoreError> {
        let Some(topic_id) = self.topic_by_name(project_id, name).map(|topic| topic.id) else {
            return Err(StoreError::NotFound { what: "topic" });
        };
        let readers: Vec<SubscriptionId> = self.readers(topic_id).collect();
        for id in readers {
            self.delete_subscription(id)?;
        }
        let messages: Vec<i64> = self
            .messages
            .range((topic_id, i64::MIN)..=(topic_id, i64::MAX))
            .map(|((_, sequence), _)| *sequence)
            .collect();
        for sequence in messages {
            self.remove_message(topic_id, sequence);
        }
        self.topics.remove(&topic_id);
        Ok(())
    }

    /// Says whether its body went too.
    pub(super) fn remove_message(&mut self, topic_id: TopicId, sequence: i64) -> bool {
        self.messages.remove(&(topic_id, sequence)).is_some_and(|message| self.drop_body(message.body_id))
    }

    pub(super) fn publish(
        &mut self,
        project_id: ProjectId,
        draft: TopicMessageDraft,
        body: NewBody,
    ) -> Result<(), StoreError> {
        let Some(topic_id) = self.topic_by_name(project_id, &draft.topic).map(|topic| topic.id) else {
            return Err(StoreError::NotFound { what: "topic" });
        };
        let body_id = body.id;
        self.use_body(body);
        self.add_message(topic_id, draft, body_id);
        Ok(())
    }

    /// The delivery's content as it stands goes to the topic, which the caller has seen to exist (Z22).
    pub(super) fn forward(&mut self, delivery: &Delivery, draft: TopicMessageDraft) {
        let Some(topic_id) = self.topic_by_name(delivery.project_id, &draft.topic).map(|topic| topic.id) else {
            return;
        };
        if let Some(body) = self.bodies.get_mut(&delivery.body_id) {
            body.uses += 1;
        }
        self.add_message(topic_id, draft, delivery.body_id);
    }

    fn add_message(&mut self, topic_id: TopicId, draft: TopicMessageDraft, body_id: BodyId) {
        self.next_sequence += 1;
        let sequence = self.next_sequence;
        let readers: Vec<SubscriptionId> = self.readers(topic_id).collect();
        let message = Message {
            id: draft.id,
            cid: draft.cid,
            headers: draft.headers,
            published_at: draft.published_at,
            body_id,
            owed_by: readers.len() as u64,
        };
        self.messages.insert((topic_id, sequence), message);
        self.owed.extend(readers.into_iter().map(|id| ((id, sequence), Owed::default())));
    }

    fn readers(&self, topic_id: TopicId) -> impl Iterator<Item = SubscriptionId> {
        self.subscriptions.values().filter(move |subscription| subscription.topic_id == topic_id).map(|s| s.id)
    }

    pub(super) fn create_subscription(&mut self, subscription: PullSubscription) -> Result<(), StoreError> {
        if !self.topics.contains_key(&subscription.topic_id) {
            return Err(StoreError::NotFound { what: "topic" });
        }
        let is_taken = self.subscriptions.values().any(|known| {
            known.id == subscription.id || (known.topic_id == subscription.topic_id && known.name == subscription.name)
        });
        if is_taken {
            return Err(StoreError::Conflict(format!("there is a subscription `{}` already", subscription.name)));
        }
        self.subscriptions.insert(subscription.id, subscription);
        Ok(())
    }

    pub(super) fn delete_subscription(&mut self, id: SubscriptionId) -> Result<(), StoreError> {
        let topic_id = self.subscription_by_id(id)?.topic_id;
        for sequence in self.owed_sequences(id) {
            self.settle_owed(topic_id, id, sequence);
        }
        self.subscriptions.remove(&id);
        Ok(())
    }

    pub(super) fn pull(
        &mut self,
        id: SubscriptionId,
        now: Timestamp,
        messages_max: u32,
    ) -> Result<Vec<Pulled>, StoreError> {
        let subscription = self.subscription_by_id(id)?;
        let (topic_id, redeliver_after) = (subscription.topic_id, subscription.redeliver_after);
        let due: Vec<i64> = self
            .owed
            .range((id, i64::MIN)..=(id, i64::MAX))
            .filter(|(_, owed)| owed.given_at.is_none_or(|given_at| given_at + redeliver_after <= now))
            .map(|((_, sequence), _)| *sequence)
            .take(messages_max as usize)
            .collect();
        let mut pulled = Vec::with_capacity(due.len());
        for sequence in due {
            let message = self.message(topic_id, sequence)?;
            let owed = self.owed.entry((id, sequence)).or_default();
            owed.given_at = Some(now);
            owed.times_given = owed.times_given.saturating_add(1);
            pulled.push(Pulled { message, times_given: owed.times_given });
        }
        Ok(pulled)
    }

    pub(super) fn acknowledge(&mut self, id: SubscriptionId, messages: &[EventId]) -> Result<u64, StoreError> {
        let topic_id = self.subscription_by_id(id)?.topic_id;
        let mut acknowledged = 0;
        for sequence in self.owed_sequences(id) {
            let is_named =
                self.messages.get(&(topic_id, sequence)).is_some_and(|message| messages.contains(&message.id));
            if is_named {
                self.settle_owed(topic_id, id, sequence);
                acknowledged += 1;
            }
        }
        Ok(acknowledged)
    }

    fn settle_owed(&mut self, topic_id: TopicId, id: SubscriptionId, sequence: i64) {
        if self.owed.remove(&(id, sequence)).is_some()
            && let Some(message) = self.messages.get_mut(&(topic_id, sequence))
        {
            message.owed_by -= 1;
        }
    }

    fn owed_sequences(&self, id: SubscriptionId) -> Vec<i64> {
        self.owed.range((id, i64::MIN)..=(id, i64::MAX)).map(|((_, sequence), _)| *sequence).collect()
    }

    fn subscription_by_id(&self, id: SubscriptionId) -> Result<&PullSubscription, StoreError> {
        self.subscriptions.get(&id).ok_or(StoreError::NotFound { what: "subscription" })
    }

    pub(super) fn message(&self, topic_id: TopicId, sequence: i64) -> Result<TopicMessage, StoreError> {
        let Some(message) = self.messages.get(&(topic_id, sequence)) else {
            return Err(StoreError::Corrupt(format!("the message {sequence} is missing")));
        };
        Ok(TopicMessage {
            sequence,
            id: message.id,
            cid: message.cid.clone(),
            headers: message.headers.clone(),
            published_at: message.published_at,
            body: self.body_bytes(message.body_id)?,
        })
    }
}
