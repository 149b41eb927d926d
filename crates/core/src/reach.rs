//! What came of trying whether a remote system can be reached: how far it went, how long each part took, and what to do about it.
//!
//! Nothing of it is a delivery. This module must not know how anything is dialled.

use std::time::Duration;

use crate::connection::ConnectionKind;
use crate::{NoAnswerKind, Timestamp};

/// A certificate that ends sooner than this is worth a word.
const CERTIFICATE_DAYS_MIN: i64 = 14;
const DAY_MS: i64 = 86_400_000;

/// In the order in which they are reached; a kind of connection has those that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachStage {
    /// The token that its security definition fetches.
    Token,
    /// The look-up of the name.
    Resolve,
    Connect,
    Tls,
    /// Up to the first byte of an answer.
    Answer,
}

impl ReachStage {
    pub const ALL: [ReachStage; 5] =
        [ReachStage::Token, ReachStage::Resolve, ReachStage::Connect, ReachStage::Tls, ReachStage::Answer];

    pub const fn as_str(self) -> &'static str {
        match self {
            ReachStage::Token => "token",
            ReachStage::Resolve => "resolve",
            ReachStage::Connect => "connect",
            ReachStage::Tls => "tls",
            ReachStage::Answer => "first_byte",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// How long each stage took, the one that failed included.
    pub stages: Vec<(ReachStage, Duration)>,
    /// The address that accepted.
    pub address: Option<String>,
    /// When the certificate ends that was shown.
    pub certificate_ends_at: Option<Timestamp>,
    /// The status of an answer over HTTP, whatever it is.
    pub status: Option<u16>,
    pub failed: Option<NotReached>,
}

/// The stage that failed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotReached {
    pub stage: ReachStage,
    pub kind: NoAnswerKind,
    /// One sentence for people, without secrets.
    pub error: String,
}

impl Reached {
    pub fn not(stage: ReachStage, kind: NoAnswerKind, error: impl Into<String>) -> Self {
        let failed = Some(NotReached { stage, kind, error: error.into() });
        Reached { failed, ..Reached::default() }
    }

    /// Something is there and answers; what it thinks of us is another question.
    pub fn is_reachable(&self) -> bool {
        self.failed.is_none()
    }

    /// What to do, in a sentence; `None` where nothing is amiss. `kind` decides which settings it speaks of.
    pub fn advice(&self, kind: ConnectionKind, now: Timestamp) -> Option<String> {
        if let Some(failed) = &self.failed {
            return Some(failed.advice(kind));
        }
        let place = where_it_is(kind);
        let of_status = match self.status {
            Some(401 | 403) => Some("It is there and does not take the credentials: look at `security`.".to_owned()),
            Some(404 | 410) => Some(format!("It is there and has nothing at this path: look at {place}.")),
            Some(300..=399) => {
                Some(format!("It sends elsewhere, and redirects are not followed: put the new address into {place}."))
            }
            // Said of the method alone: what is delivered has another.
            Some(405 | 501) => None,
            Some(429) => Some("It is there and busy.".to_owned()),
            Some(500..) => Some("It is there and not well: its own log says why.".to_owned()),
            _ => None,
        };
        of_status.or_else(|| self.about_certificate(now))
    }

    fn about_certificate(&self, now: Timestamp) -> Option<String> {
        let days = self.certificate_ends_at?.as_millis().saturating_sub(now.as_millis()).div_euclid(DAY_MS);
        (days < CERTIFICATE_DAYS_MIN).then(|| match days {
            ..0 => "Its certificate has ended: whoever checks it refuses it.".to_owned(),
            0 => "Its certificate ends within a day: it has to be renewed there.".to_owned(),
            days => format!("Its certificate ends in {days} days: it has to be renewed there."),
        })
    }
}

impl NotReached {
    fn advice(&self, kind: ConnectionKind) -> String {
        let place = where_it_is(kind);
        let timed_out = self.kind == NoAnswerKind::Timeout;
        match (self.kind, self.stage) {
            (NoAnswerKind::NotAllowed, _) => {
                "The egress guard keeps requests from there: name another address, or open its range with POSTRIDER_ALLOW_PRIVATE.".to_owned()
            }
            (NoAnswerKind::SecretUnreadable, _) => "Set the secret of its security definition anew, or bring the key back.".to_owned(),
            (NoAnswerKind::Unsendable, _) => "Mend the setting that the error names.".to_owned(),
            (NoAnswerKind::Internal, _) => "This server is out of something: `postrider doctor` looks for it.".to_owned(),
            (_, ReachStage::Token) => {
                "Look at `token_url`, the client's id and its secret in the security definition.".to_owned()
            }
            (_, ReachStage::Resolve) if timed_out => "The name server of this machine does not answer: look at its network.".to_owned(),
            (_, ReachStage::Resolve) => {
                format!("Look at the spelling in {place}, and ask this machine's name server for it.")
            }
            (_, ReachStage::Connect) if timed_out => {
                "Something on the way drops packets: a firewall has to let this machine through to that port.".to_owned()
            }
            (_, ReachStage::Connect) => {
                format!("Nothing listens there, or a firewall says no: look at the port in {place}, and whether the remote system runs.")
            }
            (_, ReachStage::Tls) if timed_out => {
                "It accepts connections and does not speak TLS: look at the port, and whether it should be in the clear.".to_owned()
            }
            (_, ReachStage::Tls) => {
                "Look at the error: a private authority belongs into `tls_ca_path`, a certificate has to be for this very name, and the other side may ask for ours.".to_owned()
            }
            (_, ReachStage::Answer) if timed_out => {
                "It accepts connections and says nothing: it may be overloaded, or speak another protocol on this port.".to_owned()
            }
            (_, ReachStage::Answer) => {
                "It accepts connections and breaks them off: it may speak another protocol on this port, or TLS where there is none.".to_owned()
            }
        }
    }
}

const fn where_it_is(kind: ConnectionKind) -> &'static str {
    match kind {
        ConnectionKind::Rest | ConnectionKind::Soap => "`host` and `url_path`",
        ConnectionKind::Mllp | ConnectionKind::Fhir | ConnectionKind::Service => "`address`",
        ConnectionKind::Webhook => "`url`",
        ConnectionKind::ChannelRest | ConnectionKind::ChannelSoap | ConnectionKind::ChannelMllp => "`service`",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_says_what_to_do_in_the_words_of_its_kind() {
        let kinds = [
            NoAnswerKind::Timeout,
            NoAnswerKind::Unreachable,
            NoAnswerKind::NoAck,
            NoAnswerKind::NotAllowed,
            NoAnswerKind::Unsendable,
            NoAnswerKind::SecretUnreadable,
            NoAnswerKind::TransformFailed,
            NoAnswerKind::Internal,
        ];
        for kind in kinds {
            for stage in ReachStage::ALL {
                let reached = Reached::not(stage, kind, "why");
                let advice = reached.advice(ConnectionKind::Mllp, Timestamp::from_millis(0)).unwrap();
                assert!(advice.ends_with('.') && !advice.contains("url_path"), "{kind:?} {stage:?}: {advice}");
                assert!(!reached.is_reachable());
            }
        }
        let refused = Reached::not(ReachStage::Connect, NoAnswerKind::Unreachable, "refused");
        assert!(
            refused.advice(ConnectionKind::Rest, Timestamp::from_millis(0)).unwrap().contains("`host` and `url_path`")
        );
    }

    #[test]
    fn a_status_or_an_end_of_the_certificate_is_worth_a_word_and_health_is_not() {
        let now = Timestamp::from_millis(0);
        let told = |status, ends_in_days: Option<i64>| {
            let certificate_ends_at = ends_in_days.map(|days| Timestamp::from_millis(days * DAY_MS + 1));
            Reached { status, certificate_ends_at, ..Reached::default() }.advice(ConnectionKind::Rest, now)
        };
        assert_eq!(told(Some(200), Some(90)), None);
        assert_eq!(told(None, None), None);
        assert_eq!(told(Some(405), None), None);
        assert!(told(Some(401), Some(90)).unwrap().contains("`security`"));
        assert!(told(Some(302), None).unwrap().contains("redirects"));
        assert!(told(Some(503), None).unwrap().contains("not well"));
        assert!(told(Some(200), Some(13)).unwrap().contains("in 13 days"));
        assert!(told(Some(200), Some(0)).unwrap().contains("within a day"));
        assert!(told(Some(200), Some(-2)).unwrap().contains("has ended"));
    }
}
