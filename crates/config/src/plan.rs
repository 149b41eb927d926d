//! The difference between a file and what is configured now, and the changes that make the file true.
//!
//! What a file does not speak of is left alone; what it speaks of is described in full, so a key that it leaves out has its default. A plan
//! for the state that the former plan made is empty. This module must not apply anything.

use std::cell::RefCell;
use std::collections::BTreeMap;

use postrider_core::id::ProjectId;
use postrider_core::settings::KeyDoc;
use postrider_core::{Secret, Timestamp};
use postrider_store::{ConfigChange, SecretOwner};
use serde_json::{Map, Value, json};

use crate::difference;
use crate::document::Place;
use crate::file::{File, FileObject};
use crate::finding::{Finding, Refused, in_order};
use crate::section::{Object, SECTIONS};
use crate::state::State;

/// What stands for a secret wherever people look.
const MASK: &str = "***";

/// What sections make new objects with.
pub struct Making<'a> {
    pub now: Timestamp,
    /// 128 random bits, for ids.
    pub bits: &'a dyn Fn() -> u128,
    /// With everything that the plan has made so far.
    pub state: &'a State,
    /// Where a section leaves a secret that is new or another one.
    pub secrets: &'a RefCell<NewSecrets>,
}

/// Secrets in the clear, by what they belong to.
pub type NewSecrets = BTreeMap<SecretOwner, Secret>;

pub struct Plan {
    /// In the order of application.
    pub differences: Vec<Difference>,
    pub warnings: Vec<Finding>,
    /// For `configure`; empty when there is nothing to do.
    pub changes: Vec<ConfigChange>,
    /// Of the definitions and sources among the changes: whoever applies them seals these first.
    pub secrets: NewSecrets,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Created,
    Changed,
    Unchanged,
}

/// One object of the file.
#[derive(Clone, Debug)]
pub struct Difference {
    pub section: &'static str,
    pub project: String,
    pub id: String,
    pub action: Action,
    pub place: Place,
    pub keys: Vec<KeyChange>,
}

/// `None`: not set, so that the default holds.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    pub key: &'static KeyDoc,
    pub old: Option<Value>,
    pub new: Option<Value>,
}

/// Compares a file with `state`. Objects that name no project belong to `project`.
///
/// # Errors
/// Everything that is wrong with the file, by itself and beside the state.
pub fn plan(
    file: &File<'_>,
    mut state: State,
    project: &str,
    now: Timestamp,
    bits: &dyn Fn() -> u128,
) -> Result<Plan, Refused> {
    let mut errors = file.errors.clone();
    let mut warnings = file.warnings.clone();
    let project_of = |object: &FileObject<'_>| match &object.project {
        _ if !object.section.is_in_project() => String::new(),
        Some(named) => named.clone(),
        None => project.to_owned(),
    };
    let mut known = Known::default();
    for object in &file.objects {
        errors.extend(known.take(object, project_of(object)));
    }
    for object in file.objects.iter().filter(|object| object.section.is_in_project()) {
        errors.extend(unknown_project(object, &project_of(object), &known, &state, file));
        let (refused, told) = unmet_needs(object, &project_of(object), &known, &state, file);
        errors.extend(refused);
        warnings.extend(told);
    }
    if !errors.is_empty() {
        return Err(Refused(in_order(errors)));
    }
    let mut plan =
        Plan { differences: Vec::new(), warnings: in_order(warnings), changes: Vec::new(), secrets: NewSecrets::new() };
    let secrets = RefCell::default();
    let mut sections: Vec<_> = file.objects.iter().map(|object| object.section).collect();
    sections.sort_by_key(|section| order(section.name()));
    sections.dedup_by_key(|section| section.name());
    for section in sections {
        // What there is now, once a project.
        let mut current: BTreeMap<String, BTreeMap<String, Object>> = BTreeMap::new();
        for object in file.objects.iter().filter(|object| object.section.name() == section.name()) {
            let project = project_of(object);
            // Sections outside projects do not look at it.
            let project_id = state.project(&project).map_or(ProjectId::from_u128(0), |found| found.id);
            let there = current.entry(project.clone()).or_insert_with(|| {
                section.current(&state, project_id).into_iter().map(|found| (found.id.clone(), found)).collect()
            });
            let former = there.get(&object.object.id);
            let mut wanted = object.object.clone();
            if let Err(missing) = section.completed(&mut wanted, former) {
                let path = format!("{}.{}", object.path, missing.field);
                errors.push(Finding::refused(object.place, path, &missing));
                continue;
            }
            let keys = difference::between(section, former, &wanted);
            let action = match former {
                None => Action::Created,
                Some(_) if keys.is_empty() => Action::Unchanged,
                Some(_) => Action::Changed,
            };
            if action != Action::Unchanged {
                let making = Making { now, bits, state: &state, secrets: &secrets };
                let change = section.change(&wanted, project_id, &making);
                let change = change.map_err(|why| Refused(vec![Finding::new(object.place, &object.path, why)]))?;
                state.make(&change);
                plan.changes.push(change);
                if let Some(to_do) = section.to_do(&wanted, former) {
                    plan.warnings.push(Finding::new(object.place, &object.path, to_do));
                }
            }
            let place = object.place;
            plan.differences.push(Difference { section: section.name(), project, id: wanted.id, action, place, keys });
        }
    }
    if !errors.is_empty() {
        return Err(Refused(in_order(errors)));
    }
    plan.secrets = secrets.into_inner();
    Ok(plan)
}

/// Sections of tests come last.
fn order(section: &str) -> usize {
    SECTIONS.iter().position(|known| known.name() == section).unwrap_or(SECTIONS.len())
}

/// The objects of the file by section, project and id, and where each stands.
#[derive(Default)]
struct Known(BTreeMap<(&'static str, String, String), Place>);

impl Known {
    /// What is wrong if it is there already.
    fn take(&mut self, object: &FileObject<'_>, project: String) -> Option<Finding> {
        let key = (object.section.name(), project, object.object.id.clone());
        let Some(first) = self.0.get(&key) else {
            self.0.insert(key, object.place);
            return None;
        };
        let message = format!("`{}` is there twice: first on line {}", object.object.id, first.line);
        Some(Finding::new(object.place, &object.path, message))
    }

    fn has(&self, section: &'static str, project: &str, id: &str) -> bool {
        self.0.contains_key(&(section, project.to_owned(), id.to_owned()))
    }
}

fn unknown_project(
    object: &FileObject<'_>,
    project: &str,
    known: &Known,
    state: &State,
    file: &File<'_>,
) -> Option<Finding> {
    let is_there = state.project(project).is_some() || known.has("projects", "", project);
    if is_there || file.incomplete.contains("projects") {
        return None;
    }
    let place = object.places.get("project").copied().unwrap_or(object.place);
    let shown: String = project.chars().take(80).collect();
    let message =
        format!("there is no project `{shown}`: allowed is one that exists, or that `projects` of this file makes");
    Some(Finding::new(place, format!("{}.project", object.path), message))
}

/// What the file is refused for, and what is only told.
fn unmet_needs(
    object: &FileObject<'_>,
    project: &str,
    known: &Known,
    state: &State,
    file: &File<'_>,
) -> (Vec<Finding>, Vec<Finding>) {
    let (mut refused, mut told) = (Vec::new(), Vec::new());
    for need in object.section.needs(&object.object) {
        if known.has(need.section, project, &need.id) || file.incomplete.contains(need.section) {
            continue;
        }
        let section = SECTIONS.iter().find(|section| section.name() == need.section);
        let is_there = state
            .project(project)
            .zip(section)
            .is_some_and(|(project, section)| section.has(state, project.id, &need.id));
        if is_there {
            continue;
        }
        let place = object.places.get(need.key).copied().unwrap_or(object.place);
        let path = format!("{}.{}", object.path, need.key);
        match need.warning {
            Some(warning) => told.push(Finding::new(place, path, warning)),
            None => {
                let (section, id) = (need.section, &need.id);
                let message = format!("there is no `{id}` in `{section}`, neither here nor in the project");
                refused.push(Finding::new(place, path, message));
            }
        }
    }
    (refused, told)
}

impl Plan {
    pub fn count(&self, action: Action) -> usize {
        self.differences.iter().filter(|difference| difference.action == action).count()
    }

    /// The members of the API's answer: what is created, changed and left as it is, and what is worth a word. Secrets are masked.
    pub fn to_json(&self) -> Map<String, Value> {
        let of = |action: Action| -> Value {
            let with = self.differences.iter().filter(|difference| difference.action == action);
            with.map(Difference::to_json).collect()
        };
        let mut members = Map::new();
        members.insert("created".to_owned(), of(Action::Created));
        members.insert("changed".to_owned(), of(Action::Changed));
        members.insert("unchanged".to_owned(), of(Action::Unchanged));
        members.insert("warnings".to_owned(), self.warnings.iter().map(Finding::to_json).collect());
        members
    }
}

impl Difference {
    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("section".to_owned(), self.section.into());
        members.insert("name".to_owned(), self.id.clone().into());
        if !self.project.is_empty() {
            members.insert("project".to_owned(), self.project.clone().into());
        }
        members.insert("line".to_owned(), self.place.line.into());
        if self.action != Action::Unchanged {
            members.insert("keys".to_owned(), self.keys.iter().map(KeyChange::to_json).collect());
        }
        Value::Object(members)
    }
}

impl KeyChange {
    fn to_json(&self) -> Value {
        let shown = |value: &Option<Value>| match value {
            Some(_) if self.key.is_secret => MASK.into(),
            Some(value) => value.clone(),
            None => Value::Null,
        };
        let default = Some(self.key.default).filter(|default| *default != "none" && !self.key.is_secret);
        json!({"key": self.key.name, "old": shown(&self.old), "new": shown(&self.new), "default": default})
    }
}
