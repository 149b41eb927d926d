//! Writes decisions, in batches and in the order in which they were made, and tells callers once theirs is on disk (law 3, D03).
//!
//! A store that falters is tried again for as long as it takes, and nothing is sent again for that (R16). It must not know how a
//! decision came about.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use postrider_core::delivery::Status;
use postrider_core::id::{CommandId, DeliveryId};
use postrider_core::log;
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::readiness::Worker;
use postrider_store::{CommandAnswer, QueueLease, Settled, Settlement, StoreError};
use tokio::sync::mpsc;

use crate::notifier::Caller;
use crate::runner::{Inbox, ToRunner};
use crate::shared::Shared;
use crate::switching;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The door to the settling task.
pub(crate) struct Settler {
    waiting: mpsc::UnboundedSender<Order>,
    /// Orders not yet carried out; runners bound them by their windows and slots.
    open: Arc<AtomicUsize>,
}

pub(crate) enum Order {
    Settle(Box<ToSettle>),
    /// An answer to a command that changes nothing, after all that was decided before it.
    Answer {
        lease: QueueLease,
        id: CommandId,
        answer: CommandAnswer,
    },
}

pub(crate) struct ToSettle {
    pub settlement: Settlement,
    /// Who holds the delivery and which of its lives asked; an older life's news is ignored.
    pub runner: Inbox,
    pub life: u64,
    pub caller: Option<(Caller, Outcome)>,
}

impl Settler {
    pub fn new() -> (Self, mpsc::UnboundedReceiver<Order>) {
        let (waiting, orders) = mpsc::unbounded_channel();
        (Settler { waiting, open: Arc::new(AtomicUsize::new(0)) }, orders)
    }

    pub fn settle(&self, order: ToSettle) {
        self.put(Order::Settle(Box::new(order)));
    }

    pub fn answer(&self, lease: QueueLease, id: CommandId, answer: CommandAnswer) {
        self.put(Order::Answer { lease, id, answer });
    }

    pub fn is_idle(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    fn put(&self, order: Order) {
        self.open.fetch_add(1, Ordering::AcqRel);
        // The receiver lives as long as the engine.
        let _ = self.waiting.send(order);
    }
}

/// The settling task.
pub(crate) async fn run(shared: Arc<Shared>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let batch_max = shared.options.settle_batch_max.max(1);
    let mut taken = Vec::with_capacity(batch_max);
    while orders.recv_many(&mut taken, batch_max).await > 0 {
        shared.vitals.busy(Worker::Settler);
        let count = taken.len();
        let mut batch = Vec::with_capacity(count);
        for order in taken.drain(..) {
            match order {
                Order::Settle(order) => batch.push(*order),
                Order::Answer { lease, id, answer } => {
                    write_batch(&shared, std::mem::take(&mut batch)).await;
                    answer_command(&shared, lease, id, answer).await;
                }
            }
        }
        write_batch(&shared, batch).await;
        shared.announcer.room().await;
        shared.settler.open.fetch_sub(count, Ordering::AcqRel);
        shared.vitals.idle(Worker::Settler);
    }
}

async fn write_batch(shared: &Shared, batch: Vec<ToSettle>) {
    if batch.is_empty() {
        return;
    }
    let mut settlements = Vec::with_capacity(batch.len());
    let mut askers = Vec::with_capacity(batch.len());
    for ToSettle { settlement, runner, life, caller } in batch {
        settlements.push(settlement);
        askers.push((runner, life, caller));
    }
    let results = match write_whole(shared, &settlements).await {
        Some(results) => results,
        None => write_one_by_one(shared, &settlements).await,
    };
    for ((settlement, (runner, life, caller)), settled) in settlements.iter().zip(askers).zip(results) {
        follow_up(shared, settlement, &settled);
        if let Some((caller, outcome)) = caller {
            caller.tell(outcome_as_written(outcome, &settled, settlement.delivery_id));
        }
        // A runner that has ended has no use for the news.
        let _ = runner.send(ToRunner::Settled { life, delivery_id: settlement.delivery_id, settled });
    }
}

/// `None`: the store will never take this batch as a whole.
async fn write_whole(shared: &Shared, settlements: &[Settlement]) -> Option<Vec<Settled>> {
    let mut pause = FIRST_PAUSE;
    let count = settlements.len();
    loop {
        match shared.store.settle(settlements.to_vec()).await {
            Ok(results) => return Some(results),
            Err(StoreError::LeaseLost | StoreError::Closed) => return Some(vec![Settled::Stale; count]),
            Err(StoreError::NotFound { .. }) if count == 1 => return Some(vec![Settled::Gone]),
            Err(StoreError::Corrupt(why) | StoreError::Conflict(why)) if count == 1 => {
                tracing::error!(
                    event = log::DECISION_REFUSED,
                    why,
                    "a decision cannot be written; its delivery is left to be decided again"
                );
                return Some(vec![Settled::Stale]);
            }
            Err(StoreError::Corrupt(_) | StoreError::Conflict(_) | StoreError::NotFound { .. }) => return None,
            Err(error @ (StoreError::Unavailable(_) | StoreError::Full { .. })) => {
                tracing::warn!(event = log::DECISIONS_NOT_WRITTEN, %error, count, "decisions cannot be written yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                // It is the store that does not get on.
                shared.vitals.busy(Worker::Settler);
            }
        }
    }
}

async fn write_one_by_one(shared: &Shared, settlements: &[Settlement]) -> Vec<Settled> {
    let mut results = Vec::with_capacity(settlements.len());
    for one in settlements {
        let written = write_whole(shared, std::slice::from_ref(one)).await;
        results.push(written.and_then(|mut written| written.pop()).unwrap_or(Settled::Stale));
    }
    results
}

async fn answer_command(shared: &Shared, lease: QueueLease, id: CommandId, answer: CommandAnswer) {
    let mut pause = FIRST_PAUSE;
    while let Err(StoreError::Unavailable(_)) = shared.store.answer_command(lease, id, answer).await {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    shared.notifier.answered(id);
}

fn follow_up(shared: &Shared, settlement: &Settlement, settled: &Settled) {
    if matches!(settled, Settled::Applied { .. }) {
        shared.tally.settled();
        shared.tally.ended(settlement.progress.status);
        if settlement.progress.status == Status::Dlq {
            shared.dead_lettered(settlement.queue_id, settlement.delivery_id);
        }
        if let Some(write) = &settlement.health
            && let Some(off) = &write.off
        {
            switching::switched_off(shared, settlement.queue_id, off.off, write.health);
        }
    }
    if let Some((id, _)) = settlement.answers {
        shared.notifier.answered(id);
    }
}

/// The attempt was made, but another owner decides: the request is still in the queue as far as anybody knows.
fn outcome_as_written(outcome: Outcome, settled: &Settled, id: DeliveryId) -> Outcome {
    match settled {
        Settled::Stale => {}
        Settled::Gone => return outcome.without_queue(),
        _ => return outcome,
    }
    Outcome {
        state: OutcomeState::IsInQueue,
        msg_id: Some(id),
        error: Some("the lease on the queue was lost before the outcome was written".to_owned()),
        ..outcome
    }
}
