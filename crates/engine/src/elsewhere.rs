//! A call whose attempt another server makes: the owner of the queue always attempts, and the store carries its reply to the server that holds
//! the caller (D11).
//!
//! The row of a call is the truth: by being there it says that somebody waits, and whoever takes it away has ended that. News of it only
//! saves time. It must not know how an attempt is made.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::connection::Connection;
use postrider_core::delivery::{Origin, Status};
use postrider_core::id::{Cid, DeliveryId};
use postrider_core::outcome::Outcome;
use postrider_core::{Answer, Timestamp, Wait};
use postrider_store::{Awaited, CallReply, Loaded, NewDelivery, Patience, ReplyWrite};
use tokio::sync::Notify;

use crate::notifier::{Caller, Waiting};
use crate::shared::Shared;

/// `reply_kept`: an answer that nobody fetches goes after this long.
const KEPT: Wait = Wait::from_secs(60);
/// How often a caller's server looks when it hears nothing (D47).
const LOOK_EVERY: Wait = Wait::from_secs(1);
/// How long an owner asks at most before it goes on without knowing.
const TO_ASK: Duration = Duration::from_secs(2);
/// Beyond the turn and the attempt, for the decision to be written.
const TO_WRITE: Wait = Wait::from_secs(10);

/// A caller of this process whose attempt another one may make. Dropping it is leaving.
pub(crate) struct Elsewhere {
    shared: Arc<Shared>,
    id: DeliveryId,
    cid: Cid,
    heard: Arc<Notify>,
    /// There may be a row that nobody else takes away.
    has_row: bool,
    /// How it leaves.
    leaves: Patience,
}

/// Asks for a row with the request where the queue is not run here; `None`: this process makes the attempt itself.
pub(crate) fn expect(shared: &Arc<Shared>, connection: &Connection, new: &mut NewDelivery) -> Option<Elsewhere> {
    if !shared.options.other_workers || shared.queues.is_run_here(connection.id) {
        return None;
    }
    let timeout = connection.spec.policy.timeout;
    new.awaited_until = Some(new.created_at + timeout + timeout + TO_WRITE);
    let heard = shared.notifier.expect_elsewhere(new.id);
    Some(Elsewhere {
        shared: Arc::clone(shared),
        id: new.id,
        cid: new.cid.clone(),
        heard,
        has_row: false,
        leaves: Patience::LeavesBeforeItsTurn,
    })
}

impl Elsewhere {
    /// Waits for its turn at most the connection's timeout, and once the attempt has begun, for its end (D10).
    pub async fn outcome(mut self, mut waiting: Waiting<'_>, connection: &Connection) -> Outcome {
        self.has_row = true;
        let timeout = connection.spec.policy.timeout;
        let turn_ends = self.shared.clock.monotonic() + timeout;
        let ends = turn_ends + timeout + TO_WRITE;
        loop {
            let left = turn_ends.saturating_sub(self.shared.clock.monotonic());
            let pause = if left > Wait::ZERO { left.min(LOOK_EVERY) } else { LOOK_EVERY };
            tokio::select! {
                biased;
                // The queue came to this process.
                outcome = waiting.end() => {
                    self.leaves = Patience::Leaves;
                    return outcome;
                }
                () = self.heard.notified() => {}
                () = tokio::time::sleep(pause.as_duration()) => {}
            }
            let is_gone = self.shared.connections.get(connection.id).is_none();
            let now = self.shared.clock.monotonic();
            let patience = match now {
                _ if is_gone || now >= ends => Patience::Leaves,
                _ if now >= turn_ends => Patience::LeavesBeforeItsTurn,
                _ => Patience::Waits,
            };
            if patience != Patience::Waits && !waiting.gives_up_its_turn() {
                return waiting.end().await;
            }
            match self.shared.store.take_reply(self.id, patience).await {
                Ok(Awaited::Answered(reply)) => {
                    self.has_row = false;
                    return told(self.id, self.cid.clone(), *reply, connection);
                }
                Ok(Awaited::Gone) => {
                    self.has_row = false;
                    return if waiting.gives_up_its_turn() { self.queued() } else { waiting.end().await };
                }
                Ok(Awaited::Waiting | Awaited::Begun) => {}
                // It is asked again, as long as the caller has patience.
                Err(_) if patience == Patience::Leaves => return self.queued(),
                Err(_) => {}
            }
        }
    }

    fn queued(&self) -> Outcome {
        Outcome::queued(self.id, self.cid.clone())
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        self.shared.notifier.forget_elsewhere(self.id);
        if !self.has_row || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (shared, id, leaves) = (Arc::clone(&self.shared), self.id, self.leaves);
        self.shared.spawn(async move {
            // One that stays is removed when its time is over.
            let _ = shared.store.take_reply(id, leaves).await;
        });
    }
}

fn told(id: DeliveryId, cid: Cid, reply: CallReply, connection: &Connection) -> Outcome {
    let CallReply { state, error, failure, answer } = reply;
    let response = answer.map(|answer| Answer {
        said: postrider_wire::said(connection, &answer.headers, &answer.body, answer.incomplete),
        ..answer
    });
    Outcome { state, msg_id: Some(id), cid, error, failure, response }
}

/// What goes to the caller's server, in the transaction of the settlement. A failure that only the caller is to have must find it there.
pub(crate) fn reply_of(outcome: &Outcome, status: Status, now: Timestamp) -> Box<ReplyWrite> {
    let reply = CallReply {
        state: outcome.state,
        error: outcome.error.clone(),
        failure: outcome.failure,
        answer: outcome.response.clone(),
    };
    Box::new(ReplyWrite { reply, ends_at: now + KEPT, must_be_read: status == Status::Failed })
}

/// Those of these, just read from the store, whose callers wait in another process. A store that does not answer knows of none: they are
/// delivered as any other, and their callers leave in their time.
pub(crate) async fn callers_of(shared: &Shared, rows: &[Loaded]) -> BTreeSet<DeliveryId> {
    let calls = calls(shared, rows, 0);
    if calls.is_empty() {
        return BTreeSet::new();
    }
    shared.store.awaited(calls).await.unwrap_or_default().into_iter().collect()
}

/// The callers of those of these, just claimed, for whom another process waits and goes on waiting until the attempt has ended.
pub(crate) async fn begun(shared: &Shared, rows: &[Loaded]) -> Vec<(DeliveryId, Caller)> {
    let calls = calls(shared, rows, 1);
    if calls.is_empty() {
        return Vec::new();
    }
    let asking = async {
        let mut callers = Vec::new();
        for id in shared.store.awaited(calls).await.unwrap_or_default() {
            if let Some(row) = rows.iter().find(|row| row.delivery.id == id)
                && shared.store.begin_awaited(id).await.unwrap_or(false)
            {
                let mut caller = Caller::elsewhere(id, row.delivery.cid.clone());
                caller.is_asked();
                callers.push((id, caller));
            }
        }
        callers
    };
    // What is claimed is sent soon after or not at all: the lease does not wait.
    tokio::time::timeout(TO_ASK, asking).await.unwrap_or_default()
}

/// Those of these that somebody may wait for in another process. `attempts`: their own first one, where it is counted already.
fn calls(shared: &Shared, rows: &[Loaded], attempts: u32) -> Vec<DeliveryId> {
    if !shared.options.other_workers {
        return Vec::new();
    }
    let deliveries = rows.iter().map(|row| &row.delivery);
    let calls = deliveries.filter(|one| one.origin == Origin::Call && one.progress.attempts == attempts);
    calls.map(|one| one.id).filter(|id| !shared.notifier.has_caller(*id)).collect()
}
