//! What may happen before an attempt: nothing yet, the attempt, or expiry (Z16, Z17, D22).

use super::*;

fn gate(run: &Run, held: bool, after_ms: u64) -> Gate {
    before_attempt(run.at(), held, run.now + Wait::from_millis(after_ms))
}

#[test]
fn z15_nothing_is_attempted_before_it_is_due() {
    let mut run = Run::rounds(3, true);
    assert_eq!(gate(&run, false, 0), Gate::Attempt);
    run.attempt(status(500));
    let due_at = run.progress.due_at;
    assert_eq!(gate(&run, false, 1999), Gate::WaitUntil(due_at));
    assert_eq!(gate(&run, false, 2000), Gate::Attempt);
}

#[test]
fn z16_a_held_queue_attempts_nothing() {
    let run = Run::rounds(3, true);
    assert_eq!(gate(&run, true, 0), Gate::WaitUntil(Timestamp::FAR_FUTURE));
    assert_eq!(gate(&run, true, 86_400_000), Gate::WaitUntil(Timestamp::FAR_FUTURE), "nor does it march into the DLQ");
}

// proves: Z17, D22
#[test]
fn z17_expiry_comes_first_and_runs_on_while_a_queue_is_held() {
    let mut run = Run::rounds(3, true);
    run.policy.expires_after = Some(Wait::from_secs(10));
    let expires_at = run.now + Wait::from_secs(10);
    for held in [false, true] {
        assert_eq!(gate(&run, held, 10_000), Gate::Expired);
        assert_eq!(gate(&run, held, 86_400_000), Gate::Expired);
    }
    assert_eq!(gate(&run, false, 9999), Gate::Attempt);
    assert_eq!(gate(&run, true, 9999), Gate::WaitUntil(expires_at));
    run.progress.due_at = run.now + Wait::from_secs(60);
    assert_eq!(gate(&run, false, 0), Gate::WaitUntil(expires_at), "woken for what comes first");
    run.progress.due_at = run.now + Wait::from_secs(5);
    assert_eq!(gate(&run, false, 0), Gate::WaitUntil(run.progress.due_at));
}

#[test]
fn z17_what_expired_goes_to_the_dlq_or_to_the_log() {
    for (use_dlq, end) in [(true, Status::Dlq), (false, Status::Expired)] {
        let mut run = Run::rounds(3, use_dlq);
        run.policy.expires_after = Some(Wait::from_secs(10));
        run.attempt(status(500));
        run.now = run.now + Wait::from_secs(10);
        run.apply(Event::Expired, Roll::MIDDLE);
        assert_eq!((run.progress.status, run.progress.failure), (end, Some(Failure::Expired)));
        assert_eq!(run.progress.error.as_deref(), Some("older than expires_after (10 s)"));
        assert_eq!(run.progress.dead_at, use_dlq.then_some(run.now));
        assert_eq!(run.progress.ended_at, (!use_dlq).then_some(run.now));
    }
}

#[test]
fn d26_a_retry_by_hand_restarts_expiry() {
    let mut run = Run::rounds(3, true);
    run.policy.expires_after = Some(Wait::from_secs(10));
    run.now = run.now + Wait::from_secs(10);
    run.apply(Event::Expired, Roll::MIDDLE);
    run.by_hand(ByHand::Retry).unwrap();
    assert_eq!(gate(&run, false, 0), Gate::Attempt);
    assert_eq!(gate(&run, false, 10_000), Gate::Expired);
}
