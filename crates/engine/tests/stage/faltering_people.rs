//! The faltering store's verbs about users and sessions.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_store::*;

use super::Faltering;

#[async_trait]
impl People for Faltering {
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        self.store.users().await
    }
    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        self.store.user_by_name(name).await
    }
    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError> {
        self.store.open_session(session, version, entry).await
    }
    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        self.store.session(token).await
    }
    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError> {
        self.store.note_session_used(token, at).await
    }
    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError> {
        self.store.end_session(token, entry).await
    }
    async fn prune_sessions(&self, idle: Timestamp, opened: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        self.store.prune_sessions(idle, opened, rows_max).await
    }
}
