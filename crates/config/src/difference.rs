//! Two states of one object, key by key. It must not know how either came about.

use serde_json::Value;

use crate::plan::KeyChange;
use crate::section::{Object, Section};

/// What differs, in the order of the section's keys; without a former state all that is set.
pub fn between(section: &dyn Section, former: Option<&Object>, wanted: &Object) -> Vec<KeyChange> {
    let keys = section.keys();
    let changes = keys.into_iter().filter_map(|doc| {
        let old = former.and_then(|former| former.keys.get(doc.name));
        let new = wanted.keys.get(doc.name);
        let owned = |value: Option<&Value>| value.cloned();
        (old != new).then(|| KeyChange { key: doc, old: owned(old), new: owned(new) })
    });
    changes.collect()
}
