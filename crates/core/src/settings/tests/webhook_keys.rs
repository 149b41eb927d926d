//! The keys of webhook endpoints.

use super::*;
use crate::connection::{Addresses, WebhookTarget};
use crate::envelope::Payload;
use crate::policy::{DeliveryPolicy, RefusalEnd};
use crate::schedule::Schedule;

const KIND: ConnectionKind = ConnectionKind::Webhook;

fn parsed(keys: Value) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut written = json!({"url": "https://hooks.example.org/in"});
    written.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    ConnectionSpec::parse(KIND, written.as_object().unwrap())
}

fn endpoint(keys: Value) -> (WebhookTarget, DeliveryPolicy) {
    let spec = parsed(keys).unwrap();
    let Target::Webhook(target) = spec.target else { panic!("a webhook target") };
    (target, spec.policy)
}

fn refused(keys: Value) -> String {
    let errors = parsed(keys.clone()).unwrap_err();
    assert_eq!(errors.len(), 1, "{keys}: {errors:?}");
    errors[0].to_string()
}

// proves: R03, V01
#[test]
fn r03_an_endpoint_has_the_preset_webhook_unless_its_keys_say_otherwise() {
    let (target, policy) = endpoint(json!({}));
    assert_eq!(policy, DeliveryPolicy::webhook());
    assert_eq!((target.addresses, target.payload, target.enabled), (Addresses::Public, Payload::Envelope, true));
    let (_, policy) = endpoint(json!({"ordered": true, "expires_after": 60}));
    assert_eq!((policy.queue.ordered, policy.queue.concurrency, policy.queue.use_queue), (true, 1, true));
    assert_eq!(policy.schedule, DeliveryPolicy::webhook().schedule);
    assert_eq!(policy.expires_after, Some(Wait::from_secs(60)));
}

#[test]
fn v01_the_preset_patient_is_the_third_seeds() {
    let (target, policy) = endpoint(json!({"retry_preset": "patient", "payload": "data"}));
    assert_eq!(policy, DeliveryPolicy::patient());
    assert_eq!((target.addresses, target.payload), (Addresses::PublicTls, Payload::Data));
    assert_eq!(policy.refusals_end_in, RefusalEnd::Dlq);
}

#[test]
fn p01_an_endpoint_may_use_rounds() {
    let (_, policy) = endpoint(json!({"max_retries": 3, "retry_sleep_time": 1}));
    assert!(matches!(policy.schedule, Schedule::Backoff(_)));
    assert!(policy.queue.use_queue && policy.queue.ordered);
}

#[test]
fn r14_an_address_with_credentials_or_in_disguise_is_refused_without_being_repeated() {
    for url in
        ["https://user:hunter2@example.org/", "ftp://example.org/", "http://0x7f.1/", "http://2130706433/", "/x", ""]
    {
        let shown = refused(json!({"url": url}));
        assert!(shown.starts_with("`url` is") && !shown.contains("hunter2"), "{shown}");
    }
}

// proves: V10
#[test]
fn v10_custom_headers_shadow_nothing_of_ours_and_smuggle_no_line() {
    let (target, _) = endpoint(json!({"custom_headers": {"X-Team": "seven", "Authorization": "Bearer x"}}));
    assert_eq!(target.custom_headers.get("x-team"), Some("seven"));
    for (headers, why) in [
        (json!({"Webhook-Id": "x"}), "written by Postrider"),
        (json!({"X-Postrider-Event": "x"}), "written by Postrider"),
        (json!({"HOST": "x"}), "written by Postrider"),
        (json!({"content-length": "1"}), "written by Postrider"),
        (json!({"Transfer-Encoding": "chunked"}), "written by Postrider"),
        (json!({"Idempotency-Key": "x"}), "written by Postrider"),
        (json!({"X-A": "1", "x-a": "2"}), "twice"),
        (json!({"X-A": "a\r\nX-B: b"}), "control character"),
        (json!({"X A": "b"}), "not a header name"),
        (json!({"X-A": 1}), "no text"),
        (json!({"X-A": "x".repeat(5000)}), "no text of at most"),
        (json!(["X-A"]), "no object"),
    ] {
        let shown = refused(json!({"custom_headers": headers}));
        assert!(shown.contains(why), "{headers}: {shown}");
    }
    let many: Map<String, Value> = (0..33).map(|n| (format!("X-{n}"), json!("1"))).collect();
    assert!(refused(json!({"custom_headers": many})).contains("33 headers"));
}

#[test]
fn z03_what_an_endpoint_has_not_is_refused() {
    for (keys, field) in [
        (json!({"host": "https://a.example"}), "host"),
        (json!({"use_queue": false}), "use_queue"),
        (json!({"rate_limit_per_second": 0}), "rate_limit_per_second"),
        (json!({"description": "x".repeat(501)}), "description"),
        (json!({"payload": "xml"}), "payload"),
        (json!({"is_active": true}), "is_active"),
    ] {
        assert!(refused(keys).starts_with(&format!("`{field}`")), "{field}");
    }
}

/// Without order, which is what an endpoint has unless it is asked for, several go at once (D17).
#[test]
fn d17_an_endpoint_takes_a_concurrency_unless_it_is_ordered() {
    for (keys, wanted) in [(json!({}), 5), (json!({"concurrency": 7}), 7), (json!({"ordered": true}), 1)] {
        let (_, policy) = endpoint(keys.clone());
        assert_eq!(policy.queue.concurrency, wanted, "{keys}");
    }
    assert!(refused(json!({"ordered": true, "concurrency": 2})).starts_with("`concurrency`"));
}
