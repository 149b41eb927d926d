//! The keys of `channel_mllp`. This module must not know how messages are received or framed.

use core::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::channel::{FORWARD_TO, IS_ACTIVE, SERVICE, SERVICE_TIMEOUT_KEY, TIMEOUT, finish};
use super::keys::{KeyDoc, Shape, key};
use super::mllp::{IDLE_CLOSE_S_MAX, MESSAGE_BYTES_MAX, TIMEOUT_MS_MAX, framing};
use super::reader::Reader;
use super::{KindSettings, SettingError, tls};
use crate::Wait;
use crate::connection::{CertificateKeys, ConnectionSpec, DataFormat, Door, MllpDoor, ServerTls};

const CONNECTIONS_MAX: u32 = 10_000;
const DUPLICATE_S: u32 = 86_400;
const DUPLICATE_S_MAX: u32 = 2_592_000;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: KEYS,
    not_here: &[
        ("queue_response", "nothing here: over MLLP an acknowledgment is HL7's own"),
        ("hook_timeout_ms", "nothing here: over MLLP an acknowledgment is HL7's own"),
        ("security", "nothing here: over MLLP `tls_ca_path` says whose certificates callers have to show"),
        ("url_path", "nothing here: `address` says where the channel listens"),
        ("ack_match", "nothing here: only connections that wait for acknowledgments have it"),
        ("retry_on", "nothing here: only connections that wait for acknowledgments have it"),
    ],
    passed_over: &["is_audit_log_active", "read_buffer_size", "should_log_messages", "logging_level"],
    passed_over_families: &[],
    parse,
};

const KEYS: &[KeyDoc] = &[
    SERVICE,
    FORWARD_TO,
    key(
        "address",
        "none",
        "an IP address and a port, such as `0.0.0.0:2575`",
        "Where it listens; 0.0.0.0 is every address of the machine.",
    ),
    key(
        "start_seq",
        "0b",
        "1 to 8 bytes in hexadecimal with spaces between, such as `0b`",
        "What stands before a message on the wire.",
    ),
    key(
        "end_seq",
        "1c 0d",
        "1 to 8 bytes in hexadecimal with spaces between, such as `1c 0d`",
        "What stands behind a message on the wire.",
    ),
    key(
        "max_msg_size",
        "2097152",
        "a whole number of bytes from 1 to 1073741824 (1 GiB)",
        "A longer message is refused, and its connection closed.",
    )
    .of(Shape::Whole { min: 1, max: MESSAGE_BYTES_MAX }),
    key("connections_max", "100", "a whole number from 1 to 10000", "Connections at once; a further one is closed.")
        .of(Shape::Whole { min: 1, max: CONNECTIONS_MAX }),
    key(
        "recv_timeout",
        "30000",
        "a whole number of milliseconds from 1 to 3600000",
        "How long a message may take from its first byte to its last; then the connection is closed.",
    )
    .of(Shape::Whole { min: 1, max: TIMEOUT_MS_MAX }),
    key(
        "idle_close_seconds",
        "0",
        "a whole number of seconds from 0 to 86400",
        "A connection on which nothing went on for this long is closed; 0 keeps it open.",
    )
    .of(Shape::Whole { min: 0, max: IDLE_CLOSE_S_MAX }),
    key(
        "duplicate_seconds",
        "86400",
        "a whole number from 0 to 2592000 (30 days)",
        "For how long a message with the same bytes, its MSH-10 among them, is the sender's repeat: acknowledged as before, not run again. 0: never.",
    )
    .of(Shape::Whole { min: 0, max: DUPLICATE_S_MAX }),
    key(
        "tls_cert_path",
        "",
        "the path of a PEM file",
        "The certificate, with its chain, to show to callers; naming one turns TLS on.",
    ),
    key("tls_key_path", "", "the path of a PEM file", "The key of tls_cert_path."),
    key(
        "tls_ca_path",
        "",
        "the path of a PEM file",
        "Authorities of whose certificates callers have to show one (mutual TLS).",
    ),
    SERVICE_TIMEOUT_KEY,
    TIMEOUT,
    IS_ACTIVE,
];

fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let listen = listen(&mut reader);
    let framing = framing(&mut reader);
    let message_bytes_max = reader.whole("max_msg_size", 1..=MESSAGE_BYTES_MAX).unwrap_or(2 << 20);
    let connections_max = reader.whole("connections_max", 1..=CONNECTIONS_MAX).unwrap_or(100);
    let read_timeout_ms = reader.whole("recv_timeout", 1..=TIMEOUT_MS_MAX).unwrap_or(30_000);
    let idle_close_s = reader.whole("idle_close_seconds", 0..=IDLE_CLOSE_S_MAX).unwrap_or(0);
    let duplicates_s = reader.whole("duplicate_seconds", 0..=DUPLICATE_S_MAX).unwrap_or(DUPLICATE_S);
    let tls = server_tls(&mut reader);
    let door = listen.map(|listen| {
        Door::Mllp(Arc::new(MllpDoor {
            listen,
            framing,
            message_bytes_max,
            connections_max,
            read_timeout: Wait::from_millis(read_timeout_ms.into()),
            duplicates_for: Wait::from_secs(duplicates_s.into()),
            idle_close: (idle_close_s > 0).then(|| Wait::from_secs(idle_close_s.into())),
            tls,
        }))
    });
    finish(reader, &SETTINGS, door, DataFormat::Hl7)
}

/// A name would be looked up, and could stand for several.
fn listen(reader: &mut Reader<'_>) -> Option<SocketAddr> {
    const KEY: &str = "address";
    let given = if reader.has(KEY) { reader.text(KEY)? } else { "" };
    let read = given.parse::<SocketAddr>().ok().filter(|address| address.port() > 0);
    if read.is_none() {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, if given.is_empty() { "missing".into() } else { given.escape_debug().to_string() }, allowed);
    }
    read
}

fn server_tls(reader: &mut Reader<'_>) -> Option<ServerTls> {
    let identity = tls::client(reader, &CertificateKeys { cert: "tls_cert_path", key: "tls_key_path" });
    let clients_ca = tls::path(reader, "tls_ca_path");
    if identity.is_none() && clients_ca.is_some() && !reader.has("tls_cert_path") {
        reader.refuse(
            "tls_cert_path",
            "missing",
            "the path of a PEM file, since `tls_ca_path` is given: without a certificate there is no TLS",
        );
    }
    identity.map(|identity| ServerTls { identity, clients_ca })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionKind;
    use serde_json::json;

    fn parse(written: Value) -> Result<ConnectionSpec, Vec<SettingError>> {
        ConnectionSpec::parse(ConnectionKind::ChannelMllp, written.as_object().unwrap())
    }

    #[test]
    fn z41_a_listener_is_read_with_its_defaults_and_always_has_its_queue() {
        let spec = parse(json!({"service": "adt", "address": "0.0.0.0:2575"})).unwrap();
        let channel = spec.target.channel().unwrap();
        let Door::Mllp(door) = &channel.door else { panic!("a port") };
        assert_eq!((door.connections_max, door.message_bytes_max), (100, 2 << 20));
        assert_eq!(door.duplicates_for, Wait::from_secs(86_400));
        assert!(door.tls.is_none() && door.idle_close.is_none() && spec.policy.queue.use_queue);
        assert_eq!((spec.target.address().as_str(), channel.data_format), ("0.0.0.0:2575", DataFormat::Hl7));
        let feeds = parse(json!({"forward_to": ["LIS"], "address": "[::1]:2575", "idle_close_seconds": 60}));
        assert!(feeds.is_ok(), "{feeds:?}");
    }

    #[test]
    fn z03_what_cannot_be_listened_at_is_refused() {
        let fields = |written: Value| {
            let errors = parse(written).unwrap_err();
            errors.iter().map(|error| error.field.to_string()).collect::<Vec<_>>()
        };
        for address in ["", "2575", "lis:2575", "0.0.0.0:0", "0.0.0.0", "0.0.0.0:70000"] {
            assert_eq!(fields(json!({"service": "a", "address": address})), ["address"], "{address}");
        }
        assert_eq!(fields(json!({"service": "a", "address": "0.0.0.0:1", "use_queue": false})), ["use_queue"]);
        assert_eq!(fields(json!({"service": "a", "address": "0.0.0.0:1", "queue_response": "x"})), ["queue_response"]);
        assert_eq!(fields(json!({"service": "a", "address": "0.0.0.0:1", "tls_ca_path": "/ca"})), ["tls_cert_path"]);
        assert_eq!(fields(json!({"service": "a", "address": "0.0.0.0:1", "tls_cert_path": "/c"})), ["tls_key_path"]);
    }

    #[test]
    fn d16_a_port_is_one_channels() {
        let door = |address: &str| {
            parse(json!({"service": "a", "address": address})).unwrap().target.channel().unwrap().door.clone()
        };
        assert!(door("0.0.0.0:2575").is_same_as(&door("127.0.0.1:2575")));
        assert!(!door("127.0.0.2:2575").is_same_as(&door("127.0.0.1:2575")));
        assert!(!door("0.0.0.0:2575").is_same_as(&door("0.0.0.0:2576")));
    }
}
