//! A direct call on a connection with the queue off: the caller waits, and only what Z01 names is retried.
//!
//! This module must not know of queues: nothing of such a call is ever waiting anywhere but in its caller.

use crate::policy::DeliveryPolicy;
use crate::retry_after;
use crate::roll::Roll;
use crate::schedule::Schedule;
use crate::verdict::{Again, Failed, Verdict};
use crate::{Failure, Reply, Timestamp, Wait};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallStep {
    /// The caller gets what came, a success or not.
    Return,
    /// One more attempt after this long, if the caller is still there (Z05).
    RetryAfter(Wait),
}

/// What to do after attempt number `attempts` of a call whose waits so far add up to `waited`.
pub fn next_step(
    policy: &DeliveryPolicy,
    attempts: u32,
    waited: Wait,
    verdict: &Verdict,
    reply: &Reply,
    now: Timestamp,
    roll: Roll,
) -> CallStep {
    let Verdict::Failed(failed) = verdict else { return CallStep::Return };
    if !is_retried_in_a_call(failed) {
        return CallStep::Return;
    }
    let (scheduled, total) = match &policy.schedule {
        Schedule::Backoff(backoff) => (backoff.wait_before_retry(attempts, waited), Some(backoff.total())),
        Schedule::Ladder(ladder) => (ladder.wait_after_attempt(attempts, roll), None),
    };
    let Some(scheduled) = scheduled else { return CallStep::Return };
    let asked = reply.answer().and_then(|answer| retry_after::asked_by(policy.retry_after, answer, now));
    match (asked, total) {
        (None, _) => CallStep::RetryAfter(scheduled),
        // Z04: it replaces the schedule's own wait; what does not fit in the total ends the retries.
        (Some(asked), Some(total)) if asked <= total.saturating_sub(waited) => CallStep::RetryAfter(asked),
        (Some(_), Some(_)) => CallStep::Return,
        (Some(asked), None) => CallStep::RetryAfter(asked.max(scheduled)),
    }
}

/// Z01: unreachable, no answer in time, HTTP 429, no acknowledgment; nothing else.
fn is_retried_in_a_call(failed: &Failed) -> bool {
    let kind = matches!(failed.failure, Failure::Unreachable | Failure::Timeout | Failure::NoAck)
        || failed.status == Some(429);
    kind && failed.again == Again::Worthwhile
}

#[cfg(test)]
mod tests;
