//! The projects that were asked for by name or id, in memory: every request names one and none waits for the store.
//!
//! Of names only what was found is kept; a project never changes its id. Settings are those of all of them. It must not know what belongs to a project.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::id::ProjectId;
use postrider_store::{Project, ProjectSettings, StoreRead};

use crate::refusal::Refusal;

#[derive(Default)]
pub(crate) struct Projects {
    ids: RwLock<BTreeMap<String, ProjectId>>,
    settings: RwLock<BTreeMap<ProjectId, Arc<ProjectSettings>>>,
    names: RwLock<BTreeMap<ProjectId, String>>,
}

impl Projects {
    /// What an operator said about it; every attempt at an endpoint looks here.
    pub fn settings(&self, id: ProjectId) -> Option<Arc<ProjectSettings>> {
        self.settings.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn put(&self, project: &Project) {
        let settings = Arc::new(project.settings.clone());
        self.settings.write().unwrap_or_else(PoisonError::into_inner).insert(project.id, settings);
        self.names.write().unwrap_or_else(PoisonError::into_inner).insert(project.id, project.name.clone());
    }

    /// What people call it.
    pub fn name(&self, id: ProjectId) -> String {
        self.names.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned().unwrap_or_default()
    }

    /// # Errors
    /// `NotFound` when there is none of this name or id.
    pub async fn find(&self, store: &dyn StoreRead, name_or_id: &str) -> Result<ProjectId, Refusal> {
        let known = self.ids.read().unwrap_or_else(PoisonError::into_inner).get(name_or_id).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(found) = store.project(name_or_id).await? else {
            return Err(Refusal::NotFound { what: "project", name: name_or_id.to_owned() });
        };
        self.ids.write().unwrap_or_else(PoisonError::into_inner).insert(name_or_id.to_owned(), found.id);
        Ok(found.id)
    }
}
