//! A call that never waits in a queue: attempted straight away, retried while its caller waits, and entered in the log afterwards
//! (Z01-Z05, Z12, D12).
//!
//! It must not know of queues.

use std::sync::Arc;

use postrider_core::Wait;
use postrider_core::attempt::Attempt;
use postrider_core::call::{CallStep, next_step};
use postrider_core::connection::Connection;
use postrider_core::delivery::{Progress, Status};
use postrider_core::outcome::Outcome;
use postrider_core::verdict::Verdict;
use postrider_store::{CallRecord, NewDelivery};
use postrider_wire::Outgoing;
use tokio::sync::oneshot;

use crate::attempt::{self, Ended};
use crate::keyed_calls::UnderWay;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// Whether failures that Z01 names are tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retries {
    AsConfigured,
    /// A request that only reads, on a connection with the queue on: one attempt (Z12).
    Never,
}

/// Who waits for the outcome.
pub(crate) enum Caller {
    Once(oneshot::Sender<Outcome>),
    /// With an idempotency key: repeats may wait too (D15).
    Keyed {
        answer: oneshot::Sender<Result<Outcome, Refusal>>,
        under_way: UnderWay,
    },
}

impl Caller {
    /// Nobody waits any more.
    async fn left(&mut self) {
        match self {
            Caller::Once(caller) => caller.closed().await,
            Caller::Keyed { answer, under_way } => {
                answer.closed().await;
                under_way.landed.closed().await;
            }
        }
    }

    /// Those who have left do not need to know.
    fn tell(self, outcome: Outcome) {
        match self {
            Caller::Once(caller) => drop(caller.send(outcome)),
            Caller::Keyed { answer, under_way } => {
                under_way.landed.send_replace(Some(outcome.clone()));
                drop(answer.send(Ok(outcome)));
            }
        }
    }
}

/// Makes the call in a task of its own, so that an attempt under way is finished and logged when its caller leaves (Z05).
pub(crate) async fn call(
    shared: &Arc<Shared>,
    connection: Arc<Connection>,
    new: NewDelivery,
    retries: Retries,
) -> Result<Outcome, Refusal> {
    let (answer, outcome) = oneshot::channel();
    let work = run(Arc::clone(shared), connection, new, retries, Caller::Once(answer));
    shared.spawn(work);
    outcome.await.map_err(|_| Refusal::Stopping)
}

pub(crate) async fn run(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    mut new: NewDelivery,
    retries: Retries,
    mut caller: Caller,
) {
    let _under_way = shared.call_log.begin_call();
    let policy = &connection.spec.policy;
    let head = Arc::new(new.head.clone());
    let mut attempts: Vec<Attempt> = Vec::with_capacity(1);
    let mut waited = Wait::ZERO;
    let (reply, verdict) = loop {
        new.progress = new.progress.begun(shared.now());
        let outgoing = Outgoing {
            connection: Arc::clone(&connection),
            delivery_id: new.id,
            cid: new.cid.clone(),
            attempt: new.progress.attempts,
            head: Arc::clone(&head),
            body: new.body.bytes.clone(),
            credentials: None,
            webhook: None,
            service: None,
            trace: None,
            stamp: None,
            timeout: policy.timeout,
        };
        let Ended { reply, verdict, record } = attempt::make(&shared, outgoing, None).await;
        attempts.push(record);
        if retries == Retries::Never || shared.is_stopping() {
            break (reply, verdict);
        }
        let made = new.progress.attempts;
        let wait = match next_step(policy, made, waited, &verdict, &reply, shared.now(), shared.roll()) {
            CallStep::Return => break (reply, verdict),
            CallStep::RetryAfter(wait) => wait,
        };
        if !wait_with_caller(&shared, &mut caller, wait).await {
            break (reply, verdict);
        }
        waited = waited + wait;
    };
    new.progress = ended(new.progress, &verdict, &shared);
    shared.tally.ended(new.progress.status);
    let outcome = Outcome::after_attempt(new.id, new.cid.clone(), &new.progress, reply);
    let record = CallRecord { delivery: new, attempts };
    match &caller {
        Caller::Once(_) => shared.call_log.enter(record).await,
        // A repeat after a crash must find what this caller was told.
        Caller::Keyed { .. } => shared.call_log.enter_durably(record).await,
    }
    caller.tell(outcome);
}

/// `false`: the caller has left, or the engine stops; no further retry starts (Z05).
async fn wait_with_caller(shared: &Shared, caller: &mut Caller, wait: Wait) -> bool {
    tokio::select! {
        biased;
        () = caller.left() => false,
        () = shared.call_log.stopped() => false,
        () = tokio::time::sleep(wait.as_duration()) => true,
    }
}

fn ended(mut progress: Progress, verdict: &Verdict, shared: &Shared) -> Progress {
    let now = shared.now();
    progress.ended_at = Some(now);
    match verdict {
        Verdict::Delivered => {
            progress.status = Status::Success;
            progress.delivered_at = Some(now);
        }
        Verdict::Failed(failed) => {
            progress.status = Status::Failed;
            progress.failure = Some(failed.failure);
            progress.error = Some(failed.error.clone());
        }
    }
    progress
}
