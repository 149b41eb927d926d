//! Settings as people write them.

use serde_json::{Map, Value, json};

use super::*;
use crate::connection::{ConnectionSpec, DataFormat, RestTarget, Target};

mod delivery_keys;
mod fhir_keys;
mod mllp_keys;
mod rest_keys;
mod security_keys;
mod soap_keys;
mod webhook_keys;

/// The keys over a connection that has only what must be there.
fn written(keys: Value) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("host".to_owned(), json!("https://api.example.org"));
    map.insert("url_path".to_owned(), json!("/v2"));
    let Value::Object(keys) = keys else { panic!("an object") };
    map.extend(keys);
    map
}

fn read(keys: Value) -> ConnectionSpec {
    ConnectionSpec::parse(ConnectionKind::Rest, &written(keys)).unwrap()
}

fn target(keys: Value) -> RestTarget {
    read(keys).target.rest().unwrap().clone()
}

fn refusals(keys: Value) -> Vec<SettingError> {
    ConnectionSpec::parse(ConnectionKind::Rest, &written(keys)).unwrap_err()
}

/// The one refusal of these keys, as it is shown.
fn refusal(keys: Value) -> String {
    let errors = refusals(keys.clone());
    assert_eq!(errors.len(), 1, "{keys}: {errors:?}");
    errors[0].to_string()
}

#[test]
fn z03_all_errors_come_at_once() {
    let keys = json!({
        "max_retries": 1001, "retry_sleep_time": -1, "retry_backoff_multiplier": 101, "retry_backoff_threshold": "60",
        "use_queue": "true", "dlq_action": "burn", "pool_size": 0, "max_retrys": 3, "timeout": 0,
    });
    let errors = refusals(keys);
    let mut fields: Vec<&str> = errors.iter().map(|error| error.field.as_ref()).collect();
    fields.sort_unstable();
    let expected = [
        "dlq_action",
        "max_retries",
        "max_retrys",
        "pool_size",
        "retry_backoff_multiplier",
        "retry_backoff_threshold",
        "retry_sleep_time",
        "timeout",
        "use_queue",
    ];
    assert_eq!(fields, expected);
}

#[test]
fn z03_an_unknown_key_names_the_nearest_one_and_not_its_value() {
    let shown = refusal(json!({"max_retrys": "hunter2"}));
    assert_eq!(
        shown,
        "`max_retrys` is `an unknown key`: allowed is a key that exists here; did you mean `max_retries`?"
    );
    assert_eq!(
        refusal(json!({"password": "hunter2"})),
        "`password` is `an unknown key`: allowed is a key that exists here"
    );
    let long = "x".repeat(10_000);
    assert!(refusal(json!({long: 1})).len() < 500);
}

#[test]
fn z03_types_are_read_strictly() {
    let cases = [
        (
            json!({"max_retries": "3"}),
            "`max_retries` is `\"3\"`: allowed is a whole number from 0 to 1000, written without quotes",
        ),
        (json!({"max_retries": 1.5}), "`max_retries` is `1.5`: allowed is a whole number from 0 to 1000"),
        (json!({"max_retries": -1}), "`max_retries` is `-1`: allowed is a whole number from 0 to 1000"),
        (
            json!({"max_retries": 4_294_967_297u64}),
            "`max_retries` is `4294967297`: allowed is a whole number from 0 to 1000",
        ),
        (json!({"max_retries": true}), "`max_retries` is `true`: allowed is a whole number from 0 to 1000"),
        (json!({"max_retries": [3]}), "`max_retries` is `[3]`: allowed is a whole number from 0 to 1000"),
        (
            json!({"retry_sleep_time": 86400.5}),
            "`retry_sleep_time` is `86400.5`: allowed is a number of seconds from 0 to 86400",
        ),
        (json!({"use_queue": "true"}), "`use_queue` is `\"true\"`: allowed is true or false, written without quotes"),
        (json!({"use_queue": 1}), "`use_queue` is `1`: allowed is true or false"),
        (json!({"dlq_action": "Keep"}), "`dlq_action` is `\"Keep\"`: allowed is one of keep, retry, forward, discard"),
        (
            json!({"dlq_forward_to": 5}),
            "`dlq_forward_to` is `5`: allowed is the name of a topic: letters, digits, `_` and `-`, with dots between segments",
        ),
    ];
    for (keys, shown) in cases {
        assert_eq!(refusal(keys), shown);
    }
}

#[test]
fn a_null_is_unset() {
    let nothing: Map<String, Value> =
        keys_of(ConnectionKind::Rest).map(|doc| (doc.name.to_owned(), Value::Null)).collect();
    let mut with_nulls = nothing;
    with_nulls.insert("host".to_owned(), json!("https://api.example.org"));
    with_nulls.insert("url_path".to_owned(), json!("/v2"));
    assert_eq!(ConnectionSpec::parse(ConnectionKind::Rest, &with_nulls).unwrap(), read(json!({})));
}

/// Every key stands once, and writing its documented default changes nothing.
#[test]
fn z02_documented_defaults_are_the_ones_in_force() {
    let mut seen = std::collections::BTreeSet::new();
    for doc in keys_of(ConnectionKind::Rest) {
        assert!(seen.insert(doc.name), "{} is there twice", doc.name);
        // Some keys show only under an action that uses them.
        for base in [json!({}), json!({"dlq_action": "retry"}), json!({"dlq_action": "forward"})] {
            if let Some(value) = doc.default_value().filter(|_| base.get(doc.name).is_none()) {
                let mut keys = base.clone();
                keys[doc.name] = value;
                assert_eq!(read(keys), read(base), "{}", doc.name);
            }
        }
    }
    let by_name = |name: &str| keys_of(ConnectionKind::Rest).find(|doc| doc.name == name).unwrap();
    assert_eq!(by_name("max_retries").default_value(), Some(json!(0)));
    assert_eq!(by_name("use_dlq").default_value(), Some(json!(true)));
    assert_eq!(by_name("dlq_action").default_value(), Some(json!("keep")));
    assert_eq!(by_name("dlq_forward_to").default_value(), Some(json!("")));
    assert_eq!(by_name("expires_after").default_value(), None);
    assert_eq!(by_name("ordered").default_value(), None);
}

/// Every key that is documented is also read: a value of no type at all is refused by name.
#[test]
fn z03_every_documented_key_is_checked() {
    for doc in keys_of(ConnectionKind::Rest) {
        let mut keys = Map::new();
        keys.insert(doc.name.to_owned(), json!({"no": "type"}));
        let errors = refusals(Value::Object(keys));
        assert!(
            errors.iter().any(|error| error.field == doc.name && error.allowed.contains(doc.allowed)),
            "{}",
            doc.name
        );
    }
}

/// What a JSON Schema says of a key is what the reader takes, to the bound.
#[test]
fn z03_the_shape_of_a_key_is_what_is_read() {
    let is_taken = |doc: &KeyDoc, value: Value| {
        // Order allows one attempt at once only.
        let base = if doc.name == "concurrency" { json!({"ordered": false}) } else { json!({}) };
        let mut keys = written(base);
        keys.insert(doc.name.to_owned(), value);
        let errors = ConnectionSpec::parse(ConnectionKind::Rest, &keys).err().unwrap_or_default();
        assert!(errors.iter().all(|error| error.field == doc.name), "{errors:?}");
        errors.is_empty()
    };
    let mut shapes = std::collections::BTreeSet::new();
    for doc in keys_of(ConnectionKind::Rest) {
        let (taken, refused) = match doc.shape {
            Shape::Text | Shape::Texts => (vec![], vec![json!(1), json!(true)]),
            // Of security definitions.
            Shape::Words { .. } | Shape::Pairs { .. } => (vec![], vec![json!(1), json!(true)]),
            Shape::Flag => (vec![json!(true), json!(false)], vec![json!(1), json!("true")]),
            Shape::Whole { min, max } => {
                let below = i64::from(min) - 1;
                (vec![json!(min), json!(max)], vec![json!(below), json!(u64::from(max) + 1), json!(1.5)])
            }
            Shape::Decimal { min, max } => {
                (vec![json!(min), json!(max)], vec![json!(min - 0.0001), json!(max + 0.1), json!("5")])
            }
            Shape::OneOf(words) => (words.iter().map(|word| json!(word)).collect(), vec![json!("other"), json!(1)]),
            Shape::Numbers { min, max, count_max } => (
                vec![json!([min, max]), json!(vec![min; count_max]), json!("5, 6")],
                vec![json!([]), json!(vec![min; count_max + 1]), json!([min - 0.1]), json!([max + 1.0]), json!(5)],
            ),
        };
        shapes.insert(format!("{:?}", std::mem::discriminant(&doc.shape)));
        taken.into_iter().for_each(|value| assert!(is_taken(doc, value.clone()), "{} {value}", doc.name));
        refused.into_iter().for_each(|value| assert!(!is_taken(doc, value.clone()), "{} {value}", doc.name));
    }
    assert!(shapes.len() >= 6);
}

proptest::proptest! {
    #[test]
    fn z03_any_number_for_any_key_is_taken_or_refused_by_name(
        key in proptest::sample::select(keys_of(ConnectionKind::Rest).map(|doc| doc.name).collect::<Vec<_>>()), number: f64,
    ) {
        let mut keys = Map::new();
        keys.insert(key.to_owned(), json!(number));
        if let Err(errors) = ConnectionSpec::parse(ConnectionKind::Rest, &written(Value::Object(keys))) {
            proptest::prop_assert!(errors.iter().all(|error| error.field == key));
        }
    }
}
