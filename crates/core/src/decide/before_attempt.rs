//! Before an attempt: may this delivery be sent now, later, or not at all?
//!
//! This module must not know how long anybody sleeps; it names the time.

use super::after_attempt::{dead, ended_as};
use super::{Decision, Snapshot};
use crate::delivery::Status;
use crate::endpoint::NotSendable;
use crate::id::DeliveryId;
use crate::policy::RefusalEnd;
use crate::{Failure, Timestamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Attempt,
    /// Nothing to do before this time.
    WaitUntil(Timestamp),
    /// `Event::Expired` is to be decided.
    Expired,
    /// `Event::TooOld` is to be decided.
    TooOld,
}

/// Z17: expiry comes before everything else and runs on while a queue is held (D22). R09: next comes the age cap of a ladder.
///
/// `open_since`: see `Connection::open_since`; `None` = held.
pub fn before_attempt(at: Snapshot<'_>, open_since: Option<Timestamp>, now: Timestamp) -> Gate {
    let (expires_at, too_old_at) = (expires_at(at), too_old_at(at, open_since));
    if expires_at.is_some_and(|time| time <= now) {
        return Gate::Expired;
    }
    if too_old_at.is_some_and(|time| time <= now) {
        return Gate::TooOld;
    }
    let due_at = if open_since.is_some() { at.progress.due_at } else { Timestamp::FAR_FUTURE };
    if due_at <= now {
        return Gate::Attempt;
    }
    Gate::WaitUntil([expires_at, too_old_at].into_iter().flatten().fold(due_at, Timestamp::min))
}

/// When it leaves the queue if nothing comes of it before: the earlier of its expiry and its age cap. `None` = never.
pub fn leaves_at(at: Snapshot<'_>, open_since: Option<Timestamp>) -> Option<Timestamp> {
    [expires_at(at), too_old_at(at, open_since)].into_iter().flatten().min()
}

fn expires_at(at: Snapshot<'_>) -> Option<Timestamp> {
    at.policy.expires_after.map(|life| at.progress.age_from + life)
}

/// R09, D22: only ladders have a cap. It never ends while the connection is held, and no held time is ever counted: whatever waits
/// when a connection is opened again has the whole cap before it from that moment.
fn too_old_at(at: Snapshot<'_>, open_since: Option<Timestamp>) -> Option<Timestamp> {
    at.ladder_in_force()?;
    Some(at.progress.age_from.max(open_since?) + at.policy.age_cap?)
}

/// R14, V05, D20, D30: what nobody can make another attempt help ends where the policy says; what may be mended goes to the DLQ.
pub(super) fn not_sendable(refused: NotSendable, at: Snapshot<'_>, now: Timestamp) -> Decision {
    let mut progress = at.progress.clone();
    progress.failure = Some(refused.failure);
    progress.error = Some(match &at.progress.error {
        Some(error) => format!("{}; before that: {error}", refused.why),
        None => refused.why.to_owned(),
    });
    let is_final = matches!(refused.failure, Failure::NotVerified | Failure::NotAllowed);
    if is_final && at.policy.refusals_end_in == RefusalEnd::Failed {
        return Decision::stay(ended_as(progress, Status::Failed, now));
    }
    Decision::stay(dead(progress, now))
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

/// R09: to the DLQ, however many attempts are left; why the last one failed, and for whom it waited (D28), is kept beside it.
pub(super) fn too_old(behind: Option<DeliveryId>, at: Snapshot<'_>, now: Timestamp) -> Decision {
    let mut progress = at.progress.clone();
    progress.failure = Some(Failure::TooOld);
    let cap = at.policy.age_cap.map(|cap| format!(" ({cap})")).unwrap_or_default();
    let waited = behind.map(|behind| format!(": waited behind {behind}")).unwrap_or_default();
    progress.error = Some(match &at.progress.error {
        Some(error) => format!("older than the age cap{cap}{waited}; before that: {error}"),
        None => format!("older than the age cap{cap}{waited}"),
    });
    Decision::stay(dead(progress, now))
}
