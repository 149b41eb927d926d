//! An operation as a command line for `curl` in a POSIX shell.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::markup::text;
use super::{Entry, list};

/// What a segment may hold as it is (RFC 3986, section 2.3).
const IN_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A longer body is written over several lines.
const LINE: usize = 48;

pub fn command(entry: &Entry<'_>) -> String {
    let mut parts = Vec::new();
    let method = entry.method.to_ascii_uppercase();
    let body = body(entry.operation);
    let is_plain = method == "GET" || (method == "POST" && body.is_some());
    let verb = if is_plain { String::new() } else { format!(" -X {method}") };
    parts.push(format!("curl{verb} \"$POSTRIDER{}\"", address(entry)));
    if let Some(scheme) = list(&entry.operation["security"]).first().and_then(Value::as_object) {
        let header = if scheme.contains_key("bearer") { "Authorization: Bearer" } else { "X-API-Key:" };
        parts.push(format!("-H \"{header} $POSTRIDER_KEY\""));
    }
    if let Some((media_type, text)) = body {
        parts.push(format!("-H {}", quoted(&format!("Content-Type: {media_type}"))));
        parts.push(format!("--data-binary {}", quoted(&text)));
    }
    parts.join(" \\\n  ")
}

/// The path with examples in it, and the parameters that must be there.
fn address(entry: &Entry<'_>) -> String {
    let mut path = entry.path.to_owned();
    for parameter in entry.shared {
        let name = text(&parameter["name"]);
        let value = text(&parameter["example"]);
        let value = if name == "rest" { value.to_owned() } else { utf8_percent_encode(value, IN_SEGMENT).to_string() };
        path = path.replace(&format!("{{{name}}}"), &value);
    }
    let needed = list(&entry.operation["parameters"])
        .iter()
        .filter(|parameter| parameter["in"] == "query" && parameter["required"] == true);
    let pairs: Vec<String> = needed
        .map(|parameter| {
            let value = list(&parameter["schema"]["enum"]).first().map(text).unwrap_or_default();
            format!("{}={}", text(&parameter["name"]), utf8_percent_encode(value, IN_SEGMENT))
        })
        .collect();
    if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) }
}

/// The first body that is taken, as it is sent.
pub fn body(operation: &Value) -> Option<(&str, String)> {
    let (media_type, content) = operation["requestBody"]["content"].as_object()?.iter().next()?;
    let example = &content["example"];
    let text = match example {
        Value::String(text) if media_type != "application/json" => text.clone(),
        json if json.to_string().len() > LINE => format!("{json:#}"),
        json => json.to_string(),
    };
    Some((media_type, text))
}

/// In single quotes, within which a shell reads nothing.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_in_a_body_does_not_end_it() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
