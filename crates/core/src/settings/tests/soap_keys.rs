//! The keys of `outgoing_soap`.

use serde_json::{Map, Value, json};

use crate::connection::{ConnectionKind, ConnectionSpec, ElementForm, SoapTarget};
use crate::settings::{SettingError, canonical, warnings};
use crate::soap::SoapVersion;

fn written(keys: &Value) -> Map<String, Value> {
    let mut map = json!({"host": "https://registry.example.org", "url_path": "/iis"}).as_object().unwrap().clone();
    map.extend(keys.as_object().unwrap().clone());
    map
}

fn parse(keys: &Value) -> Result<ConnectionSpec, Vec<SettingError>> {
    ConnectionSpec::parse(ConnectionKind::Soap, &written(keys))
}

fn target(keys: Value) -> SoapTarget {
    parse(&keys).unwrap().target.soap().unwrap().clone()
}

#[test]
fn z34_the_defaults_are_soap_1_1_and_those_of_all_connections() {
    let spec = parse(&json!({})).unwrap();
    let target = spec.target.soap().unwrap();
    assert_eq!((target.version, target.action.as_str(), target.namespace.as_str()), (SoapVersion::V11, "", ""));
    assert!(target.action_in_type && target.addressing.is_none() && target.operations.is_empty());
    assert_eq!((target.element_form, target.http.pool_size), (ElementForm::Qualified, 10));
    assert_eq!(spec.target.address(), "https://registry.example.org/iis");
    assert_eq!(spec.policy.timeout.as_millis(), 60_000);
}

#[test]
fn every_key_of_soap_is_read() {
    let read = target(json!({
        "soap_version": "1.2", "soap_action": "urn:any", "soap12_action": "none", "namespace": "urn:r",
        "element_form": "unqualified", "namespaces": {"q": "urn:q"}, "soap_headers": "<a/>",
        "operations": {"Submit": "urn:submit {urn:q}SubmitRequest", "Ping": ""}, "wsa_to": "urn:to",
    }));
    assert_eq!(
        (read.version, read.action_in_type, read.element_form),
        (SoapVersion::V12, false, ElementForm::Unqualified)
    );
    assert_eq!(read.namespaces, [("q".to_owned(), "urn:q".to_owned())]);
    assert_eq!(read.addressing.unwrap().to, "urn:to");
    let operations: Vec<_> = read.operations.iter().map(|known| (known.name.as_str(), known.written())).collect();
    assert_eq!(operations, [("Submit", "urn:submit {urn:q}SubmitRequest".to_owned()), ("Ping", String::new())]);
    // Without quotes it is a number in a file.
    assert_eq!(target(json!({"soap_version": 1.2})).version, SoapVersion::V12);
}

#[test]
fn z03_what_is_wrong_is_named_with_what_is_allowed() {
    for (keys, field) in [
        (json!({"soap_version": "2.0"}), "soap_version"),
        (json!({"soap_action": "urn:\"a\""}), "soap_action"),
        (json!({"success_if": "status = OK"}), "success_if"),
        (json!({"soap12_action": "maybe"}), "soap12_action"),
        (json!({"namespace": "urn: r"}), "namespace"),
        (json!({"namespaces": {"xml": "urn:x"}}), "namespaces"),
        (json!({"namespaces": {"q": ""}}), "namespaces"),
        (json!({"namespaces": {"1": "urn:x"}}), "namespaces"),
        (json!({"operations": {"a b": ""}}), "operations"),
        (json!({"operations": {"a": "b c"}}), "operations"),
        (json!({"operations": []}), "operations"),
        (json!({"soap_headers": "text"}), "soap_headers"),
        (json!({"use_ws_addressing": false, "wsa_to": "urn:to"}), "use_ws_addressing"),
        (json!({"data_format": "json"}), "data_format"),
        (json!({"tls_client_cert": "/a.pem"}), "tls_client_key"),
        (json!({"soap_verion": "1.1"}), "soap_verion"),
    ] {
        let errors = parse(&keys).unwrap_err();
        assert_eq!(errors[0].field, field, "{keys}: {errors:?}");
    }
}

// proves: D18, P04
#[test]
fn d18_keys_of_the_platform_are_taken_with_a_word_and_defaults_are_left_out() {
    let file = json!({"use_mtom": true, "request_operation": "x", "content_type": "text/xml", "soap_version": 1.1});
    let told = warnings(ConnectionKind::Soap, &written(&file));
    assert_eq!(told.len(), 3, "{told:?}");
    let kept = canonical(ConnectionKind::Soap, &written(&file));
    assert_eq!(kept, *json!({"host": "https://registry.example.org", "url_path": "/iis"}).as_object().unwrap());
    let kept = canonical(ConnectionKind::Soap, &written(&json!({"soap_version": 1.2})));
    assert_eq!(kept["soap_version"], "1.2");
}
