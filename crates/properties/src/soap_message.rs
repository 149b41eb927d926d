//! Messages for SOAP services: an envelope comes back as the JSON that it was made of, or the message is refused for a reason that there is.

use std::fmt;

use postrider_core::connection::{ConnectionKind, ConnectionSpec, SoapTarget};
use postrider_core::soap::SoapCall;
use postrider_wire::codec::soap::{answer, request};
use serde::Deserialize;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The input is a line with the operation, and then the body.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let (operation, body) = text.split_once('\n').unwrap_or(("Op", text));
    let call = SoapCall { operation: operation.to_owned(), headers: String::new() };
    for keys in [
        r#"{}"#,
        r#"{"namespace": "urn:r&\"<"}"#,
        r#"{"namespace": "urn:r", "element_form": "unqualified", "soap_version": "1.2"}"#,
    ] {
        let target = target(keys);
        let read = match request::read(&target, &call, body.as_bytes()) {
            Ok(read) => read,
            Err(error) => {
                assert!(!error.to_string().is_empty());
                if let Some(message) = message_of(operation, body) {
                    assert!(expected(&message, 1).is_none(), "{operation:?} {body:?}: {error}");
                }
                continue;
            }
        };
        let envelope = read.envelope("");
        let again = request::read(&target, &call, body.as_bytes()).expect("it was read before");
        assert_eq!(again.envelope(""), envelope, "the same makes the same");
        let answer = answer::read(Some("text/xml"), envelope.as_bytes(), false);
        // XML of the caller's may be as deep as XML may be, and is deeper by the envelope.
        if body.trim_start().starts_with('<') && answer.remark.as_deref().is_some_and(|remark| remark.contains("deep"))
        {
            continue;
        }
        assert_eq!(answer.remark, None, "{envelope}");
        if let Some(expected) = message_of(operation, body).and_then(|message| expected(&message, 1)) {
            assert_eq!(answer.element.as_deref(), Some(operation));
            assert!(is_same(&answer.data, &expected), "{body:?} became {envelope} and then {}", answer.data);
        }
        // Whatever is put into it, it is one envelope with one more block.
        let with_block = read.envelope("<b:added xmlns:b=\"urn:b\"/>");
        let answer = answer::read(Some("text/xml"), with_block.as_bytes(), false);
        assert_eq!(answer.remark, None, "{with_block}");
        assert_eq!(answer.header["added"], "", "{with_block}");
    }
}

fn target(keys: &str) -> SoapTarget {
    let mut written: Map<String, Value> = serde_json::from_str(keys).expect("keys are JSON");
    written.insert("host".to_owned(), "http://r.example.org".into());
    written.insert("url_path".to_owned(), "/".into());
    let spec = ConnectionSpec::parse(ConnectionKind::Soap, &written).expect("the keys are right");
    spec.target.soap().expect("it is SOAP").clone()
}

/// JSON as it is written, names that come twice included.
#[derive(Debug)]
enum Tree {
    Null,
    Plain(String),
    Number(f64),
    List(Vec<Tree>),
    Members(Vec<(String, Tree)>),
}

/// What a message in JSON says. `None` for everything that this model has no opinion on: other bodies, and names with a meaning of their own.
fn message_of(operation: &str, body: &str) -> Option<Tree> {
    let body = body.trim_start_matches('\u{feff}').trim();
    if !is_plain_name(operation) || !body.starts_with('{') {
        return None;
    }
    let tree: Tree = serde_json::from_str(body).ok()?;
    (!is_special(&tree)).then_some(tree)
}

fn is_plain_name(name: &str) -> bool {
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    starts && name.len() < 500 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

fn is_special(tree: &Tree) -> bool {
    match tree {
        Tree::Null | Tree::Plain(_) | Tree::Number(_) => false,
        Tree::List(entries) => entries.iter().any(is_special),
        Tree::Members(members) => members.iter().any(|(name, tree)| {
            !name.is_ascii() || name.contains(['@', '#', ':']) || name.len() >= 500 || is_special(tree)
        }),
    }
}

/// What the envelope reads back as; `None` where there is none. An absent element is the inner `None`.
fn expected(tree: &Tree, depth: usize) -> Option<Value> {
    // Objects and lists together; the rest of what a reader takes is the envelope's.
    if depth > 97 {
        return None;
    }
    match tree {
        Tree::Null => Some(Value::Null),
        Tree::Number(number) => Some(Value::String(number.to_string())),
        Tree::Plain(text) => {
            let is_bad = |c: char| (c < '\u{20}' && !"\t\n\r".contains(c)) || "\u{fffe}\u{ffff}".contains(c);
            (!text.chars().any(is_bad)).then(|| Value::String(text.clone()))
        }
        Tree::List(_) => None,
        Tree::Members(members) => {
            let mut elements: Vec<(&str, Vec<Value>)> = Vec::new();
            for (name, value) in members {
                let values = match value {
                    Tree::List(entries) => {
                        entries.iter().map(|entry| expected(entry, depth + 2)).collect::<Option<Vec<_>>>()?
                    }
                    other => vec![expected(other, depth + 1)?],
                };
                if !is_plain_name(name) && !values.is_empty() {
                    return None;
                }
                match elements.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) => known.extend(values),
                    None => elements.push((name, values)),
                }
            }
            elements.retain(|(_, values)| !values.is_empty());
            if elements.is_empty() {
                return Some(Value::String(String::new()));
            }
            let one_or_many =
                |mut values: Vec<Value>| if values.len() == 1 { values.remove(0) } else { Value::Array(values) };
            Some(Value::Object(
                elements.into_iter().map(|(name, values)| (name.to_owned(), one_or_many(values))).collect(),
            ))
        }
    }
}

/// Numbers come back as they were written, which this model knows only by their value.
fn is_same(read: &Value, expected: &Value) -> bool {
    match (read, expected) {
        (Value::String(read), Value::String(expected)) => {
            read == expected || matches!((read.parse::<f64>(), expected.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
        }
        (Value::Array(read), Value::Array(expected)) => {
            read.len() == expected.len() && read.iter().zip(expected).all(|(read, expected)| is_same(read, expected))
        }
        (Value::Object(read), Value::Object(expected)) => {
            read.len() == expected.len()
                && expected.iter().all(|(name, value)| read.get(name).is_some_and(|read| is_same(read, value)))
        }
        (read, expected) => read == expected,
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Tree;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Tree, E> {
                Ok(Tree::Null)
            }
            fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree::Plain(value.to_string()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree::Number(value as f64))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
                Ok(Tree::Number(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Tree, E> {
                Ok(Tree::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree::Plain(value.to_owned()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Tree, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    entries.push(entry);
                }
                Ok(Tree::List(entries))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tree, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Tree::Members(members))
            }
        }
        deserializer.deserialize_any(Any)
    }
}
