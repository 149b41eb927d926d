//! `pubsub_topic`: where dead letters and events are published.

use postrider_core::id::{ProjectId, TopicId};
use postrider_core::settings::objects::{TOPIC_KEYS, TopicSpec};
use postrider_core::settings::{KeyDoc, differing};
use postrider_core::{SettingError, Wait};
use postrider_store::{ConfigChange, Topic};
use serde_json::{Map, Value};

use super::{Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct Topics;

fn object(name: &str, written: Map<String, Value>) -> Object {
    let keys = differing(TOPIC_KEYS.iter(), &written);
    Object { id: name.to_owned(), name: name.to_owned(), written, keys }
}

/// Whole seconds: nothing else can be written.
fn seconds(wait: Wait) -> u64 {
    wait.as_millis() / 1000
}

impl Section for Topics {
    fn name(&self) -> &'static str {
        "pubsub_topic"
    }

    fn meaning(&self) -> &'static str {
        "Where dead letters and events are published."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        TOPIC_KEYS.iter().collect()
    }

    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&["is_audit_log_active"], &[])
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        TopicSpec::parse(name, written)?;
        Ok(vec![object(name, written.clone())])
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let topics = state.topics_of(project);
        topics
            .map(|topic| {
                let mut written = Map::new();
                written.insert("description".to_owned(), topic.description.clone().into());
                written.insert("retention_seconds".to_owned(), seconds(topic.retention).into());
                object(topic.name.as_str(), written)
            })
            .collect()
    }

    fn has(&self, state: &State, project: ProjectId, id: &str) -> bool {
        state.topic(project, id).is_some()
    }

    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let spec = TopicSpec::parse(&wanted.name, &wanted.written).map_err(|_| "the topic reads differently now")?;
        let TopicSpec { name, description, retention } = spec;
        Ok(match making.state.topic(project, name.as_str()) {
            Some(was) => {
                ConfigChange::ReplaceTopic { was: was.clone(), now: Topic { description, retention, ..was.clone() } }
            }
            None => {
                let id = TopicId::new(making.now, (making.bits)());
                let created_at = making.now;
                ConfigChange::CreateTopic(Topic { id, project_id: project, name, description, retention, created_at })
            }
        })
    }
}
