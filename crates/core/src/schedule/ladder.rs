//! The fixed ladder of waits from the first attempt of a delivery to its last (R03, V02, D20).
//!
//! It must not know what `Retry-After` asked for nor how old the delivery is: the age cap is checked elsewhere.

use serde::{Deserialize, Serialize};

use crate::roll::Roll;
use crate::setting::SettingError;
use crate::time::Wait;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Attempts and the waits between them, each counted from the attempt that failed. A delivery keeps a copy (D21).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Ladder {
    max_attempts: u32,
    delays: Vec<Wait>,
    jitter: Jitter,
}

/// Whether waits are spread so that retries do not arrive in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    None,
    /// Each wait is its delay times a number from 0.5 up to 1.5 (R03).
    HalfToOneAndAHalf,
}

impl Ladder {
    /// `max_attempts` may be 1 to this (R03).
    pub const MAX_ATTEMPTS_MAX: u32 = 20;
    /// `retry_delays` may have 1 to this many entries.
    pub const DELAYS_MAX: usize = 32;
    /// The shortest delay.
    pub const DELAY_MIN: Wait = Wait::from_secs(1);
    /// The longest delay, 30 days.
    pub const DELAY_MAX: Wait = Wait::from_secs(2_592_000);

    /// Refuses, naming the field: `max_attempts` outside 1..=20, `retry_delays` with no or over 32 entries or with one outside 1 s to 30 days.
    pub fn new(max_attempts: u32, delays: Vec<Wait>, jitter: Jitter) -> Result<Self, SettingError> {
        if !(1..=Self::MAX_ATTEMPTS_MAX).contains(&max_attempts) {
            let allowed = format!("a whole number from 1 to {}", Self::MAX_ATTEMPTS_MAX);
            return Err(SettingError::new("max_attempts", max_attempts, allowed));
        }
        if delays.is_empty() || delays.len() > Self::DELAYS_MAX {
            let given = format!("{} entries", delays.len());
            return Err(SettingError::new("retry_delays", given, format!("1 to {} entries", Self::DELAYS_MAX)));
        }
        for (at, delay) in delays.iter().enumerate() {
            if !(Self::DELAY_MIN..=Self::DELAY_MAX).contains(delay) {
                let given = format!("{} (entry {})", delay.as_secs_f64(), at + 1);
                return Err(SettingError::new(
                    "retry_delays",
                    given,
                    "a number of seconds from 1 to 2592000 (30 days)",
                ));
            }
        }
        Ok(Ladder { max_attempts, delays, jitter })
    }

    /// The ladder of outgoing webhooks: 7 attempts over about 31 h 21 min.
    pub fn webhook() -> Self {
        Self::preset(7, &[MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, 24 * HOUR], Jitter::HalfToOneAndAHalf)
    }

    /// The ladder of forwards of incoming webhooks: 5 attempts over about 1 h 21 min. Its last step, the 6 h that "both default ladders share",
    /// is reached only where a destination asks for more attempts.
    pub fn forward() -> Self {
        Self::preset(5, &[MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR], Jitter::HalfToOneAndAHalf)
    }

    /// The patient ladder: 8 attempts over about 45 h, to the second (V02).
    pub fn patient() -> Self {
        let delays = [MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR];
        Self::preset(8, &delays, Jitter::None)
    }

    fn preset(max_attempts: u32, delays_s: &[u64], jitter: Jitter) -> Self {
        Ladder { max_attempts, delays: delays_s.iter().map(|s| Wait::from_secs(*s)).collect(), jitter }
    }

    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    pub fn delays(&self) -> &[Wait] {
        &self.delays
    }

    pub fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// The wait after the `attempt`-th attempt (from 1) failed; `None` when it was the last one.
    pub fn wait_after_attempt(&self, attempt: u32, roll: Roll) -> Option<Wait> {
        self.wait_after_attempt_of(attempt, self.max_attempts, roll)
    }

    /// The same when `allowed_attempts` may be made in all: a retry by hand allows three more than were made and goes on from
    /// the rung reached (R11). After attempt 0, that is before any, the wait is zero.
    pub fn wait_after_attempt_of(&self, attempt: u32, allowed_attempts: u32, roll: Roll) -> Option<Wait> {
        if attempt >= allowed_attempts {
            return None;
        }
        let Some(rung) = attempt.checked_sub(1) else {
            return Some(Wait::ZERO);
        };
        Some(self.jittered(self.delay_at(rung), roll))
    }

    /// The shortest and the longest that the wait after the `attempt`-th attempt (from 1) can be; `None` when it was the last one.
    pub fn wait_bounds_after_attempt(&self, attempt: u32) -> Option<(Wait, Wait)> {
        let rung = attempt.checked_sub(1).filter(|_| attempt < self.max_attempts)?;
        let delay_ms = self.delay_at(rung).as_millis();
        Some(match self.jitter {
            Jitter::None => (Wait::from_millis(delay_ms), Wait::from_millis(delay_ms)),
            Jitter::HalfToOneAndAHalf => {
                (Wait::from_millis(delay_ms.div_ceil(2)), Wait::from_millis((delay_ms * 3).div_ceil(2)))
            }
        })
    }

    /// The longest that the ladder can take, for checking it against an age cap: one wait for every attempt (one more than is
    /// ever waited, so that the cap has room for the attempts themselves), each at the top of its jitter.
    pub fn longest_total(&self) -> Wait {
        let nominal: u64 = (0..self.max_attempts).map(|rung| self.delay_at(rung).as_millis()).sum();
        match self.jitter {
            Jitter::None => Wait::from_millis(nominal),
            Jitter::HalfToOneAndAHalf => Wait::from_millis((nominal * 3).div_ceil(2)),
        }
    }

    /// The delay of a rung (from 0); the last one repeats.
    fn delay_at(&self, rung: u32) -> Wait {
        let last = self.delays.len() - 1;
        self.delays[last.min(rung as usize)]
    }

    fn jittered(&self, delay: Wait, roll: Roll) -> Wait {
        match self.jitter {
            Jitter::None => delay,
            Jitter::HalfToOneAndAHalf => {
                Wait::from_millis((delay.as_millis() as f64 * (0.5 + roll.value())).round() as u64)
            }
        }
    }
}

/// The form in which a ladder is stored; what is read back goes through the same checks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    max_attempts: u32,
    delays_ms: Vec<Wait>,
    jitter: Jitter,
}

impl TryFrom<Stored> for Ladder {
    type Error = SettingError;
    fn try_from(s: Stored) -> Result<Self, SettingError> {
        Ladder::new(s.max_attempts, s.delays_ms, s.jitter)
    }
}

impl From<Ladder> for Stored {
    fn from(l: Ladder) -> Self {
        Stored { max_attempts: l.max_attempts, delays_ms: l.delays, jitter: l.jitter }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn minutes(ladder: &Ladder) -> Vec<u64> {
        (1..)
            .map_while(|attempt| ladder.wait_after_attempt(attempt, Roll::MIDDLE))
            .map(|w| w.as_millis() / 60_000)
            .collect()
    }

    #[test]
    fn r03_the_default_ladders_of_the_seed() {
        assert_eq!(minutes(&Ladder::webhook()), [1, 5, 15, 60, 360, 1440]);
        assert_eq!(minutes(&Ladder::webhook()).iter().sum::<u64>(), 31 * 60 + 21);
        assert_eq!(minutes(&Ladder::forward()), [1, 5, 15, 60]);
        assert_eq!(minutes(&Ladder::forward()).iter().sum::<u64>(), 60 + 21);
        assert_eq!((Ladder::webhook().max_attempts(), Ladder::forward().max_attempts()), (7, 5));
    }

    #[test]
    fn r03_presets_pass_their_own_checks() {
        for ladder in [Ladder::webhook(), Ladder::forward(), Ladder::patient()] {
            assert_eq!(Ladder::new(ladder.max_attempts(), ladder.delays().to_vec(), ladder.jitter()), Ok(ladder));
        }
    }

    #[test]
    fn v02_eight_attempts_to_the_second_whatever_the_roll() {
        let ladder = Ladder::patient();
        let rolled = Roll::new(0.9).unwrap();
        let waits: Vec<u64> = (1..)
            .map_while(|attempt| ladder.wait_after_attempt(attempt, rolled))
            .map(|w| w.as_millis() / 1000)
            .collect();
        assert_eq!(waits, [60, 300, 1800, 7200, 21_600, 43_200, 86_400]);
        assert_eq!(ladder.wait_after_attempt(8, rolled), None, "dead-lettered after the eighth");
        assert_eq!(waits.iter().sum::<u64>(), 44 * 3600 + 36 * 60, "about 45 hours");
    }

    #[test]
    fn r03_waits_are_jittered_between_half_and_one_and_a_half() {
        let ladder = Ladder::webhook();
        let first = |roll: f64| ladder.wait_after_attempt(1, Roll::new(roll).unwrap()).unwrap();
        assert_eq!(first(0.0), Wait::from_secs(30));
        assert_eq!(first(0.25), Wait::from_secs(45));
        assert_eq!(first(0.5), Wait::from_secs(60));
        assert_eq!(first(0.75), Wait::from_secs(75));
    }

    #[test]
    fn r03_the_last_delay_repeats() {
        let delays = vec![Wait::from_secs(10), Wait::from_secs(20)];
        let ladder = Ladder::new(5, delays, Jitter::None).unwrap();
        let waits: Vec<u64> = (1..)
            .map_while(|attempt| ladder.wait_after_attempt(attempt, Roll::MIDDLE))
            .map(|w| w.as_millis() / 1000)
            .collect();
        assert_eq!(waits, [10, 20, 20, 20]);
    }

    #[test]
    fn r11_three_more_attempts_go_on_from_the_rung_reached() {
        let ladder = Ladder::webhook();
        let wait = |attempt| ladder.wait_after_attempt_of(attempt, 5, Roll::MIDDLE).map(|w| w.as_millis() / 60_000);
        // Two attempts had been made; the third, sent at once, is followed by the third rung.
        assert_eq!([wait(3), wait(4), wait(5)], [Some(15), Some(60), None]);
        let past_the_end = ladder.wait_after_attempt_of(8, 10, Roll::MIDDLE);
        assert_eq!(past_the_end, Some(Wait::from_secs(86_400)));
        assert_eq!(ladder.wait_after_attempt(0, Roll::MIDDLE), Some(Wait::ZERO));
    }

    #[test]
    fn r09_the_default_ladders_fit_their_caps_with_the_sum_known() {
        assert_eq!(Ladder::webhook().longest_total(), Wait::from_secs(298_890));
        assert_eq!(Ladder::forward().longest_total(), Wait::from_secs(39_690));
        assert_eq!(Ladder::patient().longest_total(), Wait::from_secs(246_960));
    }

    #[test]
    fn r03_settings_out_of_range_are_refused_by_name() {
        let second = Wait::from_secs(1);
        let cases = [
            (
                Ladder::new(0, vec![second], Jitter::None),
                "`max_attempts` is `0`: allowed is a whole number from 1 to 20",
            ),
            (
                Ladder::new(21, vec![second], Jitter::None),
                "`max_attempts` is `21`: allowed is a whole number from 1 to 20",
            ),
            (Ladder::new(1, vec![], Jitter::None), "`retry_delays` is `0 entries`: allowed is 1 to 32 entries"),
            (
                Ladder::new(1, vec![second; 33], Jitter::None),
                "`retry_delays` is `33 entries`: allowed is 1 to 32 entries",
            ),
            (
                Ladder::new(1, vec![second, Wait::ZERO], Jitter::None),
                "`retry_delays` is `0 (entry 2)`: allowed is a number of seconds from 1 to 2592000 (30 days)",
            ),
            (
                Ladder::new(1, vec![Wait::from_secs(2_592_001)], Jitter::None),
                "`retry_delays` is `2592001 (entry 1)`: allowed is a number of seconds from 1 to 2592000 (30 days)",
            ),
        ];
        for (result, message) in cases {
            assert_eq!(result.unwrap_err().to_string(), message);
        }
    }

    fn any_ladder() -> impl Strategy<Value = Ladder> {
        let delays = prop::collection::vec(1000u64..=2_592_000_000, 1..=32);
        let jitter = prop_oneof![Just(Jitter::None), Just(Jitter::HalfToOneAndAHalf)];
        (1u32..=20, delays, jitter).prop_map(|(max, delays, jitter)| {
            Ladder::new(max, delays.into_iter().map(Wait::from_millis).collect(), jitter).unwrap()
        })
    }

    proptest! {
        #[test]
        fn r03_never_more_attempts_nor_longer_than_its_total(ladder in any_ladder(), rolls in prop::collection::vec(0.0..1.0f64, 20)) {
            let waits: Vec<Wait> =
                (1..=20).zip(&rolls).map_while(|(a, r)| ladder.wait_after_attempt(a, Roll::new(*r).unwrap())).collect();
            prop_assert_eq!(waits.len() as u32, ladder.max_attempts() - 1);
            let sum = waits.iter().fold(Wait::ZERO, |sum, wait| sum + *wait);
            prop_assert!(sum <= ladder.longest_total());
            for (at, wait) in waits.iter().enumerate() {
                let nominal = ladder.delays().get(at).unwrap_or(ladder.delays().last().unwrap()).as_millis();
                let (low, high) = match ladder.jitter() {
                    Jitter::None => (nominal, nominal),
                    Jitter::HalfToOneAndAHalf => (nominal / 2, nominal * 3 / 2 + 1),
                };
                prop_assert!((low..=high).contains(&wait.as_millis()));
                let (shortest, longest) = ladder.wait_bounds_after_attempt(at as u32 + 1).unwrap();
                prop_assert!((shortest..=longest).contains(wait));
            }
        }

        #[test]
        fn r03_a_stored_ladder_reads_back_the_same(ladder in any_ladder()) {
            let text = serde_json::to_string(&ladder).unwrap();
            prop_assert_eq!(serde_json::from_str::<Ladder>(&text).unwrap(), ladder);
        }
    }
}
