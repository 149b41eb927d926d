//! What an answer has to say to be a success, where a service says 200 to everything (S04): `/SubmitResult/status = OK | ACCEPTED`.
//!
//! It must not know how an answer is read.

use serde_json::Value;

/// Of the whole text, at most.
pub const SUCCESS_IF_BYTES_MAX: usize = 1024;

/// A place in `response.data`, and what has to be there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuccessIf {
    /// RFC 6901.
    pointer: String,
    wanted: Wanted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// Anything but nothing, an empty text, `false` and `null`.
    Something,
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
}

impl SuccessIf {
    /// Reads a pointer alone, or one with `=` or `!=` and values with `|` between.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.len() > SUCCESS_IF_BYTES_MAX || text.chars().any(char::is_control) || !text.starts_with('/') {
            return None;
        }
        let values = |text: &str| -> Option<Vec<String>> {
            let values: Vec<String> = text.split('|').map(|value| value.trim().to_owned()).collect();
            values.iter().all(|value| !value.is_empty()).then_some(values)
        };
        let (pointer, wanted) = match text.split_once('=') {
            None => (text, Wanted::Something),
            Some((pointer, after)) => match pointer.strip_suffix('!') {
                Some(pointer) => (pointer, Wanted::NoneOf(values(after)?)),
                None => (pointer, Wanted::OneOf(values(after)?)),
            },
        };
        let pointer = pointer.trim_end();
        (!pointer.contains(char::is_whitespace)).then(|| SuccessIf { pointer: pointer.to_owned(), wanted })
    }

    /// Why an answer is no success; `None`: it is one. An element that comes several times succeeds where one of them does, and with `!=` where
    /// none is among the values.
    pub fn refuses(&self, data: &Value) -> Option<String> {
        let found: Vec<String> = match data.pointer(&self.pointer) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(values)) => values.iter().map(text).collect(),
            Some(value) => vec![text(value)],
        };
        let succeeds = match &self.wanted {
            Wanted::Something => found.iter().any(|text| !text.is_empty() && text != "false"),
            Wanted::OneOf(values) => found.iter().any(|text| values.contains(text)),
            Wanted::NoneOf(values) => !found.iter().any(|text| values.contains(text)),
        };
        if succeeds {
            return None;
        }
        let shown = match found.first() {
            None => "is not in the answer".to_owned(),
            Some(first) => format!("is `{}`", shortened(first)),
        };
        let wanted = match &self.wanted {
            Wanted::Something => "something".to_owned(),
            Wanted::OneOf(values) => values.join(" or "),
            Wanted::NoneOf(values) => format!("anything but {}", values.join(" and ")),
        };
        Some(format!("`{}` {shown}; a success has {wanted} there", self.pointer))
    }
}

/// An element with attributes has its text in `#text`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Object(members) => members.get("#text").map(text).unwrap_or_default(),
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(100).collect();
    if text.chars().nth(100).is_some() { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn s04_an_answer_succeeds_by_what_it_says() {
        let data = json!({"SubmitResult": {"status": "OK", "codes": ["1", "E2"], "empty": "", "no": "false", "typed": {"@type": "x", "#text": "OK"}}});
        for (text, succeeds) in [
            ("/SubmitResult/status = OK", true),
            ("/SubmitResult/status=ACCEPTED|OK", true),
            ("/SubmitResult/status = ok", false),
            ("/SubmitResult/status != ERROR", true),
            ("/SubmitResult/status != OK", false),
            ("/SubmitResult/status", true),
            ("/SubmitResult/typed = OK", true),
            ("/SubmitResult/codes = E2", true),
            ("/SubmitResult/codes != E2 | E3", false),
            ("/SubmitResult/codes/0 = 1", true),
            ("/SubmitResult/empty", false),
            ("/SubmitResult/no", false),
            ("/SubmitResult/missing = OK", false),
            ("/SubmitResult/missing", false),
            ("/SubmitResult/error != E1", true),
        ] {
            let read = SuccessIf::parse(text).unwrap();
            assert_eq!(read.refuses(&data).is_none(), succeeds, "{text}: {:?}", read.refuses(&data));
        }
        let why = SuccessIf::parse("/SubmitResult/status = DONE | FINE").unwrap().refuses(&data).unwrap();
        assert_eq!(why, "`/SubmitResult/status` is `OK`; a success has DONE or FINE there");
        for bad in ["", "status = OK", "/a = ", "/a = x||y", "/a b = x", "/a\u{1}b"] {
            assert_eq!(SuccessIf::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn s04_any_text_is_read_or_refused(text: String, key in "[a-z]{1,3}", value in "\\PC{0,10}") {
            if let Some(read) = SuccessIf::parse(&text) {
                let _ = read.refuses(&json!({ key: value }));
            }
        }
    }
}
