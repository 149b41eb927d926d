//! Scripts of attempts, and a direct call made of one, attempt by attempt: which answers are retried, after which wait, and what `Retry-After` does to it (Z01 to Z04, R08).

use postrider_core::call::{CallStep, next_step};
use postrider_core::policy::DeliveryPolicy;
use postrider_core::retry_after::RetryAfter;
use postrider_core::roll::Roll;
use postrider_core::schedule::{Backoff, Jitter, Ladder, Schedule};
use postrider_core::verdict::over_http;
use postrider_core::{Answer, NoAnswerKind, Reply, Timestamp, Wait};

use crate::model::waits::{Rounds, Rungs};
use crate::settings::is_near;

/// 2026-03-12T12:05:34Z
pub(crate) const NOW_MS: i64 = 1_773_317_134_000;
/// `WEBHOOK_RETRY_AFTER_MAX_SECONDS`.
const CLAMP_S: f64 = 21_600.0;

#[derive(Clone, Debug)]
pub enum Waits {
    Rounds(Rounds),
    Ladder(Rungs),
}

/// What comes back from one attempt.
#[derive(Clone, Debug)]
pub struct Turn {
    /// `None`: nothing came.
    pub status: Option<u16>,
    pub retry_after: Option<String>,
    /// From 0 up to 1.
    pub roll: f64,
}

/// The input is a script: `rounds 5 2 2 60` or `ladder 5 60,300 0.5` (a roll, or `-` without jitter), and a line for each attempt:
/// a status or `-`, and what its `Retry-After` says.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let mut lines = text.lines();
    let Some((waits, roll)) = lines.next().and_then(read_waits) else { return };
    let turns = lines.map(|line| {
        let (status, asked) = line.split_once(' ').map_or((line, None), |(status, asked)| (status, Some(asked)));
        Turn { status: status.parse().ok(), retry_after: asked.map(str::to_owned), roll }
    });
    let turns: Vec<Turn> = turns.collect();
    check(&waits, &turns);
    crate::delivery::check(&waits, &turns);
}

fn read_waits(line: &str) -> Option<(Waits, f64)> {
    let words: Vec<&str> = line.split(' ').collect();
    match words.as_slice() {
        ["rounds", retries, first, multiplier, total] => {
            let rounds = Rounds {
                max_retries: retries.parse().ok()?,
                first_s: first.parse().ok()?,
                multiplier: multiplier.parse().ok()?,
                total_s: total.parse().ok()?,
            };
            Some((Waits::Rounds(rounds), 0.5))
        }
        ["ladder", attempts, delays, roll] => {
            let rungs = Rungs {
                max_attempts: attempts.parse().ok()?,
                delays_s: delays.split(',').map(|delay| delay.parse().ok()).collect::<Option<_>>()?,
                has_jitter: *roll != "-",
            };
            let roll = if rungs.has_jitter { roll.parse().ok()? } else { 0.5 };
            Some((Waits::Ladder(rungs), roll))
        }
        _ => None,
    }
}

/// Makes the call, the model beside it, until it returns. Settings that cannot be are passed over.
pub fn check(waits: &Waits, turns: &[Turn]) {
    let Some(policy) = policy(waits) else { return };
    let mut waited = Wait::ZERO;
    for (attempts, turn) in (1..).zip(turns) {
        let Some(roll) = Roll::new(turn.roll) else { return };
        let Some(reply) = reply(turn) else { return };
        let now = Timestamp::from_millis(NOW_MS);
        let step = next_step(&policy, attempts, waited, &over_http(&reply), &reply, now, roll);
        let wait = match step {
            CallStep::Return => None,
            CallStep::RetryAfter(wait) => Some(wait),
        };
        is_near(wait, expected_s(waits, attempts, waited.as_secs_f64(), turn));
        let Some(wait) = wait else { return };
        waited = waited + wait;
        if let Waits::Rounds(rounds) = waits {
            assert!(waited.as_secs_f64() <= rounds.total_s + 0.0005, "over the total: {waited}");
            assert!(attempts <= rounds.max_retries);
        }
    }
}

/// The wait before the next attempt; `None` when the caller gets what came.
fn expected_s(waits: &Waits, attempts: u32, waited_s: f64, turn: &Turn) -> Option<f64> {
    if turn.status.is_some_and(|status| status != 429) {
        return None;
    }
    match waits {
        Waits::Rounds(rounds) => {
            let own_s = rounds.wait_s(attempts, waited_s)?;
            let asked_s = turn.retry_after.as_deref().filter(|_| turn.status == Some(429)).and_then(asked_s);
            let Some(asked_s) = asked_s else { return Some(own_s) };
            (asked_s <= rounds.total_s - waited_s + 0.0005).then_some(asked_s)
        }
        Waits::Ladder(rungs) => on_the_ladder_s(rungs, attempts, turn, &[429]),
    }
}

/// `Retry-After` makes a ladder's wait only ever later, and no longer than the clamp.
pub(crate) fn on_the_ladder_s(rungs: &Rungs, attempts: u32, turn: &Turn, honoured_on: &[u16]) -> Option<f64> {
    let own_s = rungs.wait_s(attempts, turn.roll)?;
    let is_honoured = turn.status.is_some_and(|status| honoured_on.contains(&status));
    let asked_s = turn.retry_after.as_deref().filter(|_| is_honoured).and_then(asked_s);
    Some(asked_s.map_or(own_s, |asked_s| own_s.max(asked_s.min(CLAMP_S))))
}

fn asked_s(header: &str) -> Option<f64> {
    match crate::retry_after::says(header.trim_matches([' ', '\t']))? {
        RetryAfter::Seconds(seconds) => Some(seconds as f64),
        RetryAfter::Date(date) => Some(((date.as_millis() - NOW_MS) as f64 / 1000.0).max(0.0)),
    }
}

pub(crate) fn policy(waits: &Waits) -> Option<DeliveryPolicy> {
    match waits {
        Waits::Rounds(r) => {
            let backoff = Backoff::new(r.max_retries, r.first_s, r.multiplier, r.total_s).ok()?;
            Some(DeliveryPolicy::rounds(backoff))
        }
        Waits::Ladder(r) => {
            let is_delay = |delay_s: &f64| (1.0..=2_592_000.0).contains(delay_s);
            let delays = r.delays_s.iter().filter(|delay_s| is_delay(delay_s));
            let delays: Vec<Wait> =
                delays.map(|delay_s| Wait::from_millis((delay_s * 1000.0).round() as u64)).collect();
            let jitter = if r.has_jitter { Jitter::HalfToOneAndAHalf } else { Jitter::None };
            let fits = delays.len() == r.delays_s.len();
            let ladder = Ladder::new(r.max_attempts, delays, jitter).ok().filter(|_| fits)?;
            Some(DeliveryPolicy { schedule: Schedule::Ladder(ladder), ..DeliveryPolicy::webhook() })
        }
    }
}

/// `None` when no sender could have handed such an answer over.
pub(crate) fn reply(turn: &Turn) -> Option<Reply> {
    let Some(status) = turn.status else { return Some(Reply::unanswered(NoAnswerKind::Unreachable, "refused")) };
    let mut answer = Answer { status: Some(status), ..Answer::default() };
    if let Some(asked) = &turn.retry_after {
        answer.headers.push("Retry-After".to_owned(), asked.clone()).ok()?;
    }
    Some(Reply::Answered(answer))
}
