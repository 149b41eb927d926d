//! API keys, as hashes. It must not know what a scope allows.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::KeyId;

use super::MemoryStore;
use super::rows::Data;
use crate::StoreError;
use crate::credentials::{ApiKey, Credentials, KEYS_MAX};

#[async_trait]
impl Credentials for MemoryStore {
    async fn api_keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        Ok(self.open()?.api_keys.values().cloned().collect())
    }

    async fn note_keys_used(&self, used: Vec<(KeyId, Timestamp)>) -> Result<(), StoreError> {
        let mut data = self.open()?;
        for (id, at) in used {
            if let Some(key) = data.api_keys.get_mut(&id) {
                key.last_used_at = key.last_used_at.max(Some(at));
            }
        }
        Ok(())
    }
}

impl Data {
    pub(super) fn create_key(&mut self, key: ApiKey) -> Result<(), StoreError> {
        if key.project_id.is_some_and(|id| !self.projects.contains_key(&id)) {
            return Err(StoreError::NotFound { what: "project" });
        }
        self.refuse_taken_key_name(&key)?;
        if self.api_keys.len() >= KEYS_MAX {
            return Err(StoreError::Full { limit: "keys_max" });
        }
        self.api_keys.insert(key.id, key);
        Ok(())
    }

    pub(super) fn replace_key(&mut self, key: ApiKey, version: u32) -> Result<(), StoreError> {
        let known = self.api_keys.get(&key.id).ok_or(StoreError::NotFound { what: "key" })?;
        if known.version != version {
            return Err(StoreError::Conflict(format!("the key `{}` has changed meanwhile", known.name)));
        }
        self.refuse_taken_key_name(&key)?;
        self.api_keys.insert(key.id, key);
        Ok(())
    }

    pub(super) fn delete_key(&mut self, id: KeyId) -> Result<(), StoreError> {
        self.api_keys.remove(&id).map(drop).ok_or(StoreError::NotFound { what: "key" })
    }

    fn refuse_taken_key_name(&self, key: &ApiKey) -> Result<(), StoreError> {
        let is_taken =
            |known: &ApiKey| known.id != key.id && known.project_id == key.project_id && known.name == key.name;
        if self.api_keys.values().any(is_taken) {
            return Err(StoreError::Conflict(format!("there is a key `{}` already", key.name)));
        }
        Ok(())
    }
}
