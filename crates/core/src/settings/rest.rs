//! The keys of `outgoing_rest`. This module must not know how requests are sent.

use serde_json::{Map, Value};

use super::delivery::{self, millis};
use super::host::{read_host, without_user_info};
use super::keys::{KeyDoc, Shape, key};
use super::reader::Reader;
use super::tls;
use super::{KindSettings, SettingError, target_keys};
use crate::connection::{ConnectionSpec, DataFormat, RestTarget, Target, check_name};
use crate::path_template::PathTemplate;

/// `pool_size`, at most.
pub const POOL_SIZE_MAX: u32 = 1000;
/// `pool_size` where nothing else is said (D17).
pub const POOL_SIZE: u32 = 10;
/// `timeout` in seconds, at least and at most.
pub const TIMEOUT_S: std::ops::RangeInclusive<f64> = 0.001..=3600.0;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: REST_KEYS,
    not_here: &[
        ("queue_response", "nothing here: only channels answer with it"),
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
    ],
    passed_over: &["is_audit_log_active", "ping_method", "response_map"],
    passed_over_families: &["request_", "response_map_", "callback_", "scheduler_", "health_check_"],
    parse,
};

/// The keys of `outgoing_rest` beside those of its delivery.
const REST_KEYS: &[KeyDoc] = &[
    key(
        "host",
        "none",
        "an http:// or https:// address of host and port only, such as `https://api.example.org:8443`",
        "Where requests go.",
    ),
    key(
        "url_path",
        "none",
        "a path that is empty or begins with `/`, with `{placeholders}` that requests fill, without `?` and `#`",
        "The path on the host; params fill its placeholders, the others become the query string.",
    ),
    key(
        "data_format",
        "json",
        "one of json, text, form, xml",
        "What bodies are; decides the content type that is sent.",
    )
    .of(Shape::OneOf(&["json", "text", "form", "xml"])),
    key(
        "content_type",
        "",
        "a content type in visible ASCII characters, such as `application/json`",
        "Sent instead of the data format's own.",
    ),
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

/// Reads the keys as written, without `name` and `type`.
///
/// # Errors
/// All that is refused, each with its field.
fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let host = host(&mut reader);
    let url_path = url_path(&mut reader);
    let data_format = data_format(&mut reader);
    let content_type = content_type(&mut reader);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = tls::read(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let security = security(&mut reader);
    let mut policy = delivery::read(&mut reader, SETTINGS.not_here);
    if let Some(timeout_s) = timeout_s(&mut reader) {
        policy.timeout = millis(timeout_s);
    }
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key) || SETTINGS.passes_over(key));
    let target = host
        .zip(url_path)
        .map(|(host, url_path)| Target::Rest(RestTarget { host, url_path, content_type, data_format, pool_size, tls }));
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

pub(super) fn host(reader: &mut Reader<'_>) -> Option<String> {
    if !reader.has("host") {
        let allowed = reader.allowed("host");
        reader.refuse("host", "missing", allowed);
        return None;
    }
    let text = reader.text("host")?;
    read_host(text).map_err(|allowed| reader.refuse("host", without_user_info(text), allowed)).ok()
}

pub(super) fn url_path(reader: &mut Reader<'_>) -> Option<PathTemplate> {
    if !reader.has("url_path") {
        let allowed = reader.allowed("url_path");
        reader.refuse("url_path", "missing", allowed);
        return None;
    }
    let text = reader.text("url_path")?;
    PathTemplate::parse(text)
        .map_err(|error| {
            let allowed = format!("{}: {error}", reader.allowed("url_path"));
            reader.refuse("url_path", text, allowed);
        })
        .ok()
}

fn content_type(reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text("content_type").filter(|text| !text.is_empty())?;
    let fits = text.len() <= 200 && text.trim() == text && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if !fits {
        let allowed = reader.allowed("content_type");
        reader.refuse("content_type", text, allowed);
    }
    fits.then(|| text.to_owned())
}

pub(super) fn timeout_s(reader: &mut Reader<'_>) -> Option<f64> {
    let value = reader.value("timeout")?;
    if value.as_f64() == Some(0.0) {
        let allowed = "a number of seconds from 0.001 to 3600: 0 would mean to wait for ever, and one silent server would hold the queue";
        reader.refuse("timeout", value, allowed);
        return None;
    }
    if reader.has("timeout_seconds") {
        reader.refuse("timeout", value, "nothing together with `timeout_seconds`: both name the same setting");
        return None;
    }
    reader.decimal("timeout", TIMEOUT_S)
}

/// Whether there is such a definition is seen where the connection is stored. An empty text means none, as files of the platform have it.
pub(super) fn security(reader: &mut Reader<'_>) -> Option<String> {
    let name = reader.text("security").filter(|name| !name.is_empty())?;
    if check_name(name).is_err() {
        let allowed = reader.allowed("security");
        reader.refuse("security", name.escape_debug(), allowed);
        return None;
    }
    Some(name.to_owned())
}

/// What bodies are; also of channels.
pub(super) fn data_format(reader: &mut Reader<'_>) -> DataFormat {
    let read = |text: &str| match text {
        "json" => Some(DataFormat::Json),
        "text" => Some(DataFormat::Text),
        "form" => Some(DataFormat::Form),
        "xml" => Some(DataFormat::Xml),
        _ => None,
    };
    reader.choice("data_format", read).unwrap_or(DataFormat::Json)
}
