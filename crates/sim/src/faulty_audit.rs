//! The faulty store's verbs about keys and the audit log, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::KeyId;
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

#[async_trait]
impl Credentials for FaultyStore {
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.api_keys())
    }
    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note_keys_used(used))
    }
}

#[async_trait]
impl AuditLog for FaultyStore {
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError> {
        match change {
            Change::CreateJob { .. } => with_any_fate!(self, TakesIn, self.inner.inner.change(change, entry)),
            change => with_any_fate!(self, Writes, self.inner.inner.change(change, entry)),
        }
    }
    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.configure_by_hand(batch, entries))
    }
    /// Through the settling that the oracle sees; the simulation keeps no audit log.
    async fn settle_by_hand(&self, settlement: Settlement, _: AuditEntry) -> Result<Settled, StoreError> {
        Ok(self.settle(vec![settlement]).await?.pop().unwrap_or(Settled::Gone))
    }
    async fn submit_by_hand(&self, command: Command, _: AuditEntry, now: Timestamp) -> Result<bool, StoreError> {
        self.submit_command(command, now).await
    }
    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note(entries))
    }
    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.audit_entries(filter, page))
    }
    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune_audit(before, rows_max))
    }
}
