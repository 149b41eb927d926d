//! What holds deliveries up, as people are shown it: known here where this process has the queue, else as its owner has said in the store
//! (R04, R15).
//!
//! It must not hold anything up itself.

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::deferral::{Deferral, Deferred, DeferredBy};
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{DeliveryId, QueueId};

use crate::engine::Engine;
use crate::refusal::Refusal;
use crate::shared::Shared;

impl Engine {
    /// Of these deliveries, each that is due or waits for another one and is held up all the same.
    pub async fn deferred(&self, deliveries: &[Delivery]) -> Result<BTreeMap<DeliveryId, Deferred>, Refusal> {
        let shared = &self.shared;
        let waiting = deliveries.iter().filter(|delivery| delivery.progress.status == Status::Pending);
        let (in_order, free): (Vec<&Delivery>, Vec<&Delivery>) = waiting.partition(|one| keeps_order(shared, one));
        let mut found = BTreeMap::new();
        if !in_order.is_empty() {
            let ids = in_order.iter().map(|delivery| delivery.id).collect();
            for (id, behind) in shared.store.waits_behind(ids).await? {
                let ordering = Deferred { by: DeferredBy::Ordering, until: None, behind: Some(behind) };
                found.insert(id, ordering);
            }
        }
        let now = shared.now();
        let due = in_order.into_iter().chain(free);
        let due: Vec<&Delivery> =
            due.filter(|one| one.progress.due_at <= now && !found.contains_key(&one.id)).collect();
        let held_up = held_up(shared, due.iter().map(|delivery| delivery.connection_id).collect()).await?;
        for delivery in due {
            if let Some(Deferral { by, until }) = held_up.get(&delivery.connection_id) {
                // What was said once may be over by now; the reason is what lasts.
                let until = until.filter(|until| *until > now);
                found.insert(delivery.id, Deferred { by: *by, until, behind: None });
            }
        }
        Ok(found)
    }
}

fn keeps_order(shared: &Shared, delivery: &Delivery) -> bool {
    let in_line = delivery.event.as_ref().is_some_and(|event| event.line.is_some());
    let connection = shared.connections.get(delivery.connection_id);
    in_line || connection.is_some_and(|connection| connection.spec.policy.queue.ordered)
}

async fn held_up(shared: &Shared, queues: BTreeSet<QueueId>) -> Result<BTreeMap<QueueId, Deferral>, Refusal> {
    let mut found = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for id in queues {
        // Nothing but endpoints is ever held up so, and a pause is no deferral.
        let is_endpoint =
            |connection: &postrider_core::connection::Connection| connection.spec.target.webhook().is_some();
        if !shared.connections.get(id).is_some_and(|connection| is_endpoint(&connection) && !connection.is_held()) {
            continue;
        }
        match shared.queues.get(id).and_then(|handle| handle.slots.deferral()) {
            Some(Some(deferral)) => {
                found.insert(id, deferral);
            }
            Some(None) => {}
            None => elsewhere.push(id),
        }
    }
    if !elsewhere.is_empty() {
        found.extend(shared.store.deferrals(elsewhere).await?);
    }
    Ok(found)
}
