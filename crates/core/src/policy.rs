//! One delivery policy for all three families: rounds with a queue and a DLQ, and ladders with age cap and switch-off (P01).
//!
//! This module holds settings only; it must not know what is decided from them.

use crate::Wait;
use crate::health::SwitchOff;
use crate::retry_after::RetryAfterRule;
use crate::schedule::{Backoff, Ladder, Schedule};
use crate::status_set::StatusSet;
use crate::topic::TopicName;

/// Between two rounds of one request (Z15).
pub const BETWEEN_ROUNDS: Wait = Wait::from_secs(8);

#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryPolicy {
    pub schedule: Schedule,
    /// Which statuses a ladder tries again (R06). Rounds try every failure again (Z15), direct calls only 429 (Z01).
    pub retryable_statuses: StatusSet,
    pub retry_after: RetryAfterRule,
    pub queue: QueuePolicy,
    pub dlq: DlqPolicy,
    /// A queued request older than this leaves the queue (Z17); `None` = never.
    pub expires_after: Option<Wait>,
    /// Ladders only (D22); `None` = none.
    pub age_cap: Option<Wait>,
    pub switch_off: SwitchOff,
    /// Where a request ends that may not be sent at all: address refused, endpoint not verified (D20).
    pub refusals_end_in: RefusalEnd,
    /// From connect to the status line (D24).
    pub timeout: Wait,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePolicy {
    pub use_queue: bool,
    /// Strictly first in, first out. `false` gives order up for concurrency (Z11).
    pub ordered: bool,
    /// Attempts at once in an unordered queue; an ordered one has exactly one.
    pub concurrency: u32,
    /// Answered but uncommitted successes a FIFO queue may run ahead (D03); 0 = strict.
    pub settle_ahead_max: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DlqPolicy {
    pub use_dlq: bool,
    pub action: DlqAction,
    /// The action is taken this long after the arrival in the DLQ.
    pub every: Wait,
}

/// What happens to each request in the DLQ (Z21).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DlqAction {
    Keep,
    /// Back to the queue's tail for another round, at most `retries_max` times.
    Retry {
        retries_max: u32,
    },
    /// `topic` is `None` when none was named: the request stays, with that reason.
    Forward {
        topic: Option<TopicName>,
        keep_header: bool,
    },
    Discard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalEnd {
    Failed,
    Dlq,
}

impl DeliveryPolicy {
    /// A connection of the first seed with nothing turned on (Z02, D17).
    pub fn rounds(backoff: Backoff) -> Self {
        DeliveryPolicy {
            schedule: Schedule::Backoff(backoff),
            retryable_statuses: StatusSet::default(),
            retry_after: RetryAfterRule::Replaces,
            queue: QueuePolicy { use_queue: false, ordered: true, concurrency: 1, settle_ahead_max: 16 },
            dlq: DlqPolicy::default(),
            expires_after: None,
            age_cap: None,
            switch_off: SwitchOff::default(),
            refusals_end_in: RefusalEnd::Dlq,
            timeout: Wait::from_secs(60),
        }
    }

    /// The preset `webhook` of D20, with the second seed's default limits.
    pub fn webhook() -> Self {
        DeliveryPolicy::ladder(Ladder::webhook(), Wait::from_secs(96 * 3600))
    }

    /// The preset `forward` of D20.
    pub fn forward() -> Self {
        DeliveryPolicy::ladder(Ladder::forward(), Wait::from_secs(24 * 3600))
    }

    /// The preset `patient` of D20: the third seed.
    pub fn patient() -> Self {
        DeliveryPolicy {
            retryable_statuses: StatusSet::patient(),
            retry_after: RetryAfterRule::Ignored,
            switch_off: SwitchOff::PATIENT,
            refusals_end_in: RefusalEnd::Dlq,
            timeout: Wait::from_secs(10),
            ..DeliveryPolicy::ladder(Ladder::patient(), Wait::from_secs(96 * 3600))
        }
    }

    fn ladder(ladder: Ladder, age_cap: Wait) -> Self {
        DeliveryPolicy {
            schedule: Schedule::Ladder(ladder),
            retryable_statuses: StatusSet::default(),
            retry_after: RetryAfterRule::LaterOnly { max: Wait::from_secs(21_600) },
            queue: QueuePolicy { use_queue: true, ordered: false, concurrency: 5, settle_ahead_max: 16 },
            dlq: DlqPolicy::default(),
            expires_after: None,
            age_cap: Some(age_cap),
            switch_off: SwitchOff::default(),
            refusals_end_in: RefusalEnd::Failed,
            timeout: Wait::from_secs(30),
        }
    }
}

impl Default for DlqPolicy {
    fn default() -> Self {
        DlqPolicy { use_dlq: true, action: DlqAction::Keep, every: Wait::from_secs(60) }
    }
}
