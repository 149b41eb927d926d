//! The verbs for security definitions. They must not know what a definition means nor how its secret is sealed.

use async_trait::async_trait;
use postrider_core::id::SecurityId;
use postrider_core::security::SecurityDefinition;

use crate::StoreError;

/// A connection that names a definition is created and changed only while that definition is there, in the same transaction; so the two
/// kinds of objects refer to each other rightly at every instant.
#[async_trait]
pub trait SecurityDefinitions: Send + Sync {
    /// All definitions of all projects, in the order of their ids, for an engine that starts.
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError>;

    /// `Conflict` when the name is taken in its project, `NotFound` when there is no such project.
    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError>;

    /// Replaces all but the name, if `version` is still the stored one.
    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError>;

    /// `Conflict`, naming them, while connections refer to it.
    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError>;
}

/// What is said when a definition cannot go.
pub(crate) fn in_use(name: &str, users: &[String]) -> StoreError {
    const NAMED_MAX: usize = 10;
    let more = users.len().saturating_sub(NAMED_MAX);
    let named: Vec<String> = users.iter().take(NAMED_MAX).map(|user| format!("`{user}`")).collect();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    StoreError::Conflict(format!("`{name}` is in use by {}{more}", named.join(", ")))
}
