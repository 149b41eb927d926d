//! Who may log in to the dashboard, and who is logged in (P07): passwords and session tokens as hashes, never in the clear.
//!
//! What changes a user goes through `AuditLog::change`. It must not know what a role allows, nor how a password is hashed.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{ProjectId, UserId};
use postrider_core::person::Role;

use crate::StoreError;
use crate::audit::AuditEntry;

/// `users_max`: users of all projects together.
pub const USERS_MAX: usize = 10_000;
/// `sessions_max`: of one user; the one that was used longest ago makes room for a new one.
pub const SESSIONS_MAX: usize = 20;

#[async_trait]
pub trait People: Send + Sync {
    /// All users of all projects, by name.
    async fn users(&self) -> Result<Vec<User>, StoreError>;

    async fn user_by_name(&self, name: &str) -> Result<Option<User>, StoreError>;

    /// Stores a session with its entry, if the user is still there at this version: a password changed meanwhile opens nothing.
    async fn open_session(&self, session: Session, version: u32, entry: AuditEntry) -> Result<(), StoreError>;

    /// A session with its user, whether or not it should have ended.
    async fn session(&self, token: TokenHash) -> Result<Option<(Session, User)>, StoreError>;

    /// When a session was last used, if it is later than what is known.
    async fn note_session_used(&self, token: TokenHash, at: Timestamp) -> Result<(), StoreError>;

    /// Ends one session; a session that is not there has ended.
    async fn end_session(&self, token: TokenHash, entry: AuditEntry) -> Result<(), StoreError>;

    /// Removes at most `rows_max` sessions that were not used since `idle_since`, or were opened before `opened_before`; how many went.
    async fn prune_sessions(
        &self,
        idle_since: Timestamp,
        opened_before: Timestamp,
        rows_max: u32,
    ) -> Result<u64, StoreError>;
}

/// Somebody who logs in with a name and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    /// `None`: of the installation, and so of every project.
    pub project_id: Option<ProjectId>,
    /// Unique over all projects, in the one way in which names are kept.
    pub name: String,
    pub role: Role,
    /// Whether a viewer sees bodies, which are health data.
    pub sees_bodies: bool,
    pub password: PasswordHash,
    /// Rises with every change.
    pub version: u32,
    pub created_at: Timestamp,
    pub password_set_at: Timestamp,
    pub last_log_in_at: Option<Timestamp>,
}

/// A password as Argon2id hashed it, in the PHC string format with its salt and costs.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PasswordHash(***)")
    }
}

/// SHA-256 of a session's token. A token has 256 random bits, so no slow hash is needed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenHash(pub [u8; 32]);

impl std::fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenHash(***)")
    }
}

/// One browser that is logged in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub token: TokenHash,
    pub user_id: UserId,
    pub opened_at: Timestamp,
    /// Coarse.
    pub seen_at: Timestamp,
    /// From where it was opened.
    pub address: Option<String>,
}

impl User {
    /// Owner of the whole installation.
    pub fn owns_all(&self) -> bool {
        self.project_id.is_none() && self.role == Role::Owner
    }
}

/// A user to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewUser {
    pub user: User,
    /// `Conflict` when there is any user: for whoever has the link of the first start.
    pub only_as_first: bool,
}

/// All of a user but the name, and `last_log_in_at`, which stays. It ends the user's sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserChange {
    pub user: User,
    /// If it is still the stored one.
    pub version: u32,
    /// The one session that goes on: that of the person who made the change.
    pub keeps_session: Option<TokenHash>,
}

pub(crate) fn last_owner() -> StoreError {
    StoreError::Conflict("this is the last owner of the installation: make another one first".to_owned())
}
