//! The fields of forms, made of the same definitions as the keys of files and of the API, so that a new key has its field by itself.
//!
//! What somebody typed is handed on as it is where it cannot be read: the API refuses it by name, and the words stand at the field. It must not know
//! what a key means beyond its shape.

use askama::Template;
use askama::filters::HtmlSafe;
use postrider_core::settings::{KeyDoc, Shape};
use serde_json::{Map, Number, Value};

use super::ask::RefusedField;
use super::form::Posted;
use super::labels::label_of;

/// One field as it is shown.
#[derive(Clone, Debug, Template)]
#[template(path = "field.html")]
pub struct Field {
    pub name: String,
    pub label: String,
    pub widget: Widget,
    pub value: String,
    pub meaning: String,
    /// What is so when nothing is given.
    pub default: String,
    pub is_required: bool,
    pub error: Option<String>,
}

impl HtmlSafe for Field {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Widget {
    Line,
    /// Never shown again; left empty it stays as it is.
    Secret,
    Number,
    /// A box.
    Box,
    /// One of several; an empty one first when there is a default.
    Choice(Vec<(String, String)>),
    Lines,
    /// A line with what is there already, of which any may be taken, or none.
    Suggested(Vec<String>),
}

impl Field {
    pub fn line(name: &str, label: &str, meaning: &str) -> Field {
        Field {
            name: name.to_owned(),
            label: label.to_owned(),
            widget: Widget::Line,
            value: String::new(),
            meaning: meaning.to_owned(),
            default: String::new(),
            is_required: false,
            error: None,
        }
    }

    #[must_use]
    pub fn required(mut self) -> Field {
        self.is_required = true;
        self
    }

    #[must_use]
    pub fn holding(mut self, value: impl Into<String>) -> Field {
        self.value = value.into();
        self
    }

    #[must_use]
    pub fn shown_as(mut self, widget: Widget) -> Field {
        self.widget = widget;
        self
    }

    fn is_on(&self) -> bool {
        self.value == "true"
    }
}

/// The field of a key, with the value that it was written with.
pub fn field_of(doc: &KeyDoc, written: &Map<String, Value>) -> Field {
    let given = written.get(doc.name).filter(|value| !value.is_null());
    let standard = doc.default_value();
    let widget = match doc.shape {
        _ if doc.is_secret => Widget::Secret,
        Shape::Flag => match standard {
            Some(Value::Bool(_)) => Widget::Box,
            _ => choice(doc, ["true", "false"]),
        },
        Shape::Whole { .. } | Shape::Decimal { .. } => Widget::Number,
        Shape::OneOf(words) => choice(doc, words.iter().copied()),
        Shape::Pairs { .. } | Shape::Texts => Widget::Lines,
        Shape::Text if doc.name == "transformation" => Widget::Lines,
        Shape::Text | Shape::Words { .. } | Shape::Numbers { .. } => Widget::Line,
    };
    let shown = match (&widget, given, standard.as_ref()) {
        (Widget::Box, None, Some(standard)) => text_of(doc, standard),
        (_, Some(given), _) if !doc.is_secret => text_of(doc, given),
        _ => String::new(),
    };
    Field {
        name: doc.name.to_owned(),
        label: label_of(doc.name),
        widget,
        value: shown,
        meaning: doc.meaning.to_owned(),
        default: default_of(doc),
        is_required: false,
        error: None,
    }
}

fn default_of(doc: &KeyDoc) -> String {
    match doc.default {
        "none" | "" => String::new(),
        words => words.to_owned(),
    }
}

fn choice<'a>(doc: &KeyDoc, words: impl IntoIterator<Item = &'a str>) -> Widget {
    let standard = match doc.default {
        "none" | "" => "not set".to_owned(),
        words => format!("default: {words}"),
    };
    let words = words.into_iter().map(|word| {
        let shown = match word {
            "true" => "yes",
            "false" => "no",
            word => word,
        };
        (word.to_owned(), shown.to_owned())
    });
    Widget::Choice(std::iter::once((String::new(), standard)).chain(words).collect())
}

/// A value as a field shows it.
fn text_of(doc: &KeyDoc, value: &Value) -> String {
    match (doc.shape, value) {
        (Shape::Pairs { .. }, Value::Object(pairs)) => {
            pairs.iter().map(|(name, value)| format!("{name}: {}\n", plain(value))).collect()
        }
        (Shape::Texts, Value::Array(texts)) => texts.iter().map(|text| plain(text) + "\n").collect(),
        (Shape::Words { .. }, Value::Array(words)) => words.iter().map(plain).collect::<Vec<_>>().join(" "),
        (_, Value::Array(values)) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        (_, value) => plain(value),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// What a form says about a key; `None`: nothing, so that the default holds.
fn value_of(doc: &KeyDoc, posted: &Posted) -> Option<Value> {
    let raw = posted.get(doc.name).unwrap_or_default();
    let text = raw.trim();
    if let (Shape::Flag, Some(standard)) = (doc.shape, doc.default_value()) {
        let given = Value::Bool(posted.is_on(doc.name));
        return (given != standard).then_some(given);
    }
    if text.is_empty() {
        // A path must be said, and it may be empty.
        return (doc.name == "url_path").then(|| Value::String(String::new()));
    }
    let as_written = || Value::String(text.to_owned());
    let value = match doc.shape {
        Shape::Flag => text.parse().map_or_else(|_| as_written(), Value::Bool),
        Shape::Whole { .. } => text.parse::<u64>().map_or_else(|_| as_written(), Value::from),
        Shape::Decimal { .. } => {
            text.parse::<f64>().ok().and_then(Number::from_f64).map_or_else(as_written, |number| whole(number).into())
        }
        Shape::Pairs { .. } => pairs(text),
        Shape::Texts => text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Value::from).collect(),
        Shape::Text if doc.is_secret => Value::String(raw.to_owned()),
        _ => as_written(),
    };
    Some(value)
}

/// 2 rather than 2.0, as people write it.
fn whole(number: Number) -> Number {
    let float = number.as_f64().unwrap_or_default();
    if float.fract() == 0.0 && (0.0..1e15).contains(&float) { Number::from(float as u64) } else { number }
}

/// `Name: value` on each line; a line without a colon is a name without a value.
fn pairs(text: &str) -> Value {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pairs = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.trim().to_owned(), Value::from(value.trim()))
    });
    Value::Object(pairs.collect())
}

/// What a form says about all these keys, as a file would have it.
pub fn written<'k>(docs: impl IntoIterator<Item = &'k KeyDoc>, posted: &Posted) -> Map<String, Value> {
    docs.into_iter().filter_map(|doc| Some((doc.name.to_owned(), value_of(doc, posted)?))).collect()
}

/// The same over what is known: a field that nobody touched keeps its value exactly, whatever a field can show of it.
pub fn written_over<'k>(
    docs: impl IntoIterator<Item = &'k KeyDoc>,
    posted: &Posted,
    known: &Map<String, Value>,
) -> Map<String, Value> {
    let value = |doc: &KeyDoc| {
        let kept = known.get(doc.name).filter(|value| !value.is_null() && !doc.is_secret);
        let is_box = matches!((doc.shape, doc.default_value()), (Shape::Flag, Some(_)));
        match kept {
            Some(kept) if !is_box && posted.get(doc.name).map(str::trim) == Some(text_of(doc, kept).trim()) => {
                Some(kept.clone())
            }
            _ => value_of(doc, posted),
        }
    };
    docs.into_iter().filter_map(|doc| Some((doc.name.to_owned(), value(doc)?))).collect()
}

/// Puts what somebody typed back into the fields.
pub fn typed(fields: &mut [Field], posted: &Posted) {
    for field in fields {
        field.value = match field.widget {
            Widget::Box => posted.is_on(&field.name).to_string(),
            Widget::Secret => String::new(),
            _ => posted.get(&field.name).unwrap_or_default().to_owned(),
        };
    }
}

/// Puts each refusal at its field, whichever way the API writes the name. What belongs to none of them is left.
pub fn refuse<'f>(fields: impl IntoIterator<Item = &'f mut Field>, errors: &[RefusedField]) -> Vec<RefusedField> {
    let mut left = errors.to_vec();
    for field in fields {
        let is_it = |error: &RefusedField| error.field == field.name || error.field == camel(&field.name);
        if let Some(error) = left.iter().find(|error| is_it(error)) {
            // Most messages say themselves what is allowed.
            let is_said = error.message.contains("allowed is");
            let allowed = error.allowed.as_deref().filter(|_| !is_said);
            let allowed = allowed.map(|allowed| format!(" Allowed is {allowed}.")).unwrap_or_default();
            field.error = Some(super::fault::sentence(&error.message) + &allowed);
        }
        left.retain(|error| !is_it(error));
    }
    left
}

/// `max_attempts` as endpoints and subscriptions have it: `maxAttempts`; the preset is just `preset`.
pub fn camel(key: &str) -> String {
    crate::api::camel_name(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::ConnectionKind;
    use postrider_core::settings::keys_of;
    use serde_json::json;

    fn back(kind: ConnectionKind, written_before: Value) -> Value {
        let Value::Object(before) = written_before else { unreachable!() };
        let fields: Vec<Field> = keys_of(kind).map(|doc| field_of(doc, &before)).collect();
        let form = fields.iter().filter(|field| field.widget != Widget::Box || field.is_on()).map(|field| {
            let value = percent_encoding::utf8_percent_encode(&field.value, percent_encoding::NON_ALPHANUMERIC);
            format!("{}={value}", field.name)
        });
        let posted = Posted::parse(form.collect::<Vec<_>>().join("&").as_bytes());
        Value::Object(written(keys_of(kind), &posted))
    }

    // proves: P05
    #[test]
    fn p05_a_form_that_nobody_touched_says_what_was_written() {
        for kind in ConnectionKind::ALL {
            let mut said = back(kind, json!({}));
            said.as_object_mut().unwrap().remove("url_path");
            assert_eq!(said, json!({}), "{kind:?}");
        }
        let rest = json!({
            "host": "https://a.example", "url_path": "", "timeout": 2.5, "max_retries": 3, "use_queue": true, "use_dlq": false, "retry_sleep_time": 4,
            "ordered": false, "dlq_action": "forward", "is_active": false,
        });
        assert_eq!(back(ConnectionKind::Rest, rest.clone()), rest);
        let endpoint = json!({"url": "https://a.example/", "custom_headers": {"X-A": "1", "X-B": "b: c"}});
        assert_eq!(back(ConnectionKind::Webhook, endpoint.clone()), endpoint);
    }

    #[test]
    fn z03_what_cannot_be_read_is_left_to_the_api() {
        let posted = Posted::parse(b"max_retries=many&retry_sleep_time=-&ordered=perhaps");
        let written = written(keys_of(ConnectionKind::Rest), &posted);
        assert_eq!((&written["max_retries"], &written["retry_sleep_time"]), (&json!("many"), &json!("-")));
        assert_eq!(written["ordered"], json!("perhaps"));
    }

    #[test]
    fn a_refusal_stands_at_its_field_in_either_spelling() {
        let mut fields = vec![Field::line("max_attempts", "Attempts", ""), Field::line("name", "Name", "")];
        let error = |field: &str| RefusedField {
            field: field.to_owned(),
            message: "it is 0".to_owned(),
            allowed: Some("1".to_owned()),
            line: None,
        };
        let left = refuse(&mut fields, &[error("maxAttempts"), error("other")]);
        assert_eq!(fields[0].error.as_deref(), Some("It is 0. Allowed is 1."));
        assert_eq!((fields[1].error.as_deref(), left.len()), (None, 1));
    }
}
