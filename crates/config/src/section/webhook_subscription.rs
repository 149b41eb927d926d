//! `webhook_subscription`: which events, or messages of topics, are sent where. What their keys mean is the core's.

use postrider_core::SettingError;
use postrider_core::connection::{Connection, ConnectionKind, check_name};
use postrider_core::id::{ProjectId, SubscriptionId};
use postrider_core::settings::subscription::{PUSH_KEYS, TARGET_KEYS};
use postrider_core::settings::{KeyDoc, differing};
use postrider_core::subscription::{PushSpec, PushSubscription};
use postrider_store::ConfigChange;
use serde_json::{Map, Value};

use super::{Need, Object, Section};
use crate::plan::Making;
use crate::state::State;

pub struct PushSubscriptions;

const ENDPOINT: &str = "endpoint";
const CONNECTION: &str = "connection";

/// Where it sends to, as an item says it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Goal {
    kind: ConnectionKind,
    name: String,
    key: &'static str,
}

fn keys() -> impl Iterator<Item = &'static KeyDoc> {
    TARGET_KEYS.iter().chain(PUSH_KEYS)
}

fn object(name: &str, written: &Map<String, Value>) -> Object {
    let keys = differing(keys(), written);
    Object { id: name.to_owned(), name: name.to_owned(), written: written.clone(), keys }
}

/// Takes the keys of the goal out of what is written.
fn goal(written: &mut Map<String, Value>) -> Result<Goal, SettingError> {
    let mut take = |key: &str| written.shift_remove(key).filter(|value| !value.is_null());
    let allowed = |key: &str| TARGET_KEYS.iter().find(|doc| doc.name == key).map_or("", |doc| doc.allowed);
    match (take(ENDPOINT), take(CONNECTION)) {
        (Some(_), Some(connection)) => Err(SettingError::new(
            CONNECTION,
            connection,
            "nothing together with `endpoint`: it is sent to one of them",
        )),
        (Some(Value::String(name)), None) => Ok(Goal { kind: ConnectionKind::Webhook, name, key: ENDPOINT }),
        (None, Some(Value::String(text))) => {
            let named = text.split_once(':').and_then(|(kind, name)| Some((ConnectionKind::parse(kind)?, name)));
            match named.filter(|(_, name)| !name.is_empty()) {
                Some((kind, name)) => Ok(Goal { kind, name: name.to_owned(), key: CONNECTION }),
                None => Err(SettingError::new(CONNECTION, text.escape_debug(), allowed(CONNECTION))),
            }
        }
        (Some(other), None) => Err(SettingError::new(ENDPOINT, other, allowed(ENDPOINT))),
        (None, Some(other)) => Err(SettingError::new(CONNECTION, other, allowed(CONNECTION))),
        (None, None) => Err(SettingError::new(ENDPOINT, "missing", "the name of an endpoint; or `connection` instead")),
    }
}

const fn section_of(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::Rest => "outgoing_rest",
        ConnectionKind::Mllp => "outgoing_mllp",
        ConnectionKind::Soap => "outgoing_soap",
        ConnectionKind::Fhir => "outgoing_fhir",
        ConnectionKind::Webhook => "webhook_endpoint",
        ConnectionKind::ChannelRest => "channel_rest",
        ConnectionKind::ChannelSoap => "channel_soap",
        ConnectionKind::ChannelMllp => "channel_mllp",
        ConnectionKind::Service => "services",
    }
}

fn named(connection: &Connection) -> (&'static str, String) {
    match connection.kind() {
        ConnectionKind::Webhook => (ENDPOINT, connection.name.clone()),
        kind => (CONNECTION, format!("{}:{}", kind.as_str(), connection.name)),
    }
}

impl Section for PushSubscriptions {
    fn name(&self) -> &'static str {
        "webhook_subscription"
    }

    fn meaning(&self) -> &'static str {
        "Which events, or messages of topics, are sent to an endpoint or to another connection."
    }

    fn keys(&self) -> Vec<&'static KeyDoc> {
        keys().collect()
    }

    fn required(&self) -> &'static [&'static str] {
        &["event_type"]
    }

    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let mut rest = written.clone();
        let goal_error = goal(&mut rest).err();
        let errors: Vec<SettingError> = check_name(name).err().into_iter().chain(goal_error).collect();
        match PushSpec::parse(&rest) {
            Ok(_) if errors.is_empty() => Ok(vec![object(name, written)]),
            read => Err(errors.into_iter().chain(read.err().unwrap_or_default()).collect()),
        }
    }

    fn needs(&self, object: &Object) -> Vec<Need> {
        let goal = goal(&mut object.written.clone()).ok();
        let need = |goal: Goal| Need { key: goal.key, section: section_of(goal.kind), id: goal.name, warning: None };
        goal.map(need).into_iter().collect()
    }

    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let found = state.push_subscriptions_of(project);
        found
            .filter_map(|subscription| {
                let (key, name) = named(state.connection_by_id(subscription.connection_id)?);
                let mut written = subscription.written.clone();
                written.insert(key.to_owned(), name.into());
                Some(object(&subscription.name, &written))
            })
            .collect()
    }

    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let mut written = wanted.written.clone();
        let goal = goal(&mut written).map_err(|_| "it reads differently now")?;
        let spec = PushSpec::parse(&written).map_err(|_| "it reads differently now")?;
        let connection = making.state.connection(project, goal.kind, &goal.name);
        let connection_id = connection.ok_or_else(|| format!("there is no `{}`", goal.name))?.id;
        Ok(match making.state.push_subscription(project, &wanted.name) {
            Some(known) => {
                let version = known.version.saturating_add(1);
                let now = making.now;
                let subscription =
                    PushSubscription { connection_id, written, spec, version, updated_at: now, ..known.clone() };
                ConfigChange::ReplacePush { subscription: Box::new(subscription), version: known.version }
            }
            None => ConfigChange::CreatePush(Box::new(PushSubscription {
                id: SubscriptionId::new(making.now, (making.bits)()),
                project_id: project,
                name: wanted.name.clone(),
                connection_id,
                written,
                spec,
                version: 1,
                created_at: making.now,
                updated_at: making.now,
            })),
        })
    }
}
