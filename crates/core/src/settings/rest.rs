//! The keys of `outgoing_rest`. This module must not know how requests are sent.

use serde_json::{Map, Value};

use super::delivery::{self, millis};
use super::host::{read_host, without_user_info};
use super::reader::Reader;
use super::tls;
use super::warnings::is_passed_over;
use super::{SettingError, keys_of};
use crate::connection::{ConnectionKind, ConnectionSpec, DataFormat, RestTarget, Target, check_name};
use crate::path_template::PathTemplate;

/// `pool_size`, at most.
pub const POOL_SIZE_MAX: u32 = 1000;
/// `pool_size` where nothing else is said (D17).
pub const POOL_SIZE: u32 = 10;
/// `timeout` in seconds, at least and at most.
pub const TIMEOUT_S: std::ops::RangeInclusive<f64> = 0.001..=3600.0;

/// Reads the keys as written, without `name` and `type`.
///
/// # Errors
/// All that is refused, each with its field.
pub fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, keys_of(ConnectionKind::Rest));
    let host = host(&mut reader);
    let url_path = url_path(&mut reader);
    let data_format = reader
        .choice("data_format", |text| match text {
            "json" => Some(DataFormat::Json),
            "text" => Some(DataFormat::Text),
            "form" => Some(DataFormat::Form),
            "xml" => Some(DataFormat::Xml),
            _ => None,
        })
        .unwrap_or(DataFormat::Json);
    let content_type = content_type(&mut reader);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = tls::read(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let security = security(&mut reader);
    let mut policy = delivery::read(&mut reader);
    if let Some(timeout_s) = timeout_s(&mut reader) {
        policy.timeout = millis(timeout_s);
    }
    reader.refuse_unknown_keys(|key| delivery::refuses(key) || is_passed_over(ConnectionKind::Rest, key));
    let target = host
        .zip(url_path)
        .map(|(host, url_path)| Target::Rest(RestTarget { host, url_path, content_type, data_format, pool_size, tls }));
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

fn host(reader: &mut Reader<'_>) -> Option<String> {
    if !reader.has("host") {
        let allowed = reader.allowed("host");
        reader.refuse("host", "missing", allowed);
        return None;
    }
    let text = reader.text("host")?;
    read_host(text).map_err(|allowed| reader.refuse("host", without_user_info(text), allowed)).ok()
}

fn url_path(reader: &mut Reader<'_>) -> Option<PathTemplate> {
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

fn timeout_s(reader: &mut Reader<'_>) -> Option<f64> {
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
