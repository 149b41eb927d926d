//! What a key may do: its scopes, and what follows from each (P07).
//!
//! It must not know of keys, projects or routes.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use crate::SettingError;

/// One right within a project, or with a key of the installation within every project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// See everything but keys and the audit log: configuration, deliveries, attempts, bodies.
    Read,
    /// Send and publish; nothing can be read with it alone.
    Send,
    /// Act on deliveries and pause connections by hand; includes `read`.
    Operate,
    /// Change the configuration, keys included, and read the audit log; includes all others.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Send, Scope::Operate, Scope::Admin];
    /// For refusals.
    pub const ALLOWED: &'static str = "read, send, operate, admin";

    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Send => "send",
            Scope::Operate => "operate",
            Scope::Admin => "admin",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// The scope itself and what it includes.
    const fn granted(self) -> u8 {
        match self {
            Scope::Read | Scope::Send => self.bit(),
            Scope::Operate => self.bit() | Scope::Read.bit(),
            Scope::Admin => self.bit() | Scope::Read.bit() | Scope::Send.bit() | Scope::Operate.bit(),
        }
    }
}

impl FromStr for Scope {
    type Err = SettingError;
    fn from_str(text: &str) -> Result<Self, SettingError> {
        let found = Scope::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| SettingError::new("scopes", text, Scope::ALLOWED))
    }
}

/// Scopes as somebody gave them, without those that follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(u8);

impl ScopeSet {
    pub const NONE: ScopeSet = ScopeSet(0);

    pub const fn of(scopes: &[Scope]) -> ScopeSet {
        let mut bits = 0;
        let mut at = 0;
        while at < scopes.len() {
            bits |= scopes[at].bit();
            at += 1;
        }
        ScopeSet(bits)
    }

    /// Reads the scopes of a new key.
    ///
    /// # Errors
    /// One that is unknown, or none at all.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<ScopeSet, SettingError> {
        let mut set = ScopeSet::NONE;
        for word in words {
            set.0 |= word.trim().parse::<Scope>()?.bit();
        }
        if set.is_empty() {
            return Err(SettingError::new("scopes", "[]", format!("one or more of {}", Scope::ALLOWED)));
        }
        Ok(set)
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.0 & scope.bit() != 0)
    }

    /// Whether these scopes, and what follows from them, cover all that is needed.
    pub fn cover(self, needed: ScopeSet) -> bool {
        let granted = self.iter().fold(0, |bits, scope| bits | scope.granted());
        needed.0 & !granted == 0
    }

    pub fn to_json(self) -> Value {
        self.iter().map(Scope::as_str).collect()
    }
}

impl fmt::Display for ScopeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.iter().map(Scope::as_str).collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p07_a_scope_covers_itself_and_what_it_includes_and_nothing_else() {
        use Scope::{Admin, Operate, Read, Send};
        for (given, covered) in
            [(Read, &[Read][..]), (Send, &[Send]), (Operate, &[Read, Operate]), (Admin, &[Read, Send, Operate, Admin])]
        {
            for needed in Scope::ALL {
                let covers = ScopeSet::of(&[given]).cover(ScopeSet::of(&[needed]));
                assert_eq!(covers, covered.contains(&needed), "{given:?} {needed:?}");
            }
        }
        assert!(!ScopeSet::of(&[Send]).cover(ScopeSet::of(&[Send, Read])));
        assert!(ScopeSet::of(&[Send, Operate]).cover(ScopeSet::of(&[Send, Read])));
        assert!(!ScopeSet::NONE.cover(ScopeSet::of(&[Read])));
    }

    #[test]
    fn scopes_are_read_by_name_and_refused_by_name() {
        let set = ScopeSet::parse(["send", " read"]).unwrap();
        assert_eq!(set.to_string(), "read, send");
        assert_eq!(set.to_json(), serde_json::json!(["read", "send"]));
        assert_eq!(ScopeSet::parse(["root"]).unwrap_err().field, "scopes");
        assert!(ScopeSet::parse([]).is_err());
    }
}
