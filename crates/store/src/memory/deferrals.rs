//! What holds deliveries up. It must not know why.

use async_trait::async_trait;
use postrider_core::deferral::Deferral;
use postrider_core::id::{DeliveryId, QueueId};

use super::MemoryStore;
use super::rows::Data;
use crate::records::QueueLease;
use crate::{Deferrals, StoreError};

#[async_trait]
impl Deferrals for MemoryStore {
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError> {
        let mut data = self.open()?;
        data.require_current(lease)?;
        match deferral {
            Some(deferral) => data.deferrals.insert(lease.queue_id, (lease.token, deferral)),
            None => data.deferrals.remove(&lease.queue_id),
        };
        Ok(())
    }

    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError> {
        let data = self.open()?;
        let said = |id: QueueId| {
            let (token, deferral) = data.deferrals.get(&id)?;
            let queue = data.queues.get(&id)?;
            (queue.owner.is_some() && queue.token == token.0).then_some((id, *deferral))
        };
        Ok(queues.into_iter().filter_map(said).collect())
    }

    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError> {
        let data = self.open()?;
        Ok(ids.into_iter().filter_map(|id| Some((id, data.before(id)?))).collect())
    }
}

impl Data {
    fn before(&self, id: DeliveryId) -> Option<DeliveryId> {
        let delivery = &self.rows.get(&id)?.delivery;
        let queue = self.queues.get(&delivery.connection_id)?;
        let position = delivery.position?;
        if self.connections.get(&delivery.connection_id)?.spec.policy.queue.ordered {
            return queue.line.range(..position).next().map(|(_, before)| *before);
        }
        let line = queue.lines.get(&delivery.event.as_ref()?.line?)?;
        line.range(..position).next().and_then(|before| queue.line.get(before)).copied()
    }
}
