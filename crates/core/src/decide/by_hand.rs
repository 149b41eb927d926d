//! What a person can do to a delivery, and when that is refused (D06, D27, D44).
//!
//! This module must not know who the person is or how the change is carried to the queue's owner.

use super::after_attempt::{dead, ended_as};
use super::{Decision, Snapshot};
use crate::delivery::{Progress, Status};
use crate::health::Counting;
use crate::{Failure, Timestamp, Wait};

/// More attempts that a retry by hand gives a ladder (R11).
pub const ATTEMPTS_PER_RETRY: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByHand {
    /// DLQ and FAILED only: one more round at the tail, or three more attempts on a ladder.
    Retry,
    /// From any end: the same delivery, its schedule from the beginning.
    Resend,
    Discard,
    /// A waiting one goes to the DLQ.
    SetAside,
    /// A waiting one becomes due at once.
    AttemptNow,
    /// A dead letter goes to a topic that the person names.
    Forward,
    /// The body is replaced; state and place stay.
    Edit,
}

/// Why a person's wish is refused; HTTP 409.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("an attempt is under way")]
    InFlight,
    #[error("it has been delivered already")]
    AlreadyDelivered,
    #[error("its status is {}, and this needs {needs}", .status.as_str())]
    WrongStatus { status: Status, needs: &'static str },
}

pub(super) fn by_hand(act: ByHand, at: Snapshot<'_>, now: Timestamp) -> Result<Decision, Refused> {
    let progress = at.progress;
    if progress.status == Status::Processing {
        return Err(Refused::InFlight);
    }
    match act {
        ByHand::Retry => retry(at, now),
        ByHand::Resend => resend(progress, now),
        ByHand::Discard => {
            needs(progress, "PENDING, DLQ or FAILED", |s| matches!(s, Status::Pending | Status::Dlq | Status::Failed))?;
            let mut next = progress.clone();
            next.failure = Some(Failure::Discarded);
            next.error = Some(match &progress.error {
                Some(error) => format!("discarded by hand; before that: {error}"),
                None => "discarded by hand".to_owned(),
            });
            Ok(Decision::stay(ended_as(next, Status::Discarded, now)))
        }
        ByHand::SetAside => {
            needs(progress, "PENDING", |s| s == Status::Pending)?;
            let mut next = progress.clone();
            next.error = Some(match &progress.error {
                Some(error) => format!("set aside by hand; before that: {error}"),
                None => "set aside by hand".to_owned(),
            });
            Ok(Decision::stay(dead(next, now)))
        }
        ByHand::AttemptNow => {
            needs(progress, "PENDING", |s| s == Status::Pending)?;
            Ok(Decision::stay(Progress { due_at: now, counting: Counting::ByHand, ..progress.clone() }))
        }
        ByHand::Forward => {
            needs(progress, "DLQ or FAILED", |s| matches!(s, Status::Dlq | Status::Failed))?;
            Ok(Decision::stay(ended_as(progress.clone(), Status::Forwarded, now)))
        }
        ByHand::Edit => {
            needs(progress, "PENDING, DLQ or FAILED", |s| matches!(s, Status::Pending | Status::Dlq | Status::Failed))?;
            Ok(Decision::stay(progress.clone()))
        }
    }
}

fn retry(at: Snapshot<'_>, now: Timestamp) -> Result<Decision, Refused> {
    let progress = at.progress;
    needs(progress, "DLQ or FAILED", |s| matches!(s, Status::Dlq | Status::Failed))?;
    // D26: expiry and age cap restart with a retry by hand.
    let mut next = Progress { age_from: now, counting: Counting::ByHand, ..fresh_round(progress.clone(), now) };
    if at.ladder_in_force().is_some() {
        // R11: the later waits go on from the rung that was reached.
        next.round_attempts = progress.round_attempts;
        next.allowed_attempts = Some(progress.round_attempts.saturating_add(ATTEMPTS_PER_RETRY));
    }
    Ok(Decision { progress: next, to_tail: true })
}

fn resend(progress: &Progress, now: Timestamp) -> Result<Decision, Refused> {
    if progress.status == Status::Pending {
        return Ok(Decision::stay(Progress { due_at: now, counting: Counting::ByHand, ..progress.clone() }));
    }
    let next = Progress {
        age_from: now,
        allowed_attempts: None,
        counting: Counting::ByHand,
        ..fresh_round(progress.clone(), now)
    };
    Ok(Decision { progress: next, to_tail: true })
}

/// Back in the queue, due at once, with a whole round before it. What was counted over its life stays.
pub(super) fn fresh_round(progress: Progress, now: Timestamp) -> Progress {
    Progress {
        status: Status::Pending,
        round_attempts: 0,
        round_waited: Wait::ZERO,
        interruptions: 0,
        due_at: now,
        dead_at: None,
        dlq_note: None,
        ended_at: None,
        ..progress
    }
}

fn needs(progress: &Progress, needed: &'static str, holds: impl Fn(Status) -> bool) -> Result<(), Refused> {
    if holds(progress.status) {
        return Ok(());
    }
    if progress.status == Status::Success {
        return Err(Refused::AlreadyDelivered);
    }
    Err(Refused::WrongStatus { status: progress.status, needs: needed })
}
