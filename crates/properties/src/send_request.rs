//! Requests of `/send` and `/publish`: the message is what was asked for, byte for byte, or the request is refused by field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use postrider_core::connection::DataFormat;
use postrider_core::message::Message;
use postrider_web::{Problem, read_message};
use serde_json::{Map, Value};

const FIELDS: [&str; 6] = ["method", "path", "params", "headers", "body", "body_base64"];
const FRAMING: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
];

/// The input is the request's body.
pub fn holds(data: &[u8]) {
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
    for format in [DataFormat::Json, DataFormat::Text, DataFormat::Form, DataFormat::Xml] {
        match read_message(&headers, data, format) {
            Ok(message) => is_what_was_asked(data, &message, format),
            Err(problem) => says_why(data, &problem),
        }
    }
    if !data.is_empty() {
        let refused = read_message(&HeaderMap::new(), data, DataFormat::Json).expect_err("JSON has to say that it is");
        assert_eq!(refused.status(), 415);
    }
}

fn is_what_was_asked(data: &[u8], message: &Message, format: DataFormat) {
    let asked: Map<String, Value> = match data {
        [] => Map::new(),
        // What is nested too deeply for values may still be a body; its text is looked at below.
        _ => match serde_json::from_slice(data) {
            Ok(asked) => asked,
            Err(_) => return,
        },
    };
    assert!(asked.keys().all(|key| FIELDS.contains(&key.as_str())), "{asked:?}");
    let given = |field: &str| asked.get(field).filter(|value| !value.is_null());
    let method =
        given("method").map_or("POST".to_owned(), |method| method.as_str().expect("a text").to_ascii_uppercase());
    assert_eq!(message.head.method.as_str(), method);
    let path = given("path").map_or("", |path| path.as_str().expect("a text"));
    assert_eq!(message.head.path, path);
    assert!(!path.chars().any(|c| c.is_control() || " ?#".contains(c)), "{path:?}");
    assert!(message.head.params.len() <= 1000);
    for (name, value) in message.head.headers.iter() {
        assert!(!FRAMING.contains(&name.to_ascii_lowercase().as_str()), "{name}");
        assert!(!value.contains(['\r', '\n', '\0']), "{name}: {value:?}");
    }
    for (field, count) in [("params", message.head.params.len()), ("headers", message.head.headers.len())] {
        assert!(given(field).map_or(Some(0), pairs_of).is_some_and(|least| count >= least), "{field}");
    }
    body_is_kept(given("body"), given("body_base64"), &message.body, format);
}

/// How many pairs an object or a list makes at least: a map of values has each name once, so repeated names are not counted.
fn pairs_of(value: &Value) -> Option<usize> {
    match value {
        Value::Array(pairs) => Some(pairs.len()),
        Value::Object(object) => Some(object.values().map(|value| value.as_array().map_or(1, Vec::len)).sum()),
        _ => None,
    }
}

fn body_is_kept(body: Option<&Value>, encoded: Option<&Value>, sent: &[u8], format: DataFormat) {
    match (body, encoded) {
        (None, None) => assert!(sent.is_empty()),
        (None, Some(encoded)) => {
            assert_eq!(STANDARD.encode(sent), encoded.as_str().expect("a text"), "base64 back and forth");
        }
        (Some(Value::String(text)), None) => assert_eq!(sent, text.as_bytes()),
        (Some(value), None) if format == DataFormat::Json => {
            assert_eq!(serde_json::from_slice::<Value>(sent).ok().as_ref(), Some(value), "the same value");
            let text = std::str::from_utf8(sent).expect("JSON is UTF-8");
            assert!(!has_space_between_tokens(text), "{text}");
        }
        (Some(value), None) => {
            assert_eq!(format, DataFormat::Form, "only JSON and forms are made of values");
            let text = std::str::from_utf8(sent).expect("a form is ASCII");
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "%=&".contains(c);
            assert!(text.chars().all(is_plain), "{text}");
            let pairs = if text.is_empty() { 0 } else { text.split('&').count() };
            assert!(pairs_of(value).is_some_and(|least| pairs >= least), "{text}");
        }
        (Some(_), Some(_)) => panic!("two bodies were taken for one"),
    }
}

fn has_space_between_tokens(json: &str) -> bool {
    let outside_of_strings: String =
        json.replace("\\\\", "").replace("\\\"", "").split('"').step_by(2).collect::<Vec<_>>().concat();
    outside_of_strings.contains([' ', '\t', '\r', '\n'])
}

fn says_why(data: &[u8], problem: &Problem) {
    let json = problem.to_json();
    match problem.status().as_u16() {
        // Our reader takes what any reader of JSON takes.
        400 => assert!(serde_json::from_slice::<Map<String, Value>>(data).is_err(), "{json}"),
        422 => {
            let errors = json["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
            assert!(!errors.is_empty(), "{json}");
            for error in errors {
                let field = error["field"].as_str().unwrap_or_default();
                let text = String::from_utf8_lossy(data);
                // A name may be written with escapes, and a long one is shortened.
                let is_there =
                    FIELDS.contains(&field) || text.contains(field.trim_end_matches('…')) || text.contains('\\');
                assert!(is_there && !error["message"].as_str().unwrap_or_default().is_empty(), "{json}");
            }
        }
        status => panic!("{status}: {json}"),
    }
}
