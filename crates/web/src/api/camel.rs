//! Names of settings as endpoints and subscriptions show them: `max_attempts` is `maxAttempts`, and the preset is just `preset`.
//!
//! It must not know what a setting means.

use postrider_core::SettingError;
use postrider_core::connection::ConnectionKind;
use postrider_core::settings::{PUSH_KEYS, keys_of};
use postrider_engine::Refusal;
use serde_json::{Map, Value};

use crate::problem::{Problem, clipped};
use crate::read::Fields;

const PRESET: (&str, &str) = ("retry_preset", "preset");

/// The name that people of the API write.
pub fn shown(key: &str) -> String {
    if key == PRESET.0 {
        return PRESET.1.to_owned();
    }
    let mut words = key.split('_');
    let mut shown = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        shown.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        shown.push_str(letters.as_str());
    }
    shown
}

/// The key that it stands for; `None`: it is not written as the API writes names.
fn key_of(name: &str) -> Option<String> {
    if name == PRESET.1 {
        return Some(PRESET.0.to_owned());
    }
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return None;
    }
    let mut key = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter == '_' {
            return None;
        }
        if letter.is_ascii_uppercase() {
            key.push('_');
        }
        key.push(letter.to_ascii_lowercase());
    }
    (shown(&key) == name).then_some(key)
}

/// What is left of a request, as settings.
pub fn keys(fields: &mut Fields) -> Map<String, Value> {
    let mut keys = Map::new();
    for (name, value) in fields.rest() {
        match key_of(&name) {
            Some(key) => {
                keys.insert(key, value);
            }
            None => {
                let message = format!("`{}` is not a field of this request", clipped(&name));
                fields.refuse(clipped(&name), message, format!("a name as in `{}`", clipped(&shown(&name))));
            }
        }
    }
    keys
}

/// Settings as they are shown.
pub fn members(keys: &Map<String, Value>) -> Map<String, Value> {
    keys.iter().map(|(key, value)| (shown(key), value.clone())).collect()
}

/// A refusal, its fields named as they were given.
pub fn problem(refusal: Refusal) -> Problem {
    let renamed = |error: SettingError| SettingError {
        field: shown(&error.field).into(),
        allowed: respelled(&error.allowed),
        ..error
    };
    match refusal {
        Refusal::Invalid(errors) => Refusal::Invalid(errors.into_iter().map(renamed).collect()).into(),
        other => other.into(),
    }
}

/// A text that names settings, with their names as they are shown.
fn respelled(text: &str) -> String {
    let is_key = |word: &str| {
        let kinds = [ConnectionKind::Webhook].into_iter().flat_map(keys_of);
        kinds.chain(PUSH_KEYS).any(|doc| doc.name == word)
    };
    let mut pieces = Vec::new();
    for (number, piece) in text.split('`').enumerate() {
        pieces.push(if number % 2 == 1 && is_key(piece) { shown(piece) } else { piece.to_owned() });
    }
    pieces.join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_one_name_and_comes_back_from_it() {
        for doc in keys_of(ConnectionKind::Webhook).chain(PUSH_KEYS) {
            assert_eq!(key_of(&shown(doc.name)).as_deref(), Some(doc.name));
        }
        assert_eq!(shown("retry_delays"), "retryDelays");
        assert_eq!((key_of("max_attempts"), key_of("retryPreset"), key_of("MaxAttempts")), (None, None, None));
    }

    #[test]
    fn a_refusal_names_the_field_as_it_was_given() {
        let refusal = Refusal::Invalid(vec![SettingError::new("retry_delays", 0, "1 or more")]);
        let json = problem(refusal).to_json();
        assert_eq!(json["errors"][0]["field"], "retryDelays");
        assert_eq!(json["errors"][0]["message"], "`retryDelays` is `0`: allowed is 1 or more");
        let allowed = "the path of the PEM file with the key of `tls_client_cert`, no `other_name`";
        let refusal = Refusal::Invalid(vec![SettingError::new("tls_client_key", "missing", allowed)]);
        let json = problem(refusal).to_json();
        assert_eq!(json["errors"][0]["field"], "tlsClientKey");
        let allowed = "the path of the PEM file with the key of `tlsClientCert`, no `other_name`";
        assert_eq!(json["errors"][0]["allowed"], allowed);
    }
}
