//! A file as a list of objects, and everything that is wrong with it. It must not know what is in the store.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{self, Content, Entry, Place};
use crate::finding::{Finding, Refused, in_order};
use crate::item::{self, Environment};
use crate::section::{Heading, Object, Section, heading};

/// What a file says.
pub struct File<'s> {
    /// In the order of the file.
    pub objects: Vec<FileObject<'s>>,
    pub(crate) errors: Vec<Finding>,
    pub(crate) warnings: Vec<Finding>,
    /// Sections with an item that was refused: what that would have been is unknown.
    pub(crate) incomplete: BTreeSet<&'static str>,
}

/// An object, and where it stands.
pub struct FileObject<'s> {
    pub section: &'s dyn Section,
    pub object: Object,
    /// The project that the item names.
    pub project: Option<String>,
    pub place: Place,
    /// Such as `outgoing_rest[2]`.
    pub path: String,
    pub(crate) places: BTreeMap<String, Place>,
}

impl File<'_> {
    /// # Errors
    /// Everything that is wrong with the file by itself. What is wrong with it beside the store shows in the plan.
    pub fn check(&self) -> Result<(), Refused> {
        if self.errors.is_empty() { Ok(()) } else { Err(Refused(in_order(self.errors.clone()))) }
    }
}

/// Reads a file to its end, whatever is wrong with it.
pub fn read<'s>(text: &str, sections: &[&'s dyn Section], environment: Environment<'_>) -> File<'s> {
    let (root, errors) = document::read(text);
    let mut file = File { objects: Vec::new(), errors, warnings: Vec::new(), incomplete: BTreeSet::new() };
    let Some(root) = root.filter(|root| !root.is_null()) else { return file };
    match &root.content {
        Content::Map(entries) => entries.iter().for_each(|entry| file.take(entry, sections, environment)),
        _ => {
            let message = format!("a file is a map of sections, and this is {}", root.kind());
            file.errors.push(Finding::new(root.place, "", message));
        }
    }
    file
}

impl<'s> File<'s> {
    fn take(&mut self, entry: &Entry, sections: &[&'s dyn Section], environment: Environment<'_>) {
        let key: String = entry.key.chars().take(80).collect();
        match heading(sections, &entry.key) {
            Heading::Section(section) => self.section(section, entry, environment),
            Heading::PassedOver => {
                let message =
                    format!("the section `{key}` has no effect here: it was accepted so that the file imports");
                self.warnings.push(Finding::new(entry.key_place, key, message));
            }
            Heading::Refused(message, allowed) => {
                self.errors.push(Finding::new(entry.key_place, key, message).allowing(allowed));
            }
        }
    }

    fn section(&mut self, section: &'s dyn Section, entry: &Entry, environment: Environment<'_>) {
        let Content::List(nodes) = &entry.value.content else {
            if !entry.value.is_null() {
                let message = format!("a section is a list of items, and this is {}", entry.value.kind());
                self.errors.push(Finding::new(entry.value.place, section.name(), message));
                self.incomplete.insert(section.name());
            }
            return;
        };
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{}[{index}]", section.name());
            let read = item::read(section, &path, node, environment);
            if !read.errors.is_empty() {
                self.incomplete.insert(section.name());
            }
            self.errors.extend(read.errors);
            self.warnings.extend(read.warnings);
            for object in read.objects {
                let (project, path, places) = (read.project.clone(), path.clone(), read.places.clone());
                self.objects.push(FileObject { section, object, project, place: node.place, path, places });
            }
        }
    }
}
