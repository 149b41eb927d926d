//! A direct call with the queue off (Z01 to Z05).

use super::*;
use crate::schedule::Backoff;
use crate::verdict::{Failed, over_http};
use crate::{Answer, NoAnswerKind};

const NOW: Timestamp = Timestamp::from_millis(1_773_317_134_000); // 2026-03-12T12:05:34Z

fn policy(max_retries: u32, first_s: f64, multiplier: f64, total_s: f64) -> DeliveryPolicy {
    DeliveryPolicy::rounds(Backoff::new(max_retries, first_s, multiplier, total_s).unwrap())
}

fn answered(status: u16, retry_after: Option<&str>) -> Reply {
    let mut answer = Answer { status: Some(status), ..Answer::default() };
    if let Some(asked) = retry_after {
        answer.headers.push("retry-after".to_owned(), asked.to_owned()).unwrap();
    }
    Reply::Answered(answer)
}

fn step(policy: &DeliveryPolicy, attempts: u32, waited_s: u64, reply: &Reply) -> CallStep {
    next_step(policy, attempts, Wait::from_secs(waited_s), &over_http(reply), reply, NOW, Roll::MIDDLE)
}

fn after(seconds: u64) -> CallStep {
    CallStep::RetryAfter(Wait::from_secs(seconds))
}

/// The waits of a call that gets the same every time, until it is returned.
fn waits_s(policy: &DeliveryPolicy, reply: &Reply) -> Vec<f64> {
    let mut waits = Vec::new();
    let mut waited = Wait::ZERO;
    for attempts in 1.. {
        match next_step(policy, attempts, waited, &over_http(reply), reply, NOW, Roll::MIDDLE) {
            CallStep::Return => break,
            CallStep::RetryAfter(wait) => {
                waited = waited + wait;
                waits.push(wait.as_secs_f64());
            }
        }
    }
    waits
}

#[test]
fn z01_only_four_things_are_retried() {
    let policy = policy(3, 2.0, 2.0, 60.0);
    for reply in [
        Reply::unanswered(NoAnswerKind::Unreachable, "refused"),
        Reply::unanswered(NoAnswerKind::Timeout, "nothing came"),
        answered(429, None),
    ] {
        assert_eq!(step(&policy, 1, 0, &reply), after(2), "{reply:?}");
    }
    let internal = Reply::unanswered(NoAnswerKind::Internal, "why");
    for (failure, again, retried) in [
        (Failure::NoAck, Again::Worthwhile, true),
        (Failure::Rejected, Again::Pointless, false),
        (Failure::Rejected, Again::Worthwhile, false),
    ] {
        let verdict = Verdict::Failed(Failed { failure, error: "AE".to_owned(), again, status: None });
        let next = next_step(&policy, 1, Wait::ZERO, &verdict, &internal, NOW, Roll::MIDDLE);
        assert_eq!(next == after(2), retried, "{failure:?}");
    }
    for status in [200, 204, 301, 400, 404, 408, 410, 500, 502, 503, 504] {
        assert_eq!(step(&policy, 1, 0, &answered(status, Some("1"))), CallStep::Return, "{status}");
    }
    for kind in [NoAnswerKind::NotAllowed, NoAnswerKind::Unsendable, NoAnswerKind::Internal] {
        assert_eq!(step(&policy, 1, 0, &Reply::unanswered(kind, "why")), CallStep::Return, "{kind:?}");
    }
}

// proves: Z02, Z03
#[test]
fn z03_the_seven_examples_of_the_seed_as_whole_calls() {
    let gone = Reply::unanswered(NoAnswerKind::Unreachable, "refused");
    let cases: [(DeliveryPolicy, &[f64]); 7] = [
        (DeliveryPolicy::rounds(Backoff::default()), &[]),
        (policy(5, 2.0, 2.0, 60.0), &[2.0, 4.0, 8.0, 8.0, 8.0]),
        (policy(10, 2.0, 2.0, 60.0), &[2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0, 6.0]),
        (policy(3, 20.0, 2.0, 60.0), &[8.0, 8.0, 8.0]),
        (policy(3, 10.0, 2.0, 5.0), &[5.0]),
        (policy(4, 3.0, 1.0, 60.0), &[3.0, 3.0, 3.0, 3.0]),
        (policy(4, 3.0, 0.0, 60.0), &[3.0, 1.0, 1.0, 1.0]),
    ];
    for (policy, waits) in cases {
        assert_eq!(waits_s(&policy, &gone), waits);
    }
}

#[test]
fn z04_retry_after_replaces_the_wait() {
    let policy = policy(3, 2.0, 2.0, 60.0);
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("30"))), after(30), "past the 8 s cap");
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("1"))), after(1), "sooner than the schedule, too");
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("Thu, 12 Mar 2026 12:06:04 GMT"))), after(30));
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("0"))), after(0));
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("Thu, 12 Mar 2020 12:06:04 GMT"))), after(0));
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("soon"))), after(2), "unreadable");
}

#[test]
fn z04_what_does_not_fit_in_the_total_ends_the_retries() {
    let policy = policy(3, 2.0, 2.0, 60.0);
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("60"))), after(60));
    assert_eq!(step(&policy, 1, 0, &answered(429, Some("61"))), CallStep::Return);
    assert_eq!(step(&policy, 2, 31, &answered(429, Some("29"))), after(29));
    assert_eq!(step(&policy, 2, 31, &answered(429, Some("30"))), CallStep::Return);
    assert_eq!(step(&policy, 2, 60, &answered(429, Some("0"))), CallStep::Return, "nothing is left");
}

#[test]
fn z04_it_uses_up_a_retry_and_the_schedule_goes_on_by_number() {
    let policy = policy(3, 2.0, 2.0, 60.0);
    assert_eq!(waits_s(&policy, &answered(429, Some("0"))), [0.0, 0.0, 0.0]);
    assert_eq!(step(&policy, 3, 34, &answered(429, None)), after(8), "the third wait of 2, 4, 8");
    assert_eq!(step(&policy, 4, 0, &answered(429, Some("1"))), CallStep::Return);
}

#[test]
fn p01_a_ladder_without_a_queue_waits_its_own_waits() {
    let webhook = DeliveryPolicy::webhook();
    assert_eq!(step(&webhook, 1, 0, &answered(429, None)), after(60));
    assert_eq!(step(&webhook, 1, 0, &answered(429, Some("30"))), after(60), "only ever later");
    assert_eq!(step(&webhook, 1, 0, &answered(429, Some("90"))), after(90));
    assert_eq!(step(&webhook, 7, 0, &answered(429, Some("90"))), CallStep::Return);
    assert_eq!(step(&webhook, 1, 0, &answered(500, None)), CallStep::Return, "Z01 holds here too");
}
