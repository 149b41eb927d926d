//! The circuit breaker of an endpoint: after failures enough in a row nothing is sent for a while, then one attempt tries (R04).
//!
//! ```text
//!            failures_max in a row              its time has come
//!   CLOSED ─────────────────────────► OPEN ─────────────────────────► HALF OPEN
//!     ▲  ▲                            ▲  │ a late success               │ one probe
//!     │  └────────────────────────────┼──┘                              │
//!     │                               └──────── it failed: longer ──────┤
//!     └───────────────────────────────────────── it succeeded ──────────┘
//! ```
//!
//! Pure: times and rolls are arguments. It must not know what is sent, nor who else is told.

use serde::{Deserialize, Serialize};

use crate::roll::Roll;
use crate::{Failure, Timestamp, Wait};

/// When a circuit opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakerRules {
    /// Attempts that failed in a row; 0: never.
    pub failures_max: u32,
    /// How long it stays open first; each probe that fails doubles it, up to [`OPEN_TIMES_MAX`] times. Jittered from half to one and a half.
    #[serde(rename = "open_for_ms")]
    pub open_for: Wait,
}

/// The longest that a circuit stays open, in times the first.
pub const OPEN_TIMES_MAX: u32 = 8;

/// How a circuit stands. A new one is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed {
        failed_in_a_row: u32,
    },
    Open {
        since: Timestamp,
        until: Timestamp,
        times: u32,
        failed_in_a_row: u32,
    },
    /// The probe is under way.
    Probing {
        since: Timestamp,
        times: u32,
        failed_in_a_row: u32,
    },
}

impl Default for State {
    fn default() -> Self {
        State::Closed { failed_in_a_row: 0 }
    }
}

/// Whether attempts may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// Any number.
    All,
    /// One, as a probe: who begins it says so with [`Breaker::probe_begins`].
    Probe,
    /// None before this time; `None`: not before the probe under way has ended.
    None { until: Option<Timestamp> },
}

/// How an attempt ended, as far as a circuit cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Succeeded,
    /// A failure that counts (D29).
    Failed,
    /// It says nothing about the endpoint: our own error, a refused address, an attempt never made.
    SaysNothing,
}

impl Ended {
    /// D29: only what the endpoint itself did counts.
    pub const fn of(failure: Option<Failure>) -> Ended {
        match failure {
            None => Ended::Succeeded,
            Some(Failure::Status | Failure::Timeout | Failure::Unreachable) => Ended::Failed,
            Some(_) => Ended::SaysNothing,
        }
    }
}

/// What changed with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    None,
    Opened {
        until: Timestamp,
        failed_in_a_row: u32,
        /// It was closed before: not a probe that failed again.
        is_new: bool,
    },
    Closed {
        open_since: Timestamp,
    },
}

impl BreakerRules {
    pub const NEVER: BreakerRules = BreakerRules { failures_max: 0, open_for: Wait::from_secs(30) };
    /// Ten in a row, half a minute: what the presets `webhook` and `forward` say.
    pub const STANDARD: BreakerRules = BreakerRules { failures_max: 10, open_for: Wait::from_secs(30) };
}

impl Breaker {
    pub fn admits(&self, now: Timestamp) -> Admits {
        match self.state {
            State::Closed { .. } => Admits::All,
            // A clock that was set back does not keep it open for longer than it was meant to be.
            State::Open { since, until, .. } if now >= until || now < since => Admits::Probe,
            State::Open { until, .. } => Admits::None { until: Some(until) },
            State::Probing { .. } => Admits::None { until: None },
        }
    }

    pub fn probe_begins(&mut self) {
        if let State::Open { since, times, failed_in_a_row, .. } = self.state {
            self.state = State::Probing { since, times, failed_in_a_row };
        }
    }

    /// The probe came to nothing: the next attempt is one.
    pub fn probe_was_none(&mut self, now: Timestamp) {
        if let State::Probing { since, times, failed_in_a_row } = self.state {
            self.state = State::Open { since, until: now, times, failed_in_a_row };
        }
    }

    /// An attempt has ended; `is_probe`: it was begun as the probe. The die is only rolled when it opens.
    pub fn ended(
        &mut self,
        ended: Ended,
        is_probe: bool,
        rules: &BreakerRules,
        now: Timestamp,
        roll: impl FnOnce() -> Roll,
    ) -> Turn {
        match (self.state, ended) {
            (State::Closed { .. }, Ended::Succeeded) => {
                self.state = State::default();
                Turn::None
            }
            // Whoever answered this is well, also when it was sent before the circuit opened.
            (State::Open { since, .. } | State::Probing { since, .. }, Ended::Succeeded) => {
                self.state = State::default();
                Turn::Closed { open_since: since }
            }
            (State::Closed { failed_in_a_row }, Ended::Failed) => {
                let failed_in_a_row = failed_in_a_row.saturating_add(1);
                if rules.failures_max == 0 || failed_in_a_row < rules.failures_max {
                    self.state = State::Closed { failed_in_a_row };
                    return Turn::None;
                }
                self.open(now, 1, failed_in_a_row, now, rules, roll(), true)
            }
            (State::Probing { since, times, failed_in_a_row }, Ended::Failed) if is_probe => {
                let times = times.saturating_mul(2).min(OPEN_TIMES_MAX);
                self.open(since, times, failed_in_a_row.saturating_add(1), now, rules, roll(), false)
            }
            (State::Probing { .. }, Ended::SaysNothing) if is_probe => {
                self.probe_was_none(now);
                Turn::None
            }
            // Sent before it opened: what they say is known.
            (State::Open { .. } | State::Probing { .. }, Ended::Failed) => Turn::None,
            (_, Ended::SaysNothing) => Turn::None,
        }
    }

    #[allow(clippy::too_many_arguments, reason = "all of it is the new state, made in two places")]
    fn open(
        &mut self,
        since: Timestamp,
        times: u32,
        failed_in_a_row: u32,
        now: Timestamp,
        rules: &BreakerRules,
        roll: Roll,
        is_new: bool,
    ) -> Turn {
        let until = now + jittered(rules.open_for, times, roll);
        self.state = State::Open { since, until, times, failed_in_a_row };
        Turn::Opened { until, failed_in_a_row, is_new }
    }
}

/// From half to one and a half, so that many endpoints of one receiver do not come back at one moment.
fn jittered(open_for: Wait, times: u32, roll: Roll) -> Wait {
    let whole = open_for.as_millis().saturating_mul(times.into());
    // Under a day: exact.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let part = (whole as f64 * roll.value()) as u64;
    Wait::from_millis(whole / 2 + part)
}

#[cfg(test)]
mod tests;
