//! Ladders: what earns another attempt, and when (R02, R03, R07, R08, V02, V03).

use super::*;
use crate::health::Counting;
use crate::schedule::Jitter;

const MINUTE_S: f64 = 60.0;

fn webhook() -> Run {
    Run::new(DeliveryPolicy::webhook())
}

/// The seed's table, row by row.
#[test]
fn r02_what_earns_another_attempt() {
    for code in [200, 201, 204, 299] {
        let mut run = webhook();
        run.attempt(status(code));
        assert_eq!(run.progress.status, Status::Success, "{code}");
    }
    for code in [408, 429, 500, 502, 503, 599] {
        let mut run = webhook();
        run.attempt(status(code));
        assert_eq!((run.progress.status, run.wait_s()), (Status::Pending, MINUTE_S), "{code}");
    }
    for kind in [NoAnswerKind::Unreachable, NoAnswerKind::Timeout, NoAnswerKind::Internal, NoAnswerKind::Unsendable] {
        let mut run = webhook();
        run.attempt(no_answer(kind));
        assert_eq!((run.progress.status, run.wait_s()), (Status::Pending, MINUTE_S), "{kind:?}");
    }
    let mut run = webhook();
    let transform_failed = Failed {
        failure: Failure::TransformFailed,
        error: "no such field".to_owned(),
        again: Again::Worthwhile,
        status: None,
    };
    run.attempt_with(&Verdict::Failed(transform_failed), &no_answer(NoAnswerKind::Internal), false, Roll::MIDDLE);
    assert_eq!((run.progress.failure, run.wait_s()), (Some(Failure::TransformFailed), MINUTE_S));
    for code in [400, 401, 404, 409, 410, 422, 301, 302, 307, 308] {
        let mut run = webhook();
        run.attempt(status(code));
        assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 1), "{code}");
        assert_eq!(run.progress.failure, Some(Failure::Status));
    }
    let mut run = webhook();
    run.attempt(no_answer(NoAnswerKind::NotAllowed));
    assert_eq!((run.progress.status, run.progress.failure), (Status::Failed, Some(Failure::NotAllowed)));
    assert_eq!(run.progress.ended_at, Some(run.now));
}

// proves: R03
#[test]
fn r03_the_default_ladder_is_climbed_to_its_end() {
    let mut run = webhook();
    let waits = run.fail_a_round(&status(500));
    assert_eq!(waits.iter().map(|s| s / MINUTE_S).collect::<Vec<_>>(), [1.0, 5.0, 15.0, 60.0, 360.0, 1440.0]);
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 7));
    let mut run = Run::new(DeliveryPolicy::forward());
    assert_eq!(run.fail_a_round(&status(500)).len(), 4);
}

#[test]
fn r03_waits_are_jittered_by_the_roll() {
    for (roll, wait_s) in [(0.0, 30.0), (0.25, 45.0), (0.75, 75.0)] {
        let mut run = webhook();
        let reply = status(500);
        run.attempt_with(&over_http(&reply), &reply, false, Roll::new(roll).unwrap());
        assert_eq!(run.wait_s(), wait_s);
    }
}

#[test]
fn r07_the_list_of_statuses_decides() {
    let mut policy = DeliveryPolicy::webhook();
    policy.retryable_statuses = "5xx,409,!501".parse().unwrap();
    for (code, end) in
        [(500, Status::Pending), (409, Status::Pending), (501, Status::Dlq), (408, Status::Dlq), (302, Status::Dlq)]
    {
        let mut run = Run::new(policy.clone());
        run.attempt(status(code));
        assert_eq!((run.progress.status, run.progress.attempts), (end, 1), "{code}");
    }
}

#[test]
fn r08_retry_after_only_ever_makes_it_later() {
    let cases = [
        (status_asking(429, "90"), 90.0),
        (status_asking(503, "90"), 90.0),
        (status_asking(503, "30"), MINUTE_S),
        (status_asking(503, "0"), MINUTE_S),
        (status_asking(500, "90"), MINUTE_S),
        (status_asking(429, "31536000"), 21_600.0),
        (status_asking(429, "soon"), MINUTE_S),
        (status_asking(429, "Thu, 12 Mar 2026 12:10:34 GMT"), 299.27),
    ];
    for (reply, wait_s) in cases {
        let mut run = webhook();
        run.attempt(reply.clone());
        assert_eq!(run.wait_s(), wait_s, "{reply:?}");
    }
    let mut run = Run::new(DeliveryPolicy::patient());
    run.attempt(status_asking(429, "90"));
    assert_eq!(run.wait_s(), MINUTE_S, "patient does not look at it");
}

#[test]
fn r08_retry_after_adds_no_attempt() {
    let mut run = webhook();
    let waits = run.fail_a_round(&status_asking(429, "90"));
    assert_eq!(waits.len(), 6);
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 7));
}

/// A delivery keeps its ladder when its connection goes over to rounds, whose rule knows no limit (D21).
#[test]
fn r08_a_ladder_is_never_parked_for_a_year() {
    let mut run = webhook();
    run.policy = DeliveryPolicy::rounds(Backoff::new(3, 2.0, 2.0, 60.0).unwrap());
    run.attempt(status_asking(429, "31536000"));
    assert_eq!(run.wait_s(), 21_600.0);
}

// proves: R11, D26, D27
#[test]
fn r11_a_retry_by_hand_gives_three_more_from_the_rung_reached() {
    let mut run = webhook();
    run.attempt(status(500));
    run.go_to_due();
    run.attempt(status(403));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 2));
    run.now = run.now + Wait::from_secs(3600);
    let decision = run.by_hand(ByHand::Retry).unwrap();
    assert!(decision.to_tail);
    assert_eq!((run.progress.status, run.wait_s(), run.progress.age_from), (Status::Pending, 0.0, run.now));
    let waits = run.fail_a_round(&status(500));
    assert_eq!(waits, [15.0 * MINUTE_S, 60.0 * MINUTE_S]);
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 5), "numbered on");
    run.by_hand(ByHand::Retry).unwrap();
    assert_eq!(run.fail_a_round(&status(500)), [1440.0 * MINUTE_S, 1440.0 * MINUTE_S], "and three more again");
    run.by_hand(ByHand::Retry).unwrap();
    assert_eq!(run.fail_a_round(&status(500)), [1440.0 * MINUTE_S, 1440.0 * MINUTE_S], "the last delay repeats");
}

#[test]
fn r11_the_same_without_a_copied_ladder() {
    let mut run = Run { ladder: None, ..webhook() };
    run.attempt(status(403));
    run.by_hand(ByHand::Retry).unwrap();
    assert_eq!(run.fail_a_round(&status(500)), [5.0 * MINUTE_S, 15.0 * MINUTE_S]);
}

// proves: V01, V02
#[test]
fn v02_eight_attempts_each_counted_from_the_one_that_failed() {
    for reply in [status(500), status(404), status(302), no_answer(NoAnswerKind::Timeout)] {
        let mut run = Run::new(DeliveryPolicy::patient());
        let waits = run.fail_a_round(&reply);
        assert_eq!(waits, [60.0, 300.0, 1800.0, 7200.0, 21_600.0, 43_200.0, 86_400.0], "{reply:?}");
        assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 8));
    }
}

#[test]
fn v03_a_410_is_dead_lettered_at_once() {
    let mut run = Run::new(DeliveryPolicy::patient());
    run.attempt(status(410));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 1));
    // Not even a list that covers it makes an address come back.
    let mut policy = DeliveryPolicy::patient();
    policy.retryable_statuses = "4xx,5xx".parse().unwrap();
    let mut run = Run::new(policy);
    run.attempt(status(410));
    assert_eq!(run.progress.status, Status::Dlq);
}

// proves: V04, D27
#[test]
fn v04_what_a_person_sends_again_does_not_count_any_more() {
    for act in [ByHand::Retry, ByHand::Resend] {
        let mut run = webhook();
        run.attempt(status(404));
        assert_eq!(run.progress.counting, Counting::NotCounted);
        run.by_hand(act).unwrap();
        assert_eq!(run.progress.counting, Counting::ByHand, "{act:?}");
    }
}

#[test]
fn d20_what_may_not_be_sent_ends_where_the_preset_says() {
    for (policy, end) in [(DeliveryPolicy::webhook(), Status::Failed), (DeliveryPolicy::patient(), Status::Dlq)] {
        let mut run = Run::new(policy);
        run.attempt(no_answer(NoAnswerKind::NotAllowed));
        assert_eq!(run.progress.status, end);
    }
}

#[test]
fn d21_the_copied_ladder_holds_against_a_changed_policy() {
    let mut run = webhook();
    let other = Ladder::new(2, vec![Wait::from_secs(5)], Jitter::None).unwrap();
    run.policy.schedule = Schedule::Ladder(other);
    assert_eq!(run.fail_a_round(&status(500)).len(), 6);
}
