//! The delivery keys, the same on every kind of connection, read into one policy (P01).
//!
//! This module must not know what kind of connection it reads for.

use serde_json::{Map, Value};

use super::ladder;
use super::ladder::{LADDER_KEYS, first_ladder_key};
use super::reader::Reader;
use super::{KindSettings, SettingError};
use crate::Wait;
use crate::connection::ConnectionKind;
use crate::policy::{DeliveryPolicy, DlqAction, DlqPolicy, QueuePolicy};
use crate::schedule::{Backoff, Schedule};
use crate::topic::TopicName;

/// Attempts at once in an unordered queue, at most.
pub const CONCURRENCY_MAX: u32 = 1000;
/// Attempts at once in an unordered queue where nothing else is said (D17).
pub const CONCURRENCY_UNORDERED: u32 = 5;
/// How far an ordered queue may run ahead, at most (D03): so many requests at most are sent again after a crash.
pub const SETTLE_AHEAD_MAX: u32 = 1024;
/// Retries of the DLQ's action, at most.
pub const DLQ_RETRIES_MAX: u32 = 1_000_000;
/// `dlq_retry_interval`, at most: 31 days.
pub const DLQ_INTERVAL_MAX: Wait = Wait::from_secs(31 * 86_400);
/// `expires_after`, at most: ten years.
pub const EXPIRES_AFTER_MAX: Wait = Wait::from_secs(3650 * 86_400);

const BACKOFF_KEYS: [&str; 4] =
    ["max_retries", "retry_sleep_time", "retry_backoff_multiplier", "retry_backoff_threshold"];

/// Reads every delivery key; what is refused is in the reader, and its default stands in for it. `not_here`: see `KindSettings`.
pub(super) fn read(reader: &mut Reader<'_>, not_here: &'static [(&'static str, &'static str)]) -> DeliveryPolicy {
    read_over(reader, not_here, None)
}

/// The same; `unsaid` is the policy where no key says how it is retried, instead of rounds.
fn read_over(
    reader: &mut Reader<'_>,
    not_here: &'static [(&'static str, &'static str)],
    unsaid: Option<DeliveryPolicy>,
) -> DeliveryPolicy {
    for &(key, allowed) in not_here {
        // An empty text means unset, as files of the platform have it.
        if let Some(value) = reader.value(key).filter(|value| value.as_str() != Some("")) {
            reader.refuse(key, value, allowed);
        }
    }
    let ladder_key = first_ladder_key(reader);
    let mut policy = match ladder_key {
        Some(made_by) => {
            refuse_backoff_keys(reader, made_by);
            ladder::read(reader)
        }
        None => match unsaid.filter(|_| !says_rounds(reader)) {
            Some(policy) => policy,
            None => DeliveryPolicy::rounds(backoff(reader)),
        },
    };
    policy.queue = queue(reader, &policy.queue);
    policy.dlq = dlq(reader);
    if let (Some(made_by), false) = (ladder_key, policy.dlq.use_dlq) {
        let allowed = format!(
            "true here: `{made_by}` makes a ladder, and what a ladder gives up on goes to the dead-letter queue"
        );
        reader.refuse("use_dlq", false, allowed);
    }
    let ten_years_s = EXPIRES_AFTER_MAX.as_secs_f64();
    policy.expires_after = reader.decimal("expires_after", 0.001..=ten_years_s).map(millis);
    policy
}

/// Only the policy of settings whose other keys may not be there yet: for a look at what it would do.
///
/// # Errors
/// All delivery keys that are refused, each with its field.
pub fn policy_of(kind: ConnectionKind, written: &Map<String, Value>) -> Result<DeliveryPolicy, Vec<SettingError>> {
    let settings = KindSettings::of(kind);
    let mut reader = Reader::new(written, settings.keys());
    let policy = match kind {
        ConnectionKind::Webhook => read_of_endpoint(&mut reader, settings.not_here),
        _ => read(&mut reader, settings.not_here),
    };
    reader.finish(Some(policy))
}

/// The same for a webhook endpoint: the preset `webhook` unless the keys say rounds, and always with a queue.
pub(super) fn read_of_endpoint(
    reader: &mut Reader<'_>,
    not_here: &'static [(&'static str, &'static str)],
) -> DeliveryPolicy {
    if reader.flag("use_queue") == Some(false) {
        reader.refuse("use_queue", false, "true here: an endpoint is delivered from its queue");
    }
    let mut policy = read_over(reader, not_here, Some(DeliveryPolicy::webhook()));
    policy.queue.use_queue = true;
    policy
}

/// Whether any key makes rounds of the retries of an endpoint.
pub(super) fn says_rounds(reader: &Reader<'_>) -> bool {
    BACKOFF_KEYS.iter().any(|key| reader.has(key))
}

/// Order is kept key by key, in a queue without order of its own (R15); only endpoints have it.
fn by_key(reader: &Reader<'_>) -> bool {
    reader.value("ordering_key").is_some_and(|key| key.as_str() != Some(""))
}

/// Seconds to the millisecond; the range was checked before.
pub(super) fn millis(seconds: f64) -> Wait {
    Wait::from_millis((seconds * 1000.0).round() as u64)
}

fn refuse_backoff_keys(reader: &mut Reader<'_>, made_by: &str) {
    for key in BACKOFF_KEYS {
        if let Some(value) = reader.value(key) {
            let allowed = format!(
                "nothing together with `{made_by}`, which makes a ladder of fixed waits: use either the keys of rounds ({}) or those of a ladder ({})",
                BACKOFF_KEYS.join(", "),
                LADDER_KEYS.join(", "),
            );
            reader.refuse(key, value, allowed);
        }
    }
}

fn backoff(reader: &mut Reader<'_>) -> Backoff {
    let standard = Backoff::default();
    let max_retries = reader.whole("max_retries", 0..=Backoff::MAX_RETRIES_MAX).unwrap_or(standard.max_retries());
    let seconds = 0.0..=Backoff::SECONDS_MAX;
    let first_s = reader.decimal("retry_sleep_time", seconds.clone()).unwrap_or(standard.first_wait().as_secs_f64());
    let multiplier =
        reader.decimal("retry_backoff_multiplier", 0.0..=Backoff::MULTIPLIER_MAX).unwrap_or(standard.multiplier());
    let total_s = reader.decimal("retry_backoff_threshold", seconds).unwrap_or(standard.total().as_secs_f64());
    Backoff::new(max_retries, first_s, multiplier, total_s).unwrap_or_else(|error| {
        reader.refuse_as(error);
        standard
    })
}

fn queue(reader: &mut Reader<'_>, standard: &QueuePolicy) -> QueuePolicy {
    let use_queue = reader.flag("use_queue").unwrap_or(standard.use_queue);
    let ordered = reader.flag("ordered").unwrap_or(standard.ordered) && !by_key(reader);
    let given = reader.whole("concurrency", 1..=CONCURRENCY_MAX);
    if let (true, Some(given)) = (ordered, given.filter(|given| *given > 1)) {
        let allowed = "1 while `ordered` is true, since one request must be done before the next is sent; \
                       `ordered: false` gives order up for more at once";
        reader.refuse("concurrency", given, allowed);
    }
    let concurrency = given.unwrap_or(if ordered { 1 } else { CONCURRENCY_UNORDERED });
    let settle_ahead_max = reader.whole("settle_ahead_max", 0..=SETTLE_AHEAD_MAX).unwrap_or(standard.settle_ahead_max);
    QueuePolicy { use_queue, ordered, concurrency, settle_ahead_max }
}

#[derive(Clone, Copy)]
enum Action {
    Keep,
    Retry,
    Forward,
    Discard,
}

fn dlq(reader: &mut Reader<'_>) -> DlqPolicy {
    let standard = DlqPolicy::default();
    let use_dlq = reader.flag("use_dlq").unwrap_or(standard.use_dlq);
    let action = reader.choice("dlq_action", |text| match text {
        "keep" => Some(Action::Keep),
        "retry" => Some(Action::Retry),
        "forward" => Some(Action::Forward),
        "discard" => Some(Action::Discard),
        _ => None,
    });
    // All are read whatever the action is, so that a mistake shows now and not when the action changes.
    let retries_max = reader.whole("dlq_retries", 0..=DLQ_RETRIES_MAX).unwrap_or(3);
    let every =
        reader.decimal("dlq_retry_interval", 0.0..=DLQ_INTERVAL_MAX.as_secs_f64()).map_or(standard.every, millis);
    let topic = forward_topic(reader);
    let keep_header = reader.flag("dlq_keep_header").unwrap_or(true);
    let action = match action.unwrap_or(Action::Keep) {
        Action::Keep => DlqAction::Keep,
        Action::Retry => DlqAction::Retry { retries_max },
        Action::Forward => DlqAction::Forward { topic, keep_header },
        Action::Discard => DlqAction::Discard,
    };
    DlqPolicy { use_dlq, action, every }
}

/// `None` when no topic is named: that is allowed, and then the request stays with that reason (Z21).
fn forward_topic(reader: &mut Reader<'_>) -> Option<TopicName> {
    let text = reader.text("dlq_forward_to").filter(|text| !text.is_empty())?;
    TopicName::new(text)
        .map_err(|error| {
            let allowed = format!("{}: {error}", reader.allowed("dlq_forward_to"));
            reader.refuse("dlq_forward_to", text, allowed);
        })
        .ok()
}

/// Whether the policy waits in rounds.
pub(super) fn backoff_of(policy: &DeliveryPolicy) -> Option<&Backoff> {
    match &policy.schedule {
        Schedule::Backoff(backoff) => Some(backoff),
        Schedule::Ladder(_) => None,
    }
}
