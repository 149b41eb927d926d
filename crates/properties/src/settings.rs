//! The settings of connections: refused by name or meant as written, never clamped in silence (Z03).

use postrider_core::connection::{ConnectionKind, ConnectionSpec};
use postrider_core::roll::Roll;
use postrider_core::schedule::{Jitter, Schedule, schedule_preview};
use postrider_core::settings::{keys_of, warnings};
use postrider_core::{SettingError, Wait};
use serde_json::{Map, Value};

use crate::model::waits::{Rounds, Rungs};

const KIND: ConnectionKind = ConnectionKind::Rest;
/// What a number may be, as the requirements and the documentation of the keys say it.
const NUMBERS: [(&str, f64, f64, Whole); 12] = [
    ("max_retries", 0.0, 1000.0, Whole::Yes),
    ("retry_sleep_time", 0.0, 86_400.0, Whole::No),
    ("retry_backoff_multiplier", 0.0, 100.0, Whole::No),
    ("retry_backoff_threshold", 0.0, 86_400.0, Whole::No),
    ("dlq_retries", 0.0, 1e6, Whole::Yes),
    ("dlq_retry_interval", 0.0, 2_678_400.0, Whole::No),
    ("expires_after", 0.001, 315_360_000.0, Whole::No),
    ("concurrency", 1.0, 1000.0, Whole::Yes),
    ("max_attempts", 1.0, 20.0, Whole::Yes),
    ("timeout_seconds", 1.0, 60.0, Whole::Yes),
    ("pool_size", 1.0, 1000.0, Whole::Yes),
    ("timeout", 0.001, 3600.0, Whole::No),
];
const FLAGS: [&str; 9] = [
    "use_queue",
    "use_dlq",
    "dlq_keep_header",
    "ordered",
    "jitter",
    "retry_after",
    "tls_verify",
    "validate_tls",
    "is_active",
];
const LADDER_KEYS: [&str; 7] =
    ["retry_preset", "retry_delays", "max_attempts", "retryable_statuses", "timeout_seconds", "jitter", "retry_after"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Whole {
    Yes,
    No,
}

/// The input is the settings as a JSON object; host and path are added where they are missing.
pub fn holds(data: &[u8]) {
    let Ok(Value::Object(mut written)) = serde_json::from_slice(data) else { return };
    for (key, value) in [("host", "https://api.example.org"), ("url_path", "/v2/{id}")] {
        written.entry(key).or_insert_with(|| Value::from(value));
    }
    let read = ConnectionSpec::parse(KIND, &written);
    assert_eq!(read, ConnectionSpec::parse(KIND, &written), "the same settings mean the same");
    let warned = warnings(KIND, &written);
    assert!(warned.iter().all(|warning| !warning.is_empty()));
    match read {
        Ok(spec) => taken_as_written(&written, &spec),
        Err(errors) => refused_by_name(&written, &errors),
    }
}

fn refused_by_name(written: &Map<String, Value>, errors: &[SettingError]) {
    assert!(!errors.is_empty());
    for error in errors {
        let shown = error.to_string();
        assert!(shown.starts_with(&format!("`{}`", error.field)) && shown.chars().count() < 1000, "{shown}");
        if keys_of(KIND).any(|doc| doc.name == error.field) {
            continue;
        }
        // Anything else is a key that somebody wrote, shortened when it is long; its value may be a secret and is not shown.
        let start = error.field.trim_end_matches('…');
        let whole = error.field.chars().count() <= 80;
        let (_, value) = written
            .iter()
            .find(|(key, _)| if whole { **key == *error.field } else { key.starts_with(start) })
            .unwrap_or_else(|| panic!("nobody wrote `{}`", error.field));
        let is_known_elsewhere = ["queue_response", "ack_match", "retry_on"].contains(&&*error.field);
        assert!(is_known_elsewhere || error.given == "an unknown key", "{error} shows {value}");
    }
    assert!(has_a_cause(written) || errors.iter().any(|error| !NUMBERS.iter().any(|(name, ..)| *name == error.field)));
}

/// Whether a number or a flag is not what it may be, or rounds and a ladder are mixed.
fn has_a_cause(written: &Map<String, Value>) -> bool {
    let given = |key: &str| written.get(key).filter(|value| !value.is_null());
    let bad_number = NUMBERS.iter().any(|(key, ..)| given(key).is_some_and(|value| !is_number_of(key, value)));
    let bad_flag = FLAGS.iter().any(|key| given(key).is_some_and(|value| !value.is_boolean()));
    let mixed = LADDER_KEYS.iter().any(|key| given(key).is_some());
    let in_order = given("concurrency").is_some();
    bad_number || bad_flag || mixed || in_order
}

fn is_number_of(key: &str, value: &Value) -> bool {
    let Some((_, least, most, whole)) = NUMBERS.iter().find(|(name, ..)| *name == key) else { return false };
    let is_whole = value.as_u64().is_some();
    value.as_f64().is_some_and(|number| (*least..=*most).contains(&number)) && (*whole == Whole::No || is_whole)
}

fn taken_as_written(written: &Map<String, Value>, spec: &ConnectionSpec) {
    let given = |key: &str| written.get(key).filter(|value| !value.is_null());
    for (key, ..) in NUMBERS {
        assert!(given(key).is_none_or(|value| is_number_of(key, value)), "{key} was taken: {:?}", given(key));
    }
    for key in FLAGS {
        assert!(given(key).is_none_or(Value::is_boolean), "{key} was taken: {:?}", given(key));
    }
    let number = |key: &str, default: f64| given(key).and_then(Value::as_f64).unwrap_or(default);
    match &spec.policy.schedule {
        Schedule::Backoff(backoff) => {
            assert!(!LADDER_KEYS.iter().any(|key| given(key).is_some()), "a ladder key makes a ladder");
            let rounds = Rounds {
                max_retries: backoff.max_retries(),
                first_s: number("retry_sleep_time", 2.0),
                multiplier: number("retry_backoff_multiplier", 2.0),
                total_s: number("retry_backoff_threshold", 60.0),
            };
            assert_eq!(f64::from(rounds.max_retries), number("max_retries", 0.0));
            rounds_keep_their_bounds(&rounds, &backoff.waits());
        }
        Schedule::Ladder(ladder) => {
            let rungs = Rungs {
                max_attempts: ladder.max_attempts(),
                delays_s: ladder.delays().iter().map(|delay| delay.as_secs_f64()).collect(),
                has_jitter: ladder.jitter() != Jitter::None,
            };
            assert_eq!(f64::from(rungs.max_attempts), number("max_attempts", rungs.max_attempts.into()));
            assert_eq!(given("jitter").and_then(Value::as_bool).unwrap_or(rungs.has_jitter), rungs.has_jitter);
            delays_as_written(given("retry_delays"), &rungs);
            for attempt in 1..=21 {
                let wait = ladder.wait_after_attempt(attempt, Roll::MIDDLE);
                is_near(wait, rungs.wait_s(attempt, 0.5));
            }
        }
    }
    let planned = schedule_preview(&spec.policy);
    assert!(!planned.is_empty() && planned.windows(2).all(|pair| pair[0].after_first <= pair[1].after_first));
    a_default_changes_nothing(written, spec);
}

/// Z03, on the waits of a round that keeps failing: against the model wait by wait, and against the rule's own bounds.
fn rounds_keep_their_bounds(rounds: &Rounds, waits: &[Wait]) {
    let mut waited = Wait::ZERO;
    for (at, wait) in (1..).zip(waits) {
        is_near(Some(*wait), rounds.wait_s(at, waited.as_secs_f64()));
        assert!(wait.as_millis() <= 8000);
        waited = waited + *wait;
    }
    let next = u32::try_from(waits.len()).expect("at most a thousand") + 1;
    assert_eq!(rounds.wait_s(next, waited.as_secs_f64()), None, "it ended too early");
    assert!(waited.as_secs_f64() <= rounds.total_s + 0.0005);
}

fn delays_as_written(written: Option<&Value>, rungs: &Rungs) {
    let written: Vec<f64> = match written {
        None => return,
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_f64).collect(),
        Some(value) => {
            let text = value.as_str().expect("a list or a text");
            text.split(',').filter_map(|delay| delay.trim().parse().ok()).collect()
        }
    };
    assert_eq!(written.len(), rungs.delays_s.len());
    for (written, read) in written.iter().zip(&rungs.delays_s) {
        assert!((1.0..=2_592_000.0).contains(written) && (written - read).abs() <= 0.0005, "{written} became {read}");
    }
}

/// Both to the millisecond.
pub(crate) fn is_near(wait: Option<Wait>, expected_s: Option<f64>) {
    match (wait, expected_s) {
        (None, None) => {}
        (Some(wait), Some(expected_s)) if (wait.as_secs_f64() - expected_s).abs() <= 0.001 => {}
        _ => panic!("waits {wait:?} where {expected_s:?} s are expected"),
    }
}

/// A key that is set to null is as good as not written.
fn a_default_changes_nothing(written: &Map<String, Value>, spec: &ConnectionSpec) {
    let mut with_nulls = written.clone();
    for doc in keys_of(KIND) {
        with_nulls.entry(doc.name).or_insert(Value::Null);
    }
    assert_eq!(ConnectionSpec::parse(KIND, &with_nulls).as_ref(), Ok(spec));
}
