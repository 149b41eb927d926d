//! What a scalar means: the core schema of YAML 1.2 (section 10.3.2), and where YAML 1.1 would have read something else.
//!
//! `yes`, `on`, `010` and `1:30` are the surprises: none of them is passed over in silence. This module must not know any key.

use postrider_core::settings::Shape;
use serde_json::{Number, Value};

use super::Scalar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Without quotes: may be a number, a flag or nothing.
    Plain,
    /// Always a text.
    Quoted,
    /// Tagged `!!str`: a text, and never a reference to the environment.
    Literal,
}

/// A scalar as the value of a key of some shape, and what to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub value: Value,
    /// Why it may not be what was meant, in words that stand behind the value.
    pub surprise: Option<&'static str>,
}

/// Reads a scalar for a key that is written as `shape` says; without one, by itself. What does not fit comes as a text, which the
/// key's own reader then refuses.
pub fn read_as(scalar: &Scalar, shape: Option<Shape>) -> Reading {
    let text = || Value::String(scalar.text.clone());
    if scalar.style != Style::Plain {
        return Reading { value: text(), surprise: None };
    }
    if is_null(&scalar.text) {
        return Reading { value: Value::Null, surprise: None };
    }
    let surprise = surprise(&scalar.text);
    let value = match shape {
        Some(Shape::Text | Shape::OneOf(_) | Shape::Texts | Shape::Words { .. } | Shape::Pairs { .. }) => {
            let surprise = surprise.or(flag(&scalar.text).map(|_| TEXT_OF_A_FLAG));
            return Reading { value: text(), surprise };
        }
        Some(Shape::Flag) => flag(&scalar.text).map(Value::Bool),
        Some(Shape::Whole { .. } | Shape::Decimal { .. }) if surprise.is_none() => number(&scalar.text),
        // Either a list or a text with commas.
        Some(Shape::Whole { .. } | Shape::Decimal { .. } | Shape::Numbers { .. }) => None,
        None => flag(&scalar.text).map(Value::Bool).or_else(|| number(&scalar.text)),
    };
    Reading { value: value.unwrap_or_else(text), surprise }
}

const TEXT_OF_A_FLAG: &str = "is taken as a text here; in quotes it says so";
const WORD: &str =
    "is a text in YAML 1.2 and a flag to older readers: write `true` or `false`, or put a text in quotes";
const LEADING_ZERO: &str =
    "begins with a zero, which is octal to older readers: write the number without it, or put a text in quotes";
const OLD_NUMBER: &str =
    "is a text in YAML 1.2 and a number to older readers: write a plain number, or put a text in quotes";

/// Why readers of YAML 1.1 would take a plain scalar for something else.
pub fn surprise(text: &str) -> Option<&'static str> {
    if text.len() > 64 || !text.is_ascii() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    if matches!(lower.as_str(), "y" | "yes" | "n" | "no" | "on" | "off") {
        return Some(WORD);
    }
    let digits = lower.strip_prefix(['-', '+']).unwrap_or(&lower);
    if !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let is_octal =
        digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if is_octal {
        return Some(LEADING_ZERO);
    }
    let is_binary =
        digits.strip_prefix("0b").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b"01_".contains(&b)));
    let is_grouped = digits.contains('_') && digits.bytes().all(|b| b.is_ascii_digit() || b"_.".contains(&b));
    let is_sexagesimal = digits.contains(':')
        && digits.split(':').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    (is_binary || is_grouped || is_sexagesimal).then_some(OLD_NUMBER)
}

pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

fn flag(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Infinity and NaN are no numbers here.
fn number(text: &str) -> Option<Value> {
    let unsigned =
        |radix, digits: &str| u64::from_str_radix(digits, radix).ok().map(|number| Value::Number(number.into()));
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())) {
        return unsigned(16, digits);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| digits.bytes().all(|b| (b'0'..=b'7').contains(&b))) {
        return unsigned(8, digits);
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') || !digits.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        let plain = text.strip_prefix('+').unwrap_or(text);
        if let Ok(number) = plain.parse::<u64>() {
            return Some(Value::Number(number.into()));
        }
        if let Ok(number) = plain.parse::<i64>() {
            return Some(Value::Number(number.into()));
        }
    }
    if !digits.bytes().all(|b| b.is_ascii_digit() || b".eE+-".contains(&b)) {
        return None;
    }
    text.parse::<f64>().ok().and_then(Number::from_f64).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plain(text: &str, shape: Option<Shape>) -> Value {
        read_as(&Scalar { text: text.to_owned(), style: Style::Plain }, shape).value
    }

    #[test]
    fn p04_plain_scalars_mean_what_yaml_1_2_says() {
        let cases = [
            ("", json!(null)),
            ("~", json!(null)),
            ("null", json!(null)),
            ("true", json!(true)),
            ("False", json!(false)),
            ("12", json!(12)),
            ("-3", json!(-3)),
            ("+3", json!(3)),
            ("0x1F", json!(31)),
            ("0o17", json!(15)),
            ("1.5", json!(1.5)),
            (".5", json!(0.5)),
            ("1e3", json!(1000.0)),
            ("18446744073709551615", json!(u64::MAX)),
            ("yes", json!("yes")),
            ("1:30", json!("1:30")),
            ("1_000", json!("1_000")),
            (".inf", json!(".inf")),
            (".nan", json!(".nan")),
            ("-", json!("-")),
            (".", json!(".")),
            ("1.2.3", json!("1.2.3")),
            ("e5", json!("e5")),
            ("0x", json!("0x")),
            ("truE", json!("truE")),
            ("inf", json!("inf")),
            ("1e", json!("1e")),
        ];
        for (text, value) in cases {
            assert_eq!(plain(text, None), value, "{text}");
        }
    }

    #[test]
    fn p04_a_key_that_wants_a_text_gets_what_stands_there() {
        for text in ["1.1", "12", "true", "0x10", "1e3"] {
            assert_eq!(plain(text, Some(Shape::Text)), json!(text));
        }
        assert_eq!(plain("60", Some(Shape::Numbers { min: 0.0, max: 1.0, count_max: 1 })), json!("60"));
        let quoted = Scalar { text: "true".to_owned(), style: Style::Quoted };
        assert_eq!(read_as(&quoted, Some(Shape::Flag)).value, json!("true"), "the key refuses it");
    }

    #[test]
    fn p04_what_older_readers_take_otherwise_is_said() {
        for text in ["yes", "No", "ON", "off", "y", "N", "010", "-07", "0b101", "1_000", "1:30", "-190:20:30.15"] {
            assert!(surprise(text).is_some(), "{text}");
        }
        for text in [
            "true",
            "0",
            "10",
            "0.5",
            "0x10",
            "yesterday",
            "http://a:80",
            "on-call",
            "12:ab",
            "::",
            "1.2.3.4",
            "_1",
            "2026-01-01",
        ] {
            assert_eq!(surprise(text), None, "{text}");
        }
        assert_eq!(plain("010", Some(Shape::Whole { min: 0, max: 100 })), json!("010"), "no guess");
        assert_eq!(plain("on", Some(Shape::Flag)), json!("on"));
    }
}
