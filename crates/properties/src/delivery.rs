//! A queued delivery, attempt by attempt: success, another attempt after which wait, or the dead-letter queue (Z15, R02, R03, R07, R08).

use postrider_core::decide::{Event, Snapshot, decide};
use postrider_core::delivery::{Progress, Status};
use postrider_core::roll::Roll;
use postrider_core::verdict::over_http;
use postrider_core::{Timestamp, Wait};

use crate::call::{NOW_MS, Turn, Waits, on_the_ladder_s, policy, reply};
use crate::settings::is_near;

/// What the model expects after an attempt.
#[derive(Debug)]
enum Expected {
    Delivered,
    AgainAfter(f64),
    DeadLetter,
}

/// Delivers, the model beside it, until the delivery no longer waits. Each attempt ends at the moment that `Retry-After` dates are
/// told from, so that one clock serves both. Settings that cannot be are passed over.
pub fn check(waits: &Waits, turns: &[Turn]) {
    let Some(policy) = policy(waits) else { return };
    let now = Timestamp::from_millis(NOW_MS);
    let mut progress = Progress::accepted(now);
    let mut waited_s = 0.0;
    for (attempts, turn) in (1..).zip(turns) {
        let (Some(roll), Some(reply)) = (Roll::new(turn.roll), reply(turn)) else { return };
        progress = progress.begun(now);
        let verdict = over_http(&reply);
        let event = Event::AttemptEnded { verdict: &verdict, reply: &reply, direct: false };
        let snapshot = Snapshot { progress: &progress, policy: &policy, ladder: None };
        progress = decide(event, snapshot, now, roll).expect("only a person's wish is refused").progress;
        assert_eq!(progress.attempts, attempts, "numbered without gaps");
        match expected(waits, attempts, waited_s, turn) {
            Expected::Delivered => return assert_eq!(progress.status, Status::Success),
            Expected::DeadLetter => return assert_eq!(progress.status, Status::Dlq),
            Expected::AgainAfter(wait_s) => {
                assert_eq!(progress.status, Status::Pending);
                let wait: Wait = progress.due_at.since(now);
                is_near(Some(wait), Some(wait_s));
                waited_s += wait.as_secs_f64();
            }
        }
    }
}

fn expected(waits: &Waits, attempts: u32, waited_s: f64, turn: &Turn) -> Expected {
    if turn.status.is_some_and(|status| (200..300).contains(&status)) {
        return Expected::Delivered;
    }
    let wait_s = match waits {
        // A round tries every failure again, without Retry-After.
        Waits::Rounds(rounds) => rounds.wait_s(attempts, waited_s),
        // The default list: no answer, 408, 429 and 500 to 599.
        Waits::Ladder(rungs) => {
            let is_listed = turn.status.is_none_or(|s| s == 408 || s == 429 || (500..600).contains(&s));
            if is_listed { on_the_ladder_s(rungs, attempts, turn, &[429, 503]) } else { None }
        }
    };
    wait_s.map_or(Expected::DeadLetter, Expected::AgainAfter)
}
