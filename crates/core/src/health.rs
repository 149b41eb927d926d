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

/// Whether a delivery's failures count, kept with the delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// They do.
    #[default]
    NotCounted,
    /// It was last counted at this time: not again before the endpoint's next success, since a delivery counts once.
    CountedAt(Timestamp),
    /// A person sent it again: its failures never count, its success resets (D27).
    ByHand,
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

/// What a failed attempt changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct HealthChange {
    /// The endpoint's health from now on.
    pub health: EndpointHealth,
    /// What the delivery keeps from now on.
    pub counting: Counting,
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

impl Counting {
    /// As one number for a store: the time, −1 for by hand, nothing for not counted.
    pub fn stored(self) -> Option<i64> {
        match self {
            Counting::NotCounted => None,
            Counting::CountedAt(time) => Some(time.as_millis()),
            Counting::ByHand => Some(-1),
        }
    }

    pub fn from_stored(stored: Option<i64>) -> Self {
        match stored {
            None => Counting::NotCounted,
            Some(millis) if millis < 0 => Counting::ByHand,
            Some(millis) => Counting::CountedAt(Timestamp::from_millis(millis)),
        }
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
    /// An attempt failed at `now`. Tests change nothing (V04), so they never come here.
    pub fn after_failure(
        self,
        rules: &SwitchOff,
        kind: FailureKind,
        counting: Counting,
        now: Timestamp,
    ) -> HealthChange {
        let (health, counting_next) = self.count(kind, counting, now);
        let switch_off = match (counting, kind) {
            // Even a resend by hand learns for certain that the address no longer exists; this is not a matter of counting.
            (_, FailureKind::Gone) if rules.on_gone => Some(SwitchOffReason::Gone),
            (Counting::ByHand, _) | (_, FailureKind::NotTheEndpoint) => None,
            _ => health.over_the_line(rules, now),
        };
        HealthChange { health, counting: counting_next, switch_off }
    }

    /// What the timer finds at `now`: an endpoint can be failing for three days with no attempt left to notice it.
    pub fn sweep(&self, rules: &SwitchOff, now: Timestamp) -> Option<SwitchOffReason> {
        self.over_the_line(rules, now)
    }

    /// When [`sweep`](Self::sweep) will first switch the endpoint off if nothing else happens; `None` when it never will.
    pub fn sweep_due_at(&self, rules: &SwitchOff) -> Option<Timestamp> {
        Some(self.failing_since? + rules.failing_for?)
    }

    fn count(self, kind: FailureKind, counting: Counting, now: Timestamp) -> (EndpointHealth, Counting) {
        let counted_in_this_run = match (counting, self.failing_since) {
            (Counting::CountedAt(counted), Some(since)) => counted >= since,
            _ => false,
        };
        if counting == Counting::ByHand || kind == FailureKind::NotTheEndpoint || counted_in_this_run {
            return (self, counting);
        }
        let failing_since = self.failing_since.unwrap_or(now);
        let health = EndpointHealth {
            failing_since: Some(failing_since),
            failed_in_a_row: self.failed_in_a_row.saturating_add(1),
        };
        // Never before the run's start, also when another server's clock is a little ahead of ours.
        (health, Counting::CountedAt(now.max(failing_since)))
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

    /// Health after `n` different deliveries have failed, one a second from second 1 on.
    fn after_deliveries(n: u32) -> EndpointHealth {
        (1..=n).fold(EndpointHealth::default(), |health, second| {
            health
                .after_failure(&SwitchOff::NEVER, FailureKind::Endpoint, Counting::NotCounted, at(second.into()))
                .health
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
    fn every_counting_reads_back() {
        for counting in [Counting::NotCounted, Counting::CountedAt(at(1)), Counting::CountedAt(at(0)), Counting::ByHand]
        {
            assert_eq!(Counting::from_stored(counting.stored()), counting);
        }
    }

    #[test]
    fn v03_a_410_switches_off_at_once() {
        let gone = |rules: &SwitchOff, counting| {
            EndpointHealth::default().after_failure(rules, FailureKind::Gone, counting, at(5))
        };
        for counting in [Counting::NotCounted, Counting::CountedAt(at(4)), Counting::ByHand] {
            assert_eq!(gone(&SwitchOff::PATIENT, counting).switch_off, Some(SwitchOffReason::Gone), "{counting:?}");
        }
        let unruled = gone(&SwitchOff::NEVER, Counting::NotCounted);
        assert_eq!(unruled.switch_off, None, "an ordinary status under the other presets");
        assert_eq!(unruled.health.failed_in_a_row, 1);
    }

    #[test]
    fn v04_a_hundred_deliveries_in_a_row_switch_off() {
        let fail = |health: EndpointHealth, second| {
            health.after_failure(&SwitchOff::PATIENT, FailureKind::Endpoint, Counting::NotCounted, at(second))
        };
        let ninety_ninth = fail(after_deliveries(98), 99);
        assert_eq!((ninety_ninth.health.failed_in_a_row, ninety_ninth.switch_off), (99, None));
        let hundredth = fail(ninety_ninth.health, 100);
        assert_eq!(hundredth.switch_off, Some(SwitchOffReason::FailuresInARow));
        assert_eq!(hundredth.health.failing_since, Some(at(1)));
    }

    #[test]
    fn v04_a_delivery_counts_once_between_two_successes() {
        let fail = |health: EndpointHealth, counting, second| {
            health.after_failure(&SwitchOff::PATIENT, FailureKind::Endpoint, counting, at(second))
        };
        let first = fail(EndpointHealth::default(), Counting::NotCounted, 10);
        assert_eq!((first.health.failed_in_a_row, first.counting), (1, Counting::CountedAt(at(10))));
        let again = fail(first.health, first.counting, 70);
        assert_eq!((again.health, again.counting), (first.health, Counting::CountedAt(at(10))));
        // After a success it counts once more.
        let anew = fail(EndpointHealth::default(), again.counting, 400);
        let expected = EndpointHealth { failing_since: Some(at(400)), failed_in_a_row: 1 };
        assert_eq!((anew.health, anew.counting), (expected, Counting::CountedAt(at(400))));
    }

    #[test]
    fn v04_failing_for_three_days_switches_off_however_few_the_events() {
        let health = after_deliveries(1);
        let due = at(1) + DAY + DAY + DAY;
        assert_eq!(health.sweep_due_at(&SwitchOff::PATIENT), Some(due));
        assert_eq!(health.sweep(&SwitchOff::PATIENT, due - Wait::from_millis(1)), None);
        assert_eq!(health.sweep(&SwitchOff::PATIENT, due), Some(SwitchOffReason::FailingFor));
        let noticed = health.after_failure(&SwitchOff::PATIENT, FailureKind::Endpoint, Counting::NotCounted, due);
        assert_eq!(noticed.switch_off, Some(SwitchOffReason::FailingFor), "without waiting for the timer");
        assert_eq!(EndpointHealth::default().sweep(&SwitchOff::PATIENT, Timestamp::FAR_FUTURE), None);
        assert_eq!(health.sweep(&SwitchOff::NEVER, Timestamp::FAR_FUTURE), None);
    }

    // proves: V04, D27, D29
    #[test]
    fn v04_neither_retries_by_hand_nor_our_own_failures_count() {
        let health = after_deliveries(99);
        for (kind, counting) in
            [(FailureKind::Endpoint, Counting::ByHand), (FailureKind::NotTheEndpoint, Counting::NotCounted)]
        {
            let change = health.after_failure(&SwitchOff::PATIENT, kind, counting, at(900));
            assert_eq!(change, HealthChange { health, counting, switch_off: None }, "{kind:?}");
        }
    }

    proptest! {
        /// Against a set of the deliveries that have failed since the last success.
        #[test]
        fn v04_the_count_is_that_of_different_deliveries(
            steps in prop::collection::vec((0usize..6, 0u8..8, any::<bool>()), 1..200), most in 1u32..6,
        ) {
            let rules = SwitchOff { on_gone: false, after_failures: Some(most), failing_for: None };
            let mut health = EndpointHealth::default();
            let mut countings = [Counting::NotCounted; 6];
            let mut failing: BTreeSet<usize> = BTreeSet::new();
            let mut since = None;
            for (second, (delivery, what, by_hand)) in (1..).zip(steps) {
                if what == 0 {
                    health = EndpointHealth::default();
                    failing.clear();
                    since = None;
                } else {
                    let kind = if what < 6 { FailureKind::Endpoint } else { FailureKind::NotTheEndpoint };
                    let counting = if by_hand { Counting::ByHand } else { countings[delivery] };
                    let change = health.after_failure(&rules, kind, counting, at(second));
                    let counts = what < 6 && !by_hand;
                    if counts {
                        failing.insert(delivery);
                        since = since.or(Some(at(second)));
                        countings[delivery] = change.counting;
                    }
                    let over = counts && failing.len() >= most as usize;
                    prop_assert_eq!(change.switch_off, over.then_some(SwitchOffReason::FailuresInARow));
                    health = change.health;
                }
                prop_assert_eq!(health.failed_in_a_row as usize, failing.len());
                prop_assert_eq!(health.failing_since, since);
            }
        }
    }
}
