//! The waits inside a call or a round: a first wait, then each one the previous times a multiplier (Z03, Z15).
//!
//! It must not know about `Retry-After`: who honours it (Z04) adds that wait to `waited` and asks for the next retry by number.

use serde::{Deserialize, Serialize};

use crate::setting::SettingError;
use crate::time::Wait;

/// Retries with a growing wait. Waits count towards the total, the time that calls take does not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Backoff {
    max_retries: u32,
    first_wait: Wait,
    multiplier: f64,
    total: Wait,
}

impl Backoff {
    /// No single wait of the schedule is longer than this (Z03).
    pub const LONGEST_WAIT: Wait = Wait::from_secs(8);
    /// No wait after the first one is shorter than this, unless less is left of the total (Z03).
    pub const SHORTEST_LATER_WAIT: Wait = Wait::from_secs(1);
    /// `max_retries` may be 0 to this.
    pub const MAX_RETRIES_MAX: u32 = 1000;
    /// `retry_backoff_multiplier` may be 0 to this.
    pub const MULTIPLIER_MAX: f64 = 100.0;
    /// `retry_sleep_time` and `retry_backoff_threshold` may be 0 to this many seconds.
    pub const SECONDS_MAX: f64 = 86_400.0;

    /// Seconds are decimal numbers, kept to the millisecond. A first wait over 8 s is kept as given and waits 8 s, as the seed has it.
    ///
    /// Refuses, naming the field: `max_retries` over 1000, `retry_backoff_multiplier` outside 0..=100, `retry_sleep_time` and
    /// `retry_backoff_threshold` outside 0..=86 400, and whatever is not a finite number.
    pub fn new(max_retries: u32, first_wait_s: f64, multiplier: f64, total_s: f64) -> Result<Self, SettingError> {
        if max_retries > Self::MAX_RETRIES_MAX {
            let allowed = format!("a whole number from 0 to {}", Self::MAX_RETRIES_MAX);
            return Err(SettingError::new("max_retries", max_retries, allowed));
        }
        let first_wait = seconds("retry_sleep_time", first_wait_s)?;
        if !(0.0..=Self::MULTIPLIER_MAX).contains(&multiplier) {
            let allowed = format!("a number from 0 to {}", Self::MULTIPLIER_MAX);
            return Err(SettingError::new("retry_backoff_multiplier", multiplier, allowed));
        }
        let total = seconds("retry_backoff_threshold", total_s)?;
        Ok(Backoff { max_retries, first_wait, multiplier, total })
    }

    /// How many retries may follow the first attempt.
    pub fn max_retries(&self) -> u32 {
        self.max_retries
    }

    /// The first wait as configured, which may be over the 8 s that are waited.
    pub fn first_wait(&self) -> Wait {
        self.first_wait
    }

    pub fn multiplier(&self) -> f64 {
        self.multiplier
    }

    /// How long all waits of one call or round may take together; zero means no retry.
    pub fn total(&self) -> Wait {
        self.total
    }

    /// What is left of the total after `waited`: a `Retry-After` that does not fit in it ends the retries (Z04).
    pub fn left_of_total(&self, waited: Wait) -> Wait {
        self.total.saturating_sub(waited)
    }

    /// The wait before the `retry`-th retry (from 1), `waited` being the sum of the waits so far in this call or round.
    ///
    /// `None` when there is no such retry or nothing is left of the total. The wait follows from the retry's number alone, so a
    /// `Retry-After` in between does not disturb the ones after it (Z04).
    pub fn wait_before_retry(&self, retry: u32, waited: Wait) -> Option<Wait> {
        let left = self.left_of_total(waited);
        if retry == 0 || retry > self.max_retries || left.is_zero() {
            return None;
        }
        Some(self.nominal_wait(retry).min(left))
    }

    /// Every wait of a call or round that keeps failing, in order.
    pub fn waits(&self) -> Vec<Wait> {
        let mut waited = Wait::ZERO;
        let mut waits = Vec::new();
        while let Some(wait) = self.wait_before_retry(waits.len() as u32 + 1, waited) {
            waited = waited + wait;
            waits.push(wait);
        }
        waits
    }

    /// The schedule's wait before a retry, whatever is left of the total.
    fn nominal_wait(&self, retry: u32) -> Wait {
        let (shortest, longest) = (millis(Self::SHORTEST_LATER_WAIT), millis(Self::LONGEST_WAIT));
        let mut wait = millis(self.first_wait).min(longest);
        for _ in 1..retry {
            let next = (wait * self.multiplier).clamp(shortest, longest);
            // Once a wait repeats, all that follow are the same.
            if next == wait {
                break;
            }
            wait = next;
        }
        Wait::from_millis(wait.round() as u64)
    }
}

/// The seed's defaults: no retries, 2 s, times 2, 60 s in total (Z02, Z03).
impl Default for Backoff {
    fn default() -> Self {
        Backoff { max_retries: 0, first_wait: Wait::from_secs(2), multiplier: 2.0, total: Wait::from_secs(60) }
    }
}

fn millis(wait: Wait) -> f64 {
    wait.as_millis() as f64
}

fn seconds(field: &'static str, given: f64) -> Result<Wait, SettingError> {
    // A range contains neither NaN nor an infinity.
    if !(0.0..=Backoff::SECONDS_MAX).contains(&given) {
        let allowed = format!("a number of seconds from 0 to {}", Backoff::SECONDS_MAX);
        return Err(SettingError::new(field, given, allowed));
    }
    Ok(Wait::from_millis((given * 1000.0).round() as u64))
}

/// The form in which a schedule is stored; what is read back goes through the same checks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    max_retries: u32,
    first_wait_ms: u64,
    multiplier: f64,
    total_ms: u64,
}

impl TryFrom<Stored> for Backoff {
    type Error = SettingError;
    fn try_from(s: Stored) -> Result<Self, SettingError> {
        Backoff::new(s.max_retries, s.first_wait_ms as f64 / 1000.0, s.multiplier, s.total_ms as f64 / 1000.0)
    }
}

impl From<Backoff> for Stored {
    fn from(b: Backoff) -> Self {
        Stored {
            max_retries: b.max_retries,
            first_wait_ms: b.first_wait.as_millis(),
            multiplier: b.multiplier,
            total_ms: b.total.as_millis(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waits_s(max_retries: u32, first: f64, multiplier: f64, total: f64) -> Vec<f64> {
        let backoff = Backoff::new(max_retries, first, multiplier, total).unwrap();
        backoff.waits().into_iter().map(Wait::as_secs_f64).collect()
    }

    // proves: Z02, Z03
    #[test]
    fn z03_the_seven_examples_of_the_seed() {
        assert_eq!(Backoff::default().waits(), vec![], "the defaults: sent once");
        assert_eq!(waits_s(5, 2.0, 2.0, 60.0), [2.0, 4.0, 8.0, 8.0, 8.0]);
        assert_eq!(waits_s(10, 2.0, 2.0, 60.0), [2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 6.0]);
        assert_eq!(waits_s(3, 20.0, 2.0, 60.0), [8.0, 8.0, 8.0]);
        assert_eq!(waits_s(3, 10.0, 2.0, 5.0), [5.0]);
        assert_eq!(waits_s(4, 3.0, 1.0, 60.0), [3.0, 3.0, 3.0, 3.0]);
        assert_eq!(waits_s(4, 3.0, 0.0, 60.0), [3.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn z03_corners_that_the_seed_leaves_to_its_own_rule() {
        assert_eq!(waits_s(5, 0.0, 2.0, 60.0), [0.0, 1.0, 2.0, 4.0, 8.0], "the first wait may be 0");
        assert_eq!(waits_s(3, 0.25, 2.0, 60.0), [0.25, 1.0, 2.0], "1 s at least binds later waits only");
        assert_eq!(waits_s(4, 20.0, 0.5, 60.0), [8.0, 4.0, 2.0, 1.0], "the previous wait is the one waited");
        assert_eq!(waits_s(3, 1.5, 1.5, 60.0), [1.5, 2.25, 3.375]);
        assert_eq!(waits_s(3, 2.0, 2.0, 0.0), [0.0; 0], "no total, no retry");
        assert_eq!(waits_s(3, 0.0, 2.0, 0.0), [0.0; 0]);
        assert_eq!(waits_s(3, 2.0, 2.0, 2.5), [2.0, 0.5], "what is left may be under 1 s");
        assert_eq!(waits_s(3, 1.0, 100.0, 86_400.0), [1.0, 8.0, 8.0]);
    }

    #[test]
    fn z03_settings_out_of_range_are_refused_by_name() {
        let cases = [
            (Backoff::new(1001, 2.0, 2.0, 60.0), "`max_retries` is `1001`: allowed is a whole number from 0 to 1000"),
            (
                Backoff::new(1, -1.0, 2.0, 60.0),
                "`retry_sleep_time` is `-1`: allowed is a number of seconds from 0 to 86400",
            ),
            (
                Backoff::new(1, f64::NAN, 2.0, 60.0),
                "`retry_sleep_time` is `NaN`: allowed is a number of seconds from 0 to 86400",
            ),
            (
                Backoff::new(1, 2.0, -0.5, 60.0),
                "`retry_backoff_multiplier` is `-0.5`: allowed is a number from 0 to 100",
            ),
            (
                Backoff::new(1, 2.0, 100.1, 60.0),
                "`retry_backoff_multiplier` is `100.1`: allowed is a number from 0 to 100",
            ),
            (
                Backoff::new(1, 2.0, 2.0, f64::INFINITY),
                "`retry_backoff_threshold` is `inf`: allowed is a number of seconds from 0 to 86400",
            ),
            (
                Backoff::new(1, 2.0, 2.0, 86_400.5),
                "`retry_backoff_threshold` is `86400.5`: allowed is a number of seconds from 0 to 86400",
            ),
        ];
        for (result, message) in cases {
            assert_eq!(result.unwrap_err().to_string(), message);
        }
        assert!(Backoff::new(1000, 86_400.0, 100.0, 86_400.0).is_ok());
    }

    #[test]
    fn z03_the_first_wait_is_kept_as_configured() {
        let backoff = Backoff::new(1, 20.0, 2.0, 60.0).unwrap();
        assert_eq!(backoff.first_wait(), Wait::from_secs(20));
        assert_eq!(backoff.wait_before_retry(1, Wait::ZERO), Some(Wait::from_secs(8)));
    }

    #[test]
    fn z04_waits_go_on_by_retry_number_after_a_foreign_wait() {
        let backoff = Backoff::new(5, 2.0, 2.0, 60.0).unwrap();
        // The second retry waited 30 s because the remote asked for it; the third still waits 8 s.
        assert_eq!(backoff.wait_before_retry(3, Wait::from_secs(32)), Some(Wait::from_secs(8)));
        assert_eq!(backoff.wait_before_retry(4, Wait::from_secs(58)), Some(Wait::from_secs(2)));
        assert_eq!(backoff.wait_before_retry(5, Wait::from_secs(60)), None);
        assert_eq!(backoff.wait_before_retry(5, Wait::from_secs(99)), None);
        // A `Retry-After: 0` used up a retry and no time.
        assert_eq!(backoff.wait_before_retry(2, Wait::ZERO), Some(Wait::from_secs(4)));
        assert_eq!(backoff.wait_before_retry(6, Wait::ZERO), None);
        assert_eq!(backoff.left_of_total(Wait::from_secs(58)), Wait::from_secs(2));
    }

    /// The waits in exact fractions of a millisecond, written from the seed's sentence and not from the code above.
    fn by_hand(max_retries: u32, first_ms: u128, multiplier_quarters: u128, total_ms: u128) -> Vec<u128> {
        let (mut num, mut den) = (first_ms.min(8000), 1u128);
        let mut left = total_ms;
        let mut waits = Vec::new();
        for retry in 1..=max_retries {
            if retry > 1 {
                (num, den) = (num * multiplier_quarters, den * 4);
                while num % 4 == 0 && den > 1 {
                    (num, den) = (num / 4, den / 4);
                }
                if num < 1000 * den {
                    (num, den) = (1000, 1);
                }
                if num > 8000 * den {
                    (num, den) = (8000, 1);
                }
            }
            if left == 0 {
                break;
            }
            let wait = ((2 * num + den) / (2 * den)).min(left);
            left -= wait;
            waits.push(wait);
        }
        waits
    }

    proptest! {
        #[test]
        fn z03_waits_are_those_worked_out_by_hand(
            retries in 0u32..60, first_ms in 0u32..30_000, quarters in 0u32..=400, total_ms in 0u32..300_000,
        ) {
            let backoff =
                Backoff::new(retries, f64::from(first_ms) / 1000.0, f64::from(quarters) / 4.0, f64::from(total_ms) / 1000.0).unwrap();
            let waits: Vec<u128> = backoff.waits().into_iter().map(|w| u128::from(w.as_millis())).collect();
            prop_assert_eq!(waits, by_hand(retries, first_ms.into(), quarters.into(), total_ms.into()));
        }

        // proves: Z03, Z15
        #[test]
        fn z15_waits_keep_their_bounds(
            retries in 0u32..=1000, first in 0.0..=86_400.0f64, multiplier in 0.0..=100.0f64, total in 0.0..=86_400.0f64,
        ) {
            let backoff = Backoff::new(retries, first, multiplier, total).unwrap();
            let waits = backoff.waits();
            prop_assert!(waits.len() <= retries as usize);
            prop_assert!(waits.iter().all(|w| *w <= Wait::from_secs(8)));
            let sum: u64 = waits.iter().map(|w| w.as_millis()).sum();
            prop_assert!(sum <= backoff.total().as_millis());
            if let [_, middle @ .., _] = waits.as_slice() {
                prop_assert!(middle.iter().all(|w| *w >= Wait::from_secs(1)));
                if multiplier >= 1.0 {
                    prop_assert!(waits[..waits.len() - 1].is_sorted(), "only the last may be cut by the total");
                }
            }
            // It stops for one of the two reasons only.
            prop_assert!(waits.len() == retries as usize || sum == backoff.total().as_millis());
        }

        #[test]
        fn z03_a_stored_schedule_reads_back_the_same(
            retries in 0u32..=1000, first in 0.0..=86_400.0f64, multiplier in 0u32..=10_000, total in 0.0..=86_400.0f64,
        ) {
            let backoff = Backoff::new(retries, first, f64::from(multiplier) / 100.0, total).unwrap();
            let text = serde_json::to_string(&backoff).unwrap();
            prop_assert_eq!(serde_json::from_str::<Backoff>(&text).unwrap(), backoff);
        }

        #[test]
        fn z03_any_number_is_taken_or_refused(retries: u32, first: f64, multiplier: f64, total: f64) {
            if let Ok(backoff) = Backoff::new(retries, first, multiplier, total) {
                prop_assert!(backoff.waits().len() <= 1000);
            }
        }
    }
}
