//! When an endpoint is switched off because it keeps failing (V03, V04, D27, D29).
//!
//! Health counts deliveries, not attempts. It must not know how the endpoint is stored, who is told, nor what becomes of what waits.

use serde::{Deserialize, Serialize};

use crate::time::{Timestamp, Wait};

/// What switches an endpoint off; each part can be left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchOff {
    /// On an answer 410 (V03).
    pub on_gone: bool,
    /// On this many different deliveries failed with no success between.
    pub after_failures: Option<u32>,
    /// On this long since the first failure after the last success.
    #[serde(rename = "failing_for_ms")]
    pub failing_for: Option<Wait>,
}

/// How an endpoint has been doing since its last success, or since it was switched on. `default()` is both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointHealth {
    /// The first counted failure since then.
    pub failing_since: Option<Timestamp>,
    /// How many different deliveries have failed since then.
    pub failed_in_a_row: u32,
}

/// Why an endpoint was switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SwitchOffReason {
    /// It answered 410.
    Gone,
    /// Too many deliveries failed in a row.
    FailuresInARow,
    /// It has been failing for too long, however few events it received.
    FailingFor,
}

/// Who made the attempt, as far as health cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOrigin {
    /// The schedule of a delivery.
    Schedule,
    /// A person who retried or resent a delivery. Its failures never count, its success resets (D27).
    ByHand,
    /// A test of the endpoint, which changes nothing (V04).
    Test,
}

/// Whose failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The endpoint answered 410.
    Gone,
    /// Another `status`, `timeout` or `unreachable`: the ones that count (D29).
    Endpoint,
    /// Anything that says nothing about the endpoint: our own error, a refused address, a missing entitlement.
    NotTheEndpoint,
}

/// A failed attempt as health sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    pub kind: FailureKind,
    pub origin: AttemptOrigin,
    /// When this delivery was last counted as failed, if ever: a delivery counts once between two successes.
    pub counted_at: Option<Timestamp>,
}

/// What a failed attempt changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct HealthChange {
    /// The endpoint's health from now on.
    pub health: EndpointHealth,
    /// What the delivery's `counted_at` is from now on.
    pub counted_at: Option<Timestamp>,
    /// Set when the endpoint is to be switched off now.
    pub switch_off: Option<SwitchOffReason>,
}

impl SwitchOffReason {
    pub const ALL: [SwitchOffReason; 3] =
        [SwitchOffReason::Gone, SwitchOffReason::FailuresInARow, SwitchOffReason::FailingFor];

    pub const fn as_str(self) -> &'static str {
        match self {
            SwitchOffReason::Gone => "gone",
            SwitchOffReason::FailuresInARow => "failures_in_a_row",
            SwitchOffReason::FailingFor => "failing_for",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        SwitchOffReason::ALL.into_iter().find(|reason| reason.as_str() == text)
    }
}

impl SwitchOff {
    /// Never: the presets `webhook` and `forward` (D20).
    pub const NEVER: SwitchOff = SwitchOff { on_gone: false, after_failures: None, failing_for: None };

    /// 410, 100 deliveries in a row, or three days: the preset `patient` (V04, D20).
    pub const PATIENT: SwitchOff =
        SwitchOff { on_gone: true, after_failures: Some(100), failing_for: Some(Wait::from_secs(3 * 86_400)) };
}

impl EndpointHealth {
    /// A failed attempt at `now`.
    pub fn after_failure(self, rules: &SwitchOff, failed: FailedAttempt, now: Timestamp) -> HealthChange {
        let (health, counted_at) = self.count(failed, now);
        let switch_off = match (failed.origin, failed.kind) {
            (AttemptOrigin::Test, _) => None,
            // Even a resend by hand learns for certain that the address no longer exists; this is not a matter of counting.
            (_, FailureKind::Gone) if rules.on_gone => Some(SwitchOffReason::Gone),
            (AttemptOrigin::ByHand, _) | (_, FailureKind::NotTheEndpoint) => None,
            (AttemptOrigin::Schedule, _) => health.over_the_line(rules, now),
        };
        HealthChange { health, counted_at, switch_off }
    }

    /// A 2xx: the count starts over, unless it was a test.
    #[must_use]
    pub fn after_success(self, origin: AttemptOrigin) -> EndpointHealth {
        match origin {
            AttemptOrigin::Test => self,
            AttemptOrigin::Schedule | AttemptOrigin::ByHand => EndpointHealth::default(),
        }
    }

    /// What the timer finds at `now`: an endpoint can be failing for three days with no attempt left to notice it.
    pub fn sweep(&self, rules: &SwitchOff, now: Timestamp) -> Option<SwitchOffReason> {
        self.over_the_line(rules, now)
    }

    /// When [`sweep`](Self::sweep) will first switch the endpoint off if nothing else happens; `None` when it never will.
    pub fn sweep_due_at(&self, rules: &SwitchOff) -> Option<Timestamp> {
        Some(self.failing_since? + rules.failing_for?)
    }

    fn count(self, failed: FailedAttempt, now: Timestamp) -> (EndpointHealth, Option<Timestamp>) {
        let counts = failed.origin == AttemptOrigin::Schedule && failed.kind != FailureKind::NotTheEndpoint;
        let counted_in_this_run = match (failed.counted_at, self.failing_since) {
            (Some(counted), Some(since)) => counted >= since,
            _ => false,
        };
        if !counts || counted_in_this_run {
            return (self, failed.counted_at);
        }
        let failing_since = self.failing_since.unwrap_or(now);
        let health = EndpointHealth {
            failing_since: Some(failing_since),
            failed_in_a_row: self.failed_in_a_row.saturating_add(1),
        };
        // Never before the run's start, also when another server's clock is a little ahead of ours.
        (health, Some(now.max(failing_since)))
    }

    fn over_the_line(&self, rules: &SwitchOff, now: Timestamp) -> Option<SwitchOffReason> {
        if rules.after_failures.is_some_and(|most| self.failed_in_a_row > 0 && self.failed_in_a_row >= most) {
            return Some(SwitchOffReason::FailuresInARow);
        }
        self.sweep_due_at(rules).filter(|due| now >= *due).map(|_| SwitchOffReason::FailingFor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    const DAY: Wait = Wait::from_secs(86_400);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn failed(kind: FailureKind, origin: AttemptOrigin) -> FailedAttempt {
        FailedAttempt { kind, origin, counted_at: None }
    }

    /// Health after `n` different deliveries have failed, one a second from second 1 on.
    fn after_deliveries(n: u32) -> EndpointHealth {
        (1..=n).fold(EndpointHealth::default(), |health, second| {
            let failure = failed(FailureKind::Endpoint, AttemptOrigin::Schedule);
            health.after_failure(&SwitchOff::NEVER, failure, at(second.into())).health
        })
    }

    #[test]
    fn every_reason_reads_back() {
        for reason in SwitchOffReason::ALL {
            assert_eq!(SwitchOffReason::parse(reason.as_str()), Some(reason));
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
    }

    #[test]
    fn v03_a_410_switches_off_at_once() {
        let gone = |origin| {
            let change =
                EndpointHealth::default().after_failure(&SwitchOff::PATIENT, failed(FailureKind::Gone, origin), at(5));
            change.switch_off
        };
        assert_eq!(gone(AttemptOrigin::Schedule), Some(SwitchOffReason::Gone));
        assert_eq!(gone(AttemptOrigin::ByHand), Some(SwitchOffReason::Gone));
        assert_eq!(gone(AttemptOrigin::Test), None);
        let unruled = EndpointHealth::default().after_failure(
            &SwitchOff::NEVER,
            failed(FailureKind::Gone, AttemptOrigin::Schedule),
            at(5),
        );
        assert_eq!(unruled.switch_off, None, "an ordinary status under the other presets");
        assert_eq!(unruled.health.failed_in_a_row, 1);
    }

    #[test]
    fn v04_a_hundred_deliveries_in_a_row_switch_off() {
        let failure = failed(FailureKind::Endpoint, AttemptOrigin::Schedule);
        let ninety_ninth = after_deliveries(98).after_failure(&SwitchOff::PATIENT, failure, at(99));
        assert_eq!((ninety_ninth.health.failed_in_a_row, ninety_ninth.switch_off), (99, None));
        let hundredth = ninety_ninth.health.after_failure(&SwitchOff::PATIENT, failure, at(100));
        assert_eq!(hundredth.switch_off, Some(SwitchOffReason::FailuresInARow));
        assert_eq!(hundredth.health.failing_since, Some(at(1)));
    }

    #[test]
    fn v04_a_delivery_counts_once_between_two_successes() {
        let mut failure = failed(FailureKind::Endpoint, AttemptOrigin::Schedule);
        let first = EndpointHealth::default().after_failure(&SwitchOff::PATIENT, failure, at(10));
        assert_eq!((first.health.failed_in_a_row, first.counted_at), (1, Some(at(10))));
        failure.counted_at = first.counted_at;
        let again = first.health.after_failure(&SwitchOff::PATIENT, failure, at(70));
        assert_eq!(again.health, first.health);
        assert_eq!(again.counted_at, Some(at(10)));

        let reset = again.health.after_success(AttemptOrigin::Schedule);
        assert_eq!(reset, EndpointHealth::default());
        let anew = reset.after_failure(&SwitchOff::PATIENT, failure, at(400));
        let expected = EndpointHealth { failing_since: Some(at(400)), failed_in_a_row: 1 };
        assert_eq!((anew.health, anew.counted_at), (expected, Some(at(400))));
    }

    #[test]
    fn v04_failing_for_three_days_switches_off_however_few_the_events() {
        let health = after_deliveries(1);
        let due = at(1) + DAY + DAY + DAY;
        assert_eq!(health.sweep_due_at(&SwitchOff::PATIENT), Some(due));
        assert_eq!(health.sweep(&SwitchOff::PATIENT, due - Wait::from_millis(1)), None);
        assert_eq!(health.sweep(&SwitchOff::PATIENT, due), Some(SwitchOffReason::FailingFor));
        let failure = failed(FailureKind::Endpoint, AttemptOrigin::Schedule);
        let noticed = health.after_failure(&SwitchOff::PATIENT, failure, due);
        assert_eq!(noticed.switch_off, Some(SwitchOffReason::FailingFor), "without waiting for the timer");
        assert_eq!(EndpointHealth::default().sweep(&SwitchOff::PATIENT, Timestamp::FAR_FUTURE), None);
        assert_eq!(health.sweep(&SwitchOff::NEVER, Timestamp::FAR_FUTURE), None);
    }

    // proves: V04, D27
    #[test]
    fn v04_tests_and_retries_by_hand_do_not_count() {
        let health = after_deliveries(99);
        for origin in [AttemptOrigin::Test, AttemptOrigin::ByHand] {
            let failure = failed(FailureKind::Endpoint, origin);
            let change = health.after_failure(&SwitchOff::PATIENT, failure, at(900));
            assert_eq!(change, HealthChange { health, counted_at: None, switch_off: None }, "{origin:?}");
        }
        assert_eq!(health.after_success(AttemptOrigin::Test), health);
        assert_eq!(health.after_success(AttemptOrigin::ByHand), EndpointHealth::default());
    }

    // proves: V04, D29
    #[test]
    fn v04_our_own_failures_do_not_count() {
        let health = after_deliveries(99);
        let failure = failed(FailureKind::NotTheEndpoint, AttemptOrigin::Schedule);
        let change = health.after_failure(&SwitchOff::PATIENT, failure, at(900));
        assert_eq!(change, HealthChange { health, counted_at: None, switch_off: None });
    }

    proptest! {
        /// Against a set of the deliveries that have failed since the last success.
        #[test]
        fn v04_the_count_is_that_of_different_deliveries(
            steps in prop::collection::vec((0usize..6, 0u8..8, 0u8..3), 1..200), most in 1u32..6,
        ) {
            let rules = SwitchOff { on_gone: false, after_failures: Some(most), failing_for: None };
            let mut health = EndpointHealth::default();
            let mut counted_at = [None; 6];
            let mut failing: BTreeSet<usize> = BTreeSet::new();
            let mut since = None;
            for (second, (delivery, what, who)) in (1..).zip(steps) {
                let origin = match who {
                    0 => AttemptOrigin::Schedule,
                    1 => AttemptOrigin::ByHand,
                    _ => AttemptOrigin::Test,
                };
                if what == 0 {
                    health = health.after_success(origin);
                    if who != 2 {
                        failing.clear();
                        since = None;
                    }
                } else {
                    let kind = if what < 6 { FailureKind::Endpoint } else { FailureKind::NotTheEndpoint };
                    let failure = FailedAttempt { kind, origin, counted_at: counted_at[delivery] };
                    let change = health.after_failure(&rules, failure, at(second));
                    let counts = what < 6 && who == 0;
                    if counts {
                        failing.insert(delivery);
                        since = since.or(Some(at(second)));
                    }
                    let over = counts && failing.len() >= most as usize;
                    prop_assert_eq!(change.switch_off, over.then_some(SwitchOffReason::FailuresInARow));
                    (health, counted_at[delivery]) = (change.health, change.counted_at);
                }
                prop_assert_eq!(health.failed_in_a_row as usize, failing.len());
                prop_assert_eq!(health.failing_since, since);
            }
        }
    }
}
