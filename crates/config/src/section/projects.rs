//! `projects`: what everything else belongs to.

use postrider_core::SettingError;
use postrider_core::id::ProjectId;
use postrider_core::settings::objects::{PROJECT_KEYS, ProjectSpec};
use postrider_core::settings::{KeyDoc, differing};
use postrider_store::{ConfigChange, Project};
use serde_json::{Map, Value};

use super::{Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct Projects;

fn object(name: &str, written: Map<String, Value>) -> Object {
    let keys = differing(PROJECT_KEYS.iter(), &written);
    Object { id: name.to_owned(), name: name.to_owned(), written, keys }
}

impl Section for Projects {
    fn name(&self) -> &'static str {
        "projects"
    }

    fn meaning(&self) -> &'static str {
        "What everything else belongs to. The first one is `default`."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        PROJECT_KEYS.iter().collect()
    }

    fn is_in_project(&self) -> bool {
        false
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        ProjectSpec::parse(name, written)?;
        Ok(vec![object(name, written.clone())])
    }

    /// All of them, whichever project is asked about.
    fn current(&self, state: &State, _: ProjectId) -> Vec<Object> {
        state.projects().map(|project| object(&project.name, Map::new())).collect()
    }

    fn change(&self, wanted: &Object, _: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let id = ProjectId::new(making.now, (making.bits)());
        Ok(ConfigChange::CreateProject(Project { id, name: wanted.name.clone(), created_at: making.now }))
    }
}
