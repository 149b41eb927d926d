//! The one call on a connection with its queue on (Z10).

use super::*;

#[test]
fn z10_any_failure_queues_the_request() {
    let replies = [
        status(500),
        status(404),
        status(302),
        status(429),
        no_answer(NoAnswerKind::Timeout),
        no_answer(NoAnswerKind::Unreachable),
    ];
    for reply in replies {
        let mut run = Run::rounds(3, true);
        run.call(reply.clone());
        assert_eq!(run.progress.status, Status::Pending, "{reply:?}");
        assert_eq!((run.progress.attempts, run.progress.rounds), (1, 0));
        assert!(run.progress.failure.is_some() && run.progress.error.is_some());
    }
}

#[test]
fn z10_a_success_is_the_end() {
    let mut run = Run::rounds(3, true);
    let decision = run.call(status(204));
    assert_eq!(run.progress.status, Status::Success);
    assert_eq!((run.progress.delivered_at, run.progress.ended_at), (Some(run.now), Some(run.now)));
    assert!(!decision.to_tail);
}

#[test]
fn z10_without_retries_it_goes_to_the_dlq() {
    let mut run = Run::rounds(0, true);
    run.call(status(500));
    assert_eq!(run.progress.status, Status::Dlq);
    assert_eq!((run.progress.dead_at, run.progress.failure), (Some(run.now), Some(Failure::Status)));
    assert_eq!(run.progress.error.as_deref(), Some("HTTP 500"));
}

#[test]
fn z10_without_retries_and_dlq_it_is_returned() {
    let mut run = Run::rounds(0, false);
    run.call(no_answer(NoAnswerKind::Unreachable));
    assert_eq!((run.progress.status, run.progress.ended_at), (Status::Failed, Some(run.now)));
    assert_eq!(run.progress.failure, Some(Failure::Unreachable));
}

/// A total of 0 means no retries (D17), so a failure is not queued either.
#[test]
fn z10_a_total_of_zero_is_the_same_as_no_retries() {
    let mut run = Run::new(DeliveryPolicy::rounds(Backoff::new(5, 2.0, 2.0, 0.0).unwrap()));
    run.call(status(500));
    assert_eq!(run.progress.status, Status::Dlq);
}

#[test]
fn z15_the_round_after_a_call_begins_with_the_first_wait() {
    let mut run = Run::rounds(3, true);
    run.call(status(500));
    assert_eq!(run.wait_s(), 2.0);
    run.go_to_due();
    // The call was the round's first attempt: three retries in all, the first of which has been waited for.
    assert_eq!(run.fail_a_round(&status(500)), [4.0, 8.0]);
    assert_eq!((run.progress.status, run.progress.attempts, run.progress.rounds), (Status::Dlq, 4, 1));
}

// proves: D25, Z32
#[test]
fn d25_a_message_at_fault_is_returned_and_not_queued() {
    for (max_retries, use_dlq) in [(3, true), (3, false), (0, true), (0, false)] {
        let mut run = Run::rounds(max_retries, use_dlq);
        run.attempt_with(&rejected(), &no_answer(NoAnswerKind::Internal), true, Roll::MIDDLE);
        assert_eq!((run.progress.status, run.progress.failure), (Status::Failed, Some(Failure::Rejected)));
    }
}

#[test]
fn z10_a_request_that_may_not_be_sent_is_not_queued() {
    for (use_dlq, end) in [(true, Status::Dlq), (false, Status::Failed)] {
        let mut run = Run::rounds(3, use_dlq);
        run.call(no_answer(NoAnswerKind::NotAllowed));
        assert_eq!((run.progress.status, run.progress.failure), (end, Some(Failure::NotAllowed)));
    }
}

#[test]
fn p01_a_call_on_a_ladder_goes_on_as_the_ladder_says() {
    let mut run = Run::new(DeliveryPolicy::webhook());
    run.call(status(503));
    assert_eq!(run.wait_s(), 60.0);
    let mut run = Run::new(DeliveryPolicy::webhook());
    run.call(status(400));
    assert_eq!(run.progress.status, Status::Dlq);
}
