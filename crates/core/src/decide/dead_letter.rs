//! The DLQ's action: what happens to a dead letter once `every` has passed since its arrival (Z21).
//!
//! Settings are read each time, so a change of the action applies to what is already there. This module must not know what sweeps.

use super::Decision;
use super::after_attempt::ended_as;
use super::by_hand::fresh_round;
use crate::delivery::{Progress, Status};
use crate::policy::{DlqAction, DlqPolicy};
use crate::topic::TopicName;
use crate::{Failure, Timestamp};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterStep {
    /// A person decides.
    Stay,
    /// It stays because the action cannot be taken; the reason goes into `dlq_note`.
    StayBecause(String),
    Apply(Decision),
    /// Its content is published on the topic and `Decision` is written, in one transaction (Z22).
    Forward {
        topic: TopicName,
        keep_header: bool,
        decision: Decision,
    },
}

/// When the action would be taken; `None`: never under these settings.
pub fn dead_letter_due_at(progress: &Progress, policy: &DlqPolicy) -> Option<Timestamp> {
    let dead_at = progress.dead_at?;
    let applies = match &policy.action {
        DlqAction::Keep => false,
        // D26: what has expired or was too old would only be so again; of a batch that was done in part, that part would be done twice.
        DlqAction::Retry { retries_max } => {
            progress.dlq_retries < *retries_max && !progress.failure.is_some_and(Failure::is_a_persons)
        }
        DlqAction::Forward { .. } | DlqAction::Discard => true,
    };
    applies.then_some(dead_at + policy.every)
}

pub fn dead_letter_step(progress: &Progress, policy: &DlqPolicy, now: Timestamp) -> DeadLetterStep {
    if progress.status != Status::Dlq || dead_letter_due_at(progress, policy).is_none_or(|due_at| due_at > now) {
        return DeadLetterStep::Stay;
    }
    match &policy.action {
        DlqAction::Keep => DeadLetterStep::Stay,
        DlqAction::Retry { .. } => {
            // A ladder begins anew, so what a retry by hand allowed it does not count any more.
            let mut next = Progress { allowed_attempts: None, ..fresh_round(progress.clone(), now) };
            next.dlq_retries = next.dlq_retries.saturating_add(1);
            DeadLetterStep::Apply(Decision { progress: next, to_tail: true })
        }
        DlqAction::Forward { topic: None, .. } => {
            DeadLetterStep::StayBecause("the action is forward, but `dlq_forward_to` names no topic".to_owned())
        }
        DlqAction::Forward { topic: Some(topic), keep_header } => DeadLetterStep::Forward {
            topic: topic.clone(),
            keep_header: *keep_header,
            decision: Decision::stay(ended_as(progress.clone(), Status::Forwarded, now)),
        },
        DlqAction::Discard => {
            let mut next = progress.clone();
            next.failure = next.failure.or(Some(Failure::Discarded));
            DeadLetterStep::Apply(Decision::stay(ended_as(next, Status::Discarded, now)))
        }
    }
}
