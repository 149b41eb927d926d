//! The keys of `outgoing_mllp`. This module must not know how messages are sent.

use serde_json::{Map, Value};

use super::host::read_address;
use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::reader::Reader;
use super::{KindSettings, SettingError, delivery, target_keys, tls};
use crate::Wait;
use crate::connection::{
    AckMatch, ApplicationAck, CertificateKeys, ConnectionSpec, Framing, MllpTarget, RetryOn, SegmentEnds, Target,
    TlsSettings,
};

/// The longest that anything of one attempt may take: an hour.
pub(super) const TIMEOUT_MS_MAX: u32 = 3_600_000;
/// 1 GiB.
pub(super) const MESSAGE_BYTES_MAX: u32 = 1 << 30;
const POOL_SIZE_MAX: u32 = 100;
const GAP_MS_MAX: u32 = 60_000;
pub(super) const IDLE_CLOSE_S_MAX: u32 = 86_400;
/// Bytes of `start_seq` and of `end_seq`, at most.
const SEQUENCE_BYTES_MAX: usize = 8;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: MLLP_KEYS,
    not_here: &[
        ("queue_response", "nothing here: only channels answer with it"),
        ("security", "nothing here: over MLLP the certificate of `tls_cert_path` says who we are"),
        (
            "timeout",
            "nothing here: `connect_timeout_ms`, `write_timeout_ms` and `recv_timeout` say how long an attempt may take",
        ),
        (
            "timeout_seconds",
            "nothing here: `connect_timeout_ms`, `write_timeout_ms` and `recv_timeout` say how long an attempt may take",
        ),
        ("retryable_statuses", "nothing here: acknowledgments have no status; `retry_on` says which are tried again"),
        ("retry_after", "nothing here: acknowledgments have no such header"),
    ],
    passed_over: &["is_audit_log_active", "read_buffer_size", "max_wait_time", "should_log_messages", "logging_level"],
    passed_over_families: &[],
    parse,
};

/// The keys of `outgoing_mllp` beside those of its delivery.
const MLLP_KEYS: &[KeyDoc] = &[
    key("address", "none", "host and port, such as `10.1.1.5:2575`", "Where messages go."),
    key("start_seq", "0b", "1 to 8 bytes in hexadecimal with spaces between, such as `0b`", "What stands before a message on the wire."),
    key("end_seq", "1c 0d", "1 to 8 bytes in hexadecimal with spaces between, such as `1c 0d`", "What stands behind a message on the wire."),
    key(
        "recv_timeout",
        "30000",
        "a whole number of milliseconds from 1 to 3600000",
        "How long an acknowledgment may take once the message is written; then the socket is closed.",
    )
    .of(Shape::Whole { min: 1, max: TIMEOUT_MS_MAX }),
    key(
        "connect_timeout_ms",
        "10000",
        "a whole number of milliseconds from 1 to 3600000",
        "How long connecting may take, TLS included.",
    )
    .of(Shape::Whole { min: 1, max: TIMEOUT_MS_MAX }),
    key(
        "write_timeout_ms",
        "30000",
        "a whole number of milliseconds from 1 to 3600000",
        "How long writing a message may take.",
    )
    .of(Shape::Whole { min: 1, max: TIMEOUT_MS_MAX }),
    key(
        "max_msg_size",
        "2097152",
        "a whole number of bytes from 1 to 1073741824 (1 GiB)",
        "A longer message is refused, and a longer acknowledgment is none.",
    )
    .of(Shape::Whole { min: 1, max: MESSAGE_BYTES_MAX }),
    key("pool_size", "1", "a whole number from 1 to 100", "Sockets at most; each has one message in flight.")
        .of(Shape::Whole { min: 1, max: POOL_SIZE_MAX }),
    key("keep_open", "true", TRUE_FALSE, "false gives each message a socket of its own.").of(Shape::Flag),
    key(
        "idle_close_seconds",
        "300",
        "a whole number of seconds from 0 to 86400",
        "A socket on which nothing went on for this long is closed; 0 keeps it open.",
    )
    .of(Shape::Whole { min: 0, max: IDLE_CLOSE_S_MAX }),
    key(
        "min_gap_ms",
        "0",
        "a whole number of milliseconds from 0 to 60000",
        "At least this long between an acknowledgment and the next message.",
    )
    .of(Shape::Whole { min: 0, max: GAP_MS_MAX }),
    key(
        "segment_ends",
        "as_is",
        "one of as_is, cr",
        "cr makes CR of LF and CR LF and puts one behind the last segment; as_is changes no byte.",
    )
    .of(Shape::OneOf(&["as_is", "cr"])),
    key(
        "ack_match",
        "strict",
        "one of strict, warn",
        "strict: only an acknowledgment whose MSA-2 is the message's MSH-10 counts; warn: the first that can be read.",
    )
    .of(Shape::OneOf(&["strict", "warn"])),
    key(
        "application_ack",
        "same",
        "one of same, other",
        "Where the application answers a message that asks for it in MSH-16: on the same socket after CA, or elsewhere, so that CA decides.",
    )
    .of(Shape::OneOf(&["same", "other"])),
    key(
        "retry_on",
        "AR",
        "a list of AR and AE, which may be empty",
        "The negative acknowledgments that are tried again; CR counts as AR, and CE as AE.",
    )
    .of(Shape::Texts),
    key("tls", "false, or true with tls_ca_path", TRUE_FALSE, "Whether TLS is spoken.").of(Shape::Flag),
    key(
        "tls_ca_path",
        "",
        "the path of a PEM file",
        "Authorities to trust instead of the public ones; naming one turns TLS on.",
    ),
    key(
        "tls_cert_path",
        "",
        "the path of a PEM file",
        "The certificate, with its chain, to show to a receiver that asks (mutual TLS).",
    ),
    key("tls_key_path", "", "the path of a PEM file", "The key of tls_cert_path."),
    target_keys::IS_ACTIVE,
];

fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let address = address(&mut reader);
    let framing = framing(&mut reader);
    let millis = |reader: &mut Reader<'_>, key, standard| {
        Wait::from_millis(reader.whole(key, 1..=TIMEOUT_MS_MAX).unwrap_or(standard).into())
    };
    let ack_timeout = millis(&mut reader, "recv_timeout", 30_000);
    let connect_timeout = millis(&mut reader, "connect_timeout_ms", 10_000);
    let write_timeout = millis(&mut reader, "write_timeout_ms", 30_000);
    let message_bytes_max = reader.whole("max_msg_size", 1..=MESSAGE_BYTES_MAX).unwrap_or(2 << 20);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(1);
    let keep_open = reader.flag("keep_open").unwrap_or(true);
    let idle_close_s = reader.whole("idle_close_seconds", 0..=IDLE_CLOSE_S_MAX).unwrap_or(300);
    let gap_min = Wait::from_millis(reader.whole("min_gap_ms", 0..=GAP_MS_MAX).unwrap_or(0).into());
    let segment_ends = reader.choice("segment_ends", |text| match text {
        "as_is" => Some(SegmentEnds::AsIs),
        "cr" => Some(SegmentEnds::Cr),
        _ => None,
    });
    let ack_match = reader.choice("ack_match", |text| match text {
        "strict" => Some(AckMatch::Strict),
        "warn" => Some(AckMatch::Warn),
        _ => None,
    });
    let application_ack = reader.choice("application_ack", |text| match text {
        "same" => Some(ApplicationAck::Same),
        "other" => Some(ApplicationAck::Other),
        _ => None,
    });
    let retry_on = retry_on(&mut reader);
    let tls = tls(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let mut policy = delivery::read(&mut reader, SETTINGS.not_here);
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key) || SETTINGS.passes_over(key));
    let target = address.map(|(host, port)| MllpTarget {
        host,
        port,
        framing,
        tls,
        connect_timeout,
        write_timeout,
        ack_timeout,
        message_bytes_max,
        pool_size,
        keep_open,
        idle_close: (idle_close_s > 0).then(|| Wait::from_secs(idle_close_s.into())),
        gap_min,
        segment_ends: segment_ends.unwrap_or(SegmentEnds::AsIs),
        ack_match: ack_match.unwrap_or(AckMatch::Strict),
        application_ack: application_ack.unwrap_or(ApplicationAck::Same),
        retry_on,
    });
    if let Some(target) = &target {
        policy.timeout = target.attempt_timeout();
    }
    reader.finish(target.map(|target| ConnectionSpec {
        target: Target::Mllp(target),
        policy,
        security: None,
        is_active,
    }))
}

fn address(reader: &mut Reader<'_>) -> Option<(String, u16)> {
    if !reader.has("address") {
        let allowed = reader.allowed("address");
        reader.refuse("address", "missing", allowed);
        return None;
    }
    let text = reader.text("address")?;
    read_address(text).map_err(|allowed| reader.refuse("address", text, allowed)).ok()
}

/// The two sequences begin differently: a receiver could not tell a beginning from an end otherwise.
pub(super) fn framing(reader: &mut Reader<'_>) -> Framing {
    let standard = Framing::standard();
    let start = sequence(reader, "start_seq").unwrap_or(standard.start);
    let end = sequence(reader, "end_seq").unwrap_or(standard.end);
    if start.first() == end.first() {
        let given = reader.text("end_seq").unwrap_or_default().to_owned();
        reader.refuse("end_seq", given, "bytes that begin differently from those of `start_seq`");
    }
    Framing { start, end }
}

fn sequence(reader: &mut Reader<'_>, key: &'static str) -> Option<Vec<u8>> {
    let text = reader.text(key).filter(|text| !text.is_empty())?;
    let byte = |word: &str| (word.len() == 2).then(|| u8::from_str_radix(word, 16).ok()).flatten();
    let bytes: Option<Vec<u8>> = text.split_ascii_whitespace().map(byte).collect();
    let read = bytes.filter(|bytes| (1..=SEQUENCE_BYTES_MAX).contains(&bytes.len()));
    if read.is_none() {
        let allowed = reader.allowed(key);
        reader.refuse(key, text.escape_debug(), allowed);
    }
    read
}

fn retry_on(reader: &mut Reader<'_>) -> RetryOn {
    const KEY: &str = "retry_on";
    let Some(value) = reader.value(KEY) else { return RetryOn::STANDARD };
    let names: Option<Vec<&str>> = match value {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let mut retry_on = RetryOn { errors: false, rejects: false };
    for name in names.as_deref().unwrap_or(&["?"]) {
        match *name {
            "AR" => retry_on.rejects = true,
            "AE" => retry_on.errors = true,
            _ => {
                reader.refuse_value(KEY, value);
                return RetryOn::STANDARD;
            }
        }
    }
    retry_on
}

/// The receiver is always checked: TLS without that keeps nobody out.
fn tls(reader: &mut Reader<'_>) -> Option<TlsSettings> {
    let wanted = reader.flag("tls");
    let ca_path = tls::path(reader, "tls_ca_path");
    let client = tls::client(reader, &CertificateKeys { cert: "tls_cert_path", key: "tls_key_path" });
    let is_on = wanted.unwrap_or(ca_path.is_some());
    if !is_on && (ca_path.is_some() || client.is_some()) {
        let allowed = "true here, since a certificate is named";
        reader.refuse("tls", if wanted.is_some() { "false" } else { "not given" }, allowed);
    }
    is_on.then_some(TlsSettings { verify: true, ca_path, client })
}
