//! A batch of changes to the configuration. It must not know where they come from.

use super::rows::Data;
use crate::configure::ConfigChange;
use crate::{PullSubscription, StoreError, Topic};

impl Data {
    /// All or nothing: what a failed batch has changed is put back.
    pub(super) fn configure(&mut self, batch: Vec<ConfigChange>) -> Result<(), StoreError> {
        let before = (
            self.projects.clone(),
            self.security.clone(),
            self.connections.clone(),
            self.topics.clone(),
            self.subscriptions.clone(),
            self.push_subscriptions.clone(),
            self.sources.clone(),
        );
        let done = batch.into_iter().try_for_each(|change| self.configure_one(change));
        if done.is_err() {
            (
                self.projects,
                self.security,
                self.connections,
                self.topics,
                self.subscriptions,
                self.push_subscriptions,
                self.sources,
            ) = before;
            // Queues come with connections, and one that the batch made is still empty.
            let connections = &self.connections;
            self.queues.retain(|id, _| connections.contains_key(id));
        }
        done
    }

    fn configure_one(&mut self, change: ConfigChange) -> Result<(), StoreError> {
        match change {
            ConfigChange::CreateProject(project) => self.create_project(project),
            ConfigChange::ReplaceProject { was, now } => match self.projects.get(&was.id) {
                Some(stored) if *stored != was => {
                    Err(StoreError::Conflict(format!("the project `{}` has changed since", was.name)))
                }
                _ => self.replace_project(now),
            },
            ConfigChange::CreateSecurity(definition) => self.create_security(&definition),
            ConfigChange::ReplaceSecurity { definition, version } => self.replace_security(&definition, version),
            ConfigChange::CreateConnection(connection) => self.create_connection(&connection),
            ConfigChange::ReplaceConnection { connection, version } => self.replace_connection(&connection, version),
            ConfigChange::CreateTopic(topic) => self.create_topic(topic),
            ConfigChange::ReplaceTopic { was, now } => self.replace_topic(&was, now),
            ConfigChange::CreateSource(row) => self.create_source(*row),
            ConfigChange::ReplaceSource { row, version } => self.replace_source(*row, version),
            ConfigChange::CreatePush(subscription) => self.create_push(*subscription),
            ConfigChange::ReplacePush { subscription, version } => self.replace_push(*subscription, version),
            ConfigChange::CreateSubscription(subscription) => self.create_subscription(subscription),
            ConfigChange::ReplaceSubscription { was, now } => self.replace_subscription(&was, now),
        }
    }

    fn replace_topic(&mut self, was: &Topic, now: Topic) -> Result<(), StoreError> {
        match self.topics.get_mut(&was.id) {
            None => Err(StoreError::NotFound { what: "topic" }),
            Some(stored) if stored != was => {
                Err(StoreError::Conflict(format!("the topic `{}` has changed since", was.name)))
            }
            Some(stored) => {
                stored.description = now.description;
                stored.retention = now.retention;
                Ok(())
            }
        }
    }

    fn replace_subscription(&mut self, was: &PullSubscription, now: PullSubscription) -> Result<(), StoreError> {
        match self.subscriptions.get_mut(&was.id) {
            None => Err(StoreError::NotFound { what: "subscription" }),
            Some(stored) if stored != was => {
                Err(StoreError::Conflict(format!("the subscription `{}` has changed since", was.name)))
            }
            Some(stored) => {
                stored.redeliver_after = now.redeliver_after;
                Ok(())
            }
        }
    }
}
