//! The keys of subscriptions that push. This module must not know what they are sent to.

use serde_json::{Map, Value};

use super::SettingError;
use super::headers::{HEADERS_MAX, read_headers};
use super::keys::{KeyDoc, Shape, key};
use super::ladder;
use super::reader::Reader;
use crate::Wait;
use crate::schedule::Ladder;
use crate::subscription::PushSpec;
use crate::topic::TopicPattern;

/// `transform_program_bytes_max`.
const PROGRAM_BYTES_MAX: usize = 65_536;

/// What a subscription of a file is sent to: one of these.
pub const TARGET_KEYS: &[KeyDoc] = &[
    key("endpoint", "none", "the name of an endpoint of the project", "Where it sends to; or `connection` instead."),
    key(
        "connection",
        "none",
        "a connection of the project by its type and name, such as `rest:Billing API`",
        "Where it sends to, if that is no endpoint.",
    ),
];

/// The keys of `webhook_subscription` beside `name` and what it is sent to.
pub const PUSH_KEYS: &[KeyDoc] = &[
    key(
        "event_type",
        "none",
        "a pattern of event types: names with dots between segments, `*` for one segment, `**` for any number of them",
        "Which events, or messages of topics, are sent.",
    ),
    key("enabled", "true", "true or false", "false: it selects nothing.").of(Shape::Flag),
    key("max_attempts", "that of the connection", "a whole number from 1 to 20", "Attempts of a delivery in all.")
        .of(Shape::Whole { min: 1, max: 20 }),
    key(
        "retry_delays",
        "those of the connection",
        "1 to 32 numbers of seconds, each from 1 to 2592000 (30 days), as a list or as text with commas",
        "The waits between attempts; the last one repeats.",
    )
    .of(Shape::Numbers { min: 1.0, max: 2_592_000.0, count_max: 32 }),
    key(
        "retryable_statuses",
        "those of the connection",
        "a text of statuses and ranges with commas, such as `408,429,5xx,!501`",
        "Which statuses earn another attempt.",
    ),
    key("timeout_seconds", "that of the connection", "a whole number from 1 to 60", "From connect to the status line.")
        .of(Shape::Whole { min: 1, max: 60 }),
    key(
        "ordering_enabled",
        "false",
        "true or false",
        "Its deliveries go strictly one after another, through retry waits too, together with those of other such subscriptions of the endpoint; with the endpoint's ordering_key, key by key.",
    )
    .of(Shape::Flag),
    key(
        "custom_headers",
        "none",
        "an object of at most 32 headers with texts of at most 4096 bytes without control characters, none of them written by Postrider itself",
        "Sent with each of its deliveries, and before the endpoint's own.",
    )
    .of(Shape::Pairs { count_max: HEADERS_MAX }),
    key(
        "transformation",
        "none",
        "a jq program of 1 to 65536 bytes that gives exactly one value",
        "Makes what is sent of the body. When it fails, the attempt fails; the body is never sent as it was.",
    ),
];

/// Reads the keys as written, without `name` and what it is sent to.
///
/// # Errors
/// All that is refused, each with its field.
pub fn parse(written: &Map<String, Value>) -> Result<PushSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, PUSH_KEYS.iter());
    let pattern = pattern(&mut reader);
    let enabled = reader.flag("enabled").unwrap_or(true);
    let max_attempts = reader.whole("max_attempts", 1..=Ladder::MAX_ATTEMPTS_MAX);
    let retry_delays = ladder::delays(&mut reader);
    let retryable_statuses = ladder::statuses(&mut reader);
    let timeout = reader.whole("timeout_seconds", 1..=60).map(|seconds| Wait::from_secs(seconds.into()));
    let ordering_enabled = reader.flag("ordering_enabled").unwrap_or(false);
    let custom_headers = read_headers(&mut reader, "custom_headers");
    let transformation = transformation(&mut reader);
    reader.refuse_unknown_keys(|_| false);
    reader.finish(pattern.map(|pattern| PushSpec {
        pattern,
        enabled,
        max_attempts,
        retry_delays,
        retryable_statuses,
        timeout,
        ordering_enabled,
        custom_headers,
        transformation,
    }))
}

fn transformation(reader: &mut Reader<'_>) -> Option<String> {
    const KEY: &str = "transformation";
    let text = reader.text(KEY)?;
    if text.trim().is_empty() || text.len() > PROGRAM_BYTES_MAX {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, format!("a text of {} bytes", text.len()), allowed);
        return None;
    }
    Some(text.to_owned())
}

fn pattern(reader: &mut Reader<'_>) -> Option<TopicPattern> {
    const KEY: &str = "event_type";
    if !reader.has(KEY) {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, "missing", allowed);
        return None;
    }
    let text = reader.text(KEY)?;
    TopicPattern::new(text)
        .map_err(|error| {
            let allowed = format!("{}: {error}", reader.allowed(KEY));
            reader.refuse(KEY, text, allowed);
        })
        .ok()
}
