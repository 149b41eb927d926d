//! The subscriptions that push, in memory by project: every message looks here for those that select it.
//!
//! It must not know what a message says or how it is delivered.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::id::{ConnectionId, ProjectId, SubscriptionId};
use postrider_core::subscription::PushSubscription;
use postrider_core::topic::TopicName;

#[derive(Default)]
pub(crate) struct Subscriptions(RwLock<BTreeMap<ProjectId, BTreeMap<SubscriptionId, Arc<PushSubscription>>>>);

impl Subscriptions {
    /// Those that select this topic, in the order in which they were made.
    pub fn selecting(&self, project: ProjectId, topic: &TopicName) -> Vec<Arc<PushSubscription>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let ours = known.get(&project).into_iter().flat_map(BTreeMap::values);
        ours.filter(|subscription| subscription.selects(topic)).cloned().collect()
    }

    /// Of one project, by id.
    pub fn of(&self, project: ProjectId) -> Vec<Arc<PushSubscription>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&project).map(|ours| ours.values().cloned().collect()).unwrap_or_default()
    }

    pub fn all(&self) -> Vec<PushSubscription> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().flat_map(BTreeMap::values).map(|subscription| (**subscription).clone()).collect()
    }

    pub fn get(&self, project: ProjectId, id: SubscriptionId) -> Option<Arc<PushSubscription>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&project)?.get(&id).cloned()
    }

    pub fn put(&self, subscription: Arc<PushSubscription>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(subscription.project_id).or_default().insert(subscription.id, subscription);
    }

    pub fn replace_all(&self, all: Vec<PushSubscription>) {
        let mut anew: BTreeMap<ProjectId, BTreeMap<SubscriptionId, Arc<PushSubscription>>> = BTreeMap::new();
        for one in all {
            anew.entry(one.project_id).or_default().insert(one.id, Arc::new(one));
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = anew;
    }

    pub fn remove(&self, project: ProjectId, id: SubscriptionId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ours) = known.get_mut(&project) {
            ours.remove(&id);
        }
    }

    /// With their connection.
    pub fn remove_to(&self, project: ProjectId, connection: ConnectionId) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(ours) = known.get_mut(&project) {
            ours.retain(|_, subscription| subscription.connection_id != connection);
        }
    }
}
