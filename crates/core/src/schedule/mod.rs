//! When the next attempt is made: rounds with a growing wait, or a fixed ladder (P01: two settings of one policy).
//!
//! Schedules must not know why an attempt failed, what `Retry-After` asked for, or what time it is.

pub mod backoff;
pub mod ladder;
pub mod preview;
pub mod terms;

use serde::{Deserialize, Serialize};

pub use backoff::Backoff;
pub use ladder::{Jitter, Ladder};
pub use preview::{PlannedAttempt, schedule_preview};
pub use terms::LadderTerms;

/// The waits of one delivery policy. Written as `{"backoff": {…}}` or `{"ladder": {…}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Rounds of a first attempt and its retries (Z03, Z15).
    Backoff(Backoff),
    /// One ladder from the first attempt to the last (R03, V02).
    Ladder(Ladder),
}

impl Default for Schedule {
    fn default() -> Self {
        Schedule::Backoff(Backoff::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p01_both_kinds_survive_being_stored() {
        for schedule in [Schedule::default(), Schedule::Ladder(Ladder::webhook())] {
            let text = serde_json::to_string(&schedule).unwrap();
            assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), schedule, "{text}");
        }
    }

    #[test]
    fn z03_a_stored_schedule_is_checked_like_a_written_one() {
        let too_many = r#"{"backoff":{"max_retries":1001,"first_wait_ms":0,"multiplier":2.0,"total_ms":0}}"#;
        let error = serde_json::from_str::<Schedule>(too_many).unwrap_err().to_string();
        assert!(error.contains("`max_retries` is `1001`"), "{error}");
    }
}
