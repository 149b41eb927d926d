//! The refusal of a setting outside its range. It must not know where the setting was read: YAML, API and CLI all show it.

use std::borrow::Cow;

/// A setting that was refused: which one, what was given, what is allowed (Z03: never clamped in silence).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is `{given}`: allowed is {allowed}")]
pub struct SettingError {
    /// The field's name as people write it in YAML and in the API; an unknown key names itself.
    pub field: Cow<'static, str>,
    /// The value as it was given; of a long one its beginning, since it comes back in messages and logs.
    pub given: String,
    /// What may be given, in words that continue "allowed is …".
    pub allowed: String,
}

impl SettingError {
    pub fn new(field: impl Into<Cow<'static, str>>, given: impl ToString, allowed: impl Into<String>) -> Self {
        let allowed = clipped(allowed.into(), ALLOWED_CHARS_MAX);
        SettingError { field: field.into(), given: clipped(given.to_string(), GIVEN_CHARS_MAX), allowed }
    }
}

const GIVEN_CHARS_MAX: usize = 200;
/// Some say what is allowed by what was given.
const ALLOWED_CHARS_MAX: usize = 1000;

fn clipped(mut text: String, chars_max: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(chars_max) {
        text.truncate(at);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z03_a_refusal_names_the_field_the_value_and_the_range() {
        let error = SettingError::new("retry_sleep_time", -1, "a number of seconds from 0 to 86400");
        assert_eq!(error.to_string(), "`retry_sleep_time` is `-1`: allowed is a number of seconds from 0 to 86400");
    }

    #[test]
    fn a_long_value_comes_back_shortened() {
        let error = SettingError::new("host", "ä".repeat(3_000_000), "x".repeat(3_000_000));
        assert_eq!(error.given, "ä".repeat(200) + "…");
        assert!(error.to_string().len() < 2000);
        assert_eq!(SettingError::new("host", "ä".repeat(200), "").given, "ä".repeat(200));
    }
}
