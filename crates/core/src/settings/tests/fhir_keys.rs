//! The keys of `outgoing_fhir`.

use serde_json::{Map, Value, json};

use crate::connection::{ConnectionKind, ConnectionSpec, DataFormat, FhirTarget, PartialBatch};
use crate::settings::{SettingError, canonical, warnings};

fn written(keys: &Value) -> Map<String, Value> {
    let mut map = json!({"address": "https://fhir.example.org/r4"}).as_object().unwrap().clone();
    map.extend(keys.as_object().unwrap().clone());
    map
}

fn parse(keys: &Value) -> Result<ConnectionSpec, Vec<SettingError>> {
    ConnectionSpec::parse(ConnectionKind::Fhir, &written(keys))
}

fn target(keys: Value) -> FhirTarget {
    parse(&keys).unwrap().target.fhir().unwrap().clone()
}

// proves: Z33
#[test]
fn z33_an_address_is_host_and_path_in_one() {
    for (address, host, path) in [
        ("https://fhir.example.org/r4", "https://fhir.example.org", "/r4"),
        ("https://FHIR.example.org/r4/", "https://fhir.example.org", "/r4"),
        ("http://10.1.1.5:8080", "http://10.1.1.5:8080", ""),
        ("http://10.1.1.5:8080/", "http://10.1.1.5:8080", ""),
    ] {
        let read = target(json!({"address": address}));
        assert_eq!((read.http.host.as_str(), read.http.url_path.as_str()), (host, path));
    }
    let spec = parse(&json!({})).unwrap();
    assert_eq!(spec.target.address(), "https://fhir.example.org/r4");
    assert_eq!((spec.target.data_format(), spec.policy.timeout.as_millis()), (DataFormat::Fhir, 60_000));
    let read = spec.target.fhir().unwrap();
    assert_eq!((read.prefer, read.partial, read.http.pool_size), (None, PartialBatch::Failed, 10));
}

#[test]
fn every_key_of_fhir_is_read() {
    let read = target(json!({"fhir_version": "4.0", "prefer": "minimal", "partial_batch": "delivered"}));
    assert_eq!(read.fhir_version.as_deref(), Some("4.0"));
    assert_eq!((read.prefer, read.partial), (Some("minimal"), PartialBatch::Delivered));
    // Without quotes it is a number in a file.
    assert_eq!(target(json!({"fhir_version": 4.3})).fhir_version.as_deref(), Some("4.3"));
    assert_eq!(target(json!({"fhir_version": "", "prefer": ""})), target(json!({})));
}

#[test]
fn z03_what_is_wrong_with_a_fhir_connection_is_named() {
    for (keys, field) in [
        (json!({"address": null}), "address"),
        (json!({"address": "fhir.example.org/r4"}), "address"),
        (json!({"address": "https://fhir.example.org/r4?x=1"}), "address"),
        (json!({"address": "https://fhir.example.org/r4/../x"}), "address"),
        (json!({"address": "https://fhir.example.org/r4#x"}), "address"),
        (json!({"fhir_version": "R4"}), "fhir_version"),
        (json!({"fhir_version": "4.0.1"}), "fhir_version"),
        (json!({"fhir_version": true}), "fhir_version"),
        (json!({"prefer": "nothing"}), "prefer"),
        (json!({"partial_batch": "maybe"}), "partial_batch"),
        (json!({"host": "https://a"}), "host"),
        (json!({"content_type": "application/json"}), "content_type"),
        (json!({"ack_match": "warn"}), "ack_match"),
        (json!({"adress": "x"}), "adress"),
    ] {
        let errors = parse(&keys).unwrap_err();
        assert!(errors.iter().all(|error| error.field == field) && !errors.is_empty(), "{keys}: {errors:?}");
    }
    let errors = parse(&json!({"address": "https://ada:hunter2@fhir.example.org"})).unwrap_err();
    assert!(!format!("{errors:?}").contains("hunter2"));
}

// proves: P04
#[test]
fn d18_keys_of_the_platform_are_passed_over_with_a_word() {
    let file = json!({"pool_size": 10, "is_audit_log_active": true, "bulk_export": {"x": 1}, "security": ""});
    let told = warnings(ConnectionKind::Fhir, &written(&file));
    assert_eq!(told.len(), 2, "{told:?}");
    let kept = canonical(ConnectionKind::Fhir, &written(&file));
    assert_eq!(Value::Object(kept), json!({"address": "https://fhir.example.org/r4"}));
    let told = warnings(ConnectionKind::Fhir, &written(&json!({"tls_verify": false})));
    assert!(told[0].contains("anybody between here and the server"), "{told:?}");
}
