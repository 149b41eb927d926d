//! One item of a section: its keys taken apart, its values read by their shape, what it refuses put where it stands in the file.
//!
//! It must not know which section it reads for.

use std::collections::BTreeMap;

use postrider_core::SettingError;
use postrider_core::settings::{KeyDoc, SettingWarning, Shape, nearest};
use serde_json::{Map, Value};

use crate::document::{Content, Entry, Node, Place, Scalar, Style, read_as};
use crate::environment::variable;
use crate::finding::Finding;
use crate::section::{Object, Section, passes_over};

pub(crate) type Environment<'e> = &'e (dyn Fn(&str) -> Option<String> + Sync);

/// What an item came to. Without objects: it is refused.
pub(crate) struct Read {
    pub objects: Vec<Object>,
    /// The project that it names.
    pub project: Option<String>,
    pub errors: Vec<Finding>,
    pub warnings: Vec<Finding>,
    /// Where the values of its keys stand.
    pub places: BTreeMap<String, Place>,
}

pub(crate) fn read(section: &dyn Section, path: &str, node: &Node, environment: Environment<'_>) -> Read {
    let mut item = Item {
        section,
        path,
        place: node.place,
        environment,
        written: Map::new(),
        variables: BTreeMap::new(),
        surprises: BTreeMap::new(),
        unread: Vec::new(),
        read: Read { objects: vec![], project: None, errors: vec![], warnings: vec![], places: BTreeMap::new() },
    };
    match &node.content {
        Content::Map(entries) => item.take(entries),
        _ => {
            let message = format!("an item of `{}` is a map of keys, and this is {}", section.name(), node.kind());
            item.read.errors.push(Finding::new(node.place, path, message));
        }
    }
    item.read
}

struct Item<'a> {
    section: &'a dyn Section,
    path: &'a str,
    place: Place,
    environment: Environment<'a>,
    written: Map<String, Value>,
    /// Keys whose value came from the environment, and the variable.
    variables: BTreeMap<String, String>,
    /// Keys with a value that older readers would take otherwise: the value, and why.
    surprises: BTreeMap<String, (String, &'static str)>,
    /// Keys with a value that could not be had: what follows from that is not told as well.
    unread: Vec<String>,
    read: Read,
}

impl Item<'_> {
    fn take(&mut self, entries: &[Entry]) {
        let keys = self.section.keys();
        let mut name = None;
        for entry in entries {
            let key = entry.key.as_str();
            self.read.places.entry(key.to_owned()).or_insert(entry.value.place);
            if key == "name" {
                name = self.text(entry);
            } else if key == "project" && self.section.is_in_project() {
                self.read.project = self.text(entry);
            } else if passes_over(self.section, key) {
                let warning = SettingWarning::without_effect(key).message;
                self.read.warnings.push(Finding::new(entry.key_place, self.path_of(key), warning));
            } else if self.section.reads(key) {
                let shape = keys.iter().find(|doc| doc.name == key).map(|doc| doc.shape);
                match self.value(key, &entry.value, shape) {
                    Some(Value::Null) => {}
                    Some(value) => {
                        self.written.insert(key.to_owned(), value);
                    }
                    None => self.unread.push(key.to_owned()),
                }
            } else {
                self.refuse_unknown(entry, &keys);
            }
        }
        let name = name.or_else(|| self.name_from(entries));
        if name.is_none() && !self.unread.iter().any(|key| key == "name") {
            let message = format!("`name` is missing: each item of `{}` has one", self.section.name());
            self.read.errors.push(Finding::new(self.place, self.path_of("name"), message));
        }
        self.finish(name, &keys);
    }

    fn name_from(&mut self, entries: &[Entry]) -> Option<String> {
        let key = self.section.name_from()?;
        let entry = entries.iter().find(|entry| entry.key == key)?;
        self.text(entry)
    }

    /// `name` and `project`: an empty one is none.
    fn text(&mut self, entry: &Entry) -> Option<String> {
        match self.value(&entry.key, &entry.value, Some(Shape::Text)) {
            Some(Value::String(text)) if !text.is_empty() => Some(text),
            Some(Value::Null | Value::String(_)) => None,
            Some(_) => {
                let message = format!("`{}` is {}: allowed is a text", entry.key, entry.value.kind());
                self.read.errors.push(Finding::new(entry.value.place, self.path_of(&entry.key), message));
                self.unread.push(entry.key.clone());
                None
            }
            None => {
                self.unread.push(entry.key.clone());
                None
            }
        }
    }

    /// The value as the key's own reader takes it. `None`: a variable that it names is not set, which has been told.
    fn value(&mut self, key: &str, node: &Node, shape: Option<Shape>) -> Option<Value> {
        match &node.content {
            Content::Scalar(scalar) => self.scalar(key, node.place, scalar, shape),
            Content::List(nodes) => {
                let shape = match shape {
                    Some(Shape::Numbers { min, max, .. }) => Some(Shape::Decimal { min, max }),
                    Some(Shape::Texts | Shape::Words { .. }) => Some(Shape::Text),
                    _ => None,
                };
                let read: Vec<Option<Value>> = nodes.iter().map(|node| self.value(key, node, shape)).collect();
                read.into_iter().collect::<Option<Vec<Value>>>().map(Value::Array)
            }
            Content::Map(entries) => {
                let of_entry = matches!(shape, Some(Shape::Pairs { .. })).then_some(Shape::Text);
                let read: Vec<Option<(String, Value)>> = entries
                    .iter()
                    .map(|entry| Some((entry.key.clone(), self.value(key, &entry.value, of_entry)?)))
                    .collect();
                read.into_iter().collect::<Option<Map<String, Value>>>().map(Value::Object)
            }
        }
    }

    fn scalar(&mut self, key: &str, place: Place, scalar: &Scalar, shape: Option<Shape>) -> Option<Value> {
        let name = variable(&scalar.text).filter(|_| scalar.style != Style::Literal);
        let Some(name) = name else {
            let reading = read_as(scalar, shape);
            let doc = self.section.keys().into_iter().find(|doc| doc.name == key);
            if let Some(surprise) = reading.surprise.filter(|_| doc.is_none_or(|doc| !doc.is_secret)) {
                self.surprises.insert(key.to_owned(), (scalar.text.clone(), surprise));
            }
            return Some(reading.value);
        };
        let Some(text) = (self.environment)(name) else {
            let message = format!("`{key}` is the value of the variable `{name}`, and that is not set");
            self.read.errors.push(Finding::new(place, self.path_of(key), message));
            return None;
        };
        self.variables.insert(key.to_owned(), scalar.text.clone());
        let is_text = matches!(
            shape,
            None | Some(Shape::Text | Shape::OneOf(_) | Shape::Texts | Shape::Words { .. } | Shape::Pairs { .. })
        );
        let style = if is_text { Style::Quoted } else { Style::Plain };
        Some(read_as(&Scalar { text, style }, shape).value)
    }

    fn refuse_unknown(&mut self, entry: &Entry, keys: &[&KeyDoc]) {
        let project = self.section.is_in_project().then_some("project");
        let known = keys.iter().map(|doc| doc.name).chain(["name"]).chain(project);
        let allowed = match nearest(&entry.key, known) {
            Some(near) => format!("a key that exists here; did you mean `{near}`?"),
            None => "a key that exists here".to_owned(),
        };
        let shown: String = entry.key.chars().take(80).collect();
        let message = format!("`{shown}` is no key of `{}`: allowed is {allowed}", self.section.name());
        self.read.errors.push(Finding::new(entry.key_place, self.path_of(&shown), message).allowing(allowed));
    }

    fn finish(&mut self, name: Option<String>, keys: &[&KeyDoc]) {
        // A name that is sound stands in for one that is missing, so that the other keys are still looked at.
        let objects = self.section.read(name.as_deref().unwrap_or("unnamed"), &self.written);
        let mut refused: Vec<String> = Vec::new();
        for error in objects.as_ref().err().into_iter().flatten() {
            refused.push(error.field.to_string());
            if !self.unread.iter().any(|key| *key == error.field) {
                let finding = self.refused(error, keys);
                self.read.errors.push(finding);
            }
        }
        for (key, (text, surprise)) in &self.surprises {
            if !refused.contains(key) {
                let message = format!("`{key}` is `{}`, which {surprise}", text.escape_debug());
                let place = self.read.places.get(key).copied().unwrap_or(self.place);
                self.read.warnings.push(Finding::new(place, self.path_of(key), message));
            }
        }
        let objects = objects.unwrap_or_default();
        for warning in objects.iter().flat_map(|object| self.section.warnings(object)) {
            let place = self.read.places.get(&*warning.field).copied().unwrap_or(self.place);
            self.read.warnings.push(Finding::new(place, self.path_of(&warning.field), warning.message));
        }
        if self.read.errors.is_empty() {
            self.read.objects = objects;
        }
    }

    /// Where it stands, and without the value where that is a secret or came from the environment.
    fn refused(&self, error: &SettingError, keys: &[&KeyDoc]) -> Finding {
        let field = &*error.field;
        let place = self.read.places.get(field).copied().unwrap_or(self.place);
        let doc = keys.iter().find(|doc| doc.name == field);
        let path = self.path_of(field);
        if let Some(variable) = self.variables.get(field) {
            let allowed = doc.map_or("what its documentation says", |doc| doc.allowed);
            let message = format!("`{field}` cannot be the value of `{variable}`: allowed is {allowed}");
            return Finding::new(place, path, message).allowing(allowed);
        }
        if let Some(doc) = doc.filter(|doc| doc.is_secret) {
            let message = format!("`{field}` cannot be this: allowed is {}", doc.allowed);
            return Finding::new(place, path, message).allowing(doc.allowed);
        }
        let mut finding = Finding::refused(place, path, error);
        if let Some((text, surprise)) = self.surprises.get(field) {
            finding.message.push_str(&format!(" (`{}` {surprise})", text.escape_debug()));
        }
        finding
    }

    fn path_of(&self, key: &str) -> String {
        let key: String = key.chars().take(80).collect();
        format!("{}.{key}", self.path)
    }
}
