//! What a person may do, and in which states (D06, D26, D27, D44).

use super::*;
use crate::health::Counting;

const ACTS: [ByHand; 7] = [
    ByHand::Retry,
    ByHand::Resend,
    ByHand::Discard,
    ByHand::SetAside,
    ByHand::AttemptNow,
    ByHand::Forward,
    ByHand::Edit,
];

fn in_status(status: Status) -> Run {
    let mut run = Run::rounds(3, true);
    run.attempt(super::status(500));
    run.progress.status = status;
    run.progress.dead_at = (status == Status::Dlq).then_some(run.now);
    run.progress.ended_at = status.is_terminal().then_some(run.now);
    run.now = run.now + Wait::from_secs(1);
    run
}

/// The whole table: which act is allowed in which status, and what it is refused with.
#[test]
fn d27_every_act_in_every_status() {
    use Status::{Discarded, Dlq, Expired, Failed, Forwarded, Pending, Processing, Success};
    for act in ACTS {
        let allowed: &[Status] = match act {
            ByHand::Retry | ByHand::Forward => &[Dlq, Failed],
            ByHand::Resend => &[Pending, Success, Failed, Dlq, Discarded, Forwarded, Expired],
            ByHand::Discard | ByHand::Edit => &[Pending, Dlq, Failed],
            ByHand::SetAside | ByHand::AttemptNow => &[Pending],
        };
        for status in Status::ALL {
            let mut run = in_status(status);
            let before = run.progress.clone();
            match run.by_hand(act) {
                Ok(_) => assert!(allowed.contains(&status), "{act:?} in {status:?}"),
                Err(refused) => {
                    assert!(!allowed.contains(&status), "{act:?} in {status:?}");
                    assert_eq!(run.progress, before);
                    match status {
                        Processing => assert_eq!(refused, Refused::InFlight),
                        Success => assert_eq!(refused, Refused::AlreadyDelivered),
                        _ => assert!(matches!(refused, Refused::WrongStatus { status: named, .. } if named == status)),
                    }
                }
            }
        }
    }
    let refused = in_status(Status::Pending).by_hand(ByHand::Retry).unwrap_err();
    assert_eq!(refused.to_string(), "its status is PENDING, and this needs DLQ or FAILED");
}

// proves: D26, D27
#[test]
fn d27_a_retry_is_one_round_at_the_tail() {
    for status in [Status::Dlq, Status::Failed] {
        let mut run = in_status(status);
        let decision = run.by_hand(ByHand::Retry).unwrap();
        assert!(decision.to_tail);
        assert_eq!((run.progress.status, run.wait_s(), run.progress.age_from), (Status::Pending, 0.0, run.now));
        assert_eq!((run.progress.dead_at, run.progress.ended_at), (None, None));
        assert_eq!(run.fail_a_round(&super::status(500)), [2.0, 4.0, 8.0]);
        assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 5), "numbered on");
    }
}

#[test]
fn d27_a_resend_reopens_and_keeps_when_it_was_delivered_first() {
    let mut run = Run::rounds(3, true);
    run.attempt(status(200));
    let first = run.now;
    run.now = run.now + Wait::from_secs(3600);
    let decision = run.by_hand(ByHand::Resend).unwrap();
    assert!(decision.to_tail);
    assert_eq!((run.progress.status, run.wait_s(), run.progress.ended_at), (Status::Pending, 0.0, None));
    assert_eq!((run.progress.delivered_at, run.progress.age_from), (Some(first), run.now));
    run.attempt(status(200));
    assert_eq!((run.progress.delivered_at, run.progress.ended_at), (Some(first), Some(run.now)));
    assert_eq!(run.progress.attempts, 2);
}

#[test]
fn d27_a_resend_of_a_waiting_one_is_an_attempt_now() {
    for act in [ByHand::Resend, ByHand::AttemptNow] {
        let mut run = in_status(Status::Pending);
        let before = run.progress.clone();
        let decision = run.by_hand(act).unwrap();
        assert!(!decision.to_tail, "it keeps its place");
        assert_eq!(run.progress, Progress { due_at: run.now, counting: Counting::ByHand, ..before });
    }
}

// proves: V01, R11
#[test]
fn v01_a_resend_begins_the_ladder_anew_after_a_retry_too() {
    let mut run = Run::new(DeliveryPolicy::patient());
    run.attempt(status(410));
    run.by_hand(ByHand::Retry).unwrap();
    run.attempt(status(410));
    run.by_hand(ByHand::Resend).unwrap();
    assert_eq!(run.fail_a_round(&status(500)).len(), 7);
}

#[test]
fn d44_discarding_and_setting_aside_keep_what_went_before() {
    let mut run = in_status(Status::Pending);
    run.by_hand(ByHand::Discard).unwrap();
    assert_eq!((run.progress.status, run.progress.failure), (Status::Discarded, Some(Failure::Discarded)));
    assert_eq!(run.progress.error.as_deref(), Some("discarded by hand; before that: HTTP 500"));
    assert_eq!(run.progress.ended_at, Some(run.now));
    let mut run = in_status(Status::Pending);
    run.by_hand(ByHand::SetAside).unwrap();
    assert_eq!((run.progress.status, run.progress.dead_at), (Status::Dlq, Some(run.now)));
    assert_eq!(run.progress.error.as_deref(), Some("set aside by hand; before that: HTTP 500"));
    let mut run = Run::rounds(3, true);
    run.by_hand(ByHand::SetAside).unwrap();
    assert_eq!(run.progress.error.as_deref(), Some("set aside by hand"));
}

// proves: Z23, D28
#[test]
fn z23_an_edit_changes_neither_state_nor_place() {
    for status in [Status::Pending, Status::Dlq, Status::Failed] {
        let mut run = in_status(status);
        let before = run.progress.clone();
        let decision = run.by_hand(ByHand::Edit).unwrap();
        assert_eq!(decision, Decision { progress: before, to_tail: false });
    }
}
