//! The faulty store's verbs about users and sessions, under the same faults as all others.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_store::*;

use super::{Call, Fate, FaultyStore, faltered};

#[async_trait]
impl People for FaultyStore {
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.users())
    }
    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.user_by_name(name))
    }
    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.open_session(session, version, entry))
    }
    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        with_any_fate!(self, Reads, self.inner.inner.session(token))
    }
    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.note_session_used(token, at))
    }
    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.end_session(token, entry))
    }
    async fn prune_sessions(&self, idle: Timestamp, opened: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
        with_any_fate!(self, Writes, self.inner.inner.prune_sessions(idle, opened, rows_max))
    }
}
