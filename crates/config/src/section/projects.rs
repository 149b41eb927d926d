//! `projects`: what everything else belongs to.

use postrider_core::SettingError;
use postrider_core::id::ProjectId;
use postrider_core::settings::objects::{PROJECT_KEYS, ProjectSpec, written_alerts};
use postrider_core::settings::{KeyDoc, differing};
use postrider_store::{ConfigChange, Project, ProjectSettings};
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
        state.projects().map(|project| object(&project.name, written(&project.settings))).collect()
    }

    fn change(&self, wanted: &Object, _: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let spec =
            ProjectSpec::parse(&wanted.name, &wanted.written).map_err(|_| "the project reads differently now")?;
        let ProjectSpec { name, owner_email, entitled, rate_limit_per_second, concurrency, alerts } = spec;
        let settings = ProjectSettings { owner_email, entitled, rate_limit_per_second, concurrency, alerts };
        Ok(match making.state.project(&name) {
            Some(was) => ConfigChange::ReplaceProject { was: was.clone(), now: Project { settings, ..was.clone() } },
            None => {
                let id = ProjectId::new(making.now, (making.bits)());
                ConfigChange::CreateProject(Project { id, name, settings, created_at: making.now })
            }
        })
    }
}

fn written(settings: &ProjectSettings) -> Map<String, Value> {
    let mut written = Map::new();
    written.insert("ownerEmail".to_owned(), settings.owner_email.clone().into());
    written.insert("entitled".to_owned(), settings.entitled.into());
    written.insert("rateLimitPerSecond".to_owned(), settings.rate_limit_per_second.into());
    written.insert("concurrency".to_owned(), settings.concurrency.into());
    written.extend(written_alerts(settings.alerts).map(|(key, value)| (key.to_owned(), value.into())));
    written
}
