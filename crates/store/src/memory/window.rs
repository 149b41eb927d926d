//! What the owner of a queue takes into its memory: a window of deliveries, never the backlog. It must not know what is done with them.

use std::ops::Bound;

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Position};
use postrider_core::id::DeliveryId;

use super::rows::Data;
use crate::StoreError;
use crate::records::*;

impl Data {
    pub(super) fn load(
        &self,
        lease: QueueLease,
        after: Option<Position>,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        self.require_current(lease)?;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let line = self.queue(lease.queue_id)?.line.range((from, Bound::Unbounded));
        self.within(line.map(|(_, id)| *id), limit)
    }

    pub(super) fn claim(
        &mut self,
        lease: QueueLease,
        now: Timestamp,
        limit: WindowLimit,
    ) -> Result<Vec<Loaded>, StoreError> {
        self.require_current(lease)?;
        let queue = self.queue(lease.queue_id)?;
        let due = [false, true].into_iter().flat_map(|retried| {
            let from = (retried, Timestamp::from_millis(i64::MIN), DeliveryId::from_u128(0));
            queue.ready.range(from..=(retried, now, DeliveryId::from_u128(u128::MAX)))
        });
        let may_go = |id: &DeliveryId| self.rows.get(id).is_some_and(|row| queue.may_go(&row.delivery));
        let mut claimed = self.within(due.map(|(_, _, id)| *id).filter(may_go), limit)?;
        for Loaded { delivery, .. } in &mut claimed {
            let Some(mut row) = self.leave(delivery.id) else { continue };
            row.delivery.progress = row.delivery.progress.begun(now);
            row.delivery.version += 1;
            row.claimed_under = Some(lease.token);
            *delivery = row.delivery.clone();
            self.enter(row);
        }
        Ok(claimed)
    }

    /// As many of these, in their order, as the limit lets into memory.
    fn within(&self, ids: impl Iterator<Item = DeliveryId>, limit: WindowLimit) -> Result<Vec<Loaded>, StoreError> {
        let mut loaded = Vec::new();
        let mut bytes: u64 = 0;
        for id in ids.take(limit.deliveries_max as usize) {
            let Some(row) = self.rows.get(&id) else {
                return Err(StoreError::Corrupt(format!("the delivery {id} is missing")));
            };
            bytes = bytes.saturating_add(row.delivery.body_bytes);
            if !loaded.is_empty() && bytes > limit.bytes_max {
                break;
            }
            loaded.push(Loaded { delivery: row.delivery.clone(), body: self.body_bytes(row.delivery.body_id)? });
        }
        Ok(loaded)
    }

    pub(super) fn next_due(&self, lease: QueueLease) -> Result<Option<Timestamp>, StoreError> {
        self.require_current(lease)?;
        let queue = self.queue(lease.queue_id)?;
        let may_go = |id: &DeliveryId| self.rows.get(id).is_some_and(|row| queue.may_go(&row.delivery));
        let first = |tried: bool| {
            let from = (tried, Timestamp::from_millis(i64::MIN), DeliveryId::from_u128(0));
            let these = queue.ready.range(from..).take_while(|(known, _, _)| *known == tried);
            these.filter(|(_, _, id)| may_go(id)).map(|(_, due_at, _)| *due_at).next()
        };
        Ok(first(false).into_iter().chain(first(true)).min())
    }

    pub(super) fn claimed_by_former_owner(
        &self,
        lease: QueueLease,
        rows_max: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        self.require_current(lease)?;
        let processing = self.queue(lease.queue_id)?.processing.iter();
        let former = processing
            .filter_map(|(_, id)| self.rows.get(id))
            .filter(|row| row.claimed_under.is_none_or(|token| token < lease.token));
        Ok(former.take(rows_max as usize).map(|row| row.delivery.clone()).collect())
    }
}
