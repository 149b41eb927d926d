//! Rows of webhook endpoints. It must not know what a key is, nor what follows from a state.

use async_trait::async_trait;
use postrider_core::connection::ConnectionKind;
use postrider_core::endpoint::{LastTest, Verification};
use postrider_core::id::ConnectionId;

use super::MemoryStore;
use super::rows::Data;
use crate::{EndpointKeys, EndpointRow, Endpoints, StoreError};

const MISSING: StoreError = StoreError::NotFound { what: "endpoint" };

#[async_trait]
impl Endpoints for MemoryStore {
    async fn all_endpoints(&self) -> Result<Vec<EndpointRow>, StoreError> {
        Ok(self.open()?.endpoints.values().cloned().collect())
    }

    async fn endpoint(&self, id: ConnectionId) -> Result<Option<EndpointRow>, StoreError> {
        Ok(self.open()?.endpoints.get(&id).cloned())
    }

    async fn create_endpoint(&self, row: &EndpointRow) -> Result<(), StoreError> {
        self.open()?.create_endpoint(row)
    }

    async fn replace_endpoint_keys(
        &self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        self.open()?.replace_endpoint_keys(id, keys, version)
    }

    async fn note_endpoint_test(&self, id: ConnectionId, test: LastTest) -> Result<(), StoreError> {
        self.open()?.endpoints.get_mut(&id).ok_or(MISSING)?.state.last_test = Some(test);
        Ok(())
    }

    async fn note_verification(
        &self,
        id: ConnectionId,
        verification: Verification,
        url: &str,
    ) -> Result<(), StoreError> {
        let mut data = self.open()?;
        let row = data.endpoints.get_mut(&id).ok_or(MISSING)?;
        (row.state.verification, row.verified_url) = (verification, Some(url.to_owned()));
        Ok(())
    }
}

impl Data {
    pub(super) fn create_endpoint(&mut self, row: &EndpointRow) -> Result<(), StoreError> {
        if self.connections.get(&row.id).is_none_or(|known| known.kind() != ConnectionKind::Webhook) {
            return Err(MISSING);
        }
        if self.endpoints.contains_key(&row.id) {
            return Err(StoreError::Conflict("the endpoint has its keys already".to_owned()));
        }
        self.endpoints.insert(row.id, row.clone());
        Ok(())
    }

    pub(super) fn replace_endpoint_keys(
        &mut self,
        id: ConnectionId,
        keys: &EndpointKeys,
        version: u32,
    ) -> Result<(), StoreError> {
        let known = self.endpoints.get_mut(&id).ok_or(MISSING)?;
        if known.version != version {
            return Err(StoreError::Conflict("the endpoint's keys have changed since".to_owned()));
        }
        (known.keys, known.version) = (keys.clone(), version + 1);
        Ok(())
    }
}
