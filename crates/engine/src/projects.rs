//! The projects that were asked for by name or id, in memory: every request names one and none waits for the store.
//!
//! Only what was found is kept; a project never changes its id. It must not know what belongs to a project.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use postrider_core::id::ProjectId;
use postrider_store::StoreRead;

use crate::refusal::Refusal;

#[derive(Default)]
pub(crate) struct Projects(RwLock<BTreeMap<String, ProjectId>>);

impl Projects {
    /// # Errors
    /// `NotFound` when there is none of this name or id.
    pub async fn find(&self, store: &dyn StoreRead, name_or_id: &str) -> Result<ProjectId, Refusal> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name_or_id).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let Some(found) = store.project(name_or_id).await? else {
            return Err(Refusal::NotFound { what: "project", name: name_or_id.to_owned() });
        };
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name_or_id.to_owned(), found.id);
        Ok(found.id)
    }
}
