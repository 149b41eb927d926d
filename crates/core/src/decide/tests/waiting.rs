//! What may happen before an attempt: nothing yet, the attempt, or expiry (Z16, Z17, D22).

use super::*;

fn gate(run: &Run, held: bool, after_ms: u64) -> Gate {
    let open_since = (!held).then(Timestamp::default);
    before_attempt(run.at(), open_since, run.now + Wait::from_millis(after_ms))
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

const HOUR_MS: u64 = 3_600_000;

#[test]
fn r09_a_ladder_is_given_up_at_its_age_cap_whatever_is_left() {
    let mut run = Run::new(DeliveryPolicy::webhook());
    let cap_at = run.now + Wait::from_secs(96 * 3600);
    assert_eq!(gate(&run, false, 96 * HOUR_MS - 1), Gate::Attempt);
    assert_eq!(gate(&run, false, 96 * HOUR_MS), Gate::TooOld, "before any attempt");
    run.attempt(status(503));
    assert_eq!(gate(&run, false, 96 * HOUR_MS), Gate::TooOld, "due or not");
    run.progress.due_at = cap_at + Wait::from_secs(1);
    assert_eq!(gate(&run, false, 0), Gate::WaitUntil(cap_at), "woken for what comes first");
    run.now = cap_at;
    run.apply(Event::TooOld { behind: None }, Roll::MIDDLE);
    assert_eq!((run.progress.status, run.progress.failure), (Status::Dlq, Some(Failure::TooOld)));
    assert_eq!((run.progress.attempts, run.progress.dead_at), (1, Some(cap_at)));
    let error = run.progress.error.clone().unwrap();
    assert!(error.starts_with("older than the age cap (345600 s); before that: "), "{error}");
    run.by_hand(ByHand::Retry).unwrap();
    assert_eq!(gate(&run, false, 96 * HOUR_MS - 1), Gate::Attempt, "a retry by hand is measured from its own moment");
}

#[test]
fn r09_the_cap_goes_with_the_delivery_dlq_or_not_and_expiry_goes_first() {
    let mut run = Run::new(DeliveryPolicy::forward());
    run.policy.dlq.use_dlq = false;
    assert_eq!(gate(&run, false, 24 * HOUR_MS), Gate::TooOld);
    run.apply(Event::TooOld { behind: None }, Roll::MIDDLE);
    assert_eq!(run.progress.status, Status::Dlq);
    let mut run = Run::new(DeliveryPolicy::forward());
    run.policy.expires_after = Some(Wait::from_millis(HOUR_MS));
    assert_eq!(gate(&run, false, 24 * HOUR_MS), Gate::Expired);
    assert_eq!(leaves_at(run.at(), Some(run.now)), Some(run.now + Wait::from_millis(HOUR_MS)));
    run.policy.expires_after = Some(Wait::from_millis(25 * HOUR_MS));
    assert_eq!(leaves_at(run.at(), Some(run.now)), Some(run.now + Wait::from_millis(24 * HOUR_MS)));
    assert_eq!(
        leaves_at(run.at(), None),
        Some(run.now + Wait::from_millis(25 * HOUR_MS)),
        "while held only expiry runs on"
    );
}

// proves: R09, D22
#[test]
fn r09_rounds_have_no_cap_and_held_time_counts_for_nothing() {
    let mut rounds = Run::rounds(3, true);
    rounds.policy.age_cap = Some(Wait::from_millis(1));
    assert_eq!(gate(&rounds, false, 1000 * HOUR_MS), Gate::Attempt);
    let run = Run::new(DeliveryPolicy::webhook());
    assert_eq!(gate(&run, true, 1000 * HOUR_MS), Gate::WaitUntil(Timestamp::FAR_FUTURE));
    let opened_at = run.now + Wait::from_millis(1000 * HOUR_MS);
    let cap_at = opened_at + Wait::from_millis(96 * HOUR_MS);
    assert_eq!(before_attempt(run.at(), Some(opened_at), opened_at), Gate::Attempt);
    assert_eq!(before_attempt(run.at(), Some(opened_at), cap_at - Wait::from_millis(1)), Gate::Attempt);
    assert_eq!(before_attempt(run.at(), Some(opened_at), cap_at), Gate::TooOld);
}
