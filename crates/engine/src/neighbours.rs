//! Other servers and workers on the same store: what they did is heard of, and looked for from time to time all the same (D47).
//!
//! It must not know how news travels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use postrider_core::id::ConnectionId;
use postrider_core::log;
use postrider_core::readiness::Worker;
use postrider_store::{Signal, StoreError};

use crate::runner::ToRunner;
use crate::shared::Shared;
use crate::{configuring, dispatcher, endpointing, securing, sourcing, subscribing};

/// How often is looked when nothing is heard.
const LOOK_EVERY: Duration = Duration::from_secs(3);

/// The listening task.
pub(crate) async fn run(shared: Arc<Shared>) {
    // Unknown: what changed between the start's reading and the first look is read again.
    let mut seen = None;
    loop {
        shared.vitals.idle(Worker::Dispatcher);
        let signal = tokio::select! {
            biased;
            signal = shared.store.next_signal() => signal,
            () = tokio::time::sleep(LOOK_EVERY) => Signal::Anything,
        };
        shared.vitals.busy(Worker::Dispatcher);
        match signal {
            Signal::Queues(queues) => {
                let mut strangers = false;
                for id in queues {
                    match shared.queues.get(id) {
                        Some(handle) => {
                            handle.tell(ToRunner::Wake);
                            handle.tell(ToRunner::Commands);
                        }
                        None => strangers = true,
                    }
                }
                if strangers {
                    take_orphans(&shared).await;
                }
            }
            Signal::Calls(queues) => queues.into_iter().for_each(|id| shared.queues.tell(id, ToRunner::Called)),
            Signal::Replies(ids) => shared.notifier.replied(&ids),
            Signal::Configuration => read_configuration(&shared, &mut seen).await,
            Signal::Anything => {
                read_configuration(&shared, &mut seen).await;
                for handle in shared.queues.all() {
                    handle.tell(ToRunner::Wake);
                    handle.tell(ToRunner::Commands);
                    handle.tell(ToRunner::Called);
                }
                shared.notifier.anybody_may_be_replied();
                take_orphans(&shared).await;
                if let Err(error) = dispatcher::give_back_excess(&shared).await {
                    tracing::warn!(event = log::QUEUES_NOT_TAKEN, %error, "who else works on the store cannot be read yet");
                }
            }
        }
    }
}

async fn take_orphans(shared: &Arc<Shared>) {
    if let Err(error) = dispatcher::take_orphans(shared).await {
        tracing::warn!(event = log::QUEUES_NOT_TAKEN, %error, "queues without an owner cannot be taken yet");
    }
}

/// Reads anew what has changed, if anything has.
async fn read_configuration(shared: &Shared, seen: &mut Option<i64>) {
    match read_if_changed(shared, *seen).await {
        Ok(version) => *seen = Some(version),
        Err(error) => {
            tracing::warn!(event = log::CONFIG_UNREADABLE, %error, "the configuration could not be read anew; what is known goes on");
        }
    }
}

async fn read_if_changed(shared: &Shared, seen: Option<i64>) -> Result<i64, StoreError> {
    // Before the reading: what changes meanwhile is read the next time.
    let version = shared.store.configuration_version().await?;
    if seen == Some(version) {
        return Ok(version);
    }
    // Definitions first: a connection may name one that is just as new.
    securing::read_anew(shared).await?;
    for project in shared.store.projects().await? {
        shared.projects.put(&project);
    }
    read_connections(shared).await?;
    endpointing::read_anew(shared).await?;
    subscribing::read_anew(shared).await?;
    sourcing::read_anew(shared).await?;
    shared.keys.load(&*shared.store).await?;
    Ok(version)
}

async fn read_connections(shared: &Shared) -> Result<(), StoreError> {
    let known: BTreeMap<ConnectionId, u32> =
        shared.connections.all().iter().map(|connection| (connection.id, connection.version)).collect();
    let mut gone = known.clone();
    for stored in shared.store.all_connections().await? {
        gone.remove(&stored.id);
        if known.get(&stored.id).is_none_or(|version| *version < stored.version) {
            let id = stored.id;
            // One that this process has changed meanwhile is newer than what was read.
            if shared.connections.put_newer(Arc::new(stored)) {
                configuring::tell(shared, id);
            }
        }
    }
    for id in gone.into_keys() {
        // One that this process has made meanwhile was not read.
        if shared.store.connection(id).await?.is_none() {
            shared.connections.remove(id);
            configuring::tell(shared, id);
        }
    }
    Ok(())
}
