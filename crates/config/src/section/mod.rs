//! The sections of a file. One file each, all behind one trait; what is not here is refused or passed over by name.
//!
//! A further section is a file beside these and a line in `SECTIONS`. Its objects and changes are those of the store; how files are read,
//! compared, applied and exported must not be known here.

mod outgoing;
mod projects;
mod pubsub_subscription;
mod pubsub_topic;
mod security;
mod webhook_source;
mod webhook_subscription;

use std::borrow::Cow;

use postrider_core::SettingError;
use postrider_core::id::ProjectId;
use postrider_core::settings::{KeyDoc, SettingWarning, nearest};
use postrider_store::ConfigChange;
use serde_json::{Map, Value};

use crate::plan::Making;
use crate::state::State;

/// In the order of application and of export: what others stand on comes first.
pub const SECTIONS: &[&dyn Section] = &[
    &projects::Projects,
    &security::Security,
    &pubsub_topic::Topics,
    &pubsub_subscription::Subscriptions,
    &outgoing::REST,
    &outgoing::MLLP,
    &outgoing::SOAP,
    &outgoing::FHIR,
    &outgoing::SERVICES,
    &outgoing::CHANNEL_REST,
    &outgoing::CHANNEL_SOAP,
    &outgoing::CHANNEL_MLLP,
    &outgoing::WEBHOOK,
    &webhook_source::Sources,
    &webhook_subscription::PushSubscriptions,
];

/// Sections of the integration platform that mean nothing here: passed over with a warning each (D18).
pub(crate) const PASSED_OVER: &[&str] = &[
    "groups",
    "pubsub_permission",
    "scheduler",
    "cache",
    "channel_kafka",
    "channel_openapi",
    "channel_sms",
    "confluence",
    "elastic_search",
    "email_imap",
    "email_smtp",
    "jira",
    "ldap",
    "microsoft_365",
    "odoo",
    "outgoing_kafka",
    "outgoing_sms",
    "sql",
];

/// One object of a section: what an item of a file, or something in the store, comes to.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Unique in its section and project; what people are shown.
    pub id: String,
    /// Its `name` in a file.
    pub name: String,
    /// The keys as somebody wrote them, without `name` and `project`.
    pub written: Map<String, Value>,
    /// What differs from the default, in one spelling: compared and exported. Values of secret keys are in the clear, or null where there is one
    /// that is not known.
    pub keys: Map<String, Value>,
}

/// Something in another section, of the same project, that an object names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The key that names it.
    pub key: &'static str,
    pub section: &'static str,
    pub id: String,
    /// What happens while it is not there. `None`: the file is refused.
    pub warning: Option<String>,
}

/// What an item is when its `type` has this name.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    /// Beside those of the section that no variant has.
    pub keys: &'static [KeyDoc],
    /// Those that must be there.
    pub required: &'static [&'static str],
}

pub trait Section: Sync {
    /// The key at the top of a file.
    fn name(&self) -> &'static str;

    /// Other names that are taken for it.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// One sentence for the reference.
    fn meaning(&self) -> &'static str;

    /// In the order of export. `name` and `project` are in every section and not among them.
    fn keys(&self) -> Vec<&'static KeyDoc>;

    /// Those that must be there, for the JSON Schema.
    fn required(&self) -> &'static [&'static str] {
        &[]
    }

    /// Where the key `type` decides which keys an item has: every type. `keys` has all of theirs.
    fn variants(&self) -> Vec<Variant> {
        Vec::new()
    }

    /// Whether its objects belong to a project.
    fn is_in_project(&self) -> bool {
        true
    }

    /// Whether [`Section::read`] is given this key; an unknown one is refused with the nearest known one.
    fn reads(&self, key: &str) -> bool {
        self.keys().iter().any(|doc| doc.name == key)
    }

    /// Keys of the platform that mean nothing here, and how the names of whole families of them begin: left out with a warning each (D18).
    fn passed_over(&self) -> (&'static [&'static str], &'static [&'static str]) {
        (&[], &[])
    }

    /// The name of an item that has none, if another key can stand in for it.
    fn name_from(&self) -> Option<&'static str> {
        None
    }

    /// What one item means; most are one object.
    ///
    /// # Errors
    /// All that is refused, each with its field.
    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>>;

    /// What is accepted and yet worth a word.
    fn warnings(&self, _object: &Object) -> Vec<SettingWarning> {
        Vec::new()
    }

    /// What it stands on.
    fn needs(&self, _object: &Object) -> Vec<Need> {
        Vec::new()
    }

    /// Puts in what an item need not say, since it is there; `keys` then has it and `written` has not.
    ///
    /// # Errors
    /// What would have to be said.
    fn completed(&self, _wanted: &mut Object, _former: Option<&Object>) -> Result<(), SettingError> {
        Ok(())
    }

    /// What somebody has to do once this change is made.
    fn to_do(&self, _wanted: &Object, _former: Option<&Object>) -> Option<String> {
        None
    }

    /// What there is now, by id.
    fn current(&self, state: &State, project: ProjectId) -> Vec<Object>;

    /// Whether this object is there now.
    fn has(&self, state: &State, project: ProjectId, id: &str) -> bool {
        self.current(state, project).iter().any(|found| found.id == id)
    }

    /// The change that makes `wanted` true in this project, where it is missing or differs.
    ///
    /// # Errors
    /// In words: what could not be found, although `needs` was met. That is a defect of the section.
    fn change(&self, wanted: &Object, project: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String>;

    /// The items that export writes for these objects of one project, the other way round than `read`.
    fn items(&self, objects: Vec<Object>) -> Vec<Object> {
        objects
    }
}

/// Whether a key of the platform is left out of this section with a warning.
pub(crate) fn passes_over(section: &dyn Section, key: &str) -> bool {
    let (keys, families) = section.passed_over();
    keys.contains(&key) || families.iter().any(|family| key.starts_with(family))
}

/// What a key at the top of a file is.
pub(crate) enum Heading<'s> {
    Section(&'s dyn Section),
    PassedOver,
    /// Why not, and what instead.
    Refused(Cow<'static, str>, Cow<'static, str>),
}

pub(crate) fn heading<'s>(sections: &[&'s dyn Section], key: &str) -> Heading<'s> {
    let found = sections.iter().find(|section| section.name() == key || section.aliases().contains(&key));
    if let Some(section) = found {
        return Heading::Section(*section);
    }
    let names = || sections.iter().map(|section| section.name());
    let all = || names().collect::<Vec<_>>().join(", ");
    if PASSED_OVER.contains(&key) {
        return Heading::PassedOver;
    }
    let shown: String = key.chars().take(80).collect();
    let known = names().chain(PASSED_OVER.iter().copied());
    let allowed = match nearest(key, known) {
        Some(near) => format!("a section that exists; did you mean `{near}`?"),
        None => format!("the sections {}", all()),
    };
    Heading::Refused(format!("`{shown}` is no section: allowed is {allowed}").into(), allowed.into())
}
