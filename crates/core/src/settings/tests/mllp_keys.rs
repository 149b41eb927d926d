//! The keys of `outgoing_mllp`.

use super::*;
use crate::Wait;
use crate::connection::{AckMatch, ApplicationAck, Framing, MllpTarget, RetryOn, SegmentEnds};

fn parse(keys: &Value) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut map = Map::new();
    map.insert("address".to_owned(), json!("10.1.1.5:2575"));
    map.extend(keys.as_object().unwrap().clone());
    ConnectionSpec::parse(ConnectionKind::Mllp, &map)
}

fn target(keys: Value) -> MllpTarget {
    parse(&keys).unwrap().target.mllp().unwrap().clone()
}

#[test]
fn d17_what_is_not_said_has_its_default() {
    let spec = parse(&json!({})).unwrap();
    let target = spec.target.mllp().unwrap();
    assert_eq!((target.host.as_str(), target.port, &target.framing), ("10.1.1.5", 2575, &Framing::standard()));
    assert_eq!((target.ack_timeout, target.message_bytes_max), (Wait::from_secs(30), 2 << 20));
    assert_eq!((target.pool_size, target.idle_close, target.gap_min), (1, Some(Wait::from_secs(300)), Wait::ZERO));
    assert_eq!((target.segment_ends, target.ack_match), (SegmentEnds::AsIs, AckMatch::Strict));
    assert_eq!((target.application_ack, target.retry_on), (ApplicationAck::Same, RetryOn::STANDARD));
    assert!(target.keep_open && target.tls.is_none() && spec.security.is_none() && spec.is_active);
    // A caller waits for as long as an attempt may take (D10).
    assert_eq!(spec.policy.timeout, Wait::from_secs(10 + 30 + 30));
}

#[test]
fn every_key_of_mllp_is_read() {
    let read = target(json!({
        "address": "LIS.example.org:6661", "start_seq": "02 0A", "end_seq": "03", "recv_timeout": 250, "connect_timeout_ms": 1,
        "write_timeout_ms": 2, "max_msg_size": 1000, "pool_size": 4, "keep_open": false, "idle_close_seconds": 0, "min_gap_ms": 5, "segment_ends": "cr",
        "ack_match": "warn", "application_ack": "other", "retry_on": ["AR", "AE"], "tls_ca_path": "/ca.pem",
        "tls_cert_path": "/cert.pem", "tls_key_path": "/key.pem",
    }));
    assert_eq!((read.host.as_str(), read.port), ("lis.example.org", 6661));
    assert_eq!((read.framing.start, read.framing.end), (vec![2, 10], vec![3]));
    let times = [read.ack_timeout, read.connect_timeout, read.write_timeout, read.gap_min];
    assert_eq!(times, [250, 1, 2, 5].map(Wait::from_millis));
    assert_eq!((read.message_bytes_max, read.pool_size, read.keep_open, read.idle_close), (1000, 4, false, None));
    assert_eq!((read.segment_ends, read.ack_match), (SegmentEnds::Cr, AckMatch::Warn));
    assert_eq!(read.retry_on, RetryOn { errors: true, rejects: true });
    let tls = read.tls.unwrap();
    assert!(tls.verify && tls.ca_path.as_deref() == Some("/ca.pem") && tls.client.unwrap().key_path == "/key.pem");
    assert_eq!(target(json!({"retry_on": []})).retry_on, RetryOn { errors: false, rejects: false });
    assert_eq!(target(json!({"retry_on": "AE"})).retry_on, RetryOn { errors: true, rejects: false });
    assert!(target(json!({"tls": true})).tls.is_some());
}

#[test]
fn z03_what_cannot_be_is_refused_with_its_field() {
    for (keys, field, why) in [
        (json!({"address": "lis"}), "address", "with a port"),
        (json!({"address": null}), "address", "missing"),
        (json!({"start_seq": "vt"}), "start_seq", "hexadecimal"),
        (json!({"end_seq": "1c0d"}), "end_seq", "hexadecimal"),
        (json!({"end_seq": "0b 0d"}), "end_seq", "begin differently"),
        (json!({"recv_timeout": 0}), "recv_timeout", "from 1 to 3600000"),
        (json!({"recv_timeout": 0.5}), "recv_timeout", "from 1 to 3600000"),
        (json!({"max_msg_size": 0}), "max_msg_size", "1 GiB"),
        (json!({"retry_on": ["AA"]}), "retry_on", "AR and AE"),
        (json!({"retry_on": 1}), "retry_on", "AR and AE"),
        (json!({"ack_match": "any"}), "ack_match", "strict, warn"),
        (json!({"tls": false, "tls_ca_path": "/ca.pem"}), "tls", "a certificate is named"),
        (json!({"tls_ca_path": "/ca.pem", "tls_cert_path": "/c.pem"}), "tls_key_path", "the key of `tls_cert_path`"),
        (json!({"security": "lab"}), "security", "certificate"),
        (json!({"timeout": 5}), "timeout", "recv_timeout"),
        (json!({"retry_preset": "patient", "timeout_seconds": 5}), "timeout_seconds", "recv_timeout"),
        (json!({"retryable_statuses": "5xx"}), "retryable_statuses", "retry_on"),
        (json!({"queue_response": "ok"}), "queue_response", "channels"),
        (json!({"host": "http://a"}), "host", "a key that exists here"),
    ] {
        let errors = parse(&keys).unwrap_err();
        let [error] = &errors[..] else { panic!("{keys}: {errors:?}") };
        assert!(error.field == field && error.to_string().contains(why), "{keys}: {error}");
    }
}

#[test]
fn d17_d18_the_platforms_keys_import_and_its_short_timeout_is_warned_of() {
    let file = json!({"address": "10.1.1.5:2575", "recv_timeout": 250, "pool_size": 10, "read_buffer_size": 32768, "max_wait_time": 5,
        "should_log_messages": false, "logging_level": "INFO", "is_audit_log_active": true});
    let warned = warnings(ConnectionKind::Mllp, file.as_object().unwrap());
    assert_eq!(warned.len(), 6, "{warned:?}");
    assert!(warned[5].contains("`recv_timeout` is 0.25 s") && warned[5].contains("several times"), "{warned:?}");
    let ladder = parse(&json!({"retry_preset": "patient"})).unwrap();
    assert_eq!(ladder.policy.timeout, Wait::from_secs(70), "an attempt takes what the connection's times allow");
}
