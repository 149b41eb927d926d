//! Stores requests in batches, in the order in which they came, and hands what is stored to the runners in that same order.
//!
//! One task takes whatever has arrived and hands it over at once; the store gathers what it commits together. It must not know what a
//! request is delivered to, nor who waits for its outcome.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use postrider_core::delivery::Delivery;
use postrider_core::log;
use postrider_core::message::RequestHead;
use postrider_core::readiness::Worker;
use postrider_store::{Enqueued, Loaded, NewDelivery, QueueLease, StoreError};
use tokio::sync::{mpsc, oneshot, watch};

use crate::dispatcher::{self, QueueHandle};
use crate::refusal::Refusal;
use crate::runner::{ToRunner, not_begun};
use crate::shared::Shared;

/// The door to the storing task.
pub(crate) struct Intake {
    waiting: mpsc::Sender<Request>,
    stop: watch::Sender<bool>,
    ended: watch::Sender<bool>,
}

pub(crate) struct Request {
    new: NewDelivery,
    answer: oneshot::Sender<Result<Enqueued, StoreError>>,
}

impl Intake {
    pub fn new(waiting_max: usize) -> (Self, mpsc::Receiver<Request>) {
        let (waiting, requests) = mpsc::channel(waiting_max.max(1));
        (Intake { waiting, stop: watch::Sender::new(false), ended: watch::Sender::new(false) }, requests)
    }

    /// Once this has been polled, the request is stored even if nobody waits for the answer.
    ///
    /// # Errors
    /// `Full` when too many requests wait to be stored; nothing is dropped (law 5).
    pub async fn store(&self, new: NewDelivery) -> Result<Result<Enqueued, StoreError>, Refusal> {
        let (answer, stored) = oneshot::channel();
        self.waiting.try_send(Request { new, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Refusal::Full { limit: "intake_waiting_max" },
            mpsc::error::TrySendError::Closed(_) => Refusal::Stopping,
        })?;
        stored.await.map_err(|_| Refusal::Stopping)
    }

    /// Stores many in their order, waiting for room instead of refusing: who comes with many at once can wait. The answers are in order.
    pub async fn store_all(&self, news: Vec<NewDelivery>) -> Vec<Result<Result<Enqueued, StoreError>, Refusal>> {
        let mut waiting = Vec::with_capacity(news.len());
        for new in news {
            let (answer, stored) = oneshot::channel();
            let sent = self.waiting.send(Request { new, answer }).await;
            waiting.push(sent.map(|()| stored).map_err(|_| Refusal::Stopping));
        }
        let mut answers = Vec::with_capacity(waiting.len());
        for stored in waiting {
            answers.push(match stored {
                Ok(stored) => stored.await.map_err(|_| Refusal::Stopping),
                Err(refusal) => Err(refusal),
            });
        }
        answers
    }

    /// Refuses what comes from now on, and waits until all that came before is stored and handed over.
    pub async fn stop(&self) {
        self.stop.send_replace(true);
        let mut ended = self.ended.subscribe();
        // The sender lives in `self`.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

/// Batches on their way to the store at once. The store carries them out in the order in which they were handed over, and may commit
/// several together.
const UNDER_WAY_MAX: usize = 64;

/// The storing task.
pub(crate) async fn run(shared: Arc<Shared>, mut requests: mpsc::Receiver<Request>) {
    let batch_max = shared.options.intake_batch_max.max(1);
    let mut taken = Vec::with_capacity(batch_max);
    let mut stop = shared.intake.stop.subscribe();
    let mut under_way = FuturesOrdered::new();
    let (mut told_to_stop, mut open) = (false, true);
    while open || !under_way.is_empty() {
        tokio::select! {
            biased;
            () = told(&mut stop), if !told_to_stop => {
                told_to_stop = true;
                requests.close();
            }
            Some(Written { copies, answers, results }) = under_way.next() => {
                hand_out(&shared, copies, answers, results);
                note(&shared, under_way.is_empty());
            }
            count = requests.recv_many(&mut taken, batch_max), if open && under_way.len() < UNDER_WAY_MAX => {
                if count == 0 {
                    open = false;
                } else {
                    if under_way.is_empty() {
                        note(&shared, false);
                    }
                    under_way.push_back(write(&shared, &mut taken));
                }
            }
        }
    }
    shared.intake.ended.send_replace(true);
}

/// The worker is at work while batches are under way; each that comes back shows that it gets on.
fn note(shared: &Shared, is_idle: bool) {
    if is_idle {
        shared.vitals.idle(Worker::Intake);
    } else {
        shared.vitals.busy(Worker::Intake);
    }
}

/// Waits until it is told to stop.
async fn told(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Deliveries of one message on their way to the store: slots are taken for them as for requests that come alone.
pub(crate) struct Fan {
    deliveries: Vec<NewDelivery>,
    copies: Vec<Copy>,
}

impl Fan {
    pub fn new(shared: &Arc<Shared>, mut deliveries: Vec<NewDelivery>) -> Self {
        let copies = deliveries.iter_mut().map(|new| prepare(shared, new)).collect();
        Fan { deliveries, copies }
    }

    /// What is to be stored, in the order of the answers.
    pub fn take_deliveries(&mut self) -> Vec<NewDelivery> {
        std::mem::take(&mut self.deliveries)
    }

    /// They are stored, or their connections are gone.
    pub fn hand_out(self, shared: &Shared, answers: &[Enqueued]) {
        for (copy, answer) in self.copies.into_iter().zip(answers) {
            hand_over(shared, copy, answer);
        }
    }

    pub fn came_to_nothing(&self) {
        self.copies.iter().for_each(nothing_came);
    }
}

/// What goes to the runner once the request is stored, so that nothing is read back.
struct Copy {
    loaded: Loaded,
    queue: Arc<QueueHandle>,
    slot: Option<QueueLease>,
}

/// A batch that the store has answered.
struct Written {
    copies: Vec<Copy>,
    answers: Vec<oneshot::Sender<Result<Enqueued, StoreError>>>,
    results: Result<Vec<Enqueued>, StoreError>,
}

/// Hands a batch to the store once it is polled, which is before any later one.
fn write(shared: &Arc<Shared>, taken: &mut Vec<Request>) -> impl Future<Output = Written> + use<> {
    let mut batch = Vec::with_capacity(taken.len());
    let mut copies = Vec::with_capacity(taken.len());
    let mut answers = Vec::with_capacity(taken.len());
    for Request { mut new, answer } in taken.drain(..) {
        copies.push(prepare(shared, &mut new));
        batch.push(new);
        answers.push(answer);
    }
    let store = Arc::clone(&shared.store);
    async move { Written { copies, answers, results: store.enqueue(batch).await } }
}

fn prepare(shared: &Arc<Shared>, new: &mut NewDelivery) -> Copy {
    let queue = dispatcher::queue(shared, new.connection_id, None);
    if !new.ordered {
        claim_as_stored(shared, &queue, new);
    }
    queue.set_backlog(true);
    Copy { loaded: as_loaded(new), queue, slot: new.claimed_under }
}

fn hand_out(
    shared: &Shared,
    copies: Vec<Copy>,
    answers: Vec<oneshot::Sender<Result<Enqueued, StoreError>>>,
    results: Result<Vec<Enqueued>, StoreError>,
) {
    match results {
        Ok(results) => {
            for ((copy, result), answer) in copies.into_iter().zip(results).zip(answers) {
                hand_over(shared, copy, &result);
                let _ = answer.send(Ok(result));
            }
        }
        Err(error) => {
            for (copy, answer) in copies.into_iter().zip(answers) {
                nothing_came(&copy);
                let _ = answer.send(Err(error.clone()));
            }
        }
    }
}

/// A free slot of an unordered queue: the attempt's beginning is written with the request itself.
fn claim_as_stored(shared: &Shared, queue: &QueueHandle, new: &mut NewDelivery) {
    if !shared.lease.may_send() {
        return;
    }
    // What is in a line waits for its turn there, which only the owner knows.
    if new.event.as_ref().is_some_and(|event| event.line.is_some()) {
        return;
    }
    if let Some(lease) = queue.slots.take_one(shared, new.created_at) {
        new.progress = new.progress.clone().begun(new.created_at);
        new.claimed_under = Some(lease);
    }
}

fn hand_over(shared: &Shared, copy: Copy, result: &Enqueued) {
    let Enqueued::Stored { position, ahead, claimed, held_under } = *result else {
        return nothing_came(&copy);
    };
    shared.tally.accepted();
    let (msg_id, cid) = (copy.loaded.delivery.id, &copy.loaded.delivery.cid);
    tracing::debug!(event = log::REQUEST_STORED, connection = %copy.loaded.delivery.connection_id, %msg_id, %cid, "a request was stored");
    if !claimed {
        give_slot_back(&copy);
    }
    let Copy { mut loaded, queue, slot } = copy;
    loaded.delivery.position = Some(position);
    if slot.is_some() && !claimed {
        loaded.delivery.progress = not_begun(&loaded.delivery.progress);
    }
    let id = loaded.delivery.id;
    let loaded = Box::new(loaded);
    let told =
        queue.tell(if claimed { ToRunner::Claimed(loaded) } else { ToRunner::Fresh { loaded, ahead, held_under } });
    if !told {
        shared.notifier.is_not_run_here(id);
    }
}

/// The runner looks for itself whether anything waits.
fn nothing_came(copy: &Copy) {
    give_slot_back(copy);
    copy.queue.tell(ToRunner::Wake);
}

fn give_slot_back(copy: &Copy) {
    if let Some(lease) = copy.slot {
        copy.queue.slots.give_back_unused(lease, 1, copy.loaded.delivery.created_at);
    }
}

fn as_loaded(new: &NewDelivery) -> Loaded {
    let head: RequestHead = new.head.clone();
    Loaded {
        delivery: Delivery {
            id: new.id,
            project_id: new.project_id,
            connection_id: new.connection_id,
            cid: new.cid.clone(),
            origin: new.origin,
            created_at: new.created_at,
            head,
            body_id: new.body.id,
            body_bytes: new.body.bytes.len() as u64,
            original_body_id: None,
            event: new.event.clone(),
            ladder: new.ladder.clone(),
            position: None,
            version: 0,
            progress: new.progress.clone(),
        },
        body: new.body.bytes.clone(),
    }
}
