//! Who logs in to the dashboard: names, roles and what follows from them, passwords that are taken, and when a session ends (P07).
//!
//! It must not know how a password is hashed, nor what a page shows.

use crate::access::{Scope, ScopeSet};
use crate::{SettingError, Timestamp, Wait};

/// What somebody is, in their project or in the installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Everything, users and keys included.
    Owner,
    /// Sees bodies, sends, and acts on deliveries.
    Developer,
    /// Sees how things stand; bodies only where that is allowed by name, since they are health data.
    Viewer,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Owner, Role::Developer, Role::Viewer];
    /// For refusals.
    pub const ALLOWED: &'static str = "owner, developer, viewer";

    pub const fn as_str(self) -> &'static str {
        match self {
            Role::Owner => "owner",
            Role::Developer => "developer",
            Role::Viewer => "viewer",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }

    pub const fn scopes(self) -> ScopeSet {
        match self {
            Role::Owner => ScopeSet::of(&[Scope::Admin]),
            Role::Developer => ScopeSet::of(&[Scope::Read, Scope::Send, Scope::Operate]),
            Role::Viewer => ScopeSet::of(&[Scope::Read]),
        }
    }

    /// Whether the role sees bodies; `allowed` is what the user's own flag says, and matters for viewers only.
    pub const fn sees_bodies(self, allowed: bool) -> bool {
        allowed || !matches!(self, Role::Viewer)
    }
}

/// Characters of a log-in name, at most.
pub const USER_NAME_CHARS_MAX: usize = 64;
/// `password_chars_min`: NIST SP 800-63B-4 section 3.1.1.2 asks for 15 where a password is all there is; we take 12 and no other rule.
pub const PASSWORD_CHARS_MIN: usize = 12;
/// `password_bytes_max`: longer texts only cost time.
pub const PASSWORD_BYTES_MAX: usize = 256;

/// The name as it is kept and compared: without spaces around it, in small letters.
///
/// # Errors
/// No name, one that is too long, or letters that a log line or a form should not meet.
pub fn user_name(given: &str) -> Result<String, SettingError> {
    let name = given.trim().to_lowercase();
    let is_fine = |letter: char| letter.is_alphanumeric() || ".-_@+".contains(letter);
    let length = name.chars().count();
    if length == 0 || length > USER_NAME_CHARS_MAX || !name.chars().all(is_fine) {
        let allowed = format!("1 to {USER_NAME_CHARS_MAX} letters, digits and . - _ @ +, such as an e-mail address");
        return Err(SettingError::new("name", given, allowed));
    }
    Ok(name)
}

/// Whether a password may be set. Its text comes back in no error.
///
/// # Errors
/// Too short, too long, or no more than the name.
pub fn check_password(password: &str, name: &str) -> Result<(), SettingError> {
    let allowed = |text: String| Err(SettingError::new("password", crate::MASK, text));
    if password.chars().count() < PASSWORD_CHARS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return allowed(format!("{PASSWORD_CHARS_MIN} characters or more, and {PASSWORD_BYTES_MAX} bytes at most"));
    }
    let mut letters = password.chars();
    let first = letters.next();
    if password.to_lowercase() == name || letters.all(|letter| Some(letter) == first) {
        return allowed("something that is neither the name nor one letter again and again".to_owned());
    }
    Ok(())
}

/// When a session ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// `session_idle_max`: without a request for so long.
    pub idle_max: Wait,
    /// `session_age_max`: whatever happens.
    pub age_max: Wait,
}

impl Default for SessionLimits {
    fn default() -> Self {
        SessionLimits { idle_max: Wait::from_secs(3600), age_max: Wait::from_secs(12 * 3600) }
    }
}

impl SessionLimits {
    /// Whether a session that was opened then and last used then has ended.
    pub fn is_over(&self, opened_at: Timestamp, seen_at: Timestamp, now: Timestamp) -> bool {
        now >= seen_at + self.idle_max || now >= opened_at + self.age_max
    }

    /// Whether a use is late enough after the last known one to be written down: a tenth of the idle time.
    pub fn is_worth_noting(&self, seen_at: Timestamp, now: Timestamp) -> bool {
        now.since(seen_at).as_millis() >= (self.idle_max.as_millis() / 10).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p07_a_role_is_its_scopes() {
        let covers = |role: Role, scope| role.scopes().cover(ScopeSet::of(&[scope]));
        for (role, may) in [
            (Role::Owner, &[Scope::Read, Scope::Send, Scope::Operate, Scope::Admin][..]),
            (Role::Developer, &[Scope::Read, Scope::Send, Scope::Operate]),
            (Role::Viewer, &[Scope::Read]),
        ] {
            for scope in Scope::ALL {
                assert_eq!(covers(role, scope), may.contains(&scope), "{role:?} {scope:?}");
            }
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        assert_eq!(Role::parse("Owner"), None);
    }

    #[test]
    fn p07_a_viewer_sees_bodies_only_where_that_is_allowed() {
        assert!(!Role::Viewer.sees_bodies(false) && Role::Viewer.sees_bodies(true));
        assert!(Role::Developer.sees_bodies(false) && Role::Owner.sees_bodies(false));
    }

    #[test]
    fn p07_names_are_kept_in_one_way() {
        assert_eq!(user_name("  Ada.Lovelace@Example.ORG ").unwrap(), "ada.lovelace@example.org");
        assert_eq!(user_name("Ärztin").unwrap(), "ärztin");
        for bad in ["", "   ", "a b", "a\u{202e}b", "a\nb", "<b>", &"x".repeat(65)] {
            assert_eq!(user_name(bad).unwrap_err().field, "name", "{bad}");
        }
    }

    #[test]
    fn p07_a_password_is_long_and_no_word_of_it_comes_back() {
        check_password("correct horse battery", "ada").unwrap();
        check_password("pässwörtlein", "ada").unwrap();
        for bad in ["short", "elevenchars", "aaaaaaaaaaaaaaaa", "a.lovelace.1815", &"x1".repeat(129)] {
            let error = check_password(bad, "a.lovelace.1815").unwrap_err();
            assert_eq!(error.field, "password");
            assert!(!error.to_string().contains(bad), "{error}");
        }
    }

    #[test]
    fn p07_a_session_ends_idle_or_old() {
        let limits = SessionLimits::default();
        let at = |minutes: i64| Timestamp::from_millis(minutes * 60_000);
        assert!(!limits.is_over(at(0), at(0), at(59)));
        assert!(limits.is_over(at(0), at(0), at(60)));
        assert!(!limits.is_over(at(0), at(719), at(719)));
        assert!(limits.is_over(at(0), at(719), at(720)));
        assert!(!limits.is_worth_noting(at(0), at(5)) && limits.is_worth_noting(at(0), at(6)));
    }
}
