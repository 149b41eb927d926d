//! How endpoints do. It must not know when one is to be switched off.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::endpoint::Verification;
use postrider_core::health::EndpointHealth;
use postrider_core::id::ConnectionId;

use super::MemoryStore;
use super::rows::Data;
use crate::{EndpointHealths, EndpointRow, HealthWrite, OffWrite, StoreError};

#[async_trait]
impl EndpointHealths for MemoryStore {
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError> {
        let data = self.open()?;
        let failing = data.endpoints.values().filter(|row| row.state.health.failing_since.is_some());
        let behind = failing.filter(|row| after.is_none_or(|after| row.id > after));
        Ok(behind.take(rows_max as usize).cloned().collect())
    }

    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError> {
        let mut data = self.open()?;
        let stands = data.endpoints.get(&was.id).is_some_and(|row| {
            (row.state.epoch, row.state.health.failing_since) == (was.state.epoch, was.state.health.failing_since)
        });
        Ok(stands && data.switch_off(was.id, off))
    }

    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError> {
        let data = self.open()?;
        let due = data.endpoints.values().filter(|row| row.tell_at.is_some_and(|at| at <= now));
        Ok(due.take(rows_max as usize).cloned().collect())
    }

    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError> {
        let mut data = self.open()?;
        let row = data.endpoints.get_mut(&was.id).filter(|row| row.tell_at.is_some() && row.tell_at == was.tell_at);
        Ok(row.map(|row| row.tell_at = Some(until)).is_some())
    }

    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError> {
        if let Some(row) = self.open()?.endpoints.get_mut(&id).filter(|row| row.state.epoch == epoch) {
            row.tell_at = None;
        }
        Ok(())
    }
}

impl Data {
    pub(super) fn write_health(&mut self, id: ConnectionId, write: HealthWrite) {
        let Some(row) = self.endpoints.get_mut(&id) else { return };
        if row.state.epoch != write.epoch || row.state.off.is_some() {
            return;
        }
        row.state.health = write.health;
        if let Some(off) = write.off {
            self.switch_off(id, *off);
        }
    }

    /// `false`: it is off already.
    fn switch_off(&mut self, id: ConnectionId, write: OffWrite) -> bool {
        let Some(row) = self.endpoints.get_mut(&id).filter(|row| row.state.off.is_none()) else { return false };
        row.state = row.state.switched_off(write.off.reason, write.off.at);
        row.tell_at = Some(write.off.at);
        self.add_audit(write.entry);
        true
    }

    pub(super) fn change_endpoint(
        &mut self,
        id: ConnectionId,
        verification: Option<Verification>,
        switches_on: bool,
    ) -> Result<(), StoreError> {
        let row = self.endpoints.get_mut(&id).ok_or(StoreError::NotFound { what: "endpoint" })?;
        if let Some(verification) = verification {
            (row.state.verification, row.verified_url) = (verification, None);
        }
        if switches_on {
            row.state.off = None;
            row.state.health = EndpointHealth::default();
            row.state.epoch += 1;
            row.tell_at = None;
        }
        Ok(())
    }
}
