//! The merge patch of RFC 7396, for settings. It must not know what is patched.

use serde_json::{Map, Value};

/// RFC 7396, section 2. Nesting is bounded by how the patch was read.
pub fn merge_patch(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
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
        let mut target = json!({"host": "http://a", "timeout": 5, "tls": {"verify": true, "ca": "x"}, "list": [1]});
        merge_patch(
            &mut target,
            json!({"timeout": null, "tls": {"ca": null, "new": 1}, "list": [2], "max": {"a": null}}),
        );
        assert_eq!(target, json!({"host": "http://a", "tls": {"verify": true, "new": 1}, "list": [2], "max": {}}));
    }
}
