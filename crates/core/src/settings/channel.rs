//! The keys of `channel_rest` and `channel_soap`. This module must not know how requests are received or run.

use serde_json::{Map, Value};

use super::delivery::{self, millis};
use super::keys::{KeyDoc, Shape, TRUE_FALSE, key};
use super::reader::Reader;
use super::rest::TIMEOUT_S;
use super::soap::{OPERATIONS_MAX, fitting, operations, version};
use super::{KindSettings, SettingError};
use crate::Wait;
use crate::channel_path::ChannelPath;
use crate::connection::{
    ChannelTarget, ConnectionSpec, DataFormat, Door, ForwardTo, HttpDoor, Runs, SoapDoor, Target, check_name,
    is_action, is_namespace,
};
use crate::message::Method;

/// `method`, at most so many.
const METHODS_MAX: usize = 16;
/// `forward_to`, at most.
pub const FORWARDS_MAX: usize = 50;
/// `queue_response`, at most.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// `hook_timeout_ms` where nothing else is said (D42).
pub const HOOK_TIMEOUT: Wait = Wait::from_millis(2000);
const HOOK_TIMEOUT_MS_MAX: u32 = 60_000;
/// `service_timeout_seconds` where nothing else is said (D42).
const SERVICE_TIMEOUT: Wait = Wait::from_secs(60);

const ACTION: &str = "visible ASCII characters without quotes, braces and backslashes, such as `urn:submit`";

pub(super) const SERVICE: KeyDoc = key(
    "service",
    "",
    "the name of a service, at most 200 characters without `/` and control characters",
    "What runs for each request; one that is not there yet fails each run until it is.",
);
pub(super) const FORWARD_TO: KeyDoc = key(
    "forward_to",
    "none",
    "the names of 1 to 50 connections of the project, each once, such as `Billing API` or `rest:Billing API`",
    "In place of a service: the request goes into the queue of each of these as it arrived. Needs use_queue.",
)
.of(Shape::Texts);
const URL_PATH: KeyDoc = key(
    "url_path",
    "none",
    "a path that begins with `/` and none of the server's own addresses, whose `{placeholders}` are whole segments and not the first one",
    "The channel's address under this server.",
);
const SECURITY: KeyDoc = key(
    "security",
    "",
    "the name of a security definition of the project, of type apikey, basic_auth, bearer or webhook_signature",
    "What a request must show to be let in; without it anybody is.",
);
const QUEUE_RESPONSE: KeyDoc = key(
    "queue_response",
    "",
    "a text of at most 65536 bytes",
    "The acknowledgment of a queued request, as it is: JSON, XML or plain text by what it opens with, on SOAP always XML.",
);
pub(super) const SERVICE_TIMEOUT_KEY: KeyDoc = key(
    "service_timeout_seconds",
    "60, or that of the ladder",
    "a number of seconds from 0.001 to 3600",
    "How long a run may take.",
)
.of(Shape::Decimal { min: 0.001, max: 3600.0 });
pub(super) const TIMEOUT: KeyDoc = key(
    "timeout",
    "that of service_timeout_seconds",
    "a number of seconds from 0.001 to 3600",
    "The same, as files of the platform have it.",
)
.of(Shape::Decimal { min: 0.001, max: 3600.0 });
const HOOK_TIMEOUT_KEY: KeyDoc = key(
    "hook_timeout_ms",
    "2000",
    "a whole number from 1 to 60000",
    "How long the service may take to write an acknowledgment; after that the default one is sent.",
)
.of(Shape::Whole { min: 1, max: HOOK_TIMEOUT_MS_MAX });
pub(super) const IS_ACTIVE: KeyDoc =
    key("is_active", "true", TRUE_FALSE, "false refuses new requests and holds the queue.").of(Shape::Flag);

const REST_KEYS: &[KeyDoc] = &[
    SERVICE,
    FORWARD_TO,
    URL_PATH,
    key(
        "method",
        "none",
        "1 to 16 HTTP methods as a list or with spaces between, such as `POST PUT`",
        "The methods that are taken; without it any.",
    )
    .of(Shape::Words { count_max: METHODS_MAX }),
    key(
        "data_format",
        "json",
        "one of json, text, form, xml",
        "What bodies are, for the service that reads them; nothing is changed or refused here.",
    )
    .of(Shape::OneOf(&["json", "text", "form", "xml"])),
    SECURITY,
    QUEUE_RESPONSE,
    SERVICE_TIMEOUT_KEY,
    TIMEOUT,
    HOOK_TIMEOUT_KEY,
    IS_ACTIVE,
];

const SOAP_KEYS: &[KeyDoc] = &[
    SERVICE,
    FORWARD_TO,
    URL_PATH,
    key("soap_version", "1.1", "one of 1.1, 1.2", "The version of SOAP that is spoken.").of(Shape::OneOf(&["1.1", "1.2"])),
    key("soap_action", "", ACTION, "The action of the requests that are taken; without it any."),
    key(
        "namespace",
        "",
        "the name of a namespace, without spaces and braces, such as `urn:registry`",
        "Of the operations, in the WSDL that is served; without it one is made of the channel's name.",
    ),
    key(
        "operations",
        "none",
        "an object of at most 500 operations; each is its action, its element as `{namespace}name`, or both with a space between",
        "What the WSDL says that the service offers; requests for others are taken too.",
    )
    .of(Shape::Pairs { count_max: OPERATIONS_MAX }),
    SECURITY,
    QUEUE_RESPONSE,
    SERVICE_TIMEOUT_KEY,
    TIMEOUT,
    HOOK_TIMEOUT_KEY,
    IS_ACTIVE,
];

/// Leaving them out in silence would let in whom they kept out.
const GROUPS: (&str, &str) = ("groups", "nothing here: `security` says who is let in");

pub(super) const REST: KindSettings = KindSettings {
    own: REST_KEYS,
    not_here: &[
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
        GROUPS,
    ],
    passed_over: &[
        "is_audit_log_active",
        "content_type",
        "content_encoding",
        "rate_limiting",
        "response_cache",
        "should_include_in_openapi",
        "gateway_service_list",
        "is_deprecated",
    ],
    passed_over_families: &["deprecation_"],
    parse: parse_rest,
};

pub(super) const SOAP: KindSettings = KindSettings {
    own: SOAP_KEYS,
    not_here: &[
        ("ack_match", "nothing here: only connections with acknowledgments have it"),
        ("retry_on", "nothing here: only connections with acknowledgments have it; a ladder has `retryable_statuses`"),
        ("data_format", "nothing here: SOAP is XML"),
        GROUPS,
    ],
    passed_over: &["is_audit_log_active", "content_type", "method", "rate_limiting", "response_cache", "use_mtom"],
    passed_over_families: &["deprecation_"],
    parse: parse_soap,
};

fn parse_rest(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, REST.keys());
    let path = url_path(&mut reader);
    let methods = methods(&mut reader);
    let data_format = super::rest::data_format(&mut reader);
    let door = path.map(|path| Door::Http(HttpDoor { path, methods }));
    finish(reader, &REST, door, data_format)
}

fn parse_soap(written: &Map<String, Value>) -> Result<ConnectionSpec, Vec<SettingError>> {
    let mut reader = Reader::new(written, SOAP.keys());
    let path = url_path(&mut reader);
    let soap = SoapDoor {
        version: version(&mut reader),
        action: fitting(&mut reader, "soap_action", is_action),
        namespace: fitting(&mut reader, "namespace", is_namespace),
        operations: operations(&mut reader),
    };
    let door = path.map(|path| Door::Soap(HttpDoor { path, methods: vec![Method::POST] }, soap));
    finish(reader, &SOAP, door, DataFormat::Xml)
}

/// What all channels have.
pub(super) fn finish(
    mut reader: Reader<'_>,
    settings: &'static KindSettings,
    door: Option<Door>,
    data_format: DataFormat,
) -> Result<ConnectionSpec, Vec<SettingError>> {
    let runs = runs(&mut reader);
    let queue_response = queue_response(&mut reader);
    let hook_timeout = reader.whole("hook_timeout_ms", 1..=HOOK_TIMEOUT_MS_MAX);
    let hook_timeout = hook_timeout.map_or(HOOK_TIMEOUT, |ms| Wait::from_millis(ms.into()));
    let security = super::rest::security(&mut reader);
    let is_active = reader.flag("is_active").unwrap_or(true);
    let mut policy = delivery::read(&mut reader, settings.not_here);
    if matches!(door, Some(Door::Mllp(_))) {
        // An acknowledgment says that the message is on disk, so there is no other way than through the queue.
        if reader.flag("use_queue") == Some(false) {
            reader.refuse("use_queue", "false", "true here: a message is acknowledged once it is stored");
        }
        policy.queue.use_queue = true;
    }
    if delivery::backoff_of(&policy).is_some() {
        policy.timeout = SERVICE_TIMEOUT;
    }
    if let Some(seconds) = timeout_s(&mut reader) {
        policy.timeout = millis(seconds);
    }
    if matches!(runs, Some(Runs::Connections(_))) && !policy.queue.use_queue {
        reader.refuse(
            "use_queue",
            "false",
            "true here: `forward_to` runs from the queue, so that nothing is lost between two",
        );
    }
    reader.refuse_unknown_keys(|key| settings.refuses(key) || settings.passes_over(key));
    let target = door.zip(runs).map(|(door, runs)| {
        Target::Channel(Box::new(ChannelTarget { door, runs, data_format, queue_response, hook_timeout }))
    });
    reader.finish(target.map(|target| ConnectionSpec { target, policy, security, is_active }))
}

fn url_path(reader: &mut Reader<'_>) -> Option<ChannelPath> {
    const KEY: &str = "url_path";
    if !reader.has(KEY) {
        let allowed = reader.allowed(KEY);
        reader.refuse(KEY, "missing", allowed);
        return None;
    }
    let text = reader.text(KEY)?;
    ChannelPath::parse(text).map_err(|allowed| reader.refuse(KEY, text.escape_debug(), allowed)).ok()
}

/// An empty text means any, as files of the platform have it.
fn methods(reader: &mut Reader<'_>) -> Vec<Method> {
    const KEY: &str = "method";
    let words: Option<Vec<&str>> = match reader.value(KEY) {
        None => return Vec::new(),
        Some(Value::String(text)) => Some(text.split([' ', ',']).filter(|word| !word.is_empty()).collect()),
        Some(Value::Array(words)) => words.iter().map(Value::as_str).collect(),
        Some(_) => None,
    };
    let read = words.filter(|words| words.len() <= METHODS_MAX).and_then(|words| {
        let mut methods: Vec<Method> = Vec::new();
        for word in words {
            let method = word.parse().ok()?;
            if !methods.contains(&method) {
                methods.push(method);
            }
        }
        Some(methods)
    });
    if let (None, Some(value)) = (&read, reader.value(KEY)) {
        reader.refuse_value(KEY, value);
    }
    read.unwrap_or_default()
}

fn runs(reader: &mut Reader<'_>) -> Option<Runs> {
    let service = reader.text("service").filter(|name| !name.is_empty());
    let forwards = forwards(reader);
    match (service, forwards) {
        (Some(name), None) => {
            if check_name(name).is_err() {
                let allowed = reader.allowed("service");
                reader.refuse("service", name.escape_debug(), allowed);
                return None;
            }
            Some(Runs::Service(name.to_owned()))
        }
        (None, Some(forwards)) => Some(Runs::Connections(forwards)),
        (Some(_), Some(_)) => {
            reader.refuse(
                "forward_to",
                "given",
                "nothing together with `service`: a channel runs the one or feeds the others",
            );
            None
        }
        (None, None) => {
            if !reader.has("forward_to") {
                reader.refuse(
                    "service",
                    "missing",
                    "the name of a service, or `forward_to` with the names of connections",
                );
            }
            None
        }
    }
}

fn forwards(reader: &mut Reader<'_>) -> Option<Vec<ForwardTo>> {
    const KEY: &str = "forward_to";
    let names: Option<Vec<&str>> = match reader.value(KEY)? {
        Value::String(name) => Some(vec![name]),
        Value::Array(names) => names.iter().map(Value::as_str).collect(),
        _ => None,
    };
    let read = names.filter(|names| (1..=FORWARDS_MAX).contains(&names.len())).and_then(|names| {
        let mut forwards: Vec<ForwardTo> = Vec::new();
        for name in names {
            let forward = ForwardTo::parse(name);
            if check_name(&forward.name).is_err() || forwards.contains(&forward) {
                return None;
            }
            forwards.push(forward);
        }
        Some(forwards)
    });
    if let (None, Some(value)) = (&read, reader.value(KEY)) {
        reader.refuse_value(KEY, value);
    }
    read
}

/// Z43: an empty text is unset.
fn queue_response(reader: &mut Reader<'_>) -> Option<String> {
    let text = reader.text("queue_response").filter(|text| !text.is_empty())?;
    if text.len() > RESPONSE_BYTES_MAX {
        let allowed = reader.allowed("queue_response");
        reader.refuse("queue_response", format!("a text of {} bytes", text.len()), allowed);
    }
    Some(text.to_owned())
}

fn timeout_s(reader: &mut Reader<'_>) -> Option<f64> {
    let names = ["service_timeout_seconds", "timeout", "timeout_seconds"];
    let given: Vec<&'static str> = names.into_iter().filter(|name| reader.has(name)).collect();
    if let [first, second, ..] = given[..] {
        reader.refuse(second, "given", format!("nothing together with `{first}`: both name the same setting"));
        return None;
    }
    match given.first() {
        Some(&name) if name != "timeout_seconds" => reader.decimal(name, TIMEOUT_S),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ConnectionKind;
    use serde_json::json;

    fn parse(kind: ConnectionKind, written: Value) -> Result<ConnectionSpec, Vec<SettingError>> {
        ConnectionSpec::parse(kind, written.as_object().unwrap())
    }

    fn refused(written: Value) -> Vec<String> {
        let errors = parse(ConnectionKind::ChannelRest, written).unwrap_err();
        errors.iter().map(|error| error.field.to_string()).collect()
    }

    #[test]
    fn z40_a_channel_is_read_with_its_defaults() {
        let spec = parse(ConnectionKind::ChannelRest, json!({"service": "orders.intake", "url_path": "/orders/{id}"}));
        let spec = spec.unwrap();
        let channel = spec.target.channel().unwrap();
        assert_eq!(channel.service(), Some("orders.intake"));
        assert_eq!((channel.data_format, channel.hook_timeout), (DataFormat::Json, HOOK_TIMEOUT));
        assert!(channel.door.http().unwrap().methods.is_empty() && channel.queue_response.is_none());
        assert_eq!(spec.policy.timeout, Wait::from_secs(60));
        assert!(!spec.policy.queue.use_queue && spec.policy.queue.ordered && spec.is_active);
        assert_eq!(spec.target.kind(), ConnectionKind::ChannelRest);
        assert_eq!(spec.target.address(), "/orders/{id}");
        let soap =
            parse(ConnectionKind::ChannelSoap, json!({"service": "a", "url_path": "/soap", "soap_version": 1.2}));
        let soap = soap.unwrap();
        let door = &soap.target.channel().unwrap().door;
        assert_eq!(door.soap().unwrap().version, crate::soap::SoapVersion::V12);
        assert_eq!(door.http().unwrap().methods, [Method::POST]);
    }

    #[test]
    fn z40_what_the_platform_writes_is_taken() {
        let written = json!({
            "service": "a", "url_path": "/a", "method": "", "queue_response": "", "security": "", "timeout": 10,
            "response_cache": {}, "is_deprecated": false, "deprecation_note": "x", "data_format": "json", "use_queue": true,
            "max_retries": 3, "groups": "",
        });
        let spec = parse(ConnectionKind::ChannelRest, written).unwrap();
        assert_eq!(spec.policy.timeout, Wait::from_secs(10));
        assert!(spec.policy.queue.use_queue && spec.security.is_none());
        let words = json!({"service": "a", "url_path": "/a", "method": ["post", "PUT", "POST"]});
        let spec = parse(ConnectionKind::ChannelRest, words).unwrap();
        assert_eq!(spec.target.channel().unwrap().door.http().unwrap().methods.len(), 2);
    }

    #[test]
    fn z03_what_is_wrong_is_named_all_at_once() {
        assert_eq!(refused(json!({})), ["url_path", "service"]);
        assert_eq!(refused(json!({"service": "a", "url_path": "/api/x"})), ["url_path"]);
        assert_eq!(refused(json!({"service": "a/b", "url_path": "/x", "method": "GET /"})), ["method", "service"]);
        assert_eq!(refused(json!({"service": "a", "url_path": "/x", "forward_to": "b"})), ["forward_to"]);
        assert_eq!(refused(json!({"url_path": "/x", "forward_to": ["b", "b"], "use_queue": true})), ["forward_to"]);
        assert_eq!(refused(json!({"url_path": "/x", "forward_to": "b"})), ["use_queue"]);
        assert_eq!(refused(json!({"service": "a", "url_path": "/x", "groups": ["b"]})), ["groups"]);
        let both = json!({"service": "a", "url_path": "/x", "timeout": 1, "service_timeout_seconds": 2});
        assert_eq!(refused(both), ["timeout"]);
        assert_eq!(refused(json!({"service": "a", "url_path": "/x", "hook_timeout_ms": 0})), ["hook_timeout_ms"]);
        assert_eq!(refused(json!({"service": "a", "url_path": "/x", "host": "http://a"})), ["host"]);
    }
}
