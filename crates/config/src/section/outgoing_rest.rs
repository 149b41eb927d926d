//! `outgoing_rest`: where requests go. What its keys mean is the core's.

use postrider_core::SettingError;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec, check_name};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::settings::{self, ALIASES, KeyDoc, PASSED_OVER, PASSED_OVER_FAMILIES, SettingWarning, canonical};
use postrider_store::ConfigChange;
use serde_json::{Map, Value};

use super::{Need, Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct OutgoingRest;

const KIND: ConnectionKind = ConnectionKind::Rest;

fn object(name: &str, written: &Map<String, Value>) -> Object {
    Object { id: name.to_owned(), name: name.to_owned(), written: written.clone(), keys: canonical(KIND, written) }
}

impl Section for OutgoingRest {
    fn name(&self) -> &'static str {
        "outgoing_rest"
    }

    fn meaning(&self) -> &'static str {
        "Connections to REST APIs."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        settings::keys_of(KIND).collect()
    }

    fn required(&self) -> &'static [&'static str] {
        &["host", "url_path"]
    }

    fn reads(&self, key: &str) -> bool {
        settings::reads(KIND, key)
    }

    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&PASSED_OVER, &PASSED_OVER_FAMILIES)
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let name_error = check_name(name).err();
        match (ConnectionSpec::parse(KIND, written), name_error) {
            (Ok(_), None) => Ok(vec![object(name, written)]),
            (read, name_error) => Err(name_error.into_iter().chain(read.err().unwrap_or_default()).collect()),
        }
    }

    fn warnings(&self, object: &Object) -> Vec<SettingWarning> {
        let mut warnings = settings::all_warnings(KIND, &object.written);
        for warning in &mut warnings {
            // The name that stands in the file.
            if let Some((alias, _)) = ALIASES.iter().find(|(alias, name)| {
                *name == warning.field && !object.written.contains_key(*name) && object.written.contains_key(*alias)
            }) {
                warning.field = (*alias).into();
            }
        }
        warnings
    }

    fn needs(&self, object: &Object) -> Vec<Need> {
        let named = |key: &str| object.keys.get(key).and_then(Value::as_str);
        let security = named("security").map(|name| Need {
            key: "security",
            section: "security",
            id: name.to_owned(),
            warning: None,
        });
        let topic = named("dlq_forward_to").map(|topic| Need {
            key: "dlq_forward_to",
            section: "pubsub_topic",
            id: topic.to_owned(),
            warning: Some(format!(
                "there is no topic `{topic}`: requests stay in the dead-letter queue until there is"
            )),
        });
        security.into_iter().chain(topic).collect()
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        state.connections_of(project, KIND).map(|known| object(&known.name, &known.written)).collect()
    }

    /// A pause by hand stays as it is: it is no setting.
    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let written = wanted.written.clone();
        let spec = ConnectionSpec::parse(KIND, &written).map_err(|_| "its settings read differently now")?;
        Ok(match making.state.connection(project, KIND, &wanted.name) {
            Some(known) => {
                let version = known.version.saturating_add(1);
                let connection = Connection { written, spec, version, updated_at: making.now, ..known.clone() };
                ConfigChange::ReplaceConnection { connection: Box::new(connection), version: known.version }
            }
            None => ConfigChange::CreateConnection(Box::new(Connection {
                id: ConnectionId::new(making.now, (making.bits)()),
                project_id: project,
                name: wanted.name.clone(),
                written,
                spec,
                paused: false,
                version: 1,
                created_at: making.now,
                updated_at: making.now,
            })),
        })
    }
}
