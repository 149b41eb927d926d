//! Sources of incoming webhooks, and what they brought. It must not know what a signature is.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{EventId, SourceId};

use super::MemoryStore;
use super::rows::Data;
use crate::audit::AuditEntry;
use crate::{
    Arrival, Enqueued, NewDelivery, PublishedEvent, Receipt, Received, Renewed, Settled, Settlement, SourceKeys,
    SourceRow, Sources, StoreError,
};

const MISSING: StoreError = StoreError::NotFound { what: "source" };

#[async_trait]
impl Sources for MemoryStore {
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError> {
        Ok(self.open()?.sources.values().cloned().collect())
    }

    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError> {
        let mut data = self.open()?;
        let known = data.sources.get_mut(&id).ok_or(MISSING)?;
        if known.source.version != version {
            return Err(changed(&known.source.name));
        }
        known.keys = keys.clone();
        Ok(())
    }

    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError> {
        self.open()?.receive(arrival)
    }

    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        self.open()?.renew_forward(settlement, new, entry)
    }

    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let ended = data.receipts.iter().filter(|(_, (_, ends_at))| *ends_at <= now).map(|(hash, _)| *hash);
        let ended: Vec<[u8; 32]> = ended.take(rows_max as usize).collect();
        for hash in &ended {
            data.receipts.remove(hash);
        }
        Ok(ended.len() as u64)
    }
}

fn changed(name: &str) -> StoreError {
    StoreError::Conflict(format!("the source `{name}` has changed since"))
}

impl Data {
    fn receive(&mut self, arrival: Arrival) -> Result<Received, StoreError> {
        if !self.sources.contains_key(&arrival.source_id) {
            return Err(MISSING);
        }
        let (id, now) = (arrival.event.message.id, arrival.event.message.published_at);
        if let Some(before) = self.known_receipt(arrival.by_id.as_ref(), now) {
            return Ok(Received::SameId(before));
        }
        if let Some(before) = self.known_receipt(arrival.by_signature.as_ref(), now) {
            return Ok(Received::SameSignature(before));
        }
        let answers = match self.publish_event(arrival.event)? {
            PublishedEvent::Stored(answers) => answers,
            PublishedEvent::Repeated => return Ok(Received::SameId(id)),
        };
        for receipt in arrival.by_id.iter().chain(&arrival.by_signature) {
            self.receipts.insert(receipt.hash, (id, receipt.ends_at));
        }
        Ok(Received::Stored(answers))
    }

    fn known_receipt(&self, receipt: Option<&Receipt>, now: Timestamp) -> Option<EventId> {
        let (event, ends_at) = self.receipts.get(&receipt?.hash)?;
        (*ends_at > now).then_some(*event)
    }

    fn renew_forward(
        &mut self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError> {
        self.check_room(std::slice::from_ref(&new))?;
        if !self.connections.contains_key(&new.connection_id) {
            return Ok(Renewed::Not(Settled::Gone));
        }
        let settled = self.settle(vec![settlement])?.pop().unwrap_or(Settled::Gone);
        if !matches!(settled, Settled::Applied { .. }) {
            return Ok(Renewed::Not(settled));
        }
        let stored = self.enqueue(vec![new])?.pop().unwrap_or(Enqueued::NoConnection);
        self.add_audit(entry);
        Ok(Renewed::Stored(stored))
    }

    pub(super) fn create_source(&mut self, row: SourceRow) -> Result<(), StoreError> {
        if !self.projects.contains_key(&row.source.project_id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        if self.sources.contains_key(&row.source.id) {
            return Err(StoreError::Conflict(format!("there is a source {} already", row.source.id)));
        }
        self.check_source(&row)?;
        self.sources.insert(row.source.id, row);
        Ok(())
    }

    pub(super) fn replace_source(&mut self, row: SourceRow, version: u32) -> Result<(), StoreError> {
        let known = self.sources.get(&row.source.id).ok_or(MISSING)?;
        if known.source.version != version {
            return Err(changed(&known.source.name));
        }
        self.check_source(&row)?;
        self.sources.insert(row.source.id, row);
        Ok(())
    }

    pub(super) fn delete_source(&mut self, id: SourceId) -> Result<(), StoreError> {
        self.sources.remove(&id).map(drop).ok_or(MISSING)
    }

    fn check_source(&self, row: &SourceRow) -> Result<(), StoreError> {
        let source = &row.source;
        let others = self.sources.values().map(|known| &known.source);
        for other in others.filter(|other| other.project_id == source.project_id && other.id != source.id) {
            if other.name == source.name {
                return Err(StoreError::Conflict(format!(
                    "there is a source `{}` in this project already",
                    source.name
                )));
            }
            if other.spec.topic == source.spec.topic {
                let why = format!("the source `{}` has the topic `{}` already", other.name, source.spec.topic);
                return Err(StoreError::Conflict(why));
            }
        }
        Ok(())
    }
}
