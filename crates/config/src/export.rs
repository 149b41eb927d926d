//! What is configured, as a file that makes the same again: what differs from the default, in the order of the keys.
//!
//! The same configuration gives the same bytes. Secrets are never in it: a reference to the environment stands in their place.

use std::collections::BTreeSet;
use std::fmt::Write;

use postrider_core::id::ProjectId;

use crate::DEFAULT_PROJECT;
use crate::emit;
use crate::environment::placeholder;
use crate::section::{Object, Section};
use crate::state::State;

/// The file of one project, or of all of them when none is named: then `projects` is in it, and whatever is not of the project `default`
/// names its own. `None`: there is no such project.
pub fn export(state: &State, sections: &[&dyn Section], project: Option<&str>) -> Option<String> {
    let projects: Vec<(&str, ProjectId)> = match project {
        Some(name) => vec![(name, state.project(name)?.id)],
        None => state.projects().map(|found| (found.name.as_str(), found.id)).collect(),
    };
    let mut text = String::from(
        "# What differs from the defaults. Secrets are not in it: `Env.NAME` stands for the variable NAME.\n",
    );
    let mut placeholders = BTreeSet::new();
    for section in sections {
        if !section.is_in_project() {
            if project.is_none() {
                let objects = section.items(section.current(state, ProjectId::from_u128(0)));
                items(&mut text, *section, objects.iter().map(|object| (None, object)), &mut placeholders);
            }
            continue;
        }
        let mut all = Vec::new();
        for (name, id) in &projects {
            let named = (project.is_none() && *name != DEFAULT_PROJECT).then_some(*name);
            all.extend(section.items(section.current(state, *id)).into_iter().map(|object| (named, object)));
        }
        items(&mut text, *section, all.iter().map(|(named, object)| (*named, object)), &mut placeholders);
    }
    Some(text)
}

fn items<'o>(
    text: &mut String,
    section: &dyn Section,
    objects: impl Iterator<Item = (Option<&'o str>, &'o Object)>,
    placeholders: &mut BTreeSet<String>,
) {
    let mut is_first = true;
    for (project, object) in objects {
        if std::mem::take(&mut is_first) {
            let _ = write!(text, "\n{}:\n", section.name());
        }
        let _ = writeln!(text, "  - name: {}", emit::value(&object.name.clone().into()));
        if let Some(project) = project {
            let _ = writeln!(text, "    project: {}", emit::value(&project.into()));
        }
        for doc in section.keys() {
            let Some(value) = object.keys.get(doc.name) else { continue };
            let written =
                if doc.is_secret { one_of_its_own(object, doc.name, placeholders) } else { emit::value(value) };
            let _ = writeln!(text, "    {}: {written}", doc.name);
        }
    }
}

/// Names that differ in nothing that a variable can say are told apart by a number.
fn one_of_its_own(object: &Object, key: &str, placeholders: &mut BTreeSet<String>) -> String {
    let first = placeholder(&object.name, key);
    let numbered = (2u32..).map(|number| format!("{first}_{number}"));
    let free = std::iter::once(first.clone()).chain(numbered).find(|name| !placeholders.contains(name));
    let free = free.unwrap_or(first);
    placeholders.insert(free.clone());
    free
}
