//! What differs from the default, in the order of the keys: how settings are compared and exported.
//!
//! Two spellings of one setting become one here (`validate_tls`, `60.0`, an empty text). This module must not read files nor write them.

use serde_json::{Map, Number, Value};

use super::{KeyDoc, Shape, keys_of};
use crate::connection::{ConnectionKind, ConnectionSpec};

/// Other names of keys, and the name that they are exported under (D18).
pub const ALIASES: &[(&str, &str)] = &[("validate_tls", "tls_verify")];

/// The settings of a connection without what is its default anyway. They mean the same as `written`, which must be valid.
pub fn canonical(kind: ConnectionKind, written: &Map<String, Value>) -> Map<String, Value> {
    let docs: Vec<&KeyDoc> = keys_of(kind).collect();
    let mut kept = differing(docs.iter().copied(), written);
    let Ok(meant) = ConnectionSpec::parse(kind, written) else { return kept };
    // A default that depends on other keys is one where leaving the key out changes nothing. From the last key to the first, so that
    // `retry_preset`, which says most, outlives what follows from it.
    for doc in docs.iter().rev().filter(|doc| doc.default_value().is_none() && doc.default != "none") {
        if let Some(value) = kept.shift_remove(doc.name)
            && ConnectionSpec::parse(kind, &kept).as_ref() != Ok(&meant)
        {
            kept.insert(doc.name.to_owned(), value);
        }
    }
    differing(docs.into_iter(), &kept)
}

/// What is not the documented default, one spelling of each value, in the order of the keys.
pub fn differing<'k>(keys: impl Iterator<Item = &'k KeyDoc>, written: &Map<String, Value>) -> Map<String, Value> {
    let mut kept = Map::new();
    for doc in keys.filter(|doc| !ALIASES.iter().any(|(alias, _)| *alias == doc.name)) {
        let aliases = ALIASES.iter().filter(|(_, name)| *name == doc.name).map(|(alias, _)| *alias);
        let given = [doc.name].into_iter().chain(aliases).find_map(|name| written.get(name).filter(|v| !v.is_null()));
        let spelled = given.map(|value| one_spelling(doc, value)).filter(|value| !value.is_null());
        let Some(value) = spelled else { continue };
        let is_default = doc.default_value().is_some_and(|default| one_spelling(doc, &default) == value);
        if !is_default {
            kept.insert(doc.name.to_owned(), value);
        }
    }
    kept
}

fn joined<'w>(words: impl Iterator<Item = &'w str>) -> Value {
    Value::String(words.collect::<Vec<_>>().join(" "))
}

/// `2.0` and `2` are one number, and one text is a list of one.
fn one_spelling(doc: &KeyDoc, value: &Value) -> Value {
    match (doc.shape, value) {
        (Shape::Decimal { .. }, Value::Number(number)) => Value::Number(whole_if_it_is(number)),
        (Shape::Numbers { .. }, Value::Array(entries)) => {
            let number = |entry: &Value| match entry {
                Value::Number(number) => Value::Number(whole_if_it_is(number)),
                other => other.clone(),
            };
            Value::Array(entries.iter().map(number).collect())
        }
        // `1.1` without quotes is a number in a file.
        (Shape::OneOf(_), Value::Number(number)) => Value::String(number.to_string()),
        (Shape::Texts, Value::String(text)) => Value::Array(vec![text.clone().into()]),
        (Shape::Words { .. }, Value::String(text)) => joined(text.split_whitespace()),
        (Shape::Words { .. }, Value::Array(words)) => joined(words.iter().filter_map(Value::as_str)),
        // An empty map is none.
        (Shape::Pairs { .. }, Value::Object(texts)) if texts.is_empty() => Value::Null,
        _ => value.clone(),
    }
}

fn whole_if_it_is(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if float.fract() == 0.0 && (0.0..1e15).contains(&float) => Number::from(float as u64),
        _ => number.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(keys: Value) -> Value {
        let mut written = json!({"host": "https://api.example.org", "url_path": "/v2"});
        written.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        let written = written.as_object().unwrap();
        let mut kept = canonical(ConnectionKind::Rest, written);
        let parse = |keys: &Map<String, Value>| ConnectionSpec::parse(ConnectionKind::Rest, keys).unwrap();
        assert_eq!(parse(&kept), parse(written), "it means the same");
        assert_eq!(canonical(ConnectionKind::Rest, &kept), kept, "and is as short as it gets");
        kept.shift_remove("host");
        kept.shift_remove("url_path");
        Value::Object(kept)
    }

    // proves: P04
    #[test]
    fn d18_what_is_the_default_is_left_out_and_aliases_become_one_name() {
        let cases = [
            (json!({"timeout": 60, "max_retries": 0, "security": "", "content_type": null}), json!({})),
            (
                json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 2.0}),
                json!({"max_retries": 3, "use_queue": true}),
            ),
            (json!({"validate_tls": false}), json!({"tls_verify": false})),
            (json!({"validate_tls": true, "tls_verify": true}), json!({})),
            (json!({"timeout": 15.0, "ping_method": "GET"}), json!({"timeout": 15})),
            // Set now, in force once the action is `forward`: that is somebody's wish and stays.
            (json!({"dlq_forward_to": "lab.failed"}), json!({"dlq_forward_to": "lab.failed"})),
        ];
        for (written, kept) in cases {
            assert_eq!(of(written.clone()).to_string(), kept.to_string(), "{written}");
        }
    }

    #[test]
    fn a_default_that_depends_on_other_keys_is_left_out_where_it_changes_nothing() {
        let cases = [
            (json!({"use_queue": false, "ordered": true, "concurrency": 1}), json!({})),
            (
                json!({"retry_preset": "webhook", "max_attempts": 7, "use_queue": true}),
                json!({"retry_preset": "webhook"}),
            ),
            (json!({"retry_preset": "webhook", "ordered": true}), json!({"ordered": true, "retry_preset": "webhook"})),
            (json!({"ordered": false, "concurrency": 5}), json!({"ordered": false})),
            (json!({"max_attempts": 7}), json!({"max_attempts": 7})),
            (json!({"retry_preset": "patient", "timeout": 10}), json!({"retry_preset": "patient"})),
        ];
        for (written, kept) in cases {
            assert_eq!(of(written.clone()).to_string(), kept.to_string(), "{written}");
        }
    }
}
