//! After an attempt: delivered, another attempt, another round, the DLQ or the end.
//!
//! This module must not know who sent the attempt or where the decision is written.

use super::{Decision, Snapshot};
use crate::delivery::{INTERRUPTIONS_PER_ROUND, Progress, Status};
use crate::policy::{BETWEEN_ROUNDS, RefusalEnd};
use crate::retry_after;
use crate::roll::Roll;
use crate::schedule::{Backoff, Ladder, Schedule};
use crate::verdict::{Again, Failed, Verdict};
use crate::{Failure, Reply, Timestamp, Wait};

pub(super) fn ended(
    verdict: &Verdict,
    reply: &Reply,
    direct: bool,
    at: Snapshot<'_>,
    now: Timestamp,
    roll: Roll,
) -> Decision {
    let mut progress = at.progress.clone();
    progress.interruptions = 0;
    let failed = match verdict {
        Verdict::Delivered => return delivered(progress, now),
        Verdict::Failed(failed) => failed,
    };
    progress.failure = Some(failed.failure);
    progress.error = Some(failed.error.clone());
    match (at.ladder_in_force(), &at.policy.schedule) {
        (Some(ladder), _) | (None, Schedule::Ladder(ladder)) => {
            ladder_failed(progress, failed, reply, ladder, at, now, roll)
        }
        (None, Schedule::Backoff(backoff)) if direct => direct_call_failed(progress, failed, backoff, at, now),
        (None, Schedule::Backoff(backoff)) => round_attempt_failed(progress, failed, backoff, at, now),
    }
}

/// D04: it counts as made, but alone it never dead-letters.
pub(super) fn interrupted(at: Snapshot<'_>, now: Timestamp) -> Decision {
    let mut progress = at.progress.clone();
    progress.interruptions = progress.interruptions.saturating_add(1);
    progress.failure = Some(Failure::Interrupted);
    progress.error = Some("the attempt was cut off: the server that made it stopped".to_owned());
    if progress.interruptions >= INTERRUPTIONS_PER_ROUND {
        progress.interruptions = 0;
        return round_failed(progress, at, now);
    }
    Decision::stay(waiting(progress, now))
}

fn delivered(mut progress: Progress, now: Timestamp) -> Decision {
    progress.failure = None;
    progress.error = None;
    progress.delivered_at = progress.delivered_at.or(Some(now));
    Decision::stay(ended_as(progress, Status::Success, now))
}

/// The one call of Z10: a failure is queued when retries are set; if not, it goes to the DLQ or back to the caller.
fn direct_call_failed(
    progress: Progress,
    failed: &Failed,
    backoff: &Backoff,
    at: Snapshot<'_>,
    now: Timestamp,
) -> Decision {
    // D25: sending it again would get the same answer, so the caller gets it now.
    if matches!(failed.again, Again::Pointless | Again::Harmful) {
        return Decision::stay(ended_as(progress, Status::Failed, now));
    }
    match backoff.wait_before_retry(progress.round_attempts, progress.round_waited) {
        Some(wait) if failed.again == Again::Worthwhile => Decision::stay(retried_after(progress, wait, now)),
        _ if at.policy.dlq.use_dlq => Decision::stay(dead(progress, now)),
        _ => Decision::stay(ended_as(progress, Status::Failed, now)),
    }
}

/// Z15: a round tries every failure again, without Retry-After; what cannot be helped ends the round at once.
fn round_attempt_failed(
    progress: Progress,
    failed: &Failed,
    backoff: &Backoff,
    at: Snapshot<'_>,
    now: Timestamp,
) -> Decision {
    match backoff.wait_before_retry(progress.round_attempts, progress.round_waited) {
        Some(wait) if failed.again == Again::Worthwhile => Decision::stay(retried_after(progress, wait, now)),
        // At the head it would be sent again after a while, so without a DLQ it ends here.
        _ if failed.again == Again::Harmful && !at.policy.dlq.use_dlq => {
            Decision::stay(ended_as(progress, Status::Failed, now))
        }
        _ => round_failed(progress, at, now),
    }
}

/// Z16: to the DLQ, or back to the head for the next round, 8 s later.
fn round_failed(mut progress: Progress, at: Snapshot<'_>, now: Timestamp) -> Decision {
    progress.rounds = progress.rounds.saturating_add(1);
    if at.policy.dlq.use_dlq || at.ladder_in_force().is_some() {
        return Decision::stay(dead(progress, now));
    }
    progress.round_attempts = 0;
    progress.round_waited = Wait::ZERO;
    Decision::stay(waiting(progress, now + BETWEEN_ROUNDS))
}

/// R02, R07, R08 and V02, V03: the ladder.
fn ladder_failed(
    mut progress: Progress,
    failed: &Failed,
    reply: &Reply,
    ladder: &Ladder,
    at: Snapshot<'_>,
    now: Timestamp,
    roll: Roll,
) -> Decision {
    // V03: an address that no longer exists is not tried again, whatever the list of statuses says.
    let is_gone = failed.status == Some(410) && at.policy.switch_off.on_gone;
    if failed.again == Again::Refused {
        let end = match at.policy.refusals_end_in {
            RefusalEnd::Failed => ended_as(progress, Status::Failed, now),
            RefusalEnd::Dlq => dead(progress, now),
        };
        return Decision::stay(end);
    }
    let helps = failed.again == Again::Worthwhile
        && !is_gone
        && failed.status.is_none_or(|status| at.retryable_statuses().contains(status));
    let allowed = progress.allowed_attempts.unwrap_or_else(|| ladder.max_attempts());
    let rung = if helps { ladder.wait_after_attempt_of(progress.round_attempts, allowed, roll) } else { None };
    let Some(rung) = rung else {
        progress.rounds = progress.rounds.saturating_add(1);
        return Decision::stay(dead(progress, now));
    };
    let rule = at.policy.retry_after.on_a_ladder();
    let asked = reply.answer().and_then(|answer| retry_after::asked_by(rule, answer, now));
    let wait = asked.map_or(rung, |asked| asked.max(rung));
    Decision::stay(waiting(progress, now + wait))
}

fn retried_after(mut progress: Progress, wait: Wait, now: Timestamp) -> Progress {
    progress.round_waited = progress.round_waited + wait;
    waiting(progress, now + wait)
}

fn waiting(mut progress: Progress, due_at: Timestamp) -> Progress {
    progress.status = Status::Pending;
    progress.due_at = due_at;
    progress
}

pub(super) fn dead(mut progress: Progress, now: Timestamp) -> Progress {
    progress.status = Status::Dlq;
    progress.dead_at = Some(now);
    progress.dlq_note = None;
    progress
}

pub(super) fn ended_as(mut progress: Progress, status: Status, now: Timestamp) -> Progress {
    progress.status = status;
    progress.dlq_note = None;
    progress.ended_at = Some(now);
    progress
}
