//! The keys of `outgoing_soap`. This module must not know how envelopes are made or sent.

use serde_json::{Map, Value};

use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::reader::Reader;
use super::rest::{self, POOL_SIZE, POOL_SIZE_MAX};
use super::{KindSettings, SettingError, delivery, target_keys, tls};
use crate::connection::{
    ConnectionSpec, DataFormat, ElementForm, RestTarget, SoapOperation, SoapTarget, Target, WsAddressing, is_action,
    is_local_name, is_namespace,
};
use crate::soap::SoapVersion;
use crate::success_if::SuccessIf;

/// `operations` of one connection, at most.
pub const OPERATIONS_MAX: usize = 500;
/// `namespaces` of one connection, at most.
pub const NAMESPACES_MAX: usize = 50;
/// `soap_headers`, at most.
const HEADERS_BYTES_MAX: usize = 64 * 1024;

pub(super) const SETTINGS: KindSettings = KindSettings {
    own: SOAP_KEYS,
    not_here: &[
        ("queue_response", "nothing here: only channels answer with it"),
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
        ("data_format", "nothing here: SOAP is XML"),
    ],
    passed_over: &["is_audit_log_active", "ping_method", "content_type", "port", "use_mtom", "body_credentials"],
    passed_over_families: &["request_", "callback_", "scheduler_", "health_check_"],
    parse,
};

const ACTION: &str = "visible ASCII characters without quotes, braces and backslashes, such as `urn:submit`";
const NAMESPACE: &str = "the name of a namespace, without spaces and braces, such as `urn:registry`";

/// The keys of `outgoing_soap` beside those of its delivery.
const SOAP_KEYS: &[KeyDoc] = &[
    key(
        "host",
        "none",
        "an http:// or https:// address of host and port only, such as `https://registry.example.org:8443`",
        "Where requests go.",
    ),
    key(
        "url_path",
        "none",
        "a path that is empty or begins with `/`, with `{placeholders}` that requests fill, without `?` and `#`",
        "The path on the host; params fill its placeholders, the others become the query string.",
    ),
    key("soap_version", "1.1", "one of 1.1, 1.2", "The version of SOAP that is spoken.").of(Shape::OneOf(&["1.1", "1.2"])),
    key("soap_action", "", ACTION, "The action of operations that have none of their own."),
    key(
        "soap12_action",
        "param",
        "one of param, none",
        "Whether the content type of SOAP 1.2 has the parameter action: some servers demand it, others refuse it.",
    )
    .of(Shape::OneOf(&["param", "none"])),
    key("namespace", "", NAMESPACE, "The namespace of the elements that operations are written as."),
    key(
        "element_form",
        "qualified",
        "one of qualified, unqualified",
        "Whether the elements of a JSON message are in that namespace too, as elementFormDefault of the service's schema says.",
    )
    .of(Shape::OneOf(&["qualified", "unqualified"])),
    key(
        "namespaces",
        "none",
        "an object of at most 50 prefixes and the namespaces that they stand for",
        "Prefixes that JSON messages may use without declaring them.",
    )
    .of(Shape::Pairs { count_max: NAMESPACES_MAX }),
    key(
        "operations",
        "none",
        "an object of at most 500 operations; each is its action, its element as `{namespace}name`, or both with a space between",
        "What the service offers; a WSDL fills it.",
    )
    .of(Shape::Pairs { count_max: OPERATIONS_MAX }),
    key(
        "soap_headers",
        "",
        "XML of at most 65536 bytes: one or more elements that declare the namespaces which they use",
        "Header blocks of every request.",
    ),
    key(
        "success_if",
        "",
        "a place in the answer's data, alone or with `=` or `!=` and values with `|` between, such as `/SubmitResult/status = OK | ACCEPTED`",
        "What an answer without a fault has to say to be a delivery, for services that answer 200 to everything.",
    ),
    key("use_ws_addressing", "false", TRUE_FALSE, "Whether requests have the headers of WS-Addressing 1.0.").of(Shape::Flag),
    key("wsa_action", "", ACTION, "wsa:Action instead of the operation's action; turns WS-Addressing on."),
    key("wsa_to", "", NAMESPACE, "wsa:To instead of the connection's address; turns WS-Addressing on."),
    key("wsa_reply_to", "", NAMESPACE, "wsa:ReplyTo instead of the anonymous address; turns WS-Addressing on."),
    target_keys::TIMEOUT,
    target_keys::POOL_SIZE,
    target_keys::TLS_VERIFY,
    target_keys::VALIDATE_TLS,
    target_keys::TLS_CA_PATH,
    target_keys::TLS_CLIENT_CERT,
    target_keys::TLS_CLIENT_KEY,
    key(
        "security",
        "",
        "the name of a security definition of the project",
        "Whose credentials every attempt carries; one of type wss goes into the envelope.",
    ),
    target_keys::IS_ACTIVE,
];

fn parse(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SETTINGS.keys());
    let host = rest::host(&mut reader);
    let url_path = rest::url_path(&mut reader);
    let version = version(&mut reader);
    let action = fitting(&mut reader, "soap_action", is_action);
    let action_in_type = reader.choice("soap12_action", |text| match text {
        "param" => Some(true),
        "none" => Some(false),
        _ => None,
    });
    let namespace = fitting(&mut reader, "namespace", is_namespace);
    let element_form = reader.choice("element_form", |text| match text {
        "qualified" => Some(ElementForm::Qualified),
        "unqualified" => Some(ElementForm::Unqualified),
        _ => None,
    });
    let namespaces = namespaces(&mut reader);
    let operations = operations(&mut reader);
    let headers = fitting(&mut reader, "soap_headers", |text| {
        text.len() <= HEADERS_BYTES_MAX && (text.is_empty() || text.trim_start().starts_with('<'))
    });
    let success_if = success_if(&mut reader);
    let addressing = addressing(&mut reader);
    let pool_size = reader.whole("pool_size", 1..=POOL_SIZE_MAX).unwrap_or(POOL_SIZE);
    let tls = tls::read(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let security = rest::security(&mut reader);
    let mut policy = delivery::read(&mut reader, SETTINGS.not_here);
    if let Some(timeout_s) = rest::timeout_s(&mut reader) {
        policy.timeout = delivery::millis(timeout_s);
    }
    reader.refuse_unknown_keys(|key| SETTINGS.refuses(key) || SETTINGS.passes_over(key));
    let target = host.zip(url_path).map(|(host, url_path)| {
        Target::Soap(Box::new(SoapTarget {
            http: RestTarget { host, url_path, content_type: None, data_format: DataFormat::Xml, pool_size, tls },
            version,
            action,
            action_in_type: action_in_type.unwrap_or(true),
            namespace,
            element_form: element_form.unwrap_or(ElementForm::Qualified),
            namespaces,
            headers,
            addressing,
            operations,
            success_if,
        }))
    });
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

/// Without quotes it is a number in a file.
pub(super) fn version(reader: &mut Reader<'_>) -> SoapVersion {
    const KEY: &str = "soap_version";
    let Some(value) = reader.value(KEY) else { return SoapVersion::V11 };
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    match text.as_str() {
        "1.1" => SoapVersion::V11,
        "1.2" => SoapVersion::V12,
        _ => {
            let allowed = reader.allowed(KEY);
            reader.refuse(KEY, value, allowed);
            SoapVersion::V11
        }
    }
}

/// An empty text counts as none.
pub(super) fn fitting(reader: &mut Reader<'_>, key: &'static str, fits: impl Fn(&str) -> bool) -> String {
    let Some(text) = reader.text(key) else { return String::new() };
    if !fits(text) {
        let allowed = reader.allowed(key);
        reader.refuse(key, text.escape_debug(), allowed);
    }
    text.to_owned()
}

fn addressing(reader: &mut Reader<'_>) -> Option<WsAddressing> {
    let wanted = reader.flag("use_ws_addressing");
    let addressing = WsAddressing {
        action: fitting(reader, "wsa_action", is_action),
        to: fitting(reader, "wsa_to", is_namespace),
        reply_to: fitting(reader, "wsa_reply_to", is_namespace),
    };
    let is_named = addressing != WsAddressing::default();
    if wanted == Some(false) && is_named {
        reader.refuse(
            "use_ws_addressing",
            "false",
            "true here, since one of wsa_action, wsa_to and wsa_reply_to is given",
        );
    }
    wanted.unwrap_or(is_named).then_some(addressing)
}

fn success_if(reader: &mut Reader<'_>) -> Option<SuccessIf> {
    const KEY: &str = "success_if";
    let text = reader.text(KEY).filter(|text| !text.is_empty())?;
    let read = SuccessIf::parse(text);
    if read.is_none() {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, text.escape_debug(), allowed);
    }
    read
}

fn namespaces(reader: &mut Reader<'_>) -> Vec<(String, String)> {
    pairs(reader, "namespaces", NAMESPACES_MAX, |prefix, namespace| {
        let is_free = !prefix.to_ascii_lowercase().starts_with("xml") && prefix != "soap";
        let fits = is_free && is_local_name(prefix) && is_namespace(namespace) && !namespace.is_empty();
        fits.then(|| (prefix.to_owned(), namespace.to_owned()))
    })
}

pub(super) fn operations(reader: &mut Reader<'_>) -> Vec<SoapOperation> {
    pairs(reader, "operations", OPERATIONS_MAX, |name, text| {
        is_local_name(name).then(|| SoapOperation::parse(name, text)).flatten()
    })
}

/// Refuses the first entry that does not fit, by its name.
fn pairs<T>(
    reader: &mut Reader<'_>,
    key: &'static str,
    count_max: usize,
    read: impl Fn(&str, &str) -> Option<T>,
) -> Vec<T> {
    let Some(value) = reader.value(key) else { return Vec::new() };
    let Some(map) = value.as_object().filter(|map| map.len() <= count_max) else {
        reader.refuse_value(key, value);
        return Vec::new();
    };
    let mut entries = Vec::with_capacity(map.len());
    for (name, value) in map {
        match value.as_str().and_then(|text| read(name, text)) {
            Some(entry) => entries.push(entry),
            None => {
                let allowed = reader.allowed(key);
                reader.refuse(key, format!("{}: {value}", name.escape_debug()), allowed);
                return Vec::new();
            }
        }
    }
    entries
}
