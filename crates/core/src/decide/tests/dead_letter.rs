//! The DLQ's action (Z21, Z22, D26).

use super::*;
use crate::policy::DlqAction;
use crate::topic::TopicName;

fn dead(action: DlqAction) -> Run {
    let mut run = Run::rounds(0, true);
    run.policy.dlq.action = action;
    run.attempt(status(500));
    run
}

/// The step that a sweep takes so long after the arrival in the DLQ.
fn step(run: &Run, after_ms: u64) -> DeadLetterStep {
    dead_letter_step(&run.progress, &run.policy.dlq, run.now + Wait::from_millis(after_ms))
}

fn applied(run: &mut Run, after_ms: u64) -> Decision {
    let DeadLetterStep::Apply(decision) = step(run, after_ms) else { panic!("{:?}", step(run, after_ms)) };
    run.now = run.now + Wait::from_millis(after_ms);
    run.progress = decision.progress.clone();
    decision
}

#[test]
fn z21_every_is_honoured_to_the_second_and_keep_is_for_ever() {
    for action in [DlqAction::Retry { retries_max: 3 }, DlqAction::Discard] {
        let run = dead(action);
        assert_eq!(dead_letter_due_at(&run.progress, &run.policy.dlq), Some(run.now + Wait::from_secs(60)));
        assert_eq!(step(&run, 59_999), DeadLetterStep::Stay);
        assert_ne!(step(&run, 60_000), DeadLetterStep::Stay);
    }
    let run = dead(DlqAction::Keep);
    assert_eq!(dead_letter_due_at(&run.progress, &run.policy.dlq), None);
    assert_eq!(step(&run, 31_536_000_000), DeadLetterStep::Stay);
}

#[test]
fn z21_retry_goes_to_the_tail_for_a_round_and_stays_after_the_last() {
    let mut run = dead(DlqAction::Retry { retries_max: 2 });
    let accepted_at = run.progress.age_from;
    for retry in 1..=2 {
        let decision = applied(&mut run, 60_000);
        assert!(decision.to_tail);
        assert_eq!((run.progress.status, run.wait_s(), run.progress.dlq_retries), (Status::Pending, 0.0, retry));
        assert_eq!((run.progress.age_from, run.progress.dead_at), (accepted_at, None), "it keeps its age");
        run.attempt(status(500));
        assert_eq!((run.progress.status, run.progress.dead_at), (Status::Dlq, Some(run.now)));
    }
    assert_eq!(step(&run, 31_536_000_000), DeadLetterStep::Stay);
    assert_eq!(run.progress.attempts, 3);
    assert_eq!(step(&dead(DlqAction::Retry { retries_max: 0 }), 60_000), DeadLetterStep::Stay);
}

#[test]
fn z21_retries_by_hand_do_not_count() {
    let mut run = dead(DlqAction::Retry { retries_max: 1 });
    for _ in 0..3 {
        run.by_hand(ByHand::Retry).unwrap();
        run.attempt(status(500));
    }
    assert_eq!(run.progress.dlq_retries, 0);
    applied(&mut run, 60_000);
    assert_eq!(run.progress.dlq_retries, 1);
    run.attempt(status(500));
    run.by_hand(ByHand::Retry).unwrap();
    run.attempt(status(500));
    assert_eq!(step(&run, 60_000), DeadLetterStep::Stay, "nor do they give the action another one");
}

// proves: R09
#[test]
fn d26_what_expired_or_was_too_old_is_not_retried_by_the_action() {
    for (event, failure) in [(Event::Expired, Failure::Expired), (Event::TooOld { behind: None }, Failure::TooOld)] {
        let mut run = Run::rounds(0, true);
        run.policy.dlq.action = DlqAction::Retry { retries_max: 3 };
        run.apply(event, Roll::MIDDLE);
        assert_eq!(dead_letter_due_at(&run.progress, &run.policy.dlq), None);
        assert_eq!(step(&run, 60_000), DeadLetterStep::Stay);
        run.policy.dlq.action = DlqAction::Discard;
        applied(&mut run, 60_000);
        assert_eq!((run.progress.status, run.progress.failure), (Status::Discarded, Some(failure)));
    }
}

#[test]
fn z21_discard_ends_it_and_keeps_the_reason() {
    let mut run = dead(DlqAction::Discard);
    let decision = applied(&mut run, 60_000);
    assert!(!decision.to_tail);
    assert_eq!((run.progress.status, run.progress.ended_at), (Status::Discarded, Some(run.now)));
    assert_eq!((run.progress.failure, run.progress.error.as_deref()), (Some(Failure::Status), Some("HTTP 500")));
}

// proves: Z21, Z22
#[test]
fn z22_forward_comes_with_the_decision_that_is_written_with_it() {
    for keeps in [true, false] {
        let topic: TopicName = "lab.failed".parse().unwrap();
        let run = dead(DlqAction::Forward { topic: Some(topic.clone()), keep_header: keeps });
        let DeadLetterStep::Forward { topic: to, keep_header, decision } = step(&run, 60_000) else { panic!() };
        assert_eq!((to, keep_header, decision.progress.status), (topic, keeps, Status::Forwarded));
        assert_eq!(decision.progress.ended_at, Some(run.now + Wait::from_secs(60)));
        assert_eq!(decision.progress.failure, Some(Failure::Status));
    }
}

#[test]
fn z21_a_forward_without_a_topic_stays_with_the_reason() {
    let run = dead(DlqAction::Forward { topic: None, keep_header: true });
    assert_eq!(step(&run, 59_999), DeadLetterStep::Stay);
    let DeadLetterStep::StayBecause(reason) = step(&run, 60_000) else { panic!() };
    assert!(reason.contains("`dlq_forward_to` names no topic"));
}

#[test]
fn z21_a_changed_action_applies_to_what_is_already_there() {
    let mut run = dead(DlqAction::Keep);
    run.progress.dlq_note = Some("the topic `lab.failed` does not exist".to_owned());
    run.policy.dlq.action = DlqAction::Discard;
    run.policy.dlq.every = Wait::from_secs(5);
    applied(&mut run, 5000);
    assert_eq!((run.progress.status, &run.progress.dlq_note), (Status::Discarded, &None), "the note has had its day");
}

#[test]
fn z21_only_what_is_in_the_dlq_is_touched() {
    for status in Status::ALL.into_iter().filter(|status| *status != Status::Dlq) {
        let mut run = dead(DlqAction::Discard);
        run.progress.status = status;
        assert_eq!(step(&run, 60_000), DeadLetterStep::Stay, "{status:?}");
    }
}

/// A ladder begins anew, with the attempts that it has by itself.
#[test]
fn z21_a_retried_ladder_begins_anew() {
    let mut run = Run::new(DeliveryPolicy::patient());
    run.policy.dlq.action = DlqAction::Retry { retries_max: 3 };
    run.attempt(status(410));
    run.by_hand(ByHand::Retry).unwrap();
    run.attempt(status(410));
    assert_eq!(run.progress.allowed_attempts, Some(4));
    applied(&mut run, 60_000);
    assert_eq!(run.fail_a_round(&status(500)).len(), 7);
}
