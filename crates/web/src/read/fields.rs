//! A JSON object of a request, taken apart field by field, so that every refusal names its field and all come at once.

use std::fmt::{self, Display};
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::compact::compact;
use crate::problem::{FieldError, Problem, clipped};

/// The fields that are left, and what was wrong with those taken.
#[derive(Debug)]
pub struct Fields {
    left: Vec<(String, Box<RawValue>)>,
    errors: Vec<FieldError>,
}

/// A body as a caller gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A string or base64: these bytes.
    Bytes(Bytes),
    /// A JSON value other than a string, without needless spaces.
    Json(String),
}

/// The object as written: order, repeated keys and the text of each value.
struct Object(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Object;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Object(pairs))
            }
        }
        deserializer.deserialize_map(Pairs)
    }
}

/// The pairs of an object, given as its text.
pub fn object_pairs(json: &str) -> Option<Vec<(String, Box<RawValue>)>> {
    serde_json::from_str::<Object>(json).ok().map(|object| object.0)
}

impl Fields {
    /// Reads the object. 415 for another content type, 400 with line and column for what is no JSON object; nothing at all is an empty object.
    pub fn read(headers: &HeaderMap, body: &[u8]) -> Result<Fields, Problem> {
        if body.is_empty() {
            return Ok(Fields { left: Vec::new(), errors: Vec::new() });
        }
        if !says_json(headers) {
            return Err(Problem::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON: `Content-Type: application/json`",
            ));
        }
        Fields::parse(body)
    }

    /// Reads the object, whatever the request says its type is. 400 with line and column for what is no JSON object.
    pub fn parse(json: &[u8]) -> Result<Fields, Problem> {
        let Object(left) = serde_json::from_slice(json).map_err(|error| unreadable(&error))?;
        let mut fields = Fields { left, errors: Vec::new() };
        fields.refuse_repeated();
        Ok(fields)
    }

    fn refuse_repeated(&mut self) {
        let mut once: Vec<(String, Box<RawValue>)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for (name, value) in std::mem::take(&mut self.left) {
            if seen.insert(name.clone()) {
                once.push((name, value));
            } else {
                let message = format!("`{}` is there twice", clipped(&name));
                self.errors.push(FieldError::new(clipped(&name), message, "once"));
            }
        }
        self.left = once;
    }

    pub fn refuse(&mut self, field: impl Into<String>, message: impl Into<String>, allowed: impl Into<String>) {
        self.errors.push(FieldError::new(field, message, allowed));
    }

    /// Whether it is there, `null` included.
    pub fn has(&self, name: &str) -> bool {
        self.left.iter().any(|(known, _)| known == name)
    }

    /// The text of a value; `null` is as good as absent.
    pub fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.left.iter().position(|(known, _)| known == name)?;
        let (_, value) = self.left.remove(at);
        (value.get() != "null").then_some(value)
    }

    /// From here on the field is known by the other name.
    pub fn rename(&mut self, name: &str, other: &str) {
        for (known, _) in self.left.iter_mut().filter(|(known, _)| known == name) {
            *known = other.to_owned();
        }
    }

    fn take_as<'a, T: for<'de> Deserialize<'de>>(&mut self, name: &'a str, allowed: &str) -> Option<T> {
        let value = self.take(name)?;
        match serde_json::from_str(value.get()) {
            Ok(read) => Some(read),
            Err(_) => {
                self.refuse(name, format!("`{name}` is `{}`", clipped(value.get())), allowed);
                None
            }
        }
    }

    pub fn text(&mut self, name: &str) -> Option<String> {
        self.take_as(name, "a string")
    }

    pub fn flag(&mut self, name: &str) -> Option<bool> {
        self.take_as(name, "true or false")
    }

    /// A whole number within a range.
    pub fn number(&mut self, name: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let number = self.take_as(name, &allowed)?;
        if range.contains(&number) {
            return Some(number);
        }
        self.refuse(name, format!("`{name}` is `{number}`"), allowed);
        None
    }

    /// A list of strings with at most so many entries.
    pub fn texts(&mut self, name: &str, entries_max: usize) -> Option<Vec<String>> {
        let list: Vec<String> = self.take_as(name, "a list of strings")?;
        if list.len() <= entries_max {
            return Some(list);
        }
        self.refuse(name, format!("`{name}` has {} entries", list.len()), format!("at most {entries_max} entries"));
        None
    }

    /// A list of ids, each of them read; one that is none is refused by its place.
    pub fn ids<T>(&mut self, name: &str, entries_max: usize, allowed: &str) -> Option<Vec<T>>
    where
        T: FromStr,
        T::Err: Display,
    {
        let given = self.texts(name, entries_max)?;
        let mut ids = Vec::with_capacity(given.len());
        for (at, text) in given.iter().enumerate() {
            match text.parse::<T>() {
                Ok(id) => ids.push(id),
                Err(error) => self.refuse(format!("{name}[{at}]"), error.to_string(), allowed),
            }
        }
        Some(ids)
    }

    /// A field that must be there; its absence is refused.
    pub fn required<T>(&mut self, name: &str, taken: Option<T>) -> Option<T> {
        if taken.is_none() && !self.errors.iter().any(|error| error.field == name) {
            self.refuse(name, format!("`{name}` is missing"), format!("`{name}` must be given"));
        }
        taken
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str) -> Option<String> {
        let taken = self.text(name);
        self.required(name, taken)
    }

    /// `body` (a string, or a JSON value) or `body_base64`; not both.
    pub fn body(&mut self) -> Option<Given> {
        let (plain, encoded) = (self.take("body"), self.text("body_base64"));
        if plain.is_some() && encoded.is_some() {
            self.refuse("body_base64", "`body` and `body_base64` are both there", "one of the two");
            return None;
        }
        if let Some(encoded) = encoded {
            let Ok(bytes) = STANDARD.decode(encoded.as_bytes()) else {
                self.refuse("body_base64", "`body_base64` is not base64", "base64 of RFC 4648 section 4, with padding");
                return None;
            };
            return Some(Given::Bytes(bytes.into()));
        }
        let plain = plain?;
        if plain.get().starts_with('"') {
            let Ok(text) = serde_json::from_str::<String>(plain.get()) else {
                self.refuse("body", "`body` is not valid Unicode", "a string without lone surrogates");
                return None;
            };
            return Some(Given::Bytes(text.into()));
        }
        self.compacted("body", Some(&plain)).map(Given::Json)
    }

    /// The text of a JSON value of any kind, null too, without the spaces between its tokens.
    pub fn compacted(&mut self, name: &str, value: Option<&RawValue>) -> Option<String> {
        match compact(value.map_or("null", RawValue::get)) {
            Ok(text) => Some(text),
            Err(untaken) => {
                let (message, allowed) = untaken.told(name);
                self.refuse(name, message, allowed);
                None
            }
        }
    }

    /// Everything that is left, as values.
    pub fn rest(&mut self) -> Map<String, Value> {
        let mut rest = Map::new();
        for (name, value) in std::mem::take(&mut self.left) {
            match serde_json::from_str(value.get()) {
                Ok(value) => {
                    rest.insert(name, value);
                }
                Err(_) => {
                    let message = format!("`{}` cannot be read", clipped(&name));
                    self.refuse(name, message, "a JSON value that is not nested too deeply and has no lone surrogates");
                }
            }
        }
        rest
    }

    /// Ends the reading: what nobody took is unknown and refused by name.
    pub fn finish(mut self, known: &[&str]) -> Result<(), Problem> {
        for (name, _) in std::mem::take(&mut self.left) {
            let allowed = known.join(", ");
            self.refuse(clipped(&name), format!("`{}` is not a field of this request", clipped(&name)), allowed);
        }
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::fields(self.errors)) }
    }
}

fn says_json(headers: &HeaderMap) -> bool {
    let essence = essence(headers);
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// The content type in lower case, without its parameters.
pub fn essence(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn unreadable(error: &serde_json::Error) -> Problem {
    let (line, column) = (error.line(), error.column());
    let what = match error.classify() {
        serde_json::error::Category::Eof => "it ends too early".to_owned(),
        serde_json::error::Category::Data => "a JSON object is expected".to_owned(),
        _ => {
            // The text ends in the position, which follows in our own words.
            let text = error.to_string();
            text.split(" at line ").next().unwrap_or_default().to_owned()
        }
    };
    Problem::new(
        StatusCode::BAD_REQUEST,
        format!("the body is not readable JSON: {what} (line {line}, column {column})"),
    )
    .with_member("line", line.into())
    .with_member("column", column.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(json: &str) -> Result<Fields, Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        Fields::read(&headers, json.as_bytes())
    }

    fn refused(fields: Fields) -> Vec<String> {
        let json = fields.finish(&["a"]).unwrap_err().to_json();
        json["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn unreadable_json_is_told_by_line_and_column() {
        let problem = fields("{\n  \"a\": 1,,\n}").unwrap_err();
        assert_eq!(problem.status(), StatusCode::BAD_REQUEST);
        assert_eq!(problem.to_json()["line"], 2);
        assert_eq!(problem.to_json()["column"], 10);
        for text in ["[]", "7", "\"a\"", "{\"a\":", "{\"a\":\"\u{0}\"}", "{} {}", "nul"] {
            assert_eq!(fields(text).unwrap_err().status(), StatusCode::BAD_REQUEST, "{text}");
        }
        let invalid = Fields::read(fields_headers(), b"{\"body\":\"\xff\"}").unwrap_err();
        assert_eq!(invalid.status(), StatusCode::BAD_REQUEST);
    }

    fn fields_headers() -> &'static HeaderMap {
        static HEADERS: std::sync::OnceLock<HeaderMap> = std::sync::OnceLock::new();
        HEADERS.get_or_init(|| {
            HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/vnd.example+json"))])
        })
    }

    #[test]
    fn every_refusal_names_its_field_and_all_come_at_once() {
        let mut taken = fields(r#"{"n": 0, "t": 5, "f": "yes", "extra": 1, "twice": 1, "twice": 2}"#).unwrap();
        assert_eq!(taken.number("n", 1..=5), None);
        assert_eq!(taken.text("t"), None);
        assert_eq!(taken.flag("f"), None);
        let missing = taken.text("gone");
        taken.required("gone", missing);
        assert_eq!(refused(taken), ["twice", "n", "t", "f", "gone", "extra", "twice"]);
    }

    #[test]
    fn a_body_keeps_its_bytes() {
        let body = |json: &str| {
            let mut fields = fields(json).unwrap();
            let body = fields.body();
            fields.finish(&[]).map(|()| body).map_err(|problem| problem.to_json()["errors"][0]["field"].clone())
        };
        assert_eq!(body(r#"{"body": "a\u0000\n"}"#), Ok(Some(Given::Bytes("a\0\n".into()))));
        assert_eq!(body(r#"{"body": {"n": 1.50, "n": 2}}"#), Ok(Some(Given::Json(r#"{"n":1.50,"n":2}"#.into()))));
        assert_eq!(body(r#"{"body_base64": "/wA="}"#), Ok(Some(Given::Bytes(Bytes::from_static(b"\xff\0")))));
        assert_eq!(body(r#"{"body": null}"#), Ok(None));
        assert_eq!(body(r#"{"body": "\ud800"}"#), Err("body".into()));
        assert_eq!(body(r#"{"body_base64": "/wA"}"#), Err("body_base64".into()));
        assert_eq!(body(r#"{"body": "", "body_base64": ""}"#), Err("body_base64".into()));
        let deep = format!("{{\"body\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(body(&deep), Err("body".into()));
        assert_eq!(body(r#"{"body": {"a": ["\ud800"]}}"#), Err("body".into()));
    }

    #[test]
    fn another_content_type_is_refused() {
        let problem = Fields::read(&HeaderMap::new(), b"{}").unwrap_err();
        assert_eq!(problem.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert!(Fields::read(&HeaderMap::new(), b"").is_ok());
    }
}
