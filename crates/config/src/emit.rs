//! Values as YAML that reads back as the same values, in this reader and in older ones. It must not know what any key means.

use serde_json::Value;

use crate::document::{Scalar, Style, read_as, surprise};
use crate::environment::variable;

/// One value on one line.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text, false),
        Value::Array(entries) => {
            let entries: Vec<String> = entries.iter().map(in_flow).collect();
            format!("[{}]", entries.join(", "))
        }
        Value::Object(entries) => {
            let one = |(key, entry): (&String, &Value)| format!("{}: {}", quoted(key), in_flow(entry));
            format!("{{{}}}", entries.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn in_flow(entry: &Value) -> String {
    match entry {
        Value::String(text) => scalar(text, true),
        other => value(other),
    }
}

fn scalar(text: &str, in_flow: bool) -> String {
    if variable(text).is_some() {
        // The tag says that it is a text, and no reference to the environment.
        return format!("!!str {}", quoted(text));
    }
    if is_plain(text, in_flow) { text.to_owned() } else { quoted(text) }
}

/// Whether it can stand without quotes: few characters are trusted.
fn is_plain(text: &str, in_flow: bool) -> bool {
    let begins_with_digit = text.starts_with(|c: char| c.is_ascii_digit());
    let in_block = |c: char| !in_flow && (matches!(c, '{' | '}') || c == ',' && !begins_with_digit);
    let is_sound = text.chars().all(|c| c.is_ascii_alphanumeric() || " _-./:@".contains(c) || in_block(c));
    let begins_well = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/');
    let ends_well = !text.ends_with([' ', ':']);
    let is_date = begins_with_digit && text.contains('-');
    let read = read_as(&Scalar { text: text.to_owned(), style: Style::Plain }, None);
    let is_text = read.value.is_string() && surprise(text).is_none();
    is_sound && begins_well && ends_well && is_text && !is_date && !text.contains(": ") && text.len() <= 200
}

/// A JSON string is one in YAML too, once what YAML does not print is escaped.
fn quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    let mut quoted = String::with_capacity(json.len());
    for c in json.chars() {
        let is_printable = matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}');
        if is_printable || c > '\u{ffff}' {
            quoted.push(c);
        } else {
            quoted.push_str(&format!("\\u{:04X}", u32::from(c)));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Content, read};
    use postrider_core::settings::Shape;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn p04_texts_are_quoted_only_where_they_must_be() {
        let cases = [
            ("Billing API", "Billing API"),
            ("https://api.example.org:8443", "https://api.example.org:8443"),
            ("/v2/claims/{claim_id}", "/v2/claims/{claim_id}"),
            ("", "\"\""),
            ("yes", "\"yes\""),
            ("12", "\"12\""),
            ("1:30", "\"1:30\""),
            ("2026-01-01", "\"2026-01-01\""),
            ("a: b", "\"a: b\""),
            ("a #b", "\"a #b\""),
            ("-", "\"-\""),
            ("null", "\"null\""),
            ("a\nb", "\"a\\nb\""),
            ("Env.A", "!!str \"Env.A\""),
            ("größe", "\"größe\""),
            ("a:", "\"a:\""),
        ];
        for (text, written) in cases {
            assert_eq!(value(&json!(text)), written);
        }
        assert_eq!(value(&json!([60, "a,b", "c"])), "[60, \"a,b\", c]");
        assert_eq!(value(&json!({"a": "b", "c: d": "Env.A"})), "{\"a\": b, \"c: d\": !!str \"Env.A\"}");
    }

    proptest! {
        #[test]
        fn p04_any_text_reads_back_as_itself(text in "\\PC{0,12}|[ -~\\n\\t\u{85}\u{2028}\u{feff}\u{0}]{0,12}|(yes|no|0[0-9]{1,3}|Env\\.[A-Z]|[0-9:._-]{1,6}|~|!|&a|\\*a|- |\\? |: )") {
            for list in [false, true] {
                let emitted = if list { value(&json!([text])) } else { value(&json!(text)) };
                let document = format!("a:\n  - name: {emitted}\n    b: 1\n");
                let (root, findings) = read(&document);
                prop_assert!(findings.is_empty(), "{document}: {findings:?}");
                let mut node = root.unwrap();
                let path = if list { vec!["a", "", "name", ""] } else { vec!["a", "", "name"] };
                for key in path {
                    node = match node.content {
                        Content::Map(entries) => entries.into_iter().find(|entry| entry.key == key).unwrap().value,
                        Content::List(nodes) => nodes.into_iter().next().unwrap(),
                        Content::Scalar(_) => panic!("{document}"),
                    };
                }
                let Content::Scalar(scalar) = node.content else { panic!("{document}") };
                prop_assert!(variable(&scalar.text).is_none() || scalar.style == Style::Literal);
                let reading = read_as(&scalar, Some(Shape::Text));
                prop_assert_eq!(reading.value, json!(text), "{}", document);
                prop_assert_eq!(reading.surprise, None, "{}", document);
            }
        }
    }
}
