//! The keys of `webhook_endpoint`. An endpoint has a ladder and a queue unless its keys say rounds (P01).
//!
//! This module must not know how requests are signed, nor which addresses may be dialled.

use serde_json::{Map, Value};

use super::delivery;
use super::headers::read_headers;
use super::host::without_user_info;
use super::reader::Reader;
use super::{SettingError, keys_of};
use crate::connection::{Addresses, ConnectionKind, ConnectionSpec, Target, TlsSettings, WebhookTarget};
use crate::envelope::Payload;
use crate::http_url::HttpUrl;

/// Characters of a description, at most.
pub const DESCRIPTION_CHARS_MAX: usize = 500;
/// `rate_limit_per_second`, at most.
pub const RATE_MAX: u32 = 10_000;

/// Reads the keys as written, without `name` and `type`.
///
/// # Errors
/// All that is refused, each with its field.
pub fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, keys_of(ConnectionKind::Webhook));
    let url = url(&mut reader);
    let description = description(&mut reader);
    let enabled = reader.flag("enabled").unwrap_or(true);
    let payload = reader.choice("payload", Payload::parse).unwrap_or_default();
    let custom_headers = read_headers(&mut reader, "custom_headers");
    let rate_limit_per_second = reader.whole("rate_limit_per_second", 1..=RATE_MAX);
    let security = super::rest::security(&mut reader);
    let policy = delivery::read_of_endpoint(&mut reader);
    let addresses = match reader.value("retry_preset").and_then(Value::as_str) {
        Some("patient") => Addresses::PublicTls,
        _ => Addresses::Public,
    };
    reader.refuse_unknown_keys(delivery::refuses);
    let target = url.map(|url| {
        Target::Webhook(WebhookTarget {
            url,
            description,
            enabled,
            payload,
            addresses,
            custom_headers,
            rate_limit_per_second,
            tls: TlsSettings::PUBLIC,
        })
    });
    // Whether it is off is the endpoint's own affair: an endpoint that is off holds nothing (D28).
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active: true }))
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

fn description(reader: &mut Reader<'_>) -> String {
    let text = reader.text("description").unwrap_or_default();
    if text.chars().count() > DESCRIPTION_CHARS_MAX {
        let allowed = reader.allowed("description");
        reader.refuse("description", text, allowed);
    }
    text.to_owned()
}
