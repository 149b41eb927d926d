//! The delivery keys, read into a policy.

use super::*;
use crate::Wait;
use crate::policy::{DeliveryPolicy, DlqAction};
use crate::retry_after::RetryAfterRule;
use crate::schedule::{Backoff, Jitter, Ladder, Schedule};
use crate::status_set::StatusSet;

fn policy(keys: Value) -> DeliveryPolicy {
    read(keys).policy
}

fn ladder(keys: Value) -> Ladder {
    match policy(keys).schedule {
        Schedule::Ladder(ladder) => ladder,
        Schedule::Backoff(backoff) => panic!("{backoff:?}"),
    }
}

// proves: Z02, Z03, D17
#[test]
fn z02_nothing_is_turned_on_by_default() {
    assert_eq!(policy(json!({})), DeliveryPolicy::rounds(Backoff::default()));
    assert_eq!(policy(json!({"use_queue": true})).queue.concurrency, 1);
}

#[test]
fn z03_rounds_are_read() {
    let keys = json!({"max_retries": 4, "retry_sleep_time": 0.5, "retry_backoff_multiplier": 1.5, "retry_backoff_threshold": 45});
    assert_eq!(policy(keys).schedule, Schedule::Backoff(Backoff::new(4, 0.5, 1.5, 45.0).unwrap()));
}

#[test]
fn z11_order_is_given_up_by_name_only() {
    let queue = |keys| policy(keys).queue;
    assert_eq!((queue(json!({})).ordered, queue(json!({})).concurrency), (true, 1));
    assert_eq!(queue(json!({"ordered": false})).concurrency, 5);
    assert_eq!(queue(json!({"ordered": false, "concurrency": 40})).concurrency, 40);
    assert_eq!(queue(json!({"ordered": true, "concurrency": 1})).concurrency, 1);
    for keys in [json!({"concurrency": 2}), json!({"ordered": true, "concurrency": 2})] {
        let shown = refusal(keys);
        assert!(shown.contains("1 while `ordered` is true") && shown.contains("`ordered: false`"), "{shown}");
    }
    assert!(refusal(json!({"ordered": false, "concurrency": 1001})).contains("from 1 to 1000"));
    assert_eq!(queue(json!({"settle_ahead_max": 0})).settle_ahead_max, 0);
    assert!(refusal(json!({"settle_ahead_max": 1025})).contains("from 0 to 1024"));
}

#[test]
fn z17_expiry_is_read() {
    assert_eq!(policy(json!({"expires_after": 90.5})).expires_after, Some(Wait::from_millis(90_500)));
    for expires_after in [json!(0), json!(-1), json!(0.0001), json!(315_360_001)] {
        assert!(refusal(json!({"expires_after": expires_after})).contains("from 0.001"));
    }
}

#[test]
fn z21_every_action_is_read() {
    let dlq = |keys| policy(keys).dlq;
    assert_eq!(dlq(json!({})).action, DlqAction::Keep);
    assert_eq!(dlq(json!({})).every, Wait::from_secs(60));
    assert_eq!(dlq(json!({"dlq_action": "retry"})).action, DlqAction::Retry { retries_max: 3 });
    assert_eq!(dlq(json!({"dlq_action": "retry", "dlq_retries": 0})).action, DlqAction::Retry { retries_max: 0 });
    assert_eq!(dlq(json!({"dlq_action": "discard"})).action, DlqAction::Discard);
    let forward = dlq(json!({"dlq_action": "forward", "dlq_forward_to": "lab.failed", "dlq_keep_header": false}));
    let topic = "lab.failed".parse().ok();
    assert_eq!(forward.action, DlqAction::Forward { topic, keep_header: false });
    // A forward without a topic is no error: the request stays in the DLQ with that reason.
    for keys in [json!({"dlq_action": "forward"}), json!({"dlq_action": "forward", "dlq_forward_to": ""})] {
        assert_eq!(dlq(keys).action, DlqAction::Forward { topic: None, keep_header: true });
    }
    assert_eq!(dlq(json!({"dlq_retry_interval": 0.25})).every, Wait::from_millis(250));
    assert!(!dlq(json!({"use_dlq": false})).use_dlq);
    assert!(refusal(json!({"dlq_retries": 1_000_001})).contains("from 0 to 1000000"));
    assert!(refusal(json!({"dlq_retry_interval": 2_678_401})).contains("31 days"));
    assert!(refusal(json!({"dlq_forward_to": "lab failed"})).contains("contains ' '"), "also while the action is keep");
}

// proves: P01, D20
#[test]
fn p01_a_preset_is_taken_whole() {
    for (name, preset) in [
        ("webhook", DeliveryPolicy::webhook()),
        ("forward", DeliveryPolicy::forward()),
        ("patient", DeliveryPolicy::patient()),
    ] {
        assert_eq!(policy(json!({"retry_preset": name})), preset, "{name}");
    }
    assert!(refusal(json!({"retry_preset": "stubborn"})).contains("one of webhook, forward, patient"));
}

#[test]
fn p01_any_ladder_key_makes_a_ladder() {
    let delays = json!({"retry_delays": [10, 20.5]});
    let read = ladder(delays.clone());
    assert_eq!(read.delays(), [Wait::from_secs(10), Wait::from_millis(20_500)]);
    assert_eq!((read.max_attempts(), read.jitter()), (7, Jitter::HalfToOneAndAHalf), "the rest is webhook's");
    assert_eq!(ladder(json!({"retry_delays": "10, 20.5"})), read);
    assert_eq!(ladder(json!({"retry_preset": "patient", "max_attempts": 3})).max_attempts(), 3);
    assert_eq!(ladder(json!({"jitter": false})).jitter(), Jitter::None);
    assert_eq!(ladder(json!({"retry_preset": "patient", "jitter": true})).jitter(), Jitter::HalfToOneAndAHalf);
    let statuses = "408,5xx,!501";
    assert_eq!(
        policy(json!({"retryable_statuses": statuses})).retryable_statuses,
        statuses.parse::<StatusSet>().unwrap()
    );
    assert_eq!(policy(json!({"timeout_seconds": 45})).timeout, Wait::from_secs(45));
    assert_eq!(policy(json!({"retry_preset": "patient", "timeout": 2.5})).timeout, Wait::from_millis(2500));
    assert_eq!(policy(json!({"retry_after": false})).retry_after, RetryAfterRule::Ignored);
    let later = RetryAfterRule::LaterOnly { max: Wait::from_secs(21_600) };
    assert_eq!(policy(json!({"retry_preset": "patient", "retry_after": true})).retry_after, later);
    let queue = policy(delays).queue;
    assert_eq!((queue.use_queue, queue.ordered, queue.concurrency), (true, false, 5));
    let ordered = policy(json!({"max_attempts": 3, "ordered": true, "use_queue": false})).queue;
    assert_eq!((ordered.use_queue, ordered.ordered, ordered.concurrency), (false, true, 1));
}

#[test]
fn p01_rounds_and_a_ladder_do_not_go_together() {
    let keys = json!({"max_retries": 3, "retry_sleep_time": 1, "retry_backoff_multiplier": 2, "retry_backoff_threshold": 60, "jitter": true});
    let errors = refusals(keys);
    assert_eq!(errors.len(), 4);
    let shown = errors[0].to_string();
    assert!(shown.starts_with("`max_retries` is `3`: allowed is nothing together with `jitter`"), "{shown}");
    assert!(refusal(json!({"retry_preset": "webhook", "use_dlq": false})).contains("true here"));
}

#[test]
fn r03_ladder_settings_out_of_range_are_refused() {
    let cases = [
        (json!({"max_attempts": 0}), "from 1 to 20"),
        (json!({"max_attempts": 21}), "from 1 to 20"),
        (json!({"timeout_seconds": 0}), "from 1 to 60"),
        (json!({"timeout_seconds": 61}), "from 1 to 60"),
        (json!({"retry_delays": []}), "1 to 32 numbers"),
        (json!({"retry_delays": ""}), "1 to 32 numbers"),
        (json!({"retry_delays": "1,,2"}), "1 to 32 numbers"),
        (json!({"retry_delays": "NaN"}), "1 to 32 numbers"),
        (json!({"retry_delays": [60, 0]}), "1 to 32 numbers"),
        (json!({"retry_delays": [2_592_001]}), "1 to 32 numbers"),
        (json!({"retry_delays": ["60"]}), "1 to 32 numbers"),
        (json!({"retry_delays": 60}), "1 to 32 numbers"),
        (json!({"retry_delays": vec![60; 33]}), "1 to 32 numbers"),
        (json!({"retryable_statuses": "5xx,teapot"}), "`teapot`"),
        (json!({"retryable_statuses": 500}), "a text of statuses"),
        (json!({"retry_after": 60}), "true or false"),
    ];
    for (keys, part) in cases {
        let shown = refusal(keys.clone());
        assert!(shown.contains(part), "{keys}: {shown}");
    }
}
