//! How a webhook endpoint stands, beside its settings: verified or not, on or off, well or failing; and what may not be sent for that.
//!
//! It must not know of addresses (the guard judges those when they are dialled), nor how any of this is stored.

use serde::{Deserialize, Serialize};

use crate::connection::WebhookTarget;
use crate::health::{Counting, EndpointHealth, FailureKind, SwitchOff, SwitchOffReason};
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
    /// Rises each time it is switched off or on. What an attempt says holds only within the epoch in which it began, so that a late success
    /// does not undo a 410 and a late failure does not count against an endpoint that was mended since (D29).
    pub epoch: u32,
}

/// How an attempt ended, as far as its endpoint is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    Delivered,
    Failed { failure: Failure, status: Option<u16> },
}

/// What an attempt makes of its endpoint and of its delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct AfterAttempt {
    pub state: EndpointState,
    pub counting: Counting,
}

/// Why a delivery may not be sent, so that no attempt of it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSendable {
    pub failure: Failure,
    /// One sentence for people.
    pub why: &'static str,
}

impl AttemptEnd {
    const fn kind(failure: Failure, status: Option<u16>) -> FailureKind {
        match status {
            Some(410) => FailureKind::Gone,
            _ if failure.counts_towards_switch_off() => FailureKind::Endpoint,
            _ => FailureKind::NotTheEndpoint,
        }
    }
}

impl EndpointState {
    /// An attempt that began in the epoch `seen` has ended at `now`. `None`: it changes nothing.
    pub fn after_attempt(
        &self,
        seen: u32,
        ended: AttemptEnd,
        counting: Counting,
        rules: &SwitchOff,
        now: Timestamp,
    ) -> Option<AfterAttempt> {
        if seen != self.epoch || self.off.is_some() {
            return None;
        }
        let after = match ended {
            AttemptEnd::Delivered => {
                AfterAttempt { state: EndpointState { health: EndpointHealth::default(), ..*self }, counting }
            }
            AttemptEnd::Failed { failure, status } => {
                let kind = AttemptEnd::kind(failure, status);
                let change = self.health.after_failure(rules, kind, counting, now);
                let state = EndpointState { health: change.health, ..*self };
                let state = change.switch_off.map_or(state, |reason| state.switched_off(reason, now));
                AfterAttempt { state, counting: change.counting }
            }
        };
        (after != AfterAttempt { state: *self, counting }).then_some(after)
    }

    /// Switched off by the server. What it had counted stays to be seen.
    #[must_use]
    pub const fn switched_off(self, reason: SwitchOffReason, at: Timestamp) -> Self {
        EndpointState { off: Some(SwitchedOff { reason, at }), epoch: self.epoch.saturating_add(1), ..self }
    }
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

    fn failed(status: u16) -> AttemptEnd {
        AttemptEnd::Failed { failure: Failure::Status, status: Some(status) }
    }

    // proves: V03, D29
    #[test]
    fn v03_a_late_success_does_not_undo_a_410() {
        let now = Timestamp::from_millis(7);
        let fine = EndpointState::default();
        let gone = fine.after_attempt(0, failed(410), Counting::NotCounted, &SwitchOff::PATIENT, now).unwrap();
        assert_eq!(gone.state.off, Some(SwitchedOff { reason: SwitchOffReason::Gone, at: now }));
        assert_eq!(gone.state.epoch, 1);
        let late = |ended| gone.state.after_attempt(0, ended, Counting::NotCounted, &SwitchOff::PATIENT, now);
        assert_eq!((late(AttemptEnd::Delivered), late(failed(500)), late(failed(410))), (None, None, None));
        // Nor does a late failure count against what was mended since.
        let mended = EndpointState { off: None, health: EndpointHealth::default(), epoch: 2, ..gone.state };
        assert_eq!(mended.after_attempt(0, failed(410), Counting::NotCounted, &SwitchOff::PATIENT, now), None);
        assert!(mended.after_attempt(2, failed(410), Counting::NotCounted, &SwitchOff::PATIENT, now).is_some());
    }

    // proves: V04
    #[test]
    fn v04_a_success_costs_a_well_endpoint_nothing_and_resets_a_failing_one() {
        let now = Timestamp::from_millis(7);
        let fine = EndpointState::default();
        let end =
            |state: EndpointState, ended| state.after_attempt(0, ended, Counting::NotCounted, &SwitchOff::PATIENT, now);
        assert_eq!(end(fine, AttemptEnd::Delivered), None);
        let failing = end(fine, failed(500)).unwrap().state;
        assert_eq!(failing.health, EndpointHealth { failing_since: Some(now), failed_in_a_row: 1 });
        assert_eq!(end(failing, AttemptEnd::Delivered).unwrap().state, fine);
        let ours = AttemptEnd::Failed { failure: Failure::TransformFailed, status: None };
        assert_eq!(end(failing, ours), None, "our own failures change nothing");
    }

    #[test]
    fn every_word_reads_back() {
        for known in Verification::ALL {
            assert_eq!(Verification::parse(known.as_str()), Some(known));
            assert_eq!(serde_json::to_value(known).unwrap(), known.as_str());
        }
    }
}
