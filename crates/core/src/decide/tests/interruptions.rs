//! Attempts that were cut off because their server died (D04).

use super::*;

#[test]
fn d04_an_interruption_takes_a_number_and_is_made_up_for_at_once() {
    for mut run in [Run::rounds(0, true), Run::rounds(0, false), Run::new(DeliveryPolicy::patient())] {
        run.interrupt();
        assert_eq!((run.progress.status, run.progress.attempts, run.wait_s()), (Status::Pending, 1, 0.0));
        assert_eq!((run.progress.failure, run.progress.rounds), (Some(Failure::Interrupted), 0));
        run.interrupt();
        assert_eq!((run.progress.status, run.progress.attempts), (Status::Pending, 2), "nor do two dead-letter");
    }
}

#[test]
fn d04_three_in_a_row_are_a_failed_round() {
    let interrupt_thrice = |mut run: Run| {
        for _ in 0..3 {
            run.interrupt();
        }
        run
    };
    let run = interrupt_thrice(Run::rounds(10, true));
    assert_eq!((run.progress.status, run.progress.attempts, run.progress.rounds), (Status::Dlq, 3, 1));
    assert_eq!(run.progress.failure, Some(Failure::Interrupted));
    let run = interrupt_thrice(Run::rounds(10, false));
    assert_eq!((run.progress.rounds, run.wait_s(), run.progress.round_attempts), (1, 8.0, 0));
    assert_eq!(run.progress.interruptions, 0, "the next round has its own three");
    let run = interrupt_thrice(Run::new(DeliveryPolicy::webhook()));
    assert_eq!(run.progress.status, Status::Dlq);
}

#[test]
fn d04_an_attempt_that_ended_between_them_starts_the_count_over() {
    let mut run = Run::rounds(10, true);
    run.interrupt();
    run.interrupt();
    run.attempt(status(500));
    run.interrupt();
    run.interrupt();
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Pending, 5));
    run.attempt(status(200));
    assert_eq!((run.progress.status, run.progress.failure), (Status::Success, None));
}

/// A ladder that a connection got after the delivery was accepted holds like a copied one: nothing goes in rounds then.
#[test]
fn d04_a_ladder_without_a_copy_ends_in_the_dlq_too() {
    let mut policy = DeliveryPolicy::webhook();
    policy.dlq.use_dlq = false;
    let mut run = Run { ladder: None, ..Run::new(policy) };
    for _ in 0..3 {
        run.interrupt();
    }
    assert_eq!(run.progress.status, Status::Dlq);
}

#[test]
fn d04_an_interrupted_last_attempt_is_made_once_more() {
    let mut run = Run::rounds(1, true);
    run.attempt(status(500));
    run.go_to_due();
    run.interrupt();
    assert_eq!(run.progress.status, Status::Pending);
    run.attempt(status(500));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 3));
}
