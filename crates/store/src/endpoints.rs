//! What is kept of a webhook endpoint beside its connection: its signing keys as they were sealed, and how it stands.
//!
//! A row lives exactly as long as its connection. It must not know what a key is, nor what follows from a state. Changes by a person go
//! through `AuditLog::change`.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::endpoint::{EndpointState, LastTest, Verification};
use postrider_core::id::{ConnectionId, ProjectId};

use crate::StoreError;

#[async_trait]
pub trait Endpoints: Send + Sync {
    /// All endpoints of all projects, in the order of their ids, for an engine that starts.
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError>;

    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError>;

    /// The row of a connection that has none yet, such as an imported one. `Conflict` when it has one, `NotFound` when there is no such
    /// connection of kind webhook.
    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError>;

    /// Other keys, if `version` is still the stored one.
    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError>;

    /// What the last test of the endpoint came to; it changes nothing else.
    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError>;

    /// What the endpoint has shown of itself, at this address.
    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointRow {
    /// The connection's.
    pub id: ConnectionId,
    pub project_id: ProjectId,
    pub keys: EndpointKeys,
    pub state: EndpointState,
    /// The address that was verified last: at another one nothing has been shown.
    pub verified_url: Option<String>,
    /// It was switched off, and its owner is to be told at this time.
    pub tell_at: Option<Timestamp>,
    /// Rises with every change of the keys.
    pub version: u32,
}

/// Signing keys as the vault sealed them; the store never has them in the clear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointKeys {
    pub sealed: String,
    /// The key before the last rotation, for as long as it still signs.
    pub former: Option<FormerSigningKey>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerSigningKey {
    pub sealed: String,
    pub signs_until: Timestamp,
}
