//! Which headers and settings are secrets, and what people see in their stead (D14, quality: masked in recorded headers).
//!
//! It must not know where something is shown.

use serde_json::{Map, Value};

use crate::MASK;
use crate::message::{HeaderList, is_secret_header};

/// A setting is secret when its name has one of these in it.
const SETTINGS: [&str; 7] = ["password", "passwd", "secret", "token", "api_key", "apikey", "private_key"];

/// Header names that a person must not see the values of: the fixed ones and those that an operator adds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaskedHeaders(Vec<String>);

impl MaskedHeaders {
    /// `masked_headers_max`: names that may be added.
    pub const ADDED_MAX: usize = 100;

    /// The fixed names and these.
    pub fn with(names: impl IntoIterator<Item = String>) -> Self {
        MaskedHeaders(names.into_iter().map(|name| name.trim().to_ascii_lowercase()).collect())
    }

    pub fn cover(&self, name: &str) -> bool {
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        is_secret_header(name) || self.0.iter().any(|known| is(known))
    }

    /// The value as it may be shown.
    pub fn shown<'a>(&self, name: &str, value: &'a str) -> &'a str {
        if self.cover(name) { MASK } else { value }
    }

    /// All fields in their order, the secret ones masked.
    pub fn list<'a>(&'a self, headers: &'a HeaderList) -> impl Iterator<Item = (&'a str, &'a str)> {
        headers.iter().map(|(name, value)| (name, self.shown(name, value)))
    }
}

/// Settings as they may be shown: values of secret names are masked on every level, and so is what a URL carries before its `@`.
pub fn masked_settings(written: &Map<String, Value>) -> Map<String, Value> {
    written.iter().map(|(name, value)| (name.clone(), masked_value(name, value))).collect()
}

fn masked_value(name: &str, value: &Value) -> Value {
    let lower = name.to_ascii_lowercase();
    let is_secret = SETTINGS.iter().any(|part| lower.contains(part)) || is_secret_header(&lower);
    match value {
        Value::Null | Value::Bool(_) => value.clone(),
        Value::Object(object) => Value::Object(masked_settings(object)),
        Value::Array(items) => items.iter().map(|item| masked_value(name, item)).collect(),
        _ if is_secret => MASK.into(),
        Value::String(text) => without_user_info(text).map_or_else(|| value.clone(), Value::String),
        Value::Number(_) => value.clone(),
    }
}

/// `https://user:password@host/` without what stands before the `@`; `None` when there is nothing of the kind.
fn without_user_info(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let at = rest[..authority_end].rfind('@')?;
    Some(format!("{scheme}://{MASK}{}", &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn d14_the_headers_that_carry_credentials_are_masked_and_others_are_not() {
        let masked = MaskedHeaders::with([" X-Patient-Number ".to_owned()]);
        for name in ["Authorization", "PROXY-AUTHORIZATION", "cookie", "Set-Cookie", "x-api-key", "x-patient-number"] {
            assert_eq!(masked.shown(name, "s3cret"), MASK, "{name}");
        }
        assert_eq!(masked.shown("Content-Type", "text/plain"), "text/plain");
        assert!(!MaskedHeaders::default().cover("x-patient-number"));
    }

    #[test]
    fn p07_secret_settings_are_masked_on_every_level() {
        let written = json!({
            "host": "https://ada:hunter2@api.example.org:8443/a@b", "url_path": "/a", "timeout": 5, "password": "hunter2",
            "headers": {"Authorization": "Bearer x", "X-A": "1"}, "oauth": {"client_secret": 7, "token_url": null}, "tokens": ["a", "b"],
        });
        let Value::Object(written) = written else { panic!() };
        let shown = masked_settings(&written);
        assert_eq!(shown["host"], "https://***@api.example.org:8443/a@b");
        assert_eq!(
            (&shown["url_path"], &shown["timeout"], &shown["password"]),
            (&json!("/a"), &json!(5), &json!(MASK))
        );
        assert_eq!(shown["headers"], json!({"Authorization": MASK, "X-A": "1"}));
        assert_eq!(shown["oauth"], json!({"client_secret": MASK, "token_url": null}));
        assert_eq!(shown["tokens"], json!([MASK, MASK]));
        assert_eq!(without_user_info("http://a/b@c"), None);
    }
}
