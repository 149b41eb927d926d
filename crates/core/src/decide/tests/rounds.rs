//! Rounds of the queue (Z03, Z15, Z16).

use super::*;
use crate::delivery::INTERRUPTIONS_PER_ROUND;

// proves: Z02, Z03, Z15
#[test]
fn z03_the_seven_examples_of_the_seed_as_whole_rounds() {
    let cases: [(Backoff, &[f64]); 7] = [
        (Backoff::default(), &[]),
        (Backoff::new(5, 2.0, 2.0, 60.0).unwrap(), &[2.0, 4.0, 8.0, 8.0, 8.0]),
        (Backoff::new(10, 2.0, 2.0, 60.0).unwrap(), &[2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 6.0]),
        (Backoff::new(3, 20.0, 2.0, 60.0).unwrap(), &[8.0, 8.0, 8.0]),
        (Backoff::new(3, 10.0, 2.0, 5.0).unwrap(), &[5.0]),
        (Backoff::new(4, 3.0, 1.0, 60.0).unwrap(), &[3.0, 3.0, 3.0, 3.0]),
        (Backoff::new(4, 3.0, 0.0, 60.0).unwrap(), &[3.0, 1.0, 1.0, 1.0]),
    ];
    for (backoff, waits) in cases {
        let mut run = Run::new(DeliveryPolicy::rounds(backoff.clone()));
        assert_eq!(run.wait_s(), 0.0, "published: attempted at once");
        assert_eq!(run.fail_a_round(&status(500)), waits, "{backoff:?}");
        assert_eq!(run.progress.status, Status::Dlq);
        assert_eq!((run.progress.attempts as usize, run.progress.rounds), (waits.len() + 1, 1));
    }
}

#[test]
fn z15_a_round_retries_every_failure() {
    let replies = [
        status(500),
        status(400),
        status(301),
        status(429),
        no_answer(NoAnswerKind::Timeout),
        no_answer(NoAnswerKind::Unreachable),
        no_answer(NoAnswerKind::Unsendable),
        no_answer(NoAnswerKind::Internal),
    ];
    for reply in replies {
        let mut run = Run::rounds(2, true);
        assert_eq!(run.fail_a_round(&reply), [2.0, 4.0], "{reply:?}");
    }
}

#[test]
fn z15_rounds_do_not_look_at_retry_after() {
    for asked in ["30", "0"] {
        let mut run = Run::rounds(2, true);
        assert_eq!(run.fail_a_round(&status_asking(429, asked)), [2.0, 4.0]);
    }
}

#[test]
fn z15_without_retries_a_round_is_one_attempt_and_eight_seconds_lie_between() {
    let mut run = Run::rounds(0, false);
    for round in 1..=3 {
        assert_eq!(run.fail_a_round(&status(500)), [0.0; 0]);
        assert_eq!((run.progress.attempts, run.progress.rounds), (round, round));
        assert_eq!(run.wait_s(), 8.0);
        run.go_to_due();
    }
}

#[test]
fn z16_with_the_dlq_off_it_stays_at_the_head_round_after_round() {
    let mut run = Run::rounds(2, false);
    for round in 1..=3 {
        let rounds_before = run.progress.rounds;
        assert_eq!(run.fail_a_round(&status(500)), [2.0, 4.0], "each round begins anew");
        assert_eq!((rounds_before, run.progress.rounds), (round - 1, round));
        assert_eq!((run.progress.round_attempts, run.progress.round_waited), (0, Wait::ZERO));
        assert_eq!(run.wait_s(), 8.0);
        run.go_to_due();
    }
    let decision = run.attempt(status(200));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Success, 10));
    assert!(!decision.to_tail, "it never lost its place");
    assert_eq!((run.progress.failure, &run.progress.error), (None, &None));
}

// proves: Z16, Z20
#[test]
fn z20_with_the_dlq_on_it_moves_there_with_the_note() {
    let mut run = Run::rounds(1, true);
    run.fail_a_round(&no_answer(NoAnswerKind::Timeout));
    let note = &run.progress;
    assert_eq!((note.status, note.dead_at), (Status::Dlq, Some(run.now)));
    assert_eq!((note.failure, note.error.as_deref()), (Some(Failure::Timeout), Some("nothing came")));
    assert_eq!((note.attempts, note.rounds), (2, 1));
    assert_eq!(note.ended_at, None, "the DLQ is not an end");
}

/// A round reads its policy live: what was made of it so far counts under the new one (Z15).
#[test]
fn z15_attempts_already_made_count_when_the_settings_shrink() {
    let mut run = Run::rounds(5, true);
    run.attempt(status(500));
    run.go_to_due();
    run.attempt(status(500));
    run.policy.schedule = Schedule::Backoff(Backoff::new(1, 2.0, 2.0, 60.0).unwrap());
    run.go_to_due();
    run.attempt(status(500));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 3));
}

#[test]
fn d25_a_message_at_fault_ends_the_round_at_once() {
    let reply = no_answer(NoAnswerKind::Internal);
    let mut run = Run::rounds(5, true);
    run.attempt_with(&rejected(), &reply, false, Roll::MIDDLE);
    assert_eq!((run.progress.status, run.progress.failure), (Status::Dlq, Some(Failure::Rejected)));
    let mut run = Run::rounds(5, false);
    for round in 1..=3 {
        run.attempt_with(&rejected(), &reply, false, Roll::MIDDLE);
        assert_eq!((run.progress.attempts, run.progress.rounds), (round, round), "one attempt a round");
        assert_eq!(run.wait_s(), 8.0);
        run.go_to_due();
    }
}

// proves: Z33
#[test]
fn z33_f13_what_was_done_in_part_is_never_sent_again_by_itself() {
    let reply = no_answer(NoAnswerKind::Internal);
    for (use_dlq, end) in [(true, Status::Dlq), (false, Status::Failed)] {
        let mut run = Run::rounds(5, use_dlq);
        run.attempt_with(&done_in_part(), &reply, false, Roll::MIDDLE);
        assert_eq!((run.progress.status, run.progress.failure), (end, Some(Failure::Partial)));
    }
    let mut run = Run::rounds(5, true);
    run.attempt_with(&done_in_part(), &reply, true, Roll::MIDDLE);
    assert_eq!(run.progress.status, Status::Failed, "a caller has it in hand");
    let mut run = Run::rounds(5, true);
    run.policy.dlq.action = crate::policy::DlqAction::Retry { retries_max: 3 };
    run.attempt_with(&done_in_part(), &reply, false, Roll::MIDDLE);
    assert_eq!(dead_letter_due_at(&run.progress, &run.policy.dlq), None, "the action leaves it where it is");
}

// proves: Z13, D04
#[test]
fn z13_a_round_cut_short_resumes_where_it_was() {
    let mut run = Run::rounds(3, true);
    run.attempt(status(500));
    run.go_to_due();
    run.interrupt();
    assert_eq!(run.wait_s(), 0.0, "what was cut off is made up for at once");
    // Attempts 1 and 2 are spent, so two more waits are left: the third and the one before it.
    run.attempt(status(500));
    assert_eq!(run.wait_s(), 8.0, "the third wait of 2, 4, 8");
    run.go_to_due();
    run.attempt(status(500));
    assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, 4));
    assert!(run.progress.interruptions < INTERRUPTIONS_PER_ROUND);
}
