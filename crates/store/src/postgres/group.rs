//! Group commit: several calls in one transaction, each answered after it is durable (law 3). It must not know how a transaction is made.
//!
//! Settlements go together, and so does intake, and so do claims, each kind in as few statements as there can be. Any other call has a
//! transaction of its own. When one of a group is at fault, all is rolled back and each gets its own; so it costs the others a second run
//! and nothing else.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::sync::oneshot;

use super::failures::Outcome;
use super::window::{self, Claim};
use super::work::Work;
use super::writer::{Lane, Run};
use super::{intake, settle};
use crate::{Enqueued, Loaded, NewDelivery, Settled, Settlement, StoreError};

pub(super) type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

pub(super) enum Job {
    Enqueue(Batch<NewDelivery, Enqueued>),
    Settle(Batch<Settlement, Settled>),
    Claim(Batch<Claim, Option<Vec<Loaded>>>),
    Other(Box<dyn Verb>),
}

/// A call whose items may go into the same statements as those of other calls.
pub(super) struct Batch<I, O> {
    items: Vec<I>,
    reply: oneshot::Sender<Result<Vec<O>, StoreError>>,
}

impl<I, O> Batch<I, O> {
    pub fn new(items: Vec<I>) -> (Self, Answer<Vec<O>>) {
        let (reply, answer) = oneshot::channel();
        (Batch { items, reply }, answer)
    }
}

/// Any other call.
#[async_trait]
pub(super) trait Verb: Send {
    async fn run(self: Box<Self>, lane: &mut Lane);

    /// Answers without having done anything.
    fn refuse(self: Box<Self>, error: StoreError);
}

pub(super) struct Call<D, T> {
    data: D,
    verb: Run<D, T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

#[async_trait]
impl<D: Send + Sync, T: Send> Verb for Call<D, T> {
    async fn run(self: Box<Self>, lane: &mut Lane) {
        let answer = lane.transaction(&self.data, self.verb).await;
        // Nobody waits any more: then nobody needs the answer.
        let _ = self.reply.send(answer);
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

impl Job {
    /// Answers without having done anything.
    pub fn refuse(self, error: StoreError) {
        match self {
            Job::Enqueue(batch) => drop(batch.reply.send(Err(error))),
            Job::Settle(batch) => drop(batch.reply.send(Err(error))),
            Job::Claim(batch) => drop(batch.reply.send(Err(error))),
            Job::Other(verb) => verb.refuse(error),
        }
    }

    pub fn call<D: Send + Sync + 'static, T: Send + 'static>(data: D, verb: Run<D, T>) -> (Self, Answer<T>) {
        let (reply, answer) = oneshot::channel();
        (Job::Other(Box::new(Call { data, verb, reply })), answer)
    }

    /// How much it adds to a transaction, in rows.
    pub fn weight(&self) -> usize {
        match self {
            Job::Enqueue(batch) => batch.items.len(),
            Job::Settle(batch) => batch.items.len(),
            Job::Claim(batch) => batch.items.iter().map(Claim::rows_max).sum(),
            Job::Other(_) => 1,
        }
    }
}

/// Runs these calls and answers them.
pub(super) async fn run(lane: &mut Lane, jobs: Vec<Job>) {
    let (mut settle, mut intake, mut claims) = (Vec::new(), Vec::new(), Vec::new());
    for job in jobs {
        match job {
            Job::Settle(batch) => settle.push(batch),
            Job::Enqueue(batch) => intake.push(batch),
            Job::Claim(batch) => claims.push(batch),
            Job::Other(verb) => verb.run(lane).await,
        }
    }
    // None of these has been answered, so none can build on another. Settlements first, since they make room.
    run_kind(lane, settle, |work, batch: &Vec<&Settlement>| settle::settle(work, batch).boxed()).await;
    run_kind(lane, intake, |work, batch: &Vec<&NewDelivery>| intake::enqueue(work, batch).boxed()).await;
    run_kind(lane, claims, |work, batch: &Vec<&Claim>| window::claim_all(work, batch).boxed()).await;
}

type Joined<I, O> = for<'w, 'i> fn(&'w Work, &'w Vec<&'i I>) -> futures_util::future::BoxFuture<'w, Outcome<Vec<O>>>;

async fn run_kind<I: Sync, O>(lane: &mut Lane, batches: Vec<Batch<I, O>>, verb: Joined<I, O>) {
    if batches.is_empty() {
        return;
    }
    let items: Vec<&I> = batches.iter().flat_map(|batch| &batch.items).collect();
    match lane.transaction(&items, verb).await {
        Ok(answers) => {
            let mut answers = answers.into_iter();
            for batch in batches {
                let own = answers.by_ref().take(batch.items.len()).collect();
                let _ = batch.reply.send(Ok(own));
            }
        }
        // One of them is at fault: each by itself. A database that is away is away for all of them.
        Err(error) if batches.len() > 1 && !matches!(error, StoreError::Unavailable(_)) => {
            for batch in batches {
                let own: Vec<&I> = batch.items.iter().collect();
                let answer = lane.transaction(&own, verb).await;
                let _ = batch.reply.send(answer);
            }
        }
        Err(error) => {
            for batch in batches {
                let _ = batch.reply.send(Err(error.clone()));
            }
        }
    }
}
