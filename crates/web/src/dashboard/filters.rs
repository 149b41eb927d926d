//! Which deliveries a list shows: what a filter form asks, as the API's query, as a job's filter, and back in the form.
//!
//! Values go on as they were typed; the API says what is wrong with one. It must not know which list it is.

use serde_json::{Map, Value};

use super::visit::segment;
use crate::read::Query;

/// Those that the form has, by the API's names.
const NAMES: [&str; 14] = [
    "connection",
    "type",
    "status",
    "error",
    "error_text",
    "event_type",
    "event_id",
    "id",
    "cid",
    "method",
    "path",
    "created_from",
    "created_before",
    "edited",
];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters(Vec<(&'static str, String)>);

impl Filters {
    /// Takes what the form sent out of the query. `q` is a text that is looked for where its shape says.
    pub fn take(query: &mut Query) -> Filters {
        let mut pairs = Vec::new();
        for name in NAMES {
            // One by one: a path may have commas in it.
            let given = std::iter::from_fn(|| query.take(name)).map(|value| value.trim().to_owned());
            pairs.extend(given.filter(|value| !value.is_empty()).map(|value| (name, in_full(name, value))));
        }
        if let Some(text) = query.take("q").map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) {
            let name = meant_by(&text);
            if !pairs.iter().any(|(known, _)| *known == name) {
                pairs.push((name, text));
            }
        }
        Filters(pairs)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first value of a name, for its field; empty without one.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value.as_str())
    }

    /// What the search field shows.
    pub fn text(&self) -> &str {
        ["id", "cid", "event_id", "error_text"]
            .iter()
            .map(|name| self.get(name))
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Filters {
        self.0.push((name, value.to_owned()));
        self
    }

    /// `a=1&b=2`, for the API and for pages.
    pub fn query(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={}", segment(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// As the `filter` of a job.
    pub fn json(&self) -> Value {
        let mut object: Map<String, Value> = Map::new();
        for (name, value) in &self.0 {
            match object.get_mut(*name) {
                None => {
                    object.insert((*name).to_owned(), value.as_str().into());
                }
                Some(Value::Array(values)) => values.push(value.as_str().into()),
                Some(first) => *first = Value::Array(vec![first.take(), value.as_str().into()]),
            }
        }
        Value::Object(object)
    }
}

/// A browser's `datetime-local` has no zone and perhaps no seconds; pages speak of UTC.
fn in_full(name: &str, value: String) -> String {
    if !name.starts_with("created_") || value.ends_with('Z') || value.contains('+') {
        return value;
    }
    match value.len() {
        16 => value + ":00Z",
        19 | 23 => value + "Z",
        _ => value,
    }
}

/// What a text of this shape names.
fn meant_by(text: &str) -> &'static str {
    let is_cid = text.len() == 30 && text.split('-').map(str::len).eq([8, 6, 4, 9]);
    match text {
        _ if text.starts_with("msg_") => "id",
        _ if text.starts_with("evt_") => "event_id",
        _ if is_cid => "cid",
        _ => "error_text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_looked_for_where_its_shape_says() {
        assert_eq!(meant_by("msg_01h"), "id");
        assert_eq!(meant_by("evt_01h"), "event_id");
        assert_eq!(meant_by("20260312-120534-7301-7f2c0e51a"), "cid");
        assert_eq!(meant_by("20260312-120534-7301-7f2c0e5"), "error_text");
        assert_eq!(meant_by("timed out"), "error_text");
    }

    #[test]
    fn z23_a_list_and_its_bulk_acts_have_the_same_conditions() {
        let mut query = Query::parse(
            "connection=A+%26+B&status=DLQ&status=FAILED&q=+timed+out+&created_from=2026-03-12T12:05&error=&x=1",
        );
        let filters = Filters::take(&mut query);
        assert_eq!(
            filters.query(),
            "connection=A%20%26%20B&status=DLQ&status=FAILED&created_from=2026-03-12T12%3A05%3A00Z&error_text=timed%20out"
        );
        assert_eq!(
            filters.json(),
            serde_json::json!({"connection": "A & B", "status": ["DLQ", "FAILED"], "created_from": "2026-03-12T12:05:00Z", "error_text": "timed out"})
        );
        assert_eq!((filters.text(), filters.get("connection"), filters.get("path")), ("timed out", "A & B", ""));
        assert!(query.finish().is_err(), "what the form does not have is left");
    }
}
