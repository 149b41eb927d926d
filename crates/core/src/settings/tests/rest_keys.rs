//! The keys of `outgoing_rest`.

use super::*;
use crate::Wait;

#[test]
fn d17_what_is_not_said_has_its_default() {
    let spec = read(json!({}));
    let target = spec.target.rest().unwrap();
    assert_eq!(target.host, "https://api.example.org");
    assert_eq!(target.url_path.as_str(), "/v2");
    assert_eq!((target.data_format, target.content_type.as_deref(), target.pool_size), (DataFormat::Json, None, 10));
    assert!(target.tls.verify && target.tls.ca_path.is_none() && spec.is_active);
    assert_eq!(spec.policy.timeout, Wait::from_secs(60));
}

#[test]
fn every_key_is_read() {
    let keys = json!({
        "host": "http://10.1.1.5:8080/", "url_path": "", "data_format": "xml", "content_type": "text/xml; charset=utf-8", "timeout": 0.5,
        "pool_size": 1000, "tls_verify": false, "tls_ca_path": "/etc/ca.pem", "is_active": false,
    });
    let spec = read(keys);
    let target = spec.target.rest().unwrap();
    assert_eq!(target.host, "http://10.1.1.5:8080");
    assert_eq!(target.url_path.as_str(), "");
    assert_eq!(target.data_format, DataFormat::Xml);
    assert_eq!(target.content_type.as_deref(), Some("text/xml; charset=utf-8"));
    assert_eq!((target.pool_size, target.tls.verify), (1000, false));
    assert_eq!(target.tls.ca_path.as_deref(), Some("/etc/ca.pem"));
    assert_eq!((spec.policy.timeout, spec.is_active), (Wait::from_millis(500), false));
    for (name, format) in [("json", DataFormat::Json), ("text", DataFormat::Text), ("form", DataFormat::Form)] {
        assert_eq!(target_format(name), format);
    }
}

fn target_format(name: &str) -> DataFormat {
    target(json!({"data_format": name})).data_format
}

#[test]
fn host_and_path_have_to_be_there() {
    let errors = ConnectionSpec::parse(ConnectionKind::Rest, &Map::new()).unwrap_err();
    let fields: Vec<&str> = errors.iter().map(|error| error.field.as_ref()).collect();
    assert_eq!(fields, ["host", "url_path"]);
    assert!(errors.iter().all(|error| error.given == "missing"));
}

#[test]
fn z03_refusals_say_what_is_allowed() {
    let cases = [
        (json!({"host": "https://me:hunter2@api.example.org"}), "`…@api.example.org`"),
        (json!({"host": "https://api.example.org/v2"}), "`url_path`"),
        (json!({"url_path": "v2"}), "begins with `/`"),
        (json!({"url_path": "/{id"}), "without its partner"),
        (json!({"url_path": "/{id}/{id}"}), "twice"),
        (json!({"timeout": 0}), "wait for ever"),
        (json!({"timeout": 0.0}), "wait for ever"),
        (json!({"timeout": 3600.5}), "from 0.001 to 3600"),
        (json!({"timeout": 5, "timeout_seconds": 5}), "together with `timeout_seconds`"),
        (json!({"pool_size": 1001}), "from 1 to 1000"),
        (json!({"content_type": "text/xml\r\nX-A: b"}), "content type"),
        (json!({"tls_ca_path": "/etc/\n"}), "PEM file"),
        (json!({"tls_verify": true, "validate_tls": false}), "same setting"),
        (json!({"security": "lab/sec"}), "name of a security definition"),
        (json!({"security": {"type": "basic_auth"}}), "name of a security definition"),
        (json!({"tls_client_cert": "/etc/client.pem"}), "`tls_client_key`"),
        (json!({"tls_client_key": "/etc/client.key"}), "`tls_client_cert`"),
        (json!({"tls_client_cert": "c", "tls_client_key": "-----BEGIN PRIVATE KEY----- hunter2"}), "PEM file"),
        (json!({"queue_response": "{}"}), "only channels"),
        (json!({"ack_match": "strict"}), "acknowledgments"),
        (json!({"retry_on": "5xx"}), "retryable_statuses"),
        (json!({"name": "Billing API"}), "a key that exists here"),
    ];
    for (keys, part) in cases {
        let shown = refusal(keys.clone());
        assert!(shown.contains(part), "{keys}: {shown}");
        assert!(!shown.contains("hunter2"), "a password is not repeated");
    }
}

#[test]
fn d18_the_newer_name_of_a_key_is_taken() {
    assert!(!target(json!({"validate_tls": false})).tls.verify);
    assert!(!target(json!({"validate_tls": false, "tls_verify": false})).tls.verify);
}

#[test]
fn d18_keys_of_the_platform_are_accepted_with_a_warning_each() {
    let keys = json!({
        "is_audit_log_active": true, "ping_method": "GET", "request_method": "POST", "request_query_string": [{"key": "a"}],
        "response_map": "x", "response_map_mode": "text", "callback_type": "service", "scheduler_run_every": 5, "health_check_path": "/",
        "security": "", "queue_response": "", "use_queue": true,
    });
    assert_eq!(read(keys.clone()), read(json!({"use_queue": true})));
    let warned = warnings(ConnectionKind::Rest, &written(keys));
    assert_eq!(warned.len(), 9, "{warned:?}");
    assert_eq!(warned[0], "`is_audit_log_active` has no effect here: it was accepted so that the file imports");
    assert!(warned[8].starts_with("`health_check_path`"));
    assert_eq!(warnings(ConnectionKind::Rest, &written(json!({}))), Vec::<String>::new());
}

#[test]
fn d23_settings_that_surprise_are_accepted_with_a_warning() {
    let cases = [
        (json!({"retry_sleep_time": 20}), "no wait is longer than 8 s"),
        (json!({"max_retries": 10}), "only 9 can take place"),
        (json!({"max_retries": 3, "retry_backoff_threshold": 0}), "only 0 can take place"),
        (json!({"retry_delays": [86_400], "max_attempts": 20}), "given up 345600 s after"),
        (json!({"dlq_action": "forward"}), "names no topic"),
        (json!({"tls_verify": false}), "`tls_verify` is false"),
    ];
    for (keys, part) in cases {
        let warned = warnings(ConnectionKind::Rest, &written(keys.clone()));
        assert_eq!(warned.len(), 1, "{keys}: {warned:?}");
        assert!(warned[0].contains(part), "{keys}: {}", warned[0]);
    }
    for fits in [json!({"max_retries": 9}), json!({"retry_preset": "patient"}), json!({"retry_sleep_time": 8})] {
        assert!(warnings(ConnectionKind::Rest, &written(fits.clone())).is_empty(), "{fits}");
    }
}
