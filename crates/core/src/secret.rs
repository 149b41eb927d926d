//! A text that nobody may see: a password, a token, a private key.
//!
//! It must not know how secrets are kept; the engine's vault seals them before they are stored (D46).

use std::fmt;

/// What stands for a secret wherever people look.
pub const MASK: &str = "***";

/// A secret in the clear, in memory only. Neither `Debug` nor `Display` shows it, and it has no `Serialize`; only `expose` hands it out.
///
/// Equality is for settings. Whoever proves knowledge of a secret is checked elsewhere, in constant time.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Secret(text.into())
    }

    /// The text itself, for the one place that needs it. It must not reach a log, an error or an answer.
    pub fn expose(&self) -> &str {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Secret::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d46_a_secret_is_shown_to_nobody_who_prints_it() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret} {secret:?} {:?} {:#?}", Some(&secret), &secret), "*** *** Some(***) ***");
        assert_eq!(secret.expose(), "hunter2");
    }
}
