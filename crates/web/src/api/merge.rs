//! The merge patch of RFC 7396, for settings. It must not know what is patched.

use serde_json::{Map, Value};

/// Settings as they are once a patch of them is applied.
pub fn patched(written: &Map<String, Value>, patch: Map<String, Value>) -> Map<String, Value> {
    let mut patched = written.clone();
    apply(&mut patched, patch);
    patched
}

/// RFC 7396, section 2. Nesting is bounded by how the patch was read.
fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    if let Some(target) = target.as_object_mut() {
        apply(target, patch);
    }
}

fn apply(target: &mut Map<String, Value>, patch: Map<String, Value>) {
    for (name, value) in patch {
        if value.is_null() {
            target.shift_remove(&name);
        } else {
            merge_patch(target.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_merge_patch_replaces_removes_and_keeps() {
        let target = json!({"host": "http://a", "timeout": 5, "tls": {"verify": true, "ca": "x"}, "list": [1]});
        let patch = json!({"timeout": null, "tls": {"ca": null, "new": 1}, "list": [2], "max": {"a": null}});
        let object = |value: Value| value.as_object().unwrap().clone();
        let target = Value::Object(patched(&object(target), object(patch)));
        assert_eq!(target, json!({"host": "http://a", "tls": {"verify": true, "new": 1}, "list": [2], "max": {}}));
    }
}
