//! The state machine, driven from the outside: a delivery, a policy, a clock that only the test moves.

use super::*;
use crate::delivery::Status;
use crate::schedule::Backoff;
use crate::verdict::{Again, Failed, over_http};
use crate::{Answer, Failure, NoAnswerKind, Wait};

mod by_hand;
mod dead_letter;
mod direct_call;
mod interruptions;
mod ladder;
mod properties;
mod rounds;
mod waiting;

/// One delivery on its way.
#[derive(Clone, Debug)]
struct Run {
    policy: DeliveryPolicy,
    ladder: Option<LadderTerms>,
    progress: Progress,
    now: Timestamp,
}

impl Run {
    fn new(policy: DeliveryPolicy) -> Self {
        let now = Timestamp::from_millis(1_773_317_134_730);
        let ladder = LadderTerms::of(&policy);
        Run { policy, ladder, progress: Progress::accepted(now), now }
    }

    fn rounds(max_retries: u32, use_dlq: bool) -> Self {
        let mut policy = DeliveryPolicy::rounds(Backoff::new(max_retries, 2.0, 2.0, 60.0).unwrap());
        policy.queue.use_queue = true;
        policy.dlq.use_dlq = use_dlq;
        Run::new(policy)
    }

    fn at(&self) -> Snapshot<'_> {
        Snapshot { progress: &self.progress, policy: &self.policy, ladder: self.ladder.as_ref() }
    }

    fn apply(&mut self, event: Event<'_>, roll: Roll) -> Decision {
        let decision = decide(event, self.at(), self.now, roll).unwrap();
        self.progress = decision.progress.clone();
        decision
    }

    /// Only what waits is attempted.
    fn begin(&mut self) {
        assert_eq!(self.progress.status, Status::Pending);
        self.progress = self.progress.clone().begun(self.now);
    }

    /// An attempt that begins and ends now.
    fn attempt_with(&mut self, verdict: &Verdict, reply: &Reply, direct: bool, roll: Roll) -> Decision {
        self.begin();
        self.apply(Event::AttemptEnded { verdict, reply, direct }, roll)
    }

    fn attempt(&mut self, reply: Reply) -> Decision {
        self.attempt_with(&over_http(&reply), &reply, false, Roll::MIDDLE)
    }

    /// The one call of a caller who waits.
    fn call(&mut self, reply: Reply) -> Decision {
        self.attempt_with(&over_http(&reply), &reply, true, Roll::MIDDLE)
    }

    fn interrupt(&mut self) -> Decision {
        self.begin();
        self.apply(Event::Interrupted, Roll::MIDDLE)
    }

    fn by_hand(&mut self, act: ByHand) -> Result<Decision, Refused> {
        let decision = decide(Event::ByHand(act), self.at(), self.now, Roll::MIDDLE)?;
        self.progress = decision.progress.clone();
        Ok(decision)
    }

    /// How long from now until the next attempt.
    fn wait_s(&self) -> f64 {
        assert_eq!(self.progress.status, Status::Pending);
        self.progress.due_at.since(self.now).as_secs_f64()
    }

    fn go_to_due(&mut self) {
        self.now = self.progress.due_at;
    }

    /// Attempts at their times, all answered the same, until the delivery no longer waits or a round is over; the waits between.
    fn fail_a_round(&mut self, reply: &Reply) -> Vec<f64> {
        let rounds = self.progress.rounds;
        let mut waits = Vec::new();
        loop {
            self.attempt(reply.clone());
            if self.progress.status != Status::Pending || self.progress.rounds > rounds {
                return waits;
            }
            waits.push(self.wait_s());
            self.go_to_due();
        }
    }
}

fn status(status: u16) -> Reply {
    Reply::Answered(Answer { status: Some(status), ..Answer::default() })
}

fn status_asking(status: u16, retry_after: &str) -> Reply {
    let mut answer = Answer { status: Some(status), ..Answer::default() };
    answer.headers.push("Retry-After".to_owned(), retry_after.to_owned()).unwrap();
    Reply::Answered(answer)
}

fn no_answer(kind: NoAnswerKind) -> Reply {
    Reply::unanswered(kind, "nothing came")
}

/// A batch of which some entries were done.
fn done_in_part() -> Verdict {
    let error = "1 of 2 entries were not done".to_owned();
    Verdict::Failed(Failed { failure: Failure::Partial, error, again: Again::Harmful, status: None })
}

/// A negative acknowledgment that says the message itself is at fault.
fn rejected() -> Verdict {
    let error = "AE: unknown patient".to_owned();
    Verdict::Failed(Failed { failure: Failure::Rejected, error, again: Again::Pointless, status: None })
}
