//! Why something was not delivered: the codes of the third seed (V08) and those of D30.
//!
//! This module must not know what follows from a failure; policy decides that.

use serde::{Deserialize, Serialize};

/// The codes that people and programs see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    Status,
    Timeout,
    Unreachable,
    NotAllowed,
    SecretUnreadable,
    EndpointOff,
    NotEntitled,
    Error,
    NotVerified,
    TransformFailed,
    Expired,
    TooOld,
    Rejected,
    /// Some entries of a batch were refused and the others done.
    Partial,
    NoAck,
    Interrupted,
    Discarded,
}

impl Failure {
    pub const ALL: [Failure; 17] = [
        Failure::Status,
        Failure::Timeout,
        Failure::Unreachable,
        Failure::NotAllowed,
        Failure::SecretUnreadable,
        Failure::EndpointOff,
        Failure::NotEntitled,
        Failure::Error,
        Failure::NotVerified,
        Failure::TransformFailed,
        Failure::Expired,
        Failure::TooOld,
        Failure::Rejected,
        Failure::Partial,
        Failure::NoAck,
        Failure::Interrupted,
        Failure::Discarded,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Failure::Status => "status",
            Failure::Timeout => "timeout",
            Failure::Unreachable => "unreachable",
            Failure::NotAllowed => "not_allowed",
            Failure::SecretUnreadable => "secret_unreadable",
            Failure::EndpointOff => "endpoint_off",
            Failure::NotEntitled => "not_entitled",
            Failure::Error => "error",
            Failure::NotVerified => "not_verified",
            Failure::TransformFailed => "transform_failed",
            Failure::Expired => "expired",
            Failure::TooOld => "too_old",
            Failure::Rejected => "rejected",
            Failure::Partial => "partial",
            Failure::NoAck => "no_ack",
            Failure::Interrupted => "interrupted",
            Failure::Discarded => "discarded",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Failure::ALL.into_iter().find(|failure| failure.as_str() == text)
    }

    /// It was given up for its age alone: another try without a new age ends the same way.
    pub const fn is_of_age(self) -> bool {
        matches!(self, Failure::Expired | Failure::TooOld)
    }

    /// Nothing sends it again but a person: it was given up for its age, or part of it would be done twice.
    pub const fn is_a_persons(self) -> bool {
        self.is_of_age() || matches!(self, Failure::Partial)
    }

    /// Only these count towards switching an endpoint off (D29).
    pub const fn counts_towards_switch_off(self) -> bool {
        matches!(self, Failure::Status | Failure::Timeout | Failure::Unreachable)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;

    #[test]
    fn v08_every_code_reads_back() {
        for failure in Failure::ALL {
            assert_eq!(Failure::parse(failure.as_str()), Some(failure));
            assert_eq!(serde_json::to_value(failure).unwrap(), failure.as_str());
        }
    }
}
