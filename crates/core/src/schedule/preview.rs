//! When the attempts of a policy would be made if every one of them failed: a dry run (P08).
//!
//! Calls count as taking no time, and nothing asks for a later attempt. This module must not know when a delivery is really due.

use super::Schedule;
use crate::Wait;
use crate::policy::DeliveryPolicy;
use crate::roll::Roll;

/// One attempt that would be made. Without jitter all three figures of a kind are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedAttempt {
    /// 1, 2, 3, …
    pub attempt: u32,
    /// The wait since the attempt before, without jitter; zero for the first attempt.
    pub wait: Wait,
    /// The same at the bottom and at the top of its jitter.
    pub wait_min: Wait,
    pub wait_max: Wait,
    /// How long after the first attempt, without jitter.
    pub after_first: Wait,
    /// How long after the first attempt at the earliest and at the latest.
    pub earliest: Wait,
    pub latest: Wait,
}

/// The attempts of one round, or those of the whole ladder as far as the age cap lets them be made without jitter.
pub fn schedule_preview(policy: &DeliveryPolicy) -> Vec<PlannedAttempt> {
    let waits: Vec<(Wait, Wait, Wait)> = match &policy.schedule {
        Schedule::Backoff(backoff) => backoff.waits().into_iter().map(|wait| (wait, wait, wait)).collect(),
        Schedule::Ladder(ladder) => (1..)
            .map_while(|attempt| {
                let wait = ladder.wait_after_attempt(attempt, Roll::MIDDLE)?;
                let (wait_min, wait_max) = ladder.wait_bounds_after_attempt(attempt)?;
                Some((wait, wait_min, wait_max))
            })
            .collect(),
    };
    let mut last = PlannedAttempt {
        attempt: 1,
        wait: Wait::ZERO,
        wait_min: Wait::ZERO,
        wait_max: Wait::ZERO,
        after_first: Wait::ZERO,
        earliest: Wait::ZERO,
        latest: Wait::ZERO,
    };
    let mut planned = vec![last];
    for (wait, wait_min, wait_max) in waits {
        last = PlannedAttempt {
            attempt: last.attempt + 1,
            wait,
            wait_min,
            wait_max,
            after_first: last.after_first + wait,
            earliest: last.earliest + wait_min,
            latest: last.latest + wait_max,
        };
        if policy.age_cap.is_some_and(|cap| last.after_first >= cap) {
            break;
        }
        planned.push(last);
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Backoff, Jitter, Ladder};

    fn seconds(planned: &[PlannedAttempt], figure: impl Fn(&PlannedAttempt) -> Wait) -> Vec<u64> {
        planned.iter().map(|attempt| figure(attempt).as_millis() / 1000).collect()
    }

    #[test]
    fn p08_rounds_are_planned_to_the_second() {
        let policy = DeliveryPolicy::rounds(Backoff::new(10, 2.0, 2.0, 60.0).unwrap());
        let planned = schedule_preview(&policy);
        assert_eq!(seconds(&planned, |a| a.wait), [0, 2, 4, 8, 8, 8, 8, 8, 8, 6]);
        assert_eq!(seconds(&planned, |a| a.after_first), [0, 2, 6, 14, 22, 30, 38, 46, 54, 60]);
        assert!(planned.iter().all(|a| a.earliest == a.after_first && a.latest == a.after_first));
        assert_eq!(planned.iter().map(|a| a.attempt).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
        assert_eq!(schedule_preview(&DeliveryPolicy::rounds(Backoff::default())).len(), 1);
    }

    // proves: P08, R03
    #[test]
    fn p08_a_ladder_is_planned_with_the_bounds_of_its_jitter() {
        let planned = schedule_preview(&DeliveryPolicy::webhook());
        assert_eq!(seconds(&planned, |a| a.wait), [0, 60, 300, 900, 3600, 21_600, 86_400]);
        assert_eq!(seconds(&planned, |a| a.wait_min), [0, 30, 150, 450, 1800, 10_800, 43_200]);
        assert_eq!(seconds(&planned, |a| a.wait_max), [0, 90, 450, 1350, 5400, 32_400, 129_600]);
        assert_eq!(seconds(&planned, |a| a.after_first).last(), Some(&112_860), "31 h 21 min");
        assert_eq!(seconds(&planned, |a| a.earliest).last(), Some(&56_430));
        assert_eq!(seconds(&planned, |a| a.latest).last(), Some(&169_290));
    }

    #[test]
    fn p08_the_patient_ladder_has_no_jitter() {
        let planned = schedule_preview(&DeliveryPolicy::patient());
        assert_eq!(planned.len(), 8);
        assert!(planned.iter().all(|a| a.wait_min == a.wait && a.wait_max == a.wait));
        assert_eq!(planned[7].after_first, Wait::from_secs(44 * 3600 + 36 * 60));
    }

    #[test]
    fn p08_what_the_age_cap_cuts_off_is_not_planned() {
        let day = Wait::from_secs(86_400);
        let ladder = Ladder::new(20, vec![day], Jitter::None).unwrap();
        let policy = DeliveryPolicy { schedule: Schedule::Ladder(ladder), ..DeliveryPolicy::webhook() };
        assert_eq!(seconds(&schedule_preview(&policy), |a| a.after_first), [0, 86_400, 172_800, 259_200]);
    }
}
