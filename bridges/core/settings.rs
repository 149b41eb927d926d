//! The keys of `outgoing_nats`, `outgoing_rabbitmq` and `outgoing_redis`. This module must not know how messages are published.

use serde_json::{Map, Value};

use super::host::read_address;
use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::reader::Reader;
use super::rest::{POOL_SIZE, POOL_SIZE_MAX, security, timeout_s};
use super::{KindSettings, SettingError, delivery, mllp, target_keys};
use crate::connection::{BrokerTarget, ConnectionSpec, Place, Target};

const NAME_BYTES_MAX: usize = 255;
const STREAM_BYTES_MAX: usize = 512;
const DATABASE_MAX: u32 = 65_535;
const NOT_HERE: &[(&str, &str)] = &[
    ("queue_response", "nothing here: only channels answer with it"),
    ("ack_match", "nothing here: only connections over MLLP have it"),
    ("retry_on", "nothing here: only connections over MLLP have it"),
    ("retryable_statuses", "nothing here: a broker answers without a status"),
    ("retry_after", "nothing here: a broker answers without such a header"),
];
const SUBJECT: &str = "a subject of at most 255 visible characters, its parts separated by dots, without `*` and `>`";
const TEXT: &str = "at most 255 bytes without control characters";
const STREAM: &str = "1 to 512 bytes without control characters";

const ADDRESS: KeyDoc = key("address", "none", "host and port, such as `10.1.1.5:4222`", "Where the broker is.");
const TIMEOUT: KeyDoc = target_keys::TIMEOUT.meaning("From connect to the broker's word that the message is kept.");
const POOL: KeyDoc = target_keys::POOL_SIZE.meaning("Connections to the broker at most; each has one message in flight.");
const TLS: KeyDoc =
    key("tls", "false, or true with tls_ca_path", TRUE_FALSE, "Whether TLS is spoken.").of(Shape::Flag);
const CA: KeyDoc = target_keys::TLS_CA_PATH.meaning("Authorities to trust instead of the public ones; naming one turns TLS on.");
const CERT: KeyDoc = key(
    "tls_cert_path",
    "",
    "the path of a PEM file",
    "The certificate, with its chain, to show to a broker that asks (mutual TLS).",
);
const KEY: KeyDoc = key("tls_key_path", "", "the path of a PEM file", "The key of tls_cert_path.");
const SECURITY: KeyDoc = target_keys::SECURITY.meaning("A definition of type basic_auth or bearer: who logs in.");

pub(super) const NATS: KindSettings = KindSettings {
    own: &[
        ADDRESS,
        key("subject", "none", SUBJECT, "Where messages are published; a stream of JetStream has to take it."),
        TIMEOUT, POOL, TLS, CA, CERT, KEY, SECURITY, target_keys::IS_ACTIVE,
    ],
    not_here: NOT_HERE,
    passed_over: &[],
    passed_over_families: &[],
    parse: |written| parse(&NATS, written, nats),
};

pub(super) const RABBITMQ: KindSettings = KindSettings {
    own: &[
        ADDRESS,
        key("vhost", "/", TEXT, "The virtual host."),
        key("exchange", "", TEXT, "Where messages are published; the default exchange puts into the queue that routing_key names."),
        key("routing_key", "", TEXT, "By what the exchange chooses queues; one of them has to take the message."),
        TIMEOUT, POOL, TLS, CA, CERT, KEY, SECURITY, target_keys::IS_ACTIVE,
    ],
    not_here: NOT_HERE,
    passed_over: &[],
    passed_over_families: &[],
    parse: |written| parse(&RABBITMQ, written, rabbitmq),
};

pub(super) const REDIS: KindSettings = KindSettings {
    own: &[
        ADDRESS,
        key("stream", "none", STREAM, "The key of the stream; it is made when there is none."),
        key("database", "0", "a whole number from 0 to 65535", "Which of the server's databases.")
            .of(Shape::Whole { min: 0, max: DATABASE_MAX }),
        key("entries_max", "none", "a whole number from 1 to 4294967295", "Older entries go when the stream has about so many.")
            .of(Shape::Whole { min: 1, max: u32::MAX }),
        TIMEOUT, POOL, TLS, CA, CERT, KEY, SECURITY, target_keys::IS_ACTIVE,
    ],
    not_here: NOT_HERE,
    passed_over: &[],
    passed_over_families: &[],
    parse: |written| parse(&REDIS, written, redis),
};

fn parse(
    settings: &'static KindSettings,
    written: &Map<String, Value>,
    place: fn(&mut Reader<'_>) -> Option<Place>,
) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, settings.keys());
    let address = address(&mut reader);
    let place = place(&mut reader);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = mllp::tls(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let security = security(&mut reader);
    let mut policy = delivery::read(&mut reader, settings.not_here);
    if let Some(timeout_s) = timeout_s(&mut reader) {
        policy.timeout = delivery::millis(timeout_s);
    }
    reader.refuse_unknown_keys(|key| settings.refuses(key));
    let target = address.zip(place).map(|((host, port), place)| {
        Target::Broker(Box::new(BrokerTarget { host, port, tls, pool_size, place }))
    });
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

fn address(reader: &mut Reader<'_>) -> Option<(String, u16)> {
    let text = required(reader, "address")?;
    read_address(&text).map_err(|allowed| reader.refuse("address", text, allowed)).ok()
}

fn required(reader: &mut Reader<'_>, key: &'static str) -> Option<String> {
    let text = reader.text(key).filter(|text| !text.is_empty()).map(str::to_owned);
    if text.is_none() {
        let allowed = reader.allowed(key);
        reader.refuse(key, "missing", allowed);
    }
    text
}

/// A text of at most so many bytes that can be written as it is.
fn fitting(reader: &mut Reader<'_>, key: &'static str, text: String, bytes_max: usize) -> Option<String> {
    let fits = text.len() <= bytes_max && !text.chars().any(char::is_control);
    if !fits {
        let allowed = reader.allowed(key);
        reader.refuse(key, text.escape_debug(), allowed);
    }
    fits.then_some(text)
}

fn nats(reader: &mut Reader<'_>) -> Option<Place> {
    let text = required(reader, "subject")?;
    let is_part = |part: &str| !part.is_empty() && part != "*" && part != ">" && part.chars().all(|c| !c.is_whitespace());
    let fits = text.split('.').all(is_part);
    let subject = fitting(reader, "subject", text, NAME_BYTES_MAX)?;
    if !fits {
        reader.refuse("subject", subject, SUBJECT);
        return None;
    }
    Some(Place::Nats { subject })
}

fn rabbitmq(reader: &mut Reader<'_>) -> Option<Place> {
    let mut text = |key: &'static str, standard: &str| {
        let given = reader.text(key).filter(|text| !text.is_empty()).unwrap_or(standard).to_owned();
        fitting(reader, key, given, NAME_BYTES_MAX)
    };
    let (vhost, exchange, routing_key) = (text("vhost", "/")?, text("exchange", "")?, text("routing_key", "")?);
    if exchange.is_empty() && routing_key.is_empty() {
        reader.refuse("routing_key", "missing", "the name of a queue, or an `exchange`");
        return None;
    }
    Some(Place::RabbitMq { vhost, exchange, routing_key })
}

fn redis(reader: &mut Reader<'_>) -> Option<Place> {
    let entries_max = reader.whole("entries_max", 1..=u32::MAX);
    let database = reader.whole("database", 0..=DATABASE_MAX).unwrap_or(0);
    let text = required(reader, "stream")?;
    let stream = fitting(reader, "stream", text, STREAM_BYTES_MAX)?;
    Some(Place::Redis { stream, database, entries_max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionKind;
    use serde_json::json;

    fn parse(kind: ConnectionKind, written: Value) -> Result<BrokerTarget, Vec<String>> {
        let spec = ConnectionSpec::parse(kind, written.as_object().unwrap());
        let spec = spec.map_err(|errors| errors.iter().map(|error| error.field.to_string()).collect::<Vec<_>>())?;
        assert_eq!(spec.target.kind(), kind);
        Ok(spec.target.broker().unwrap().clone())
    }

    #[test]
    fn p02_a_bridge_names_its_broker_and_its_place() {
        let nats = parse(ConnectionKind::Nats, json!({"address": "NATS:4222", "subject": "orders.new"})).unwrap();
        assert_eq!((nats.address().as_str(), nats.pool_size), ("nats:4222 orders.new", 10));
        let rabbitmq = json!({"address": "mq:5671", "routing_key": "orders", "tls": true});
        let rabbitmq = parse(ConnectionKind::Rabbitmq, rabbitmq).unwrap();
        assert!(rabbitmq.tls.is_some_and(|tls| tls.verify));
        assert!(matches!(rabbitmq.place, Place::RabbitMq { vhost, .. } if vhost == "/"));
        let redis = json!({"address": "r:6379", "stream": "orders", "entries_max": 1000, "use_queue": true});
        let redis = parse(ConnectionKind::Redis, redis).unwrap();
        assert_eq!(redis.place, Place::Redis { stream: "orders".to_owned(), database: 0, entries_max: Some(1000) });
    }

    #[test]
    fn z03_what_no_broker_could_take_is_refused_by_its_field() {
        let with = |kind, key: &str, value: Value| {
            let mut written = json!({"address": "a:1", "subject": "a", "routing_key": "a", "stream": "a"});
            let unknown: &[&str] = match kind {
                ConnectionKind::Nats => &["routing_key", "stream"],
                ConnectionKind::Rabbitmq => &["subject", "stream"],
                _ => &["subject", "routing_key"],
            };
            unknown.iter().for_each(|key| drop(written.as_object_mut().unwrap().remove(*key)));
            written[key] = value;
            parse(kind, written).map(drop).unwrap_err()
        };
        for subject in ["", "a..b", "a.*", "a.>", "a b", "a\r\nPUB"] {
            assert_eq!(with(ConnectionKind::Nats, "subject", subject.into()), ["subject"], "{subject:?}");
        }
        assert_eq!(with(ConnectionKind::Nats, "address", "nats://a:1".into()), ["address"]);
        assert_eq!(with(ConnectionKind::Rabbitmq, "routing_key", "".into()), ["routing_key"]);
        assert_eq!(with(ConnectionKind::Rabbitmq, "exchange", "x".repeat(256).into()), ["exchange"]);
        assert_eq!(with(ConnectionKind::Redis, "stream", Value::Null), ["stream"]);
        assert_eq!(with(ConnectionKind::Redis, "database", json!(-1)), ["database"]);
        assert_eq!(with(ConnectionKind::Redis, "retryable_statuses", json!("500")), ["retryable_statuses"]);
    }
}
