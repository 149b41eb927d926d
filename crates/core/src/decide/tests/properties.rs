//! What holds for every policy and every course of events.

use proptest::prelude::*;

use super::*;
use crate::delivery::INTERRUPTIONS_PER_ROUND;
use crate::policy::{BETWEEN_ROUNDS, DlqAction};
use crate::schedule::Jitter;

/// What the world does when it is its turn.
#[derive(Clone, Debug)]
enum Turn {
    Answer(u16, Option<u32>),
    Nothing(NoAnswerKind),
    Rejected,
    Interrupt,
    ByHand(ByHand),
    /// Time passes.
    Wait(u64),
}

fn any_turn() -> impl Strategy<Value = Turn> {
    let statuses = prop::sample::select(vec![200u16, 204, 302, 400, 404, 408, 410, 429, 500, 503]);
    let kinds = prop::sample::select(vec![
        NoAnswerKind::Timeout,
        NoAnswerKind::Unreachable,
        NoAnswerKind::NotAllowed,
        NoAnswerKind::Unsendable,
        NoAnswerKind::Internal,
    ]);
    let acts = prop::sample::select(vec![
        ByHand::Retry,
        ByHand::Resend,
        ByHand::Discard,
        ByHand::SetAside,
        ByHand::AttemptNow,
        ByHand::Forward,
        ByHand::Edit,
    ]);
    prop_oneof![
        10 => (statuses, prop::option::of(0u32..100_000)).prop_map(|(status, asked)| Turn::Answer(status, asked)),
        4 => kinds.prop_map(Turn::Nothing),
        1 => Just(Turn::Rejected),
        3 => Just(Turn::Interrupt),
        2 => acts.prop_map(Turn::ByHand),
        2 => (0u64..200_000).prop_map(Turn::Wait),
    ]
}

prop_compose! {
    fn any_rounds()(
        retries in 0u32..6, first_s in 0.0..20.0f64, multiplier in 0.0..4.0f64, total_s in 0.0..60.0f64, use_dlq: bool,
    ) -> DeliveryPolicy {
        let mut policy = DeliveryPolicy::rounds(Backoff::new(retries, first_s, multiplier, total_s).unwrap());
        policy.dlq.use_dlq = use_dlq;
        policy
    }
}

prop_compose! {
    fn any_ladder()(
        attempts in 1u32..8, delays in prop::collection::vec(1u64..10_000, 1..5), jitter: bool, patient: bool,
    ) -> DeliveryPolicy {
        let jitter = if jitter { Jitter::HalfToOneAndAHalf } else { Jitter::None };
        let ladder = Ladder::new(attempts, delays.into_iter().map(Wait::from_secs).collect(), jitter).unwrap();
        let preset = if patient { DeliveryPolicy::patient() } else { DeliveryPolicy::webhook() };
        DeliveryPolicy { schedule: Schedule::Ladder(ladder), ..preset }
    }
}

fn any_policy() -> impl Strategy<Value = DeliveryPolicy> {
    let action = prop_oneof![
        Just(DlqAction::Keep),
        (0u32..3).prop_map(|retries_max| DlqAction::Retry { retries_max }),
        Just(DlqAction::Discard),
        Just(DlqAction::Forward { topic: "lab.failed".parse().ok(), keep_header: true }),
        Just(DlqAction::Forward { topic: None, keep_header: true }),
    ];
    let schedule = prop_oneof![any_rounds(), any_ladder()];
    (schedule, action, prop::option::of(1u64..400_000)).prop_map(|(mut policy, action, life_ms)| {
        policy.dlq.action = action;
        policy.expires_after = life_ms.map(Wait::from_millis);
        policy
    })
}

/// What is counted beside the state machine, from what it is seen to do.
#[derive(Debug, Default)]
struct Seen {
    /// Attempts of this round, or of the ladder since it began or was given more.
    attempts: u32,
    interruptions: u32,
    waited_ms: u64,
    /// The most that a ladder may still make, when a person said so.
    given: Option<u32>,
}

impl Seen {
    /// Checks a decision that followed an attempt, against the state before it.
    fn check_attempt(&mut self, run: &Run, before: &Progress, interrupted: bool) -> Result<(), TestCaseError> {
        let after = &run.progress;
        self.attempts += 1;
        self.interruptions += u32::from(interrupted);
        prop_assert_eq!(after.attempts, before.attempts + 1, "one number for each attempt");
        prop_assert_eq!(after.last_attempt_at, Some(run.now));
        prop_assert!(after.interruptions < INTERRUPTIONS_PER_ROUND);
        match &run.policy.schedule {
            Schedule::Backoff(backoff) => {
                prop_assert!(self.attempts <= 1 + backoff.max_retries() + self.interruptions, "{self:?}");
            }
            Schedule::Ladder(ladder) => {
                let allowed = self.given.unwrap_or(ladder.max_attempts());
                prop_assert!(self.attempts <= allowed + self.interruptions, "{self:?}");
            }
        }
        if after.status == Status::Pending {
            self.check_wait(run, before, interrupted)?;
        }
        Ok(())
    }

    fn check_wait(&mut self, run: &Run, before: &Progress, interrupted: bool) -> Result<(), TestCaseError> {
        let after = &run.progress;
        prop_assert!(after.due_at >= run.now, "never due in the past");
        prop_assert!(after.failure.is_some() && after.error.is_some(), "a retry has a reason");
        let wait = after.due_at.since(run.now);
        let Schedule::Backoff(backoff) = &run.policy.schedule else {
            let Schedule::Ladder(ladder) = &run.policy.schedule else { unreachable!() };
            let longest = ladder.delays().iter().max().map_or(0, |delay| delay.as_millis() * 3 / 2 + 1);
            prop_assert!(wait.as_millis() <= longest.max(21_600_000));
            return Ok(());
        };
        if after.rounds > before.rounds {
            prop_assert!(!run.policy.dlq.use_dlq, "with the DLQ on there is no second round by itself");
            prop_assert_eq!(wait, BETWEEN_ROUNDS);
            prop_assert_eq!((after.round_attempts, after.round_waited), (0, Wait::ZERO));
            *self = Seen::default();
            return Ok(());
        }
        if interrupted {
            prop_assert_eq!(wait, Wait::ZERO);
        }
        self.waited_ms += wait.as_millis();
        prop_assert!(wait <= Backoff::LONGEST_WAIT);
        prop_assert!(self.waited_ms <= backoff.total().as_millis(), "{self:?} of {}", backoff.total());
        prop_assert_eq!(after.round_waited.as_millis(), self.waited_ms);
        prop_assert_eq!(after.round_attempts, self.attempts);
        Ok(())
    }
}

fn check_state(run: &Run) -> Result<(), TestCaseError> {
    let progress = &run.progress;
    prop_assert_eq!(progress.status.is_terminal(), progress.ended_at.is_some(), "{:?}", progress);
    if progress.status == Status::Dlq {
        prop_assert!(progress.dead_at.is_some() && progress.error.is_some());
    }
    if progress.status == Status::Success {
        prop_assert!(progress.failure.is_none() && progress.error.is_none() && progress.delivered_at.is_some());
    }
    if progress.status.is_waiting() {
        prop_assert!(progress.dead_at.is_none() && progress.dlq_note.is_none());
    }
    Ok(())
}

/// One turn: what the engine would do in this state.
fn take(turn: &Turn, run: &mut Run, seen: &mut Seen, direct: bool, roll: Roll) -> Result<(), TestCaseError> {
    let before = run.progress.clone();
    if let Turn::Wait(ms) = turn {
        run.now = run.now + Wait::from_millis(*ms);
        return Ok(());
    }
    if let Turn::ByHand(act) = turn {
        return by_hand(*act, run, seen);
    }
    match before.status {
        Status::Pending => match before_attempt(run.at(), Some(Timestamp::default()), run.now) {
            Gate::WaitUntil(time) => {
                prop_assert!(time > run.now);
                run.now = time;
            }
            Gate::Expired => {
                prop_assert!(run.policy.expires_after.is_some());
                run.apply(Event::Expired, roll);
                let end = if run.policy.dlq.use_dlq { Status::Dlq } else { Status::Expired };
                prop_assert_eq!((run.progress.status, run.progress.attempts), (end, before.attempts));
            }
            Gate::TooOld => {
                prop_assert!(run.policy.age_cap.is_some() && run.ladder.is_some());
                run.apply(Event::TooOld { behind: None }, roll);
                prop_assert_eq!((run.progress.status, run.progress.attempts), (Status::Dlq, before.attempts));
            }
            Gate::Attempt => attempt(turn, run, seen, direct, roll, &before)?,
        },
        Status::Dlq => sweep(run, seen)?,
        _ => {
            let step = dead_letter_step(&run.progress, &run.policy.dlq, Timestamp::FAR_FUTURE);
            prop_assert_eq!(step, DeadLetterStep::Stay, "an end is an end");
        }
    }
    Ok(())
}

fn attempt(
    turn: &Turn,
    run: &mut Run,
    seen: &mut Seen,
    direct: bool,
    roll: Roll,
    before: &Progress,
) -> Result<(), TestCaseError> {
    let nothing = no_answer(NoAnswerKind::Internal);
    let delivered = match turn {
        Turn::Interrupt => {
            run.interrupt();
            return seen.check_attempt(run, before, true);
        }
        Turn::Rejected => {
            run.attempt_with(&rejected(), &nothing, direct, roll);
            false
        }
        Turn::Nothing(kind) => {
            let reply = no_answer(*kind);
            run.attempt_with(&over_http(&reply), &reply, direct, roll);
            false
        }
        Turn::Answer(code, asked) => {
            let reply = asked.map_or_else(|| status(*code), |asked| status_asking(*code, &asked.to_string()));
            run.attempt_with(&over_http(&reply), &reply, direct, roll);
            *code < 300
        }
        Turn::ByHand(_) | Turn::Wait(_) => return Ok(()),
    };
    prop_assert_eq!(run.progress.status == Status::Success, delivered, "a success is a success, and nothing else is");
    seen.check_attempt(run, before, false)
}

fn sweep(run: &mut Run, seen: &mut Seen) -> Result<(), TestCaseError> {
    let retries_before = run.progress.dlq_retries;
    let Some(due_at) = dead_letter_due_at(&run.progress, &run.policy.dlq) else { return Ok(()) };
    let just_before = dead_letter_step(&run.progress, &run.policy.dlq, due_at - Wait::from_millis(1));
    prop_assert_eq!(just_before, DeadLetterStep::Stay);
    run.now = run.now.max(due_at);
    match dead_letter_step(&run.progress, &run.policy.dlq, run.now) {
        DeadLetterStep::Stay => prop_assert!(false, "it was due"),
        DeadLetterStep::StayBecause(reason) => prop_assert!(!reason.is_empty()),
        DeadLetterStep::Apply(decision) | DeadLetterStep::Forward { decision, .. } => {
            run.progress = decision.progress;
            if run.progress.status == Status::Pending {
                prop_assert_eq!(run.progress.dlq_retries, retries_before + 1);
                prop_assert!(decision.to_tail);
                *seen = Seen::default();
            }
        }
    }
    Ok(())
}

fn by_hand(act: ByHand, run: &mut Run, seen: &mut Seen) -> Result<(), TestCaseError> {
    let before = run.progress.clone();
    let Ok(decision) = run.by_hand(act) else {
        prop_assert_eq!(&run.progress, &before);
        return Ok(());
    };
    prop_assert_eq!(run.progress.attempts, before.attempts, "a person's wish is no attempt");
    prop_assert_eq!(run.progress.dlq_retries, before.dlq_retries);
    if before.status.is_terminal() && before.status != run.progress.status {
        let reopened = matches!(act, ByHand::Retry | ByHand::Resend) && run.progress.status == Status::Pending;
        let given_up = matches!(act, ByHand::Discard | ByHand::Forward) && before.status == Status::Failed;
        prop_assert!(reopened || given_up, "{act:?} from {:?}", before.status);
    }
    if decision.to_tail {
        prop_assert_eq!((run.progress.status, run.progress.due_at), (Status::Pending, run.now));
        *seen = Seen::default();
        if act == ByHand::Retry && matches!(run.policy.schedule, Schedule::Ladder(_)) {
            seen.given = Some(3);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    // proves: Z03, Z13, Z15, Z16, Z20, Z21, R11, D04, D27
    #[test]
    fn z15_every_course_of_events_keeps_the_rules(
        policy in any_policy(), copied: bool, called: bool,
        turns in prop::collection::vec((any_turn(), 0.0..1.0f64), 1..80),
    ) {
        let mut run = Run::new(policy);
        if !copied {
            run.ladder = None;
        }
        let mut seen = Seen::default();
        for (turn, roll) in turns {
            let direct = called && run.progress.attempts == 0;
            take(&turn, &mut run, &mut seen, direct, Roll::new(roll).unwrap())?;
            check_state(&run)?;
        }
    }

    /// The same snapshot and the same event give the same decision.
    #[test]
    fn law1_decisions_follow_from_their_arguments(policy in any_policy(), code in 200u16..600, roll in 0.0..1.0f64) {
        let reply = status(code);
        let (mut one, mut other) = (Run::new(policy.clone()), Run::new(policy));
        let roll = Roll::new(roll).unwrap();
        prop_assert_eq!(
            one.attempt_with(&over_http(&reply), &reply, false, roll),
            other.attempt_with(&over_http(&reply), &reply, false, roll)
        );
    }
}
