//! The faltering store's verbs about keys and the audit log.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::KeyId;
use postrider_store::*;

use super::Faltering;

#[async_trait]
impl Credentials for Faltering {
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.store.api_keys().await
    }
    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError> {
        self.store.note_keys_used(used).await
    }
}

#[async_trait]
impl AuditLog for Faltering {
    async fn change(&self, change: Change, entry: AuditEntry) -> Result<(), StoreError> {
        self.store.change(change, entry).await
    }
    async fn configure_by_hand(&self, batch: Vec<ConfigChange>, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.falter("configure")?;
        self.store.configure_by_hand(batch, entries).await
    }
    /// Counted as what it is, a settlement.
    async fn settle_by_hand(&self, settlement: Settlement, entry: AuditEntry) -> Result<Settled, StoreError> {
        self.falter("settle")?;
        self.store.settle_by_hand(settlement, entry).await
    }
    async fn submit_by_hand(&self, command: Command, entry: AuditEntry, now: Timestamp) -> Result<bool, StoreError> {
        self.store.submit_by_hand(command, entry, now).await
    }
    async fn note(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        self.falter("note")?;
        self.store.note(entries).await
    }
    async fn audit_entries(&self, filter: &AuditFilter, page: PageRequest) -> Result<Page<AuditEntry>, StoreError> {
        self.store.audit_entries(filter, page).await
    }
    async fn prune_audit(&self, before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.store.prune_audit(before, rows_max).await
    }
}
