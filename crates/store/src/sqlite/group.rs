//! Group commit: several calls in one transaction, each answered after it is durable (law 3). It must not know threads.
//!
//! Calls run one after another without savepoints. Should one fail after it has changed something, all is rolled back and each call
//! gets a transaction of its own; so a failure costs the others a second run and nothing else.

use tokio::sync::oneshot;

use super::work::Work;
use super::{intake, settle};
use crate::{Enqueued, NewDelivery, Settled, Settlement, StoreError};

pub(super) enum Job {
    Enqueue(Batch<NewDelivery, Enqueued>),
    Settle(Batch<Settlement, Settled>),
    Other(Box<dyn Verb>),
    /// Answered when the file is closed.
    Close(oneshot::Sender<()>),
}

/// A call whose items may go into the same statements as those of other calls.
pub(super) struct Batch<I, O> {
    items: Vec<I>,
    outcome: Option<Result<Vec<O>, StoreError>>,
    reply: oneshot::Sender<Result<Vec<O>, StoreError>>,
}

/// Any other call; it may be run again after a rollback.
pub(super) trait Verb: Send {
    fn run(&mut self, work: &Work) -> Result<(), StoreError>;
    fn answer(self: Box<Self>, committed: &Result<(), StoreError>);
}

pub(super) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

impl<I, O> Batch<I, O> {
    pub fn new(items: Vec<I>) -> (Self, Answer<Vec<O>>) {
        let (reply, answer) = oneshot::channel();
        (Batch { items, outcome: None, reply }, answer)
    }

    fn answer(self, committed: &Result<(), StoreError>) {
        // Nobody waits any more: then nobody needs the answer.
        let _ = self.reply.send(final_answer(self.outcome, committed));
    }
}

struct Call<T, F> {
    verb: F,
    outcome: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F: Fn(&Work) -> Result<T, StoreError> + Send> Verb for Call<T, F> {
    fn run(&mut self, work: &Work) -> Result<(), StoreError> {
        let outcome = (self.verb)(work);
        let result = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        result
    }

    fn answer(self: Box<Self>, committed: &Result<(), StoreError>) {
        let _ = self.reply.send(final_answer(self.outcome, committed));
    }
}

fn final_answer<T>(
    outcome: Option<Result<T, StoreError>>,
    committed: &Result<(), StoreError>,
) -> Result<T, StoreError> {
    match (outcome, committed) {
        // A call that was refused had nothing to commit.
        (Some(Err(refused)), _) => Err(refused),
        (_, Err(error)) => Err(error.clone()),
        (Some(outcome), Ok(())) => outcome,
        (None, Ok(())) => Err(StoreError::Unavailable("the call was not run".to_owned())),
    }
}

impl Job {
    pub fn call<T: Send + 'static>(
        verb: impl Fn(&Work) -> Result<T, StoreError> + Send + 'static,
    ) -> (Self, Answer<T>) {
        let (reply, answer) = oneshot::channel();
        (Job::Other(Box::new(Call { verb, outcome: None, reply })), answer)
    }

    /// How much it adds to a transaction, in rows.
    pub fn weight(&self) -> usize {
        match self {
            Job::Enqueue(batch) => batch.items.len(),
            Job::Settle(batch) => batch.items.len(),
            Job::Other(_) | Job::Close(_) => 1,
        }
    }

    fn answer(self, committed: &Result<(), StoreError>) {
        match self {
            Job::Enqueue(batch) => batch.answer(committed),
            Job::Settle(batch) => batch.answer(committed),
            Job::Other(verb) => verb.answer(committed),
            Job::Close(_) => {}
        }
    }
}

/// Runs these calls and answers them.
pub(super) fn run(work: &Work, mut jobs: Vec<Job>) {
    let mut committed = run_together(work, &mut jobs);
    if committed.is_err() && jobs.len() > 1 {
        for mut job in jobs {
            committed = run_together(work, std::slice::from_mut(&mut job));
            job.answer(&committed);
        }
        return;
    }
    for job in jobs {
        job.answer(&committed);
    }
}

/// None of these calls has been answered, so none can build on another, and they may run in any order that keeps those of a kind in
/// theirs: settlements first, since they make room, and each kind in as few statements as there can be.
fn run_together(work: &Work, jobs: &mut [Job]) -> Result<(), StoreError> {
    work.begin().inspect_err(|_| work.roll_back())?;
    run_settlements(work, jobs).inspect_err(|_| work.roll_back())?;
    run_intake(work, jobs).inspect_err(|_| work.roll_back())?;
    for job in jobs {
        if let Job::Other(verb) = job {
            guarded(work, || verb.run(work)).inspect_err(|_| work.roll_back())?;
        }
    }
    work.commit()
}

/// Runs a call. Its own refusal is its answer and no error here, as long as it left nothing behind.
fn guarded(work: &Work, call: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
    let mark = work.mark();
    match call() {
        Err(error) if work.changed_since(mark) || work.connection.is_autocommit() => Err(error),
        Err(_) | Ok(()) => Ok(()),
    }
}

fn run_settlements(work: &Work, jobs: &mut [Job]) -> Result<(), StoreError> {
    let batches = jobs.iter_mut().filter_map(|job| match job {
        Job::Settle(batch) => Some(batch),
        _ => None,
    });
    run_joined(work, batches.collect(), settle::settle)
}

fn run_intake(work: &Work, jobs: &mut [Job]) -> Result<(), StoreError> {
    let batches = jobs.iter_mut().filter_map(|job| match job {
        Job::Enqueue(batch) => Some(batch),
        _ => None,
    });
    run_joined(work, batches.collect(), intake::enqueue)
}

fn run_joined<I, O>(
    work: &Work,
    mut batches: Vec<&mut Batch<I, O>>,
    verb: fn(&Work, &[&I]) -> Result<Vec<O>, StoreError>,
) -> Result<(), StoreError> {
    if batches.is_empty() {
        return Ok(());
    }
    let mut outcome = Err(StoreError::Closed);
    let items: Vec<&I> = batches.iter().flat_map(|batch| batch.items.iter()).collect();
    guarded(work, || {
        outcome = verb(work, &items);
        outcome.as_ref().map(|_| ()).map_err(Clone::clone)
    })?;
    match outcome {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for batch in &mut batches {
                let count = batch.items.len();
                batch.outcome = Some(Ok(answers.by_ref().take(count).collect()));
            }
            Ok(())
        }
        Err(error) if batches.len() == 1 => {
            batches[0].outcome = Some(Err(error));
            Ok(())
        }
        // One of them is at fault: each by itself.
        Err(_) => batches.into_iter().try_for_each(|batch| run_joined(work, vec![batch], verb)),
    }
}
