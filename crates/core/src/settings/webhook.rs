//! The keys of `webhook_endpoint`. An endpoint has a ladder and a queue unless its keys say rounds (P01).
//!
//! This module must not know how requests are signed, nor which addresses may be dialled.

use serde_json::{Map, Value};

use super::delivery;
use super::headers::{HEADERS_MAX, read_headers};
use super::host::without_user_info;
use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::reader::Reader;
use super::{KindSettings, SettingError, target_keys, tls};
use crate::Wait;
use crate::breaker::BreakerRules;
use crate::connection::{Addresses, CertificateKeys, ConnectionSpec, Target, TlsSettings, WebhookTarget};
use crate::envelope::Payload;
use crate::health::SwitchOff;
use crate::http_url::HttpUrl;
use crate::ordering::OrderingKey;

/// Characters of a description, at most.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// `breaker_failures`, at most.
const BREAKER_FAILURES_MAX: u32 = 1000;
/// `rate_limit_per_second`, at most.
pub const RATE_MAX: u32 = 10_000;
/// `switch_off_after_failures`, at most.
pub const SWITCH_OFF_FAILURES_MAX: u32 = 1_000_000;
/// `switch_off_failing_for`, at most: a year.
pub const SWITCH_OFF_SECONDS_MAX: f64 = 31_536_000.0;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: WEBHOOK_KEYS,
    not_here: &[
        ("queue_response", "nothing here: only channels answer with it"),
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: `retryable_statuses` says which statuses are tried again"),
        ("timeout", "nothing here: `timeout_seconds` says how long an attempt may take"),
        ("is_active", "nothing here: `enabled` switches an endpoint off"),
        ("host", "nothing here: `url` is the whole address"),
        ("url_path", "nothing here: `url` is the whole address"),
    ],
    passed_over: &[],
    passed_over_families: &[],
    parse,
};

/// The keys of `webhook_endpoint` beside those of its delivery.
const WEBHOOK_KEYS: &[KeyDoc] = &[
    key(
        "url",
        "none",
        "a public http:// or https:// address, such as `https://hooks.example.org/in?team=7`; with the preset patient https only",
        "Where events are sent.",
    ),
    key("description", "", "a text of at most 500 characters", "For people."),
    key("enabled", "true", TRUE_FALSE, "false: nothing is sent to it, now or later.").of(Shape::Flag),
    key(
        "payload",
        "envelope",
        "one of envelope, data, as_arrived",
        "Whether events are sent in an envelope with id, type and timestamp, as their bare data, or, for webhooks that came in, unsigned with the headers that they came with.",
    )
    .of(Shape::OneOf(&["envelope", "data", "as_arrived"])),
    key(
        "custom_headers",
        "none",
        "an object of at most 32 headers with texts of at most 4096 bytes without control characters, none of them written by Postrider itself",
        "Sent with every request.",
    )
    .of(Shape::Pairs { count_max: HEADERS_MAX }),
    key(
        "rate_limit_per_second",
        "none",
        "a whole number from 1 to 10000",
        "Attempts a second at most; more wait, and no attempt is used up by that.",
    )
    .of(Shape::Whole { min: 1, max: 10_000 }),
    key(
        "breaker_failures",
        "10, or 0 with the preset patient and in rounds",
        "a whole number from 0 to 1000",
        "After so many failed attempts in a row its requests are held back for a while, and then one is tried; 0: never.",
    )
    .of(Shape::Whole { min: 0, max: BREAKER_FAILURES_MAX }),
    key(
        "breaker_seconds",
        "30",
        "a whole number from 1 to 3600",
        "How long they are held back at first, give or take a half; twice as long after each try that fails, up to eight times.",
    )
    .of(Shape::Whole { min: 1, max: 3600 }),
    key(
        "ordering_key",
        "none",
        "a JSON pointer into the event's data, such as `/customer/id`, of at most 512 bytes",
        "Order is kept only among events with the same value there; those of others go beside them.",
    ),
    key(
        "tls_client_cert",
        "",
        "the path of a PEM file",
        "The certificate, with its chain, to show to an endpoint that asks who we are.",
    ),
    target_keys::TLS_CLIENT_KEY,
    key(
        "switch_off_on_gone",
        "true with the preset patient, else false",
        TRUE_FALSE,
        "Whether an answer 410 switches the endpoint off.",
    )
    .of(Shape::Flag),
    key(
        "switch_off_after_failures",
        "100 with the preset patient, else 0",
        "a whole number from 0 to 1000000; 0 is never",
        "So many different deliveries failed with no success between switch the endpoint off.",
    )
    .of(Shape::Whole { min: 0, max: SWITCH_OFF_FAILURES_MAX }),
    key(
        "switch_off_failing_for",
        "259200 (3 days) with the preset patient, else 0",
        "a number of seconds from 0 to 31536000 (a year); 0 is never",
        "So long since the first failure after the last success switches the endpoint off.",
    )
    .of(Shape::Decimal { min: 0.0, max: SWITCH_OFF_SECONDS_MAX }),
    target_keys::SECURITY,
];

/// Reads the keys as written, without `name` and `type`.
///
/// # Errors
/// All that is refused, each with its field.
fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let url = url(&mut reader);
    let description = description(&mut reader);
    let enabled = reader.flag("enabled").unwrap_or(true);
    let payload = reader.choice("payload", Payload::parse).unwrap_or_default();
    let custom_headers = read_headers(&mut reader, "custom_headers");
    let rate_limit_per_second = reader.whole("rate_limit_per_second", 1..=RATE_MAX);
    let security = super::rest::security(&mut reader);
    let ordering_key = ordering_key(&mut reader);
    let breaker = breaker(&mut reader);
    let keys = &CertificateKeys { cert: "tls_client_cert", key: "tls_client_key" };
    let tls = TlsSettings { client: tls::client(&mut reader, keys), ..TlsSettings::PUBLIC };
    let ordered_by_key = ordering_key.is_some() && reader.flag("ordered") == Some(true);
    let mut policy = delivery::read_of_endpoint(&mut reader, SETTINGS.not_here);
    policy.switch_off = switch_off(&mut reader, policy.switch_off);
    let addresses = match reader.value("retry_preset").and_then(Value::as_str) {
        Some("patient") => Addresses::PublicTls,
        _ => Addresses::Public,
    };
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key));
    let target = url.map(|url| {
        Target::Webhook(WebhookTarget {
            url,
            description,
            enabled,
            payload,
            addresses,
            custom_headers,
            rate_limit_per_second,
            breaker,
            ordered_by_key,
            ordering_key,
            tls,
        })
    });
    // Whether it is off is the endpoint's own affair: an endpoint that is off holds nothing (D28).
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active: true }))
}

/// The preset's rules with what is written in place of them (V01, V04).
fn switch_off(reader: &mut Reader<'_>, preset: SwitchOff) -> SwitchOff {
    let after_failures = reader.whole("switch_off_after_failures", 0..=SWITCH_OFF_FAILURES_MAX);
    let failing_for = reader.decimal("switch_off_failing_for", 0.0..=SWITCH_OFF_SECONDS_MAX).map(delivery::millis);
    SwitchOff {
        on_gone: reader.flag("switch_off_on_gone").unwrap_or(preset.on_gone),
        after_failures: after_failures.map_or(preset.after_failures, |most| Some(most).filter(|most| *most > 0)),
        failing_for: failing_for.map_or(preset.failing_for, |time| Some(time).filter(|time| *time > Wait::ZERO)),
    }
}

fn url(reader: &mut Reader<'_>) -> Option<HttpUrl> {
    if !reader.has("url") {
        let allowed = reader.allowed("url");
        reader.refuse("url", "missing", allowed);
        return None;
    }
    let text = reader.text("url")?;
    HttpUrl::parse(text).map_err(|allowed| reader.refuse("url", without_user_info(text), allowed)).ok()
}

fn ordering_key(reader: &mut Reader<'_>) -> Option<OrderingKey> {
    const KEY: &str = "ordering_key";
    let text = reader.text(KEY).filter(|text| !text.is_empty())?;
    let found = OrderingKey::new(text);
    if found.is_none() {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, text.escape_debug(), allowed);
    }
    found
}

/// The third seed knows of none, and rounds are over before one would help.
fn breaker(reader: &mut Reader<'_>) -> BreakerRules {
    let is_patient = reader.value("retry_preset").and_then(Value::as_str) == Some("patient");
    let standard =
        if is_patient || delivery::says_rounds(reader) { BreakerRules::NEVER } else { BreakerRules::STANDARD };
    let failures_max = reader.whole("breaker_failures", 0..=BREAKER_FAILURES_MAX).unwrap_or(standard.failures_max);
    let open_for = reader.whole("breaker_seconds", 1..=3600).map(|seconds| Wait::from_secs(seconds.into()));
    BreakerRules { failures_max, open_for: open_for.unwrap_or(standard.open_for) }
}

fn description(reader: &mut Reader<'_>) -> String {
    let text = reader.text("description").unwrap_or_default();
    if text.chars().count() > DESCRIPTION_CHARS_MAX {
        let allowed = reader.allowed("description");
        reader.refuse("description", text, allowed);
    }
    text.to_owned()
}
