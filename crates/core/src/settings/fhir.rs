//! The keys of `outgoing_fhir`. This module must not know how requests are sent.

use serde_json::{Map, Value};

use super::host::without_user_info;
use super::keys::{KeyDoc, Shape, key};
use super::reader::Reader;
use super::rest::{self, POOL_SIZE, POOL_SIZE_MAX};
use super::{KindSettings, SettingError, delivery, target_keys, tls};
use crate::connection::{ConnectionSpec, DataFormat, FhirTarget, PartialBatch, RestTarget, Target};
use crate::http_url::HttpUrl;
use crate::path_template::PathTemplate;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: FHIR_KEYS,
    not_here: &[
        ("queue_response", "nothing here: only channels answer with it"),
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
        ("host", "nothing here: `address` is host and path in one"),
        ("url_path", "nothing here: `address` is host and path in one"),
        ("data_format", "nothing here: a body is JSON or XML, as it begins"),
        ("content_type", "nothing here: the content type follows from the body and `fhir_version`"),
    ],
    passed_over: &["is_audit_log_active", "bulk_export", "ping_method", "auth_type", "extra"],
    passed_over_families: &["bulk_export_", "health_check_", "scheduler_", "callback_"],
    parse,
};

const PREFERENCES: [&str; 3] = ["minimal", "representation", "OperationOutcome"];

/// The keys of `outgoing_fhir` beside those of its delivery.
const FHIR_KEYS: &[KeyDoc] = &[
    key(
        "address",
        "none",
        "an http:// or https:// address such as `https://fhir.example.org/r4`, without a query",
        "The server's base address; everything asked of it is below.",
    ),
    key(
        "fhir_version",
        "",
        "a version of FHIR in two numbers, such as `4.0`",
        "Said as fhirVersion with every content type, for servers that speak several.",
    ),
    key(
        "prefer",
        "",
        "one of minimal, representation, OperationOutcome",
        "What answers should hold, where a request does not say it itself.",
    )
    .of(Shape::OneOf(&["", "minimal", "representation", "OperationOutcome"])),
    key(
        "partial_batch",
        "failed",
        "one of failed, delivered",
        "What a batch is of which some entries were refused and the others done; it is never sent again by itself.",
    )
    .of(Shape::OneOf(&["failed", "delivered"])),
    target_keys::TIMEOUT,
    target_keys::POOL_SIZE,
    target_keys::TLS_VERIFY,
    target_keys::VALIDATE_TLS,
    target_keys::TLS_CA_PATH,
    target_keys::TLS_CLIENT_CERT,
    target_keys::TLS_CLIENT_KEY,
    target_keys::SECURITY,
    target_keys::IS_ACTIVE,
];

fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let address = address(&mut reader);
    let fhir_version = fhir_version(&mut reader);
    let prefer = reader.choice("prefer", |text| match text {
        "" => Some(None),
        text => PREFERENCES.into_iter().find(|known| *known == text).map(Some),
    });
    let partial = reader.choice("partial_batch", |text| match text {
        "failed" => Some(PartialBatch::Failed),
        "delivered" => Some(PartialBatch::Delivered),
        _ => None,
    });
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = tls::read(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let security = rest::security(&mut reader);
    let mut policy = delivery::read(&mut reader, SETTINGS.not_here);
    if let Some(timeout_s) = rest::timeout_s(&mut reader) {
        policy.timeout = delivery::millis(timeout_s);
    }
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key) || SETTINGS.passes_over(key));
    let target = address.map(|(host, url_path)| {
        Target::Fhir(Box::new(FhirTarget {
            http: RestTarget { host, url_path, content_type: None, data_format: DataFormat::Fhir, pool_size, tls },
            fhir_version,
            prefer: prefer.flatten(),
            partial: partial.unwrap_or(PartialBatch::Failed),
        }))
    });
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

/// Host and path, without a slash at the end.
fn address(reader: &mut Reader<'_>) -> Option<(String, PathTemplate)> {
    const KEY: &str = "address";
    let allowed = reader.allowed(KEY);
    if !reader.has(KEY) {
        reader.refuse(KEY, "missing", allowed);
        return None;
    }
    let text = reader.text(KEY)?;
    let url = match HttpUrl::parse(text) {
        Ok(url) => url,
        Err(allowed) => {
            reader.refuse(KEY, without_user_info(text), allowed);
            return None;
        }
    };
    let path = PathTemplate::parse(url.target().trim_end_matches('/'));
    match path {
        Ok(path) if path.placeholders().next().is_none() => Some((url.origin().to_owned(), path)),
        Ok(_) => {
            reader.refuse(KEY, text, allowed);
            None
        }
        Err(error) => {
            reader.refuse(KEY, text, format!("{allowed}: {error}"));
            None
        }
    }
}

/// Without quotes it is a number in a file.
fn fhir_version(reader: &mut Reader<'_>) -> Option<String> {
    const KEY: &str = "fhir_version";
    let value = reader.value(KEY)?;
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => "?".to_owned(),
    };
    if text.is_empty() {
        return None;
    }
    let is_number = |part: &str| (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    if text.split_once('.').is_some_and(|(major, minor)| is_number(major) && is_number(minor)) {
        return Some(text);
    }
    let allowed = reader.allowed(KEY);
    reader.refuse(KEY, value, allowed);
    None
}
