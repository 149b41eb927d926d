//! The queues that this worker has, each with its runner: started when something is stored, taken again when lost, restarted when
//! one breaks down. Nothing here polls: a queue in which nothing is due costs a sleeping task.
//!
//! It must not know how a queue is delivered.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use postrider_core::Wait;
use postrider_core::id::QueueId;
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_core::spread;
use postrider_store::{QueueLease, StoreError, TakenQueue, Workforce};
use tokio::sync::{Notify, mpsc};

use crate::runner::slots::Slots;
use crate::runner::{Exit, Inbox, Post, ToRunner, fifo, unordered};
use crate::shared::Shared;

/// Queues taken in one go.
const TAKEN_AT_ONCE: u32 = 256;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// A runner that lived longer than this is started again without a longer pause.
const QUIET_LIFE: Wait = Wait::from_secs(60);

/// One queue as others of the engine see it.
pub(crate) struct QueueHandle {
    inbox: Inbox,
    /// Something waits, as far as this process knows (Z18).
    backlog: AtomicBool,
    pub slots: Slots,
}

#[derive(Default)]
pub(crate) struct Queues {
    known: Mutex<BTreeMap<QueueId, Arc<QueueHandle>>>,
    running: AtomicUsize,
    one_ended: Notify,
}

impl QueueHandle {
    pub fn inbox(&self) -> Inbox {
        self.inbox.clone()
    }

    /// `false`: its runner has ended.
    pub fn tell(&self, message: ToRunner) -> bool {
        self.inbox.send(message).is_ok()
    }

    pub fn set_backlog(&self, backlog: bool) {
        self.backlog.store(backlog, Ordering::Release);
    }

    pub fn has_backlog(&self) -> bool {
        self.backlog.load(Ordering::Acquire)
    }
}

impl Queues {
    pub fn get(&self, queue_id: QueueId) -> Option<Arc<QueueHandle>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&queue_id).cloned()
    }

    /// A runner of this process has it now.
    pub fn is_run_here(&self, queue_id: QueueId) -> bool {
        self.get(queue_id).is_some_and(|handle| handle.slots.is_open())
    }

    pub fn all(&self) -> Vec<Arc<QueueHandle>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    pub fn tell(&self, queue_id: QueueId, message: ToRunner) {
        if let Some(handle) = self.get(queue_id) {
            handle.tell(message);
        }
    }

    /// Waits until every runner has ended.
    pub async fn all_ended(&self) {
        loop {
            let one_ended = self.one_ended.notified();
            if self.running.load(Ordering::Acquire) == 0 {
                return;
            }
            one_ended.await;
        }
    }

    fn forget(&self, queue_id: QueueId, handle: &Arc<QueueHandle>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.get(&queue_id).is_some_and(|found| Arc::ptr_eq(found, handle)) {
            known.remove(&queue_id);
        }
        drop(known);
        self.running.fetch_sub(1, Ordering::AcqRel);
        self.one_ended.notify_waiters();
    }
}

/// The queue's handle, with a runner started for it if there is none. `taken`: it is ours already.
pub(crate) fn queue(shared: &Arc<Shared>, queue_id: QueueId, taken: Option<TakenQueue>) -> Arc<QueueHandle> {
    let mut known = shared.queues.known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = known.get(&queue_id) {
        if let Some(taken) = taken {
            handle.tell(ToRunner::Taken(taken));
        }
        return Arc::clone(handle);
    }
    let (inbox, messages) = mpsc::unbounded_channel();
    let handle = Arc::new(QueueHandle { inbox, backlog: AtomicBool::new(true), slots: Slots::default() });
    known.insert(queue_id, Arc::clone(&handle));
    shared.queues.running.fetch_add(1, Ordering::AcqRel);
    drop(known);
    shared.spawn(keep(Arc::clone(shared), queue_id, Arc::clone(&handle), messages, taken));
    handle
}

/// Something in this queue changed in the store: its runner looks, and is started if there is none.
pub(crate) fn wake(shared: &Arc<Shared>, queue_id: QueueId) {
    queue(shared, queue_id, None).tell(ToRunner::Wake);
}

/// Takes the queues in which something waits and that nobody has: all of them, or of those that several workers share, its part.
pub(crate) async fn take_orphans(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut room = match shared.store.workforce(shared.now()).await? {
        None => u64::MAX,
        Some(workforce) => {
            let (mine, loads) = loads(shared, &workforce);
            spread::to_take(mine, &loads, workforce.free)
        }
    };
    while room > 0 {
        let at_once = u32::try_from(room).unwrap_or(u32::MAX).min(TAKEN_AT_ONCE);
        let taken = shared.store.take_queues(shared.lease.worker_id(), shared.now(), at_once).await?;
        let count = taken.len() as u64;
        for one in taken {
            queue(shared, one.lease.queue_id, Some(one));
        }
        shared.vitals.idle(Worker::Dispatcher);
        room -= count;
        if count < u64::from(at_once) {
            break;
        }
    }
    Ok(())
}

/// Gives some back when others have fewer.
pub(crate) async fn give_back_excess(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let Some(workforce) = shared.store.workforce(shared.now()).await? else { return Ok(()) };
    let (mine, loads) = loads(shared, &workforce);
    let excess = usize::try_from(spread::to_give_back(mine, &loads, workforce.free)).unwrap_or(usize::MAX);
    for handle in shared.queues.all().into_iter().take(excess) {
        handle.tell(ToRunner::GiveBack);
    }
    Ok(())
}

/// How many queues this worker has, and how many each has.
fn loads(shared: &Shared, workforce: &Workforce) -> (u64, Vec<u64>) {
    let own = shared.lease.worker_id();
    // Limits of projects are shared among those that live.
    shared.workers.store(u32::try_from(workforce.workers.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
    let mine = workforce.workers.iter().find(|(id, _)| *id == own).map_or(0, |(_, queues)| *queues);
    (mine, workforce.workers.iter().map(|(_, queues)| *queues).collect())
}

/// All that was decided under the lease is written.
async fn give_back(shared: &Shared, lease: QueueLease) {
    if let Err(error) = shared.store.release_queue(lease).await {
        tracing::debug!(event = log::QUEUE_NOT_RELEASED, %error, queue = %lease.queue_id, "a queue was not given back");
    }
}

/// Keeps one queue: takes it, runs it, and takes it again when it was lost.
async fn keep(
    shared: Arc<Shared>,
    queue_id: QueueId,
    handle: Arc<QueueHandle>,
    mut inbox: mpsc::UnboundedReceiver<ToRunner>,
    mut taken: Option<TakenQueue>,
) {
    let mut pause = FIRST_PAUSE;
    let mut life = 0;
    let mut was_in_flight = false;
    loop {
        let mine = match taken.take() {
            Some(mine) => mine,
            None => match take(&shared, queue_id, &mut inbox).await {
                // Where nobody else delivers, a queue that was free when this process started has nothing in flight.
                Some(mine) => TakenQueue {
                    taken_over: was_in_flight || (mine.taken_over && shared.options.other_workers),
                    ..mine
                },
                None => break,
            },
        };
        life += 1;
        let post = Post {
            shared: Arc::clone(&shared),
            handle: Arc::clone(&handle),
            lease: mine.lease,
            life,
            taken_over: mine.taken_over,
            has_claims: mine.has_claims,
            has_commands: mine.has_commands,
        };
        let began = shared.clock.monotonic();
        match AssertUnwindSafe(run(post, &mut inbox)).catch_unwind().await {
            Ok(Exit::Stopped | Exit::Deleted) => break,
            Ok(Exit::GivenBack) => {
                give_back(&shared, mine.lease).await;
                break;
            }
            Ok(Exit::OrderChanged) => {
                // The runner that ends may have heard of commands that it did not come to.
                taken = Some(TakenQueue { taken_over: false, has_commands: true, ..mine });
                continue;
            }
            Ok(Exit::Lost) => {}
            Err(_) => {
                tracing::error!(event = log::RUNNER_PANICKED, queue = %queue_id, "a queue's runner broke down and is started again");
                handle.slots.close(shared.now());
                written(&shared).await;
            }
        }
        // If it is still ours by the store, it is taken again under a new token, with whatever was in flight.
        was_in_flight = true;
        if let Err(error) = shared.store.release_queue(mine.lease).await {
            tracing::debug!(event = log::QUEUE_NOT_RELEASED, %error, queue = %queue_id, "a queue was not given back");
        }
        if shared.clock.monotonic().saturating_sub(began) > QUIET_LIFE {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    handle.slots.close(shared.now());
    shared.queues.forget(queue_id, &handle);
    inbox.close();
    while let Some(message) = inbox.recv().await {
        dismiss(&shared, message);
    }
}

async fn run(post: Post, inbox: &mut mpsc::UnboundedReceiver<ToRunner>) -> Exit {
    match post.connection() {
        None => Exit::Deleted,
        Some(connection) if connection.spec.policy.queue.ordered => fifo::run(post, inbox).await,
        Some(_) => unordered::run(post, inbox).await,
    }
}

/// Waits until nothing is left to write, so that what is read next is not old.
async fn written(shared: &Shared) {
    while !shared.settler.is_idle() {
        tokio::time::sleep(FIRST_PAUSE).await;
    }
}

/// Takes the queue, as soon as nobody else has it. `None`: told to stop, or its connection is gone.
async fn take(
    shared: &Arc<Shared>,
    queue_id: QueueId,
    inbox: &mut mpsc::UnboundedReceiver<ToRunner>,
) -> Option<TakenQueue> {
    let mut pause = FIRST_PAUSE;
    loop {
        shared.connections.get(queue_id)?;
        let lease: Result<Vec<TakenQueue>, StoreError> =
            shared.store.take_named_queues(shared.lease.worker_id(), shared.now(), vec![queue_id]).await;
        match lease {
            Ok(taken) => match taken.into_iter().next() {
                Some(mine) => return Some(mine),
                // Another worker has it, and whoever lets go of it says so.
                None if shared.options.other_workers => return None,
                None => {}
            },
            Err(error) => {
                tracing::warn!(event = log::QUEUE_NOT_TAKEN, %error, queue = %queue_id, "a queue cannot be taken yet")
            }
        }
        // Somebody else delivers: those who call here learn that their request is stored.
        let rest = tokio::time::sleep(pause);
        tokio::pin!(rest);
        loop {
            tokio::select! {
                biased;
                message = inbox.recv() => match message? {
                    ToRunner::Stop | ToRunner::Abort | ToRunner::GiveBack => return None,
                    ToRunner::Taken(mine) => return Some(mine),
                    ToRunner::ConnectionChanged if shared.connections.get(queue_id).is_none() => return None,
                    message => dismiss(shared, message),
                },
                () = &mut rest => break,
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A runner that has the queue was handed it once more: the other lease is of no use.
pub(crate) fn release(shared: &Arc<Shared>, taken: TakenQueue) {
    let at = Arc::clone(shared);
    shared.spawn(async move {
        if let Err(error) = at.store.release_queue(taken.lease).await {
            tracing::debug!(event = log::QUEUE_NOT_RELEASED, %error, "a queue was not released");
        }
    });
}

fn dismiss(shared: &Shared, message: ToRunner) {
    if let ToRunner::Fresh { loaded, .. } | ToRunner::Claimed(loaded) = message {
        shared.notifier.is_not_run_here(loaded.delivery.id);
    }
}

/// A lease that this worker holds on a queue is worth nothing any more.
pub(crate) fn all_lost(shared: &Shared) {
    for handle in shared.queues.all() {
        handle.tell(ToRunner::LeaseLost);
    }
}
