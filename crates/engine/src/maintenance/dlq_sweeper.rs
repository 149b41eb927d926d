//! Takes the DLQ's action once `every` has passed since a dead letter's arrival (Z21).
//!
//! Sleeps until the next one is due; a new dead letter or a changed setting wakes it. It must not know what the action means: the
//! core says, and a forward is written in one transaction with the message it publishes (Z22).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use postrider_core::connection::Connection;
use postrider_core::decide::{DeadLetterStep, Decision, dead_letter_step};
use postrider_core::delivery::{Delivery, Progress};
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::log;
use postrider_core::policy::DlqAction;
use postrider_core::readiness::Worker;
use postrider_core::{Timestamp, Wait};
use postrider_store::{DeadLetterFilter, Forward, Guard, Placement, Settled, Settlement, StoreError};
use tokio::sync::Notify;

use crate::dispatcher;
use crate::forwarding::{self, By};
use crate::shared::Shared;

const ROWS_AT_ONCE: u32 = 64;
const STORE_PAUSE: Wait = Wait::from_secs(1);
/// A dead letter whose action cannot be taken is looked at again no sooner than this.
const SHORTEST_LOOK_AGAIN: Wait = Wait::from_secs(1);

/// How others tell the sweeper to look.
#[derive(Default)]
pub(crate) struct SweepNotice {
    /// `true`: settings changed, so that what stayed may go now.
    queues: Mutex<BTreeMap<QueueId, bool>>,
    notify: Notify,
}

impl SweepNotice {
    /// One more may be in this queue's DLQ.
    pub fn dead_letter(&self, queue_id: QueueId) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).entry(queue_id).or_insert(false);
        self.notify.notify_one();
    }

    /// The connection's settings or its topic changed.
    pub fn settings_changed(&self, queue_id: QueueId) {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner).insert(queue_id, true);
        self.notify.notify_one();
    }

    fn take(&self) -> BTreeMap<QueueId, bool> {
        std::mem::take(&mut *self.queues.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut due: BTreeMap<QueueId, Timestamp> = BTreeMap::new();
    // Queues in which some stay for a reason are not looked through again for each new dead letter.
    let mut resting: BTreeMap<QueueId, Timestamp> = BTreeMap::new();
    for connection in shared.connections.all() {
        shared.sweeps.dead_letter(connection.id);
    }
    loop {
        shared.vitals.busy(Worker::DlqSweeper);
        for (queue_id, changed) in shared.sweeps.take() {
            if changed {
                resting.remove(&queue_id);
            }
            look_up(&shared, queue_id, &mut due).await;
            if let (Some(at), Some(rest)) = (due.get_mut(&queue_id), resting.get(&queue_id)) {
                *at = (*at).max(*rest);
            }
        }
        let now = shared.now();
        let ready: Vec<QueueId> = due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| *id).collect();
        for queue_id in ready {
            due.remove(&queue_id);
            resting.remove(&queue_id);
            if let Some(rest) = sweep(&shared, queue_id, &mut due).await {
                resting.insert(queue_id, rest);
            }
        }
        let next = due.values().min().copied().unwrap_or(Timestamp::FAR_FUTURE);
        shared.vitals.idle(Worker::DlqSweeper);
        tokio::select! {
            biased;
            () = shared.sweeps.notify.notified() => {}
            () = shared.sleep_until(next) => {}
        }
    }
}

/// What the action may touch; `None`: it touches nothing.
fn filter_of(connection: &Connection) -> Option<DeadLetterFilter> {
    match connection.spec.policy.dlq.action {
        DlqAction::Keep => None,
        DlqAction::Retry { retries_max } => {
            Some(DeadLetterFilter { dlq_retries_below: Some(retries_max), leave_out_aged: true })
        }
        DlqAction::Forward { .. } | DlqAction::Discard => Some(DeadLetterFilter::default()),
    }
}

/// When the queue's oldest dead letter is due.
async fn look_up(shared: &Shared, queue_id: QueueId, due: &mut BTreeMap<QueueId, Timestamp>) {
    let Some(connection) = shared.connections.get(queue_id) else {
        due.remove(&queue_id);
        return;
    };
    let Some(filter) = filter_of(&connection) else {
        due.remove(&queue_id);
        return;
    };
    let at = match shared.store.oldest_dead_letter(queue_id, filter).await {
        Ok(None) => {
            due.remove(&queue_id);
            return;
        }
        Ok(Some(arrived)) => arrived + connection.spec.policy.dlq.every,
        Err(_) => shared.now() + STORE_PAUSE,
    };
    due.insert(queue_id, at);
}

/// Takes the action for all that are due, oldest first, and notes when the next one is. Answers with when those that stay are looked at
/// again, if any stays.
async fn sweep(shared: &Arc<Shared>, queue_id: QueueId, due: &mut BTreeMap<QueueId, Timestamp>) -> Option<Timestamp> {
    let connection = shared.connections.get(queue_id)?;
    let filter = filter_of(&connection)?;
    let every = connection.spec.policy.dlq.every;
    let now = shared.now();
    let mut after: Option<(Timestamp, DeliveryId)> = None;
    let mut any_stayed = false;
    loop {
        match shared.store.dead_letters(queue_id, now - every, filter, after, ROWS_AT_ONCE).await {
            Ok(rows) if rows.is_empty() => break,
            Ok(rows) => {
                shared.vitals.busy(Worker::DlqSweeper);
                after = rows.last().and_then(|last| last.progress.dead_at.map(|at| (at, last.id)));
                match act(shared, &connection, rows, now).await {
                    Ok(stayed) => any_stayed |= stayed,
                    Err(error) => return rest(shared, queue_id, &error, due),
                }
            }
            Err(error) => return rest(shared, queue_id, &error, due),
        }
    }
    let next = match shared.store.dead_letters(queue_id, Timestamp::FAR_FUTURE, filter, after, 1).await {
        Ok(rows) => rows.first().and_then(|next| next.progress.dead_at).map(|arrived| arrived + every),
        Err(error) => return rest(shared, queue_id, &error, due),
    };
    let again = any_stayed.then(|| shared.now() + every.max(SHORTEST_LOOK_AGAIN));
    if let Some(at) = crate::runner::earlier(next, again) {
        due.insert(queue_id, at);
    }
    again
}

fn rest(
    shared: &Shared,
    queue_id: QueueId,
    error: &StoreError,
    due: &mut BTreeMap<QueueId, Timestamp>,
) -> Option<Timestamp> {
    tracing::warn!(event = log::DLQ_HELD_UP, %error, queue = %queue_id, "the DLQ's action cannot be taken yet");
    due.insert(queue_id, shared.now() + STORE_PAUSE);
    None
}

/// `true`: one of them at least stays though it was due.
async fn act(
    shared: &Arc<Shared>,
    connection: &Connection,
    rows: Vec<Delivery>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let (mut stayed, mut bytes) = (false, 0);
    let mut some = Vec::with_capacity(rows.len());
    for delivery in rows {
        bytes += delivery.body_bytes;
        if bytes > forwarding::BYTES_AT_ONCE && !some.is_empty() {
            bytes = delivery.body_bytes;
            stayed |= act_on(shared, connection, std::mem::take(&mut some), now).await?;
        }
        some.push(delivery);
    }
    Ok(act_on(shared, connection, some, now).await? | stayed)
}

/// The same for some of them, whose bodies have room in memory.
async fn act_on(
    shared: &Arc<Shared>,
    connection: &Connection,
    rows: Vec<Delivery>,
    now: Timestamp,
) -> Result<bool, StoreError> {
    let mut batch = Vec::with_capacity(rows.len());
    let mut stayed = false;
    let mut forwards: BTreeMap<DeliveryId, Delivery> = BTreeMap::new();
    for delivery in rows {
        match dead_letter_step(&delivery.progress, &connection.spec.policy.dlq, now) {
            DeadLetterStep::Stay => {}
            DeadLetterStep::StayBecause(why) => {
                stayed = true;
                batch.extend(note(&delivery, why));
            }
            DeadLetterStep::Apply(decision) => batch.push(settlement(&delivery, decision, None)),
            DeadLetterStep::Forward { topic, keep_header, decision } => {
                match forwarding::forward(shared, &delivery, (&topic, keep_header), now, By::Action).await? {
                    Ok(Some(forward)) => {
                        batch.push(settlement(&delivery, decision, Some(forward)));
                        forwards.insert(delivery.id, delivery);
                    }
                    // A person was faster.
                    Ok(None) => {}
                    Err(why) => {
                        stayed = true;
                        batch.extend(note(&delivery, format!("it cannot be forwarded to `{topic}`: {why}")));
                    }
                }
            }
        }
    }
    if batch.is_empty() {
        return Ok(stayed);
    }
    let returned = batch.iter().any(|settlement| settlement.progress.status.is_waiting());
    let ids: Vec<DeliveryId> = batch.iter().map(|settlement| settlement.delivery_id).collect();
    let pushed_to: Vec<Vec<QueueId>> = batch.iter().map(forwarding::queues_of).collect();
    let results = shared.store.settle(batch).await?;
    if returned {
        dispatcher::wake(shared, connection.id);
    }
    let topic = forwarding::topic_of(&connection.spec.policy);
    let mut notes = Vec::new();
    for ((id, settled), pushed_to) in ids.iter().zip(&results).zip(pushed_to) {
        let why = match settled {
            Settled::Applied { .. } => {
                forwarding::tell(shared, pushed_to);
                continue;
            }
            Settled::NoTopic => format!("the topic `{topic}` does not exist"),
            Settled::Full { limit } => format!("a queue that the topic `{topic}` is pushed to is full (`{limit}`)"),
            Settled::Stale | Settled::Gone => continue,
        };
        stayed = true;
        notes.extend(forwards.get(id).and_then(|delivery| note(delivery, why)));
    }
    if !notes.is_empty() {
        shared.store.settle(notes).await?;
    }
    Ok(stayed)
}

/// Says why it stays, unless it says so already.
fn note(delivery: &Delivery, why: String) -> Option<Settlement> {
    if delivery.progress.dlq_note.as_deref() == Some(why.as_str()) {
        return None;
    }
    let progress = Progress { dlq_note: Some(why), ..delivery.progress.clone() };
    Some(settlement(delivery, Decision { progress, to_tail: false }, None))
}

fn settlement(delivery: &Delivery, decision: Decision, forward: Option<Box<Forward>>) -> Settlement {
    Settlement {
        delivery_id: delivery.id,
        queue_id: delivery.connection_id,
        // A person may have been faster: then nothing is written.
        guard: Guard::Version(delivery.version),
        progress: decision.progress,
        placement: if decision.to_tail { Placement::Tail } else { Placement::Keep },
        attempt: None,
        forward,
        edited_body: None,
        answers: None,
        health: None,
    }
}
