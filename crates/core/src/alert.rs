//! Alerts: when something crosses its threshold, and when it has recovered, so that somebody is woken once for each (P09, D43).
//!
//! The threshold for recovery is lower than that for raising, so that a value that swings about one of them does not ring each time. It must
//! not know how values are found, nor who is told.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::{AlertId, ConnectionId, ProjectId};

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// The head of an ordered queue has failed and held up the others for so many minutes.
    HeadBlocked,
    /// The head of an ordered queue was refused for good, and there is no DLQ for it to go to (D25).
    HeadRejected,
    /// The oldest request of a queue has waited for so many minutes.
    OldestWaiting,
    /// There are so many dead letters.
    DeadLetters,
    /// So many dead letters more than ten minutes ago.
    DeadLettersGrowing,
    /// A webhook endpoint has been failing for so many minutes.
    EndpointFailing,
    /// So many megabytes are free.
    DiskLow,
    /// So many seconds without a durable write.
    StoreUnwritable,
}

impl AlertKind {
    pub const ALL: [AlertKind; 8] = [
        AlertKind::HeadBlocked,
        AlertKind::HeadRejected,
        AlertKind::OldestWaiting,
        AlertKind::DeadLetters,
        AlertKind::DeadLettersGrowing,
        AlertKind::EndpointFailing,
        AlertKind::DiskLow,
        AlertKind::StoreUnwritable,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            AlertKind::HeadBlocked => "head_blocked",
            AlertKind::HeadRejected => "head_rejected",
            AlertKind::OldestWaiting => "oldest_waiting",
            AlertKind::DeadLetters => "dead_letters",
            AlertKind::DeadLettersGrowing => "dead_letters_growing",
            AlertKind::EndpointFailing => "endpoint_failing",
            AlertKind::DiskLow => "disk_low",
            AlertKind::StoreUnwritable => "store_unwritable",
        }
    }

    /// One line for people, of a value and its threshold.
    pub fn told(self, value: u64, threshold: u64) -> String {
        match self {
            AlertKind::HeadBlocked => {
                format!("the head of the queue has been blocked for {value} minutes ({threshold} are too many)")
            }
            AlertKind::HeadRejected => {
                "the receiver has refused the head of the queue for good, and everything behind it waits".to_owned()
            }
            AlertKind::OldestWaiting => {
                format!("the oldest request has waited for {value} minutes ({threshold} are too many)")
            }
            AlertKind::DeadLetters => format!("dead letters: {value} ({threshold} or more are told)"),
            AlertKind::DeadLettersGrowing => {
                format!("{value} dead letters more than ten minutes ago ({threshold} are too many)")
            }
            AlertKind::EndpointFailing => {
                format!("the endpoint has been failing for {value} minutes ({threshold} are too many)")
            }
            AlertKind::DiskLow => {
                format!("{value} MB are free on the disk of the data directory ({threshold} are too few)")
            }
            AlertKind::StoreUnwritable => {
                format!("the store has taken no write for {value} seconds ({threshold} are too many)")
            }
        }
    }

    /// What helps.
    pub const fn action(self) -> &'static str {
        match self {
            AlertKind::HeadBlocked => {
                "see the head's attempts; retry it, edit it, or set it aside, so that the others go on"
            }
            AlertKind::HeadRejected => {
                "see what the receiver says of it; edit the message, or set it aside, so that the others go on"
            }
            AlertKind::OldestWaiting => "see whether the remote system answers, and whether the connection is paused",
            AlertKind::DeadLetters | AlertKind::DeadLettersGrowing => {
                "see why they failed; retry, edit, forward or discard them"
            }
            AlertKind::EndpointFailing => {
                "see its health and its last attempts; mend the receiver, send it a test, and switch it on again if it is off"
            }
            AlertKind::DiskLow => {
                "make room on the disk of the data directory; below `store_free_bytes_min` nothing is taken in"
            }
            AlertKind::StoreUnwritable => "see whether its disk is full, slow or read-only; the log says why",
        }
    }
}

/// When somebody is told about a project's queues; 0: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AlertThresholds {
    pub head_blocked_minutes: u32,
    pub oldest_waiting_minutes: u32,
    /// So many, or more.
    pub dead_letters: u32,
    /// So many more within ten minutes.
    pub dead_letters_growth: u32,
    pub endpoint_failing_minutes: u32,
}

impl Default for AlertThresholds {
    fn default() -> Self {
        AlertThresholds {
            head_blocked_minutes: 15,
            oldest_waiting_minutes: 60,
            dead_letters: 1,
            dead_letters_growth: 100,
            endpoint_failing_minutes: 60,
        }
    }
}

/// At which value an alert is raised, and at which it has recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Raised at `high` and above, recovered below half of it.
    TooMuch { high: u64 },
    /// Raised below `low`, recovered at a quarter more than it.
    TooLittle { low: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    Raised,
    Recovered,
}

impl Rule {
    /// The threshold as people know it.
    pub const fn threshold(self) -> u64 {
        match self {
            Rule::TooMuch { high } => high,
            Rule::TooLittle { low } => low,
        }
    }

    /// What a value means while the alert is open or not; `None`: nothing new.
    pub fn step(self, is_open: bool, value: u64) -> Option<Crossing> {
        let (raised, recovered) = match self {
            Rule::TooMuch { high } => (value >= high.max(1), value < high.max(1).div_ceil(2)),
            Rule::TooLittle { low } => (value < low, value >= low.saturating_add(low / 4)),
        };
        match is_open {
            false if raised => Some(Crossing::Raised),
            true if recovered => Some(Crossing::Recovered),
            _ => None,
        }
    }
}

/// One alert, open or past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    pub id: AlertId,
    /// `None`: of the whole installation.
    pub project_id: Option<ProjectId>,
    pub connection_id: Option<ConnectionId>,
    pub kind: AlertKind,
    /// When it was raised.
    pub value: u64,
    pub threshold: u64,
    pub raised_at: Timestamp,
    pub recovered_at: Option<Timestamp>,
}

impl Alert {
    /// What is open at most once.
    pub const fn place(&self) -> (AlertKind, Option<ConnectionId>) {
        (self.kind, self.connection_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // proves: P09
    #[test]
    fn p09_a_value_that_swings_about_its_threshold_rings_once() {
        let rule = Rule::TooMuch { high: 60 };
        let mut open = false;
        let mut rang = Vec::new();
        for value in [0, 59, 60, 59, 61, 45, 60, 30, 29, 60, 0] {
            if let Some(crossing) = rule.step(open, value) {
                open = crossing == Crossing::Raised;
                rang.push((value, crossing));
            }
        }
        use Crossing::{Raised, Recovered};
        assert_eq!(rang, [(60, Raised), (29, Recovered), (60, Raised), (0, Recovered)]);
        assert_eq!(Rule::TooMuch { high: 1 }.step(false, 1), Some(Raised));
        assert_eq!(Rule::TooMuch { high: 1 }.step(true, 1), None);
        assert_eq!(Rule::TooMuch { high: 1 }.step(true, 0), Some(Recovered));
        assert_eq!(Rule::TooLittle { low: 100 }.step(false, 99), Some(Raised));
        assert_eq!(Rule::TooLittle { low: 100 }.step(true, 110), None);
        assert_eq!(Rule::TooLittle { low: 100 }.step(true, 125), Some(Recovered));
    }

    proptest! {
        #[test]
        fn p09_crossings_alternate_and_no_value_is_both(high in 0_u64..1000, values in prop::collection::vec(0_u64..1500, 0..100)) {
            for rule in [Rule::TooMuch { high }, Rule::TooLittle { low: high }] {
                let mut open = false;
                for value in &values {
                    let crossing = rule.step(open, *value);
                    prop_assert_eq!(crossing.is_some(), rule.step(open, *value).is_some());
                    match crossing {
                        Some(Crossing::Raised) => { prop_assert!(!open); open = true; }
                        Some(Crossing::Recovered) => { prop_assert!(open); open = false; }
                        None => {}
                    }
                    // What has just rung does not ring again at the same value.
                    prop_assert_eq!(rule.step(open, *value), None);
                }
            }
        }
    }
}
