//! What happens to a delivery next: an event and a snapshot go in, a decision comes out.
//!
//! Pure (law 1): `now` and `roll` are arguments. A decision holds the whole new progress, so that a store writes it in one
//! transaction (law 2). This module must not know how a decision is written or an attempt is made.

mod after_attempt;
mod before_attempt;
mod by_hand;
mod dead_letter;

pub use before_attempt::{Gate, before_attempt, leaves_at};
pub use by_hand::{ByHand, Refused};
pub use dead_letter::{DeadLetterStep, dead_letter_due_at, dead_letter_step};

use crate::delivery::Progress;
use crate::endpoint::NotSendable;
use crate::id::DeliveryId;
use crate::policy::DeliveryPolicy;
use crate::roll::Roll;
use crate::schedule::{Ladder, LadderTerms, Schedule};
use crate::status_set::StatusSet;
use crate::verdict::Verdict;
use crate::{Reply, Timestamp};

/// What a decision looks at.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    pub progress: &'a Progress,
    /// The policy that was read when the round began (Z15).
    pub policy: &'a DeliveryPolicy,
    /// The delivery's own copy (D21).
    pub ladder: Option<&'a LadderTerms>,
}

impl<'a> Snapshot<'a> {
    /// The ladder that the delivery climbs: its own copy, or the policy's if it was accepted without one; `None`: it goes in rounds.
    fn ladder_in_force(&self) -> Option<&'a Ladder> {
        match (self.ladder, &self.policy.schedule) {
            (Some(LadderTerms { ladder, .. }), _) | (None, Schedule::Ladder(ladder)) => Some(ladder),
            (None, Schedule::Backoff(_)) => None,
        }
    }

    /// What the ladder tries again: as copied with it, or the policy's.
    fn retryable_statuses(&self) -> &'a StatusSet {
        self.ladder.map_or(&self.policy.retryable_statuses, |terms| &terms.retryable_statuses)
    }
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// An attempt that had begun (`Progress::begun`) came to its end.
    AttemptEnded {
        verdict: &'a Verdict,
        reply: &'a Reply,
        /// A caller waits for this very attempt: it is the direct call of Z10, and its failure may be returned.
        direct: bool,
    },
    /// The owner of the queue died while this may have been in flight (D04). `progress` has begun the attempt.
    Interrupted,
    /// It came due and may not be sent: no attempt of it is made (R14, V05).
    NotSendable(NotSendable),
    /// It waited longer than `expires_after` (Z17).
    Expired,
    /// It waited longer than its ladder's age cap (R09); `behind`: for whom, where order is kept (D28).
    TooOld { behind: Option<DeliveryId> },
    /// A person asks.
    ByHand(ByHand),
}

/// What to write, and what else follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub progress: Progress,
    /// It goes behind everything that waits (Z21, D27).
    pub to_tail: bool,
}

impl Decision {
    fn stay(progress: Progress) -> Self {
        Decision { progress, to_tail: false }
    }
}

/// Makes every transition of the state machine.
///
/// # Errors
/// `Refused` only for an event `ByHand` that the delivery's status does not allow; all else is always decided.
pub fn decide(event: Event<'_>, snapshot: Snapshot<'_>, now: Timestamp, roll: Roll) -> Result<Decision, Refused> {
    match event {
        Event::AttemptEnded { verdict, reply, direct } => {
            Ok(after_attempt::ended(verdict, reply, direct, snapshot, now, roll))
        }
        Event::Interrupted => Ok(after_attempt::interrupted(snapshot, now)),
        Event::NotSendable(refused) => Ok(before_attempt::not_sendable(refused, snapshot, now)),
        Event::Expired => Ok(before_attempt::expired(snapshot, now)),
        Event::TooOld { behind } => Ok(before_attempt::too_old(behind, snapshot, now)),
        Event::ByHand(act) => by_hand::by_hand(act, snapshot, now),
    }
}

#[cfg(test)]
mod tests;
