//! The keys of `services`. This module must not know what a service is asked, nor how.

use serde_json::{Map, Value};

use super::delivery;
use super::host::without_user_info;
use super::keys::{KeyDoc, Shape, key};
use super::reader::Reader;
use super::rest::{POOL_SIZE_MAX, TIMEOUT_S};
use super::{KindSettings, SettingError, target_keys, tls};
use crate::connection::{ConnectionSpec, QUEUE_RESPONSE_HOOK, ServiceTarget, Target};
use crate::http_url::HttpUrl;

/// `pool_size` where nothing else is said: so many runs a host of ours does at once.
const POOL_SIZE: u32 = 32;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: SERVICE_KEYS,
    not_here: &[
        ("queue_response", "nothing here: channels answer with it"),
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
    ],
    passed_over: &[],
    passed_over_families: &[],
    parse,
};

const SERVICE_KEYS: &[KeyDoc] = &[
    key(
        "address",
        "none",
        "an http:// or https:// address without a query, such as `http://127.0.0.1:9900/services/orders.order-intake`",
        "Where it runs; the path and query of each request go behind it.",
    ),
    key(
        "hooks",
        "those that its host announces",
        "queue-response, or an empty list",
        "What it does beside running. A host that lists its services, whose addresses end in `/services/NAME`, is asked; every other has none unless this says so.",
    )
    .of(Shape::Words { count_max: 1 }),
    key(
        "timeout",
        "60, or the preset's with a ladder",
        "a number of seconds from 0.001 to 3600",
        "How long a run may take that a subscription asks for; a channel has its own.",
    )
    .of(Shape::Decimal { min: 0.001, max: 3600.0 }),
    key("pool_size", "32", "a whole number from 1 to 1000", "Runs at once, and sockets kept open, at most.")
        .of(Shape::Whole { min: 1, max: POOL_SIZE_MAX }),
    target_keys::TLS_VERIFY,
    target_keys::VALIDATE_TLS,
    target_keys::TLS_CA_PATH,
    target_keys::TLS_CLIENT_CERT,
    target_keys::TLS_CLIENT_KEY,
    key(
        "security",
        "",
        "the name of a security definition of the project",
        "Whose credentials every run carries; a host with a token takes an apikey with the header `X-Postrider-Token`.",
    ),
];

fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let url = address(&mut reader);
    let has_queue_response = hooks(&mut reader);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = tls::read(&mut reader);
    let security = super::rest::security(&mut reader);
    let mut policy = delivery::read(&mut reader, SETTINGS.not_here);
    if let Some(seconds) = reader.decimal("timeout", TIMEOUT_S) {
        policy.timeout = delivery::millis(seconds);
    }
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key));
    let target = url.map(|url| Target::Service(ServiceTarget { url, pool_size, tls, has_queue_response }));
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active: true }))
}

fn address(reader: &mut Reader<'_>) -> Option<HttpUrl> {
    const KEY: &str = "address";
    if !reader.has(KEY) {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, "missing", allowed);
        return None;
    }
    let text = reader.text(KEY)?;
    let url = HttpUrl::parse(text).map_err(|allowed| reader.refuse(KEY, without_user_info(text), allowed)).ok()?;
    if url.target().contains('?') {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, without_user_info(text), allowed);
        return None;
    }
    Some(url)
}

fn hooks(reader: &mut Reader<'_>) -> Option<bool> {
    const KEY: &str = "hooks";
    let value = reader.value(KEY)?;
    let words: Option<Vec<&str>> = match value {
        Value::String(text) => Some(text.split_whitespace().collect()),
        Value::Array(words) => words.iter().map(Value::as_str).collect(),
        _ => None,
    };
    match words.as_deref() {
        Some([]) => Some(false),
        Some([QUEUE_RESPONSE_HOOK]) => Some(true),
        _ => {
            reader.refuse_value(KEY, value);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionKind;
    use serde_json::json;

    #[test]
    fn d42_a_service_is_an_address_and_its_hooks() {
        let parse = |written: Value| ConnectionSpec::parse(ConnectionKind::Service, written.as_object().unwrap());
        let spec = parse(json!({"address": "http://127.0.0.1:9900/services/a"})).unwrap();
        let service = spec.target.service().unwrap();
        assert_eq!((service.pool_size, service.has_queue_response), (32, None));
        assert_eq!(spec.policy.timeout, crate::Wait::from_secs(60));
        for (hooks, wanted) in [(json!("queue-response"), true), (json!(["queue-response"]), true), (json!([]), false)]
        {
            let spec = parse(json!({"address": "http://h", "hooks": hooks})).unwrap();
            assert_eq!(spec.target.service().unwrap().has_queue_response, Some(wanted));
        }
        for (written, field) in [
            (json!({}), "address"),
            (json!({"address": "http://h/?a=b"}), "address"),
            (json!({"address": "h:1"}), "address"),
            (json!({"address": "http://h", "hooks": "other"}), "hooks"),
            (json!({"address": "http://h", "url_path": "/a"}), "url_path"),
        ] {
            assert_eq!(parse(written).unwrap_err()[0].field, field);
        }
    }
}
