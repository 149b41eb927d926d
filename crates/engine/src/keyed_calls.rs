//! Calls with an idempotency key (D15). Of a direct one the key is committed before the first attempt, and the outcome is in the log before the
//! caller is told.
//!
//! So a repeat finds the call under way and waits for it, or finds its outcome; and when neither is there, a crash has cut the call off and
//! nobody knows what the remote system did. It must not know how a call is attempted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use postrider_core::connection::Connection;
use postrider_core::id::DeliveryId;
use postrider_core::outcome::Outcome;
use postrider_store::{Idempotency, NewDelivery, Reserved};
use tokio::sync::{oneshot, watch};

use crate::call::{self, Caller, Retries};
use crate::entry;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// The calls of this process that are under way, for their repeats.
#[derive(Default)]
pub(crate) struct KeyedCalls(Mutex<BTreeMap<DeliveryId, watch::Sender<Option<Outcome>>>>);

/// A call under way; it is forgotten when this is dropped, which is after its outcome was written.
pub(crate) struct UnderWay {
    shared: Arc<Shared>,
    id: DeliveryId,
    pub(crate) landed: watch::Sender<Option<Outcome>>,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.shared.keyed_calls.lock().remove(&self.id);
    }
}

impl KeyedCalls {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<DeliveryId, watch::Sender<Option<Outcome>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self, id: DeliveryId) -> Option<watch::Receiver<Option<Outcome>>> {
        self.lock().get(&id).map(watch::Sender::subscribe)
    }
}

/// From now on repeats wait for this one, until what comes of this is told or dropped.
pub(crate) fn begin(shared: &Arc<Shared>, id: DeliveryId) -> UnderWay {
    let landed = watch::Sender::new(None);
    shared.keyed_calls.lock().insert(id, landed.clone());
    UnderWay { shared: Arc::clone(shared), id, landed }
}

/// Makes the call if its key is free, in a task of its own, so that a caller who leaves takes neither the key nor the outcome along.
pub(crate) async fn call(
    shared: &Arc<Shared>,
    connection: Arc<Connection>,
    new: NewDelivery,
    key: Idempotency,
) -> Result<Outcome, Refusal> {
    let (answer, answered) = oneshot::channel();
    shared.spawn(reserve_and_run(Arc::clone(shared), connection, new, key, answer));
    answered.await.map_err(|_| Refusal::Stopping)?
}

async fn reserve_and_run(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    new: NewDelivery,
    key: Idempotency,
    answer: oneshot::Sender<Result<Outcome, Refusal>>,
) {
    // Known here before its key is known anywhere, so that no repeat takes it for cut off.
    let under_way = begin(&shared, new.id);
    let refused = match shared.store.reserve_key(key, new.id, shared.now()).await {
        Ok(Reserved::First) => {
            let caller = Caller::Keyed { answer, under_way };
            return call::run(shared, connection, new, Retries::AsConfigured, caller).await;
        }
        Ok(Reserved::Repeated(first)) => {
            drop(under_way);
            repeat(&shared, first).await
        }
        Ok(Reserved::KeyReused) => Err(entry::key_reused()),
        Err(error) => entry::could_not_store(new.cid, &error),
    };
    // A caller who has left does not need to know.
    let _ = answer.send(refused);
}

/// The outcome of the request that came before with the same key; one under way is waited for.
pub(crate) async fn repeat(shared: &Shared, id: DeliveryId) -> Result<Outcome, Refusal> {
    if let Some(mut under_way) = shared.keyed_calls.listen(id)
        && let Ok(landed) = under_way.wait_for(Option::is_some).await
        && let Some(outcome) = landed.clone()
    {
        return Ok(outcome);
    }
    entry::outcome_of(shared, id).await
}
