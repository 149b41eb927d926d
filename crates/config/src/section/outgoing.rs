//! `outgoing_rest` and its like, and `channel_rest` and its like: what has a queue, one section for each kind. What their keys mean is the core's.

use postrider_core::SettingError;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec, check_name};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_core::settings::{self, ALIASES, KeyDoc, SettingWarning, canonical};
use postrider_store::ConfigChange;
use serde_json::{Map, Value};

use super::{Need, Object, Section};
use crate::plan::Making;
use crate::state::State;

/// The section of one kind of connection, channel or service.
pub struct Outgoing {
    kind: ConnectionKind,
    name: &'static str,
    meaning: &'static str,
    required: &'static [&'static str],
    aliases: &'static [&'static str],
}

pub const REST: Outgoing = Outgoing {
    kind: ConnectionKind::Rest,
    name: "outgoing_rest",
    meaning: "Connections to REST APIs.",
    required: &["host", "url_path"],
    aliases: &[],
};

pub const MLLP: Outgoing = Outgoing {
    kind: ConnectionKind::Mllp,
    name: "outgoing_mllp",
    meaning: "Connections to receivers of HL7 version 2 over MLLP.",
    required: &["address"],
    aliases: &[],
};

pub const SOAP: Outgoing = Outgoing {
    kind: ConnectionKind::Soap,
    name: "outgoing_soap",
    meaning: "Connections to SOAP services.",
    required: &["host", "url_path"],
    aliases: &["outconn_soap"],
};

pub const WEBHOOK: Outgoing = Outgoing {
    kind: ConnectionKind::Webhook,
    name: "webhook_endpoint",
    meaning: "Addresses that events are sent to, signed. A signing key is made for each; it is in no file.",
    required: &["url"],
    aliases: &[],
};

/// What channels run.
pub const SERVICES: Outgoing = Outgoing {
    kind: ConnectionKind::Service,
    name: "services",
    meaning: "Addresses at which code runs for channels.",
    required: &["address"],
    aliases: &[],
};

pub const CHANNEL_REST: Outgoing = Outgoing {
    kind: ConnectionKind::ChannelRest,
    name: "channel_rest",
    meaning: "Addresses under this server that accept requests over HTTP, and what they run.",
    required: &["url_path"],
    aliases: &[],
};

pub const CHANNEL_SOAP: Outgoing = Outgoing {
    kind: ConnectionKind::ChannelSoap,
    name: "channel_soap",
    meaning: "The same over SOAP.",
    required: &["url_path"],
    aliases: &[],
};

pub const CHANNEL_MLLP: Outgoing = Outgoing {
    kind: ConnectionKind::ChannelMllp,
    name: "channel_mllp",
    meaning: "Ports that listen for HL7 version 2 over MLLP.",
    required: &["address"],
    aliases: &[],
};

pub const FHIR: Outgoing = Outgoing {
    kind: ConnectionKind::Fhir,
    name: "outgoing_fhir",
    meaning: "Connections to HL7 FHIR servers.",
    required: &["address"],
    aliases: &[],
};

impl Outgoing {
    fn object(&self, name: &str, written: &Map<String, Value>) -> Object {
        let keys = canonical(self.kind, written);
        Object { id: name.to_owned(), name: name.to_owned(), written: written.clone(), keys }
    }
}

impl Section for Outgoing {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn meaning(&self) -> &'static str {
        self.meaning
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        settings::keys_of(self.kind).collect()
    }

    fn required(&self) -> &'static [&'static str] {
        self.required
    }

    fn reads(&self, key: &str) -> bool {
        settings::reads(self.kind, key)
    }

    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        settings::passed_over(self.kind)
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let name_error = check_name(name).err();
        match (ConnectionSpec::parse(self.kind, written), name_error) {
            (Ok(_), None) => Ok(vec![self.object(name, written)]),
            (read, name_error) => Err(name_error.into_iter().chain(read.err().unwrap_or_default()).collect()),
        }
    }

    fn warnings(&self, object: &Object) -> Vec<SettingWarning> {
        let mut warnings = settings::all_warnings(self.kind, &object.written);
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
        state.connections_of(project, self.kind).map(|known| self.object(&known.name, &known.written)).collect()
    }

    /// A pause by hand stays as it is: it is no setting.
    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let written = wanted.written.clone();
        let spec = ConnectionSpec::parse(self.kind, &written).map_err(|_| "its settings read differently now")?;
        Ok(match making.state.connection(project, self.kind, &wanted.name) {
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
