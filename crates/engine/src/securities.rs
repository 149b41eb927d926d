//! The security definitions as they are now, with their credentials ready, in memory: every attempt looks here and none asks the store.
//!
//! It must not know how a definition is changed or what its credentials look like on the wire.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::connection::Connection;
use postrider_core::id::ProjectId;
use postrider_core::security::SecurityDefinition;
use postrider_wire::Credentials;

use crate::refusal::Refusal;

/// A definition, and what became of its secret.
pub struct Security {
    pub definition: SecurityDefinition,
    pub(crate) credentials: Result<Arc<Credentials>, String>,
}

impl Security {
    /// Why its secret cannot be read, in words for an operator; attempts that need it fail until it is set anew or its key is back.
    pub fn unreadable(&self) -> Option<&str> {
        self.credentials.as_ref().err().map(String::as_str)
    }
}

impl std::fmt::Debug for Security {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Security")
            .field("definition", &self.definition)
            .field("credentials", &self.credentials)
            .finish()
    }
}

#[derive(Default)]
pub(crate) struct Securities(RwLock<BTreeMap<ProjectId, BTreeMap<String, Arc<Security>>>>);

impl Securities {
    pub fn get(&self, project: ProjectId, name: &str) -> Option<Arc<Security>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&project)?.get(name).cloned()
    }

    /// # Errors
    /// `NotFound`.
    pub fn find(&self, project: ProjectId, name: &str) -> Result<Arc<Security>, Refusal> {
        let missing = || Refusal::NotFound { what: "security definition", name: name.to_owned() };
        self.get(project, name).ok_or_else(missing)
    }

    /// Of one project, by name.
    pub fn of(&self, project: ProjectId) -> Vec<Arc<Security>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&project).map(|named| named.values().cloned().collect()).unwrap_or_default()
    }

    /// Of all projects.
    pub fn all(&self) -> Vec<Arc<Security>> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.values().flat_map(BTreeMap::values).cloned().collect()
    }

    pub fn put(&self, security: Arc<Security>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let named = known.entry(security.definition.project_id).or_default();
        named.insert(security.definition.name.clone(), security);
    }

    pub fn remove(&self, project: ProjectId, name: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(named) = known.get_mut(&project) {
            named.remove(name);
        }
    }

    /// What an attempt on this connection carries. `Err`: nothing may be sent, since it would go without credentials.
    pub fn credentials_for(&self, connection: &Connection) -> Result<Option<Arc<Credentials>>, String> {
        let Some(name) = &connection.spec.security else { return Ok(None) };
        match self.get(connection.project_id, name) {
            Some(security) => security.credentials.clone().map(Some),
            None => Err(format!("the security definition `{name}` is not there")),
        }
    }
}
