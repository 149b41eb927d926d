//! Users and their sessions. It must not know what a role allows.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::UserId;

use super::MemoryStore;
use super::rows::Data;
use crate::audit::AuditEntry;
use crate::people::{People, SESSIONS_MAX, Session, TokenHash, USERS_MAX, User};
use crate::{NewUser, StoreError, UserChange};

const MISSING: StoreError = StoreError::NotFound { what: "user" };

#[async_trait]
impl People for MemoryStore {
    async fn users(&self) -> Result<Vec<User>, StoreError> {
        let mut users: Vec<User> = self.open()?.users.values().cloned().collect();
        users.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(users)
    }

    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError> {
        Ok(self.open()?.users.values().find(|user| user.name == name).cloned())
    }

    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError> {
        let mut data = self.open()?;
        let user = data.users.get_mut(&session.user_id).ok_or(MISSING)?;
        if user.version != version {
            return Err(StoreError::Conflict(format!("the user `{}` has changed meanwhile", user.name)));
        }
        user.last_log_in_at = Some(session.opened_at);
        let of_user = data.sessions.values().filter(|known| known.user_id == session.user_id);
        let mut known: Vec<(Timestamp, TokenHash)> = of_user.map(|known| (known.seen_at, known.token)).collect();
        known.sort();
        for (_, token) in known.iter().take((known.len() + 1).saturating_sub(SESSIONS_MAX)) {
            data.sessions.remove(token);
        }
        data.sessions.insert(session.token, session);
        data.add_audit(entry);
        Ok(())
    }

    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        let data = self.open()?;
        let session = data.sessions.get(&token).cloned();
        Ok(session.and_then(|session| Some((session.clone(), data.users.get(&session.user_id)?.clone()))))
    }

    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError> {
        if let Some(session) = self.open()?.sessions.get_mut(&token) {
            session.seen_at = session.seen_at.max(at);
        }
        Ok(())
    }

    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError> {
        let mut data = self.open()?;
        if data.sessions.remove(&token).is_some() {
            data.add_audit(entry);
        }
        Ok(())
    }

    async fn prune_sessions(
        &self,
        idle_since: Timestamp,
        opened_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let over = |session: &&Session| session.seen_at < idle_since || session.opened_at < opened_before;
        let old: Vec<TokenHash> =
            data.sessions.values().filter(over).take(rows_max as usize).map(|known| known.token).collect();
        for token in &old {
            data.sessions.remove(token);
        }
        Ok(old.len() as u64)
    }
}

impl Data {
    pub(super) fn create_user(&mut self, new: NewUser) -> Result<(), StoreError> {
        let NewUser { user, only_as_first } = new;
        if user.project_id.is_some_and(|id| !self.projects.contains_key(&id)) {
            return Err(StoreError::NotFound { what: "project" });
        }
        if only_as_first && !self.users.is_empty() {
            return Err(StoreError::Conflict("there is a user already".to_owned()));
        }
        if self.users.values().any(|known| known.name == user.name) {
            return Err(StoreError::Conflict(format!("there is a user `{}` already", user.name)));
        }
        if self.users.len() >= USERS_MAX {
            return Err(StoreError::Full { limit: "users_max" });
        }
        self.users.insert(user.id, user);
        Ok(())
    }

    pub(super) fn replace_user(&mut self, change: UserChange) -> Result<(), StoreError> {
        let UserChange { user, version, keeps_session } = change;
        let known = self.users.get(&user.id).ok_or(MISSING)?;
        if known.version != version {
            return Err(StoreError::Conflict(format!("the user `{}` has changed meanwhile", known.name)));
        }
        let last_log_in_at = known.last_log_in_at;
        self.refuse_no_owner(user.id, Some(&user))?;
        if user.project_id.is_some_and(|id| !self.projects.contains_key(&id)) {
            return Err(StoreError::NotFound { what: "project" });
        }
        let id = user.id;
        self.users.insert(id, User { last_log_in_at, ..user });
        self.sessions.retain(|token, session| session.user_id != id || Some(*token) == keeps_session);
        Ok(())
    }

    pub(super) fn delete_user(&mut self, id: UserId) -> Result<(), StoreError> {
        if !self.users.contains_key(&id) {
            return Err(MISSING);
        }
        self.refuse_no_owner(id, None)?;
        self.users.remove(&id);
        self.sessions.retain(|_, session| session.user_id != id);
        Ok(())
    }

    /// Where the installation has an owner, it keeps one.
    fn refuse_no_owner(&self, id: UserId, after: Option<&User>) -> Result<(), StoreError> {
        let was_one = self.users.get(&id).is_some_and(User::owns_all);
        let others = self.users.values().any(|user| user.id != id && user.owns_all());
        if was_one && !others && !after.is_some_and(User::owns_all) {
            return Err(crate::people::last_owner());
        }
        Ok(())
    }
}
