//! API keys as they are kept (P07): only hashes, never a key. What changes them goes through `AuditLog::change`.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::access::ScopeSet;
use postrider_core::id::{KeyId, ProjectId};

use crate::StoreError;

/// `keys_max`: keys of all projects together; all of them are held in memory by whoever checks them.
pub const KEYS_MAX: usize = 10_000;

#[async_trait]
pub trait Credentials: Send + Sync {
    /// All keys of all projects, in the order of their ids; for whoever checks them, who holds them in memory.
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError>;

    /// When keys were last used, as far as they still exist and it is later than what is known. Changes no version.
    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError>;
}

/// A key, of which nobody but its owner has the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    pub id: KeyId,
    /// `None`: it is the installation's and holds in every project.
    pub project_id: Option<ProjectId>,
    /// For people; unique among the keys of its project.
    pub name: String,
    pub scopes: ScopeSet,
    pub hash: KeyHash,
    /// The first letters of the key, so that people can tell which one it is.
    pub hint: String,
    /// The key before the last rotation, for as long as it still works.
    pub former: Option<FormerKey>,
    pub version: u32,
    pub created_at: Timestamp,
    pub rotated_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    /// Coarse: written every few minutes at most.
    pub last_used_at: Option<Timestamp>,
}

/// SHA-256 of a key. A key has 256 random bits, so there is nothing to guess and no slow hash is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct KeyHash(pub [u8; 32]);

impl std::fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyHash(***)")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormerKey {
    pub hash: KeyHash,
    pub works_until: Timestamp,
}
