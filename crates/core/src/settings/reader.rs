//! A strict reader of settings: it goes on after an error and collects them all.
//!
//! A key that is absent or null is unset. This module must not know what any key means.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::nearest::nearest;
use super::{KeyDoc, SettingError};

/// How many characters of a key or value an error repeats.
const SHOWN_CHARS_MAX: usize = 80;

pub(super) struct Reader<'a> {
    written: &'a Map<String, Value>,
    known: Vec<&'static KeyDoc>,
    errors: Vec<SettingError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(written: &'a Map<String, Value>, known: impl Iterator<Item = &'static KeyDoc>) -> Self {
        Reader { written, known: known.collect(), errors: Vec::new() }
    }

    pub(super) fn value(&self, key: &str) -> Option<&'a Value> {
        self.written.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// A whole number, unquoted and without a decimal point.
    pub(super) fn whole(&mut self, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.value(key)?;
        let number = value.as_u64().and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n));
        self.kept_or_refused(key, value, number)
    }

    /// A number, whole or decimal, unquoted.
    pub(super) fn decimal(&mut self, key: &'static str, range: RangeInclusive<f64>) -> Option<f64> {
        let value = self.value(key)?;
        self.kept_or_refused(key, value, value.as_f64().filter(|n| range.contains(n)))
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.value(key)?;
        self.kept_or_refused(key, value, value.as_bool())
    }

    /// A text; an empty one counts as given.
    pub(super) fn text(&mut self, key: &'static str) -> Option<&'a str> {
        let value = self.value(key)?;
        self.kept_or_refused(key, value, value.as_str())
    }

    /// A text of which only some are allowed.
    pub(super) fn choice<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.value(key)?;
        self.kept_or_refused(key, value, value.as_str().and_then(read))
    }

    pub(super) fn refuse(&mut self, key: &'static str, given: impl ToString, allowed: impl Into<String>) {
        self.errors.push(SettingError::new(key, shortened(&given.to_string()), allowed));
    }

    /// Takes a refusal that a constructor made.
    pub(super) fn refuse_as(&mut self, error: SettingError) {
        self.errors.push(error);
    }

    /// Refuses a key's value with what its documentation allows.
    pub(super) fn refuse_value(&mut self, key: &'static str, value: &Value) {
        let mut allowed = self.allowed(key).to_owned();
        let quoted_scalar = |text: &str| text.parse::<f64>().is_ok() || matches!(text, "true" | "false");
        if value.as_str().is_some_and(quoted_scalar) {
            allowed.push_str(", written without quotes");
        }
        self.refuse(key, value, allowed);
    }

    /// What the documentation of a key allows.
    pub(super) fn allowed(&self, key: &str) -> &'static str {
        self.known
            .iter()
            .find(|doc| doc.name == key)
            .map_or("what the documentation of this key says", |doc| doc.allowed)
    }

    /// Refuses every key that neither is known nor `accepted`, naming the nearest known one. Values are not repeated: one may be a secret.
    pub(super) fn refuse_unknown_keys(&mut self, accepted: impl Fn(&str) -> bool) {
        for key in self.written.keys() {
            if accepted(key) || self.known.iter().any(|doc| doc.name == key) {
                continue;
            }
            let allowed = match nearest(key, self.known.iter().map(|doc| doc.name)) {
                Some(near) => format!("a key that exists here; did you mean `{near}`?"),
                None => "a key that exists here".to_owned(),
            };
            self.errors.push(SettingError::new(shortened(key), "an unknown key", allowed));
        }
    }

    /// The settings if nothing was refused, and every refusal otherwise.
    pub(super) fn finish<T>(self, settings: Option<T>) -> Result<T, Vec<SettingError>> {
        match settings {
            Some(settings) if self.errors.is_empty() => Ok(settings),
            _ => Err(self.errors),
        }
    }

    fn kept_or_refused<T>(&mut self, key: &'static str, value: &Value, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.refuse_value(key, value);
        }
        read
    }
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= SHOWN_CHARS_MAX {
        return text.to_owned();
    }
    text.chars().take(SHOWN_CHARS_MAX).chain(['…']).collect()
}
