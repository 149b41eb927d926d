//! The refusal of a setting outside its range. It must not know where the setting was read: YAML, API and CLI all show it.

use std::borrow::Cow;

/// A setting that was refused: which one, what was given, what is allowed (Z03: never clamped in silence).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is `{given}`: allowed is {allowed}")]
pub struct SettingError {
    /// The field's name as people write it in YAML and in the API; an unknown key names itself.
    pub field: Cow<'static, str>,
    /// The value as it was given.
    pub given: String,
    /// What may be given, in words that continue "allowed is …".
    pub allowed: String,
}

impl SettingError {
    pub fn new(field: impl Into<Cow<'static, str>>, given: impl ToString, allowed: impl Into<String>) -> Self {
        SettingError { field: field.into(), given: given.to_string(), allowed: allowed.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z03_a_refusal_names_the_field_the_value_and_the_range() {
        let error = SettingError::new("retry_sleep_time", -1, "a number of seconds from 0 to 86400");
        assert_eq!(error.to_string(), "`retry_sleep_time` is `-1`: allowed is a number of seconds from 0 to 86400");
    }
}
