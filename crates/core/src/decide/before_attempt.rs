//! Before an attempt: may this delivery be sent now, later, or not at all?
//!
//! This module must not know how long anybody sleeps; it names the time.

use super::after_attempt::{dead, ended_as};
use super::{Decision, Snapshot};
use crate::delivery::Status;
use crate::{Failure, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Attempt,
    /// Nothing to do before this time.
    WaitUntil(Timestamp),
    /// `Event::Expired` is to be decided.
    Expired,
}

/// Z17: expiry comes before everything else and runs on while a queue is held (D22).
pub fn before_attempt(at: Snapshot<'_>, held: bool, now: Timestamp) -> Gate {
    let expires_at = at.policy.expires_after.map(|life| at.progress.age_from + life);
    if expires_at.is_some_and(|time| time <= now) {
        return Gate::Expired;
    }
    let due_at = if held { Timestamp::FAR_FUTURE } else { at.progress.due_at };
    if due_at <= now {
        return Gate::Attempt;
    }
    Gate::WaitUntil(expires_at.map_or(due_at, |time| time.min(due_at)))
}

/// Z17: to the DLQ, or with the DLQ off to the log, never silently.
pub(super) fn expired(at: Snapshot<'_>, now: Timestamp) -> Decision {
    let mut progress = at.progress.clone();
    progress.failure = Some(Failure::Expired);
    progress.error = Some(match at.policy.expires_after {
        Some(life) => format!("older than expires_after ({life})"),
        None => "older than expires_after".to_owned(),
    });
    if at.policy.dlq.use_dlq {
        return Decision::stay(dead(progress, now));
    }
    Decision::stay(ended_as(progress, Status::Expired, now))
}
