//! How a webhook endpoint stands, beside its settings: verified or not, on or off, well or failing; and what may not be sent for that.
//!
//! It must not know of addresses (the guard judges those when they are dialled), nor how any of this is stored.

use serde::{Deserialize, Serialize};

use crate::connection::WebhookTarget;
use crate::health::{EndpointHealth, SwitchOffReason};
use crate::{Failure, Timestamp};

/// What an endpoint has shown of itself (R14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verification {
    /// Nobody asked for it.
    #[default]
    NotNeeded,
    /// It has not answered a challenge yet.
    Pending,
    Verified,
    /// Its last answer to a challenge was wrong; it can be asked again.
    Failed,
}

/// An endpoint that the server switched off by itself (V03, V04).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedOff {
    pub reason: SwitchOffReason,
    pub at: Timestamp,
}

/// The last test of an endpoint, which counts for nothing but a warning when it is switched on again (V06).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastTest {
    pub at: Timestamp,
    pub succeeded: bool,
}

/// All of it. `default()` is a new endpoint that needs no verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointState {
    pub verification: Verification,
    pub off: Option<SwitchedOff>,
    pub health: EndpointHealth,
    pub last_test: Option<LastTest>,
}

/// Why a delivery may not be sent, so that no attempt of it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSendable {
    pub failure: Failure,
    /// One sentence for people.
    pub why: &'static str,
}

impl Verification {
    pub const ALL: [Verification; 4] =
        [Verification::NotNeeded, Verification::Pending, Verification::Verified, Verification::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Verification::NotNeeded => "not_needed",
            Verification::Pending => "pending",
            Verification::Verified => "verified",
            Verification::Failed => "failed",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Verification::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// Whether events make deliveries for it at all: an endpoint that is off, by whom ever, gets none, now or later (V05, D29).
pub const fn takes_events(target: &WebhookTarget, state: &EndpointState) -> bool {
    target.enabled && state.off.is_none()
}

/// Asked before each attempt. `entitled`: whether the project's webhooks are paid for (D45).
pub fn not_sendable(target: &WebhookTarget, state: &EndpointState, entitled: bool) -> Option<NotSendable> {
    let refused = |failure, why| Some(NotSendable { failure, why });
    if !entitled {
        return refused(Failure::NotEntitled, "the project was not entitled to webhooks when the delivery came due");
    }
    if !takes_events(target, state) {
        return refused(Failure::EndpointOff, "the endpoint was off when the delivery came due");
    }
    match state.verification {
        Verification::NotNeeded | Verification::Verified => None,
        Verification::Pending | Verification::Failed => {
            refused(Failure::NotVerified, "the endpoint has not been verified")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{ConnectionKind, ConnectionSpec, Target};
    use serde_json::json;

    fn target(enabled: bool) -> WebhookTarget {
        let written = json!({"url": "https://hooks.example.org/", "enabled": enabled});
        let spec = ConnectionSpec::parse(ConnectionKind::Webhook, written.as_object().unwrap()).unwrap();
        let Target::Webhook(target) = spec.target else { panic!("a webhook target") };
        target
    }

    // proves: R14, V05, V08
    #[test]
    fn r14_what_may_not_be_sent_has_its_code() {
        let fine = EndpointState::default();
        let switched = SwitchedOff { reason: SwitchOffReason::Gone, at: Timestamp::from_millis(1) };
        let off = EndpointState { off: Some(switched), ..fine };
        let asked = |verification| EndpointState { verification, ..fine };
        for (enabled, state, entitled, wanted) in [
            (true, fine, true, None),
            (true, asked(Verification::Verified), true, None),
            (true, asked(Verification::Pending), true, Some(Failure::NotVerified)),
            (true, asked(Verification::Failed), true, Some(Failure::NotVerified)),
            (false, fine, true, Some(Failure::EndpointOff)),
            (true, off, true, Some(Failure::EndpointOff)),
            (true, fine, false, Some(Failure::NotEntitled)),
            (false, off, false, Some(Failure::NotEntitled)),
        ] {
            let refused = not_sendable(&target(enabled), &state, entitled);
            assert_eq!(refused.map(|refused| refused.failure), wanted, "{enabled} {state:?} {entitled}");
        }
        assert!(takes_events(&target(true), &asked(Verification::Pending)), "it may be verified by then");
        assert!(!takes_events(&target(true), &off) && !takes_events(&target(false), &fine));
    }

    #[test]
    fn every_word_reads_back() {
        for known in Verification::ALL {
            assert_eq!(Verification::parse(known.as_str()), Some(known));
            assert_eq!(serde_json::to_value(known).unwrap(), known.as_str());
        }
    }
}
