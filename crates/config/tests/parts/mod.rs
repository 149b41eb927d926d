//! A state without a store, and a section of secrets that no version has.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]
#![allow(dead_code, reason = "each test file uses its own part")]

use std::cell::Cell;

use postrider_config::{Action, File, Making, Object, Plan, Refused, SECTIONS, Section, State, plan, read};
use postrider_core::id::{ProjectId, TopicId};
use postrider_core::settings::KeyDoc;
use postrider_core::settings::Shape;
use postrider_core::topic::TopicName;
use postrider_core::{SettingError, Timestamp, Wait};
use postrider_store::{ConfigChange, Project, ProjectSettings, Topic};
use serde_json::{Map, Value};

pub fn with_project(name: &str) -> State {
    let mut state = State::default();
    let created_at = Timestamp::from_millis(0);
    state.make(&ConfigChange::CreateProject(Project {
        id: ProjectId::from_u128(1),
        name: name.to_owned(),
        settings: ProjectSettings::default(),
        created_at,
    }));
    state
}

pub fn file(text: &str) -> File<'static> {
    read(text, SECTIONS, &|name| match name {
        "HOST" => Some("https://env.example.org".to_owned()),
        // Of a definition whose name begins with `sec`: a secret that is its own.
        name => name.starts_with("SEC").then(|| format!("hunter2-{name}")),
    })
}

pub fn planned(file: &File<'_>, state: &State) -> Result<Plan, Refused> {
    let next = Cell::new(100);
    plan(file, state.clone(), "default", Timestamp::from_millis(7), &|| {
        next.set(next.get() + 1);
        next.get()
    })
}

/// Plans, and makes the changes.
pub fn applied(text: &str, state: &mut State) -> Plan {
    let plan = planned(&file(text), state).unwrap_or_else(|refused| panic!("{}", shown(&refused)));
    plan.changes.iter().for_each(|change| state.make(change));
    state.know_secrets(plan.secrets.clone());
    plan
}

/// Created, changed, unchanged.
pub fn counts(plan: &Plan) -> (usize, usize, usize) {
    (plan.count(Action::Created), plan.count(Action::Changed), plan.count(Action::Unchanged))
}

pub fn shown(refused: &Refused) -> String {
    refused.0.iter().map(|finding| finding.line("f") + "\n").collect()
}

/// What is refused about a file over an empty `default`, a line each.
pub fn refusals(text: &str) -> String {
    match planned(&file(text), &with_project("default")) {
        Ok(_) => panic!("it was taken: {text}"),
        Err(refused) => shown(&refused),
    }
}

pub fn warnings(text: &str) -> Vec<String> {
    let plan = planned(&file(text), &with_project("default")).unwrap_or_else(|refused| panic!("{}", shown(&refused)));
    plan.warnings.iter().map(|finding| finding.line("f")).collect()
}

/// Passwords, kept in the description of topics.
pub struct Vault;

const VAULT_KEYS: &[KeyDoc] = &[
    KeyDoc {
        name: "password",
        default: "none",
        allowed: "a text of at most 20 characters",
        meaning: "A secret.",
        shape: Shape::Text,
        is_secret: true,
    },
    KeyDoc {
        name: "hint",
        default: "",
        allowed: "a text",
        meaning: "No secret.",
        shape: Shape::Text,
        is_secret: false,
    },
];

impl Section for Vault {
    fn name(&self) -> &'static str {
        "vault"
    }
    fn meaning(&self) -> &'static str {
        "For tests."
    }
    fn keys(&self) -> Vec<&'static KeyDoc> {
        VAULT_KEYS.iter().collect()
    }
    fn read(&self, name: &str, written: &Map<String, Value>) -> Result<Vec<Object>, Vec<SettingError>> {
        let password = written.get("password").and_then(Value::as_str).unwrap_or_default();
        if password.len() > 20 {
            return Err(vec![SettingError::new("password", password, format!("less than {password}"))]);
        }
        Ok(vec![Object { id: name.into(), name: name.into(), written: written.clone(), keys: written.clone() }])
    }
    fn current(&self, state: &State, project: ProjectId) -> Vec<Object> {
        let one = |topic: &Topic| {
            let mut keys = Map::new();
            keys.insert("password".into(), topic.description.clone().into());
            let name = topic.name.as_str().to_owned();
            Object { id: name.clone(), name, written: keys.clone(), keys }
        };
        state.topics_of(project).map(one).collect()
    }
    fn change(&self, wanted: &Object, project_id: ProjectId, making: &Making<'_>) -> Result<ConfigChange, String> {
        let description = wanted.keys["password"].as_str().unwrap().to_owned();
        let name = TopicName::new(wanted.name.as_str()).unwrap();
        let id = TopicId::from_u128((making.bits)());
        let (retention, created_at) = (Wait::from_secs(60), making.now);
        Ok(ConfigChange::CreateTopic(Topic { id, project_id, name, description, retention, created_at }))
    }
}
