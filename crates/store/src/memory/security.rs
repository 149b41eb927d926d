//! Security definitions, and the rule that a connection names one that is there. It must not know what a definition means.

use async_trait::async_trait;
use postrider_core::connection::Connection;
use postrider_core::id::SecurityId;
use postrider_core::security::SecurityDefinition;

use super::MemoryStore;
use super::rows::Data;
use crate::security::in_use;
use crate::{SecurityDefinitions, StoreError};

#[async_trait]
impl SecurityDefinitions for MemoryStore {
    async fn all_security(&self) -> Result<Vec<SecurityDefinition>, StoreError> {
        Ok(self.open()?.security.values().cloned().collect())
    }

    async fn create_security(&self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        self.open()?.create_security(definition)
    }

    async fn replace_security(&self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        self.open()?.replace_security(definition, version)
    }

    async fn delete_security(&self, id: SecurityId) -> Result<(), StoreError> {
        self.open()?.delete_security(id)
    }
}

impl Data {
    /// `NotFound` when the connection names a definition that its project does not have.
    pub(super) fn require_security(&self, connection: &Connection) -> Result<(), StoreError> {
        let Some(name) = &connection.spec.security else { return Ok(()) };
        let mut ours = self.security.values().filter(|known| known.project_id == connection.project_id);
        match ours.any(|known| &known.name == name) {
            true => Ok(()),
            false => Err(StoreError::NotFound { what: "security definition" }),
        }
    }

    pub(super) fn create_security(&mut self, definition: &SecurityDefinition) -> Result<(), StoreError> {
        if !self.projects.contains_key(&definition.project_id) {
            return Err(StoreError::NotFound { what: "project" });
        }
        let is_taken = self.security.values().any(|known| {
            known.id == definition.id || (known.project_id == definition.project_id && known.name == definition.name)
        });
        if is_taken {
            let name = &definition.name;
            return Err(StoreError::Conflict(format!("there is a security definition `{name}` already")));
        }
        self.security.insert(definition.id, definition.clone());
        Ok(())
    }

    pub(super) fn replace_security(&mut self, definition: &SecurityDefinition, version: u32) -> Result<(), StoreError> {
        let Some(known) = self.security.get_mut(&definition.id) else {
            return Err(StoreError::NotFound { what: "security definition" });
        };
        if known.version != version {
            return Err(StoreError::Conflict(format!("the security definition `{}` has changed since", known.name)));
        }
        let (name, project_id, created_at) = (known.name.clone(), known.project_id, known.created_at);
        *known = SecurityDefinition { name, project_id, created_at, ..definition.clone() };
        Ok(())
    }

    pub(super) fn delete_security(&mut self, id: SecurityId) -> Result<(), StoreError> {
        let Some(known) = self.security.get(&id) else {
            return Err(StoreError::NotFound { what: "security definition" });
        };
        let uses = |connection: &&Connection| {
            connection.project_id == known.project_id && connection.spec.security.as_ref() == Some(&known.name)
        };
        let mut users: Vec<String> = self.connections.values().filter(uses).map(|user| user.name.clone()).collect();
        users.sort_unstable();
        if !users.is_empty() {
            return Err(in_use(&known.name, &users));
        }
        self.security.remove(&id);
        Ok(())
    }
}
