//! A store that was restored from a backup: two live copies would deliver everything twice, so every queue is paused until somebody says that
//! this is the only one (D08).
//!
//! Which connections the restore paused is remembered, since some were paused by hand before. It must not know how a store is copied.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use postrider_core::connection::Connection;
use postrider_core::id::{AuditId, ConnectionId};
use postrider_core::{Timestamp, log};
use postrider_store::{ConfigChange, Store, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::actor::Actor;
use crate::audit::{self, Describe as _};
use crate::clock::Clock;
use crate::dice::Dice;
use crate::engine::Engine;
use crate::shared::Shared;

/// The name of the value that remembers it.
const VALUE: &str = "store.restored";

/// A restore whose queues are still paused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restored {
    pub at: Timestamp,
    /// Connections that it paused and nobody has resumed.
    pub held: BTreeSet<ConnectionId>,
}

/// What this process knows of it.
#[derive(Default)]
pub(crate) struct Holding(Mutex<Option<Restored>>);

impl Holding {
    fn read(&self) -> Option<Restored> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, restored: Option<Restored>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = restored;
    }
}

impl Engine {
    /// `None`: the store was not restored, or every queue goes on.
    pub fn restored(&self) -> Option<Restored> {
        self.shared.holding.read()
    }
}

/// Pauses every connection of a store that no engine has opened, and remembers which. How many there are.
///
/// # Errors
/// Those of the store.
pub async fn hold_all(store: &dyn Store, now: Timestamp) -> Result<usize, StoreError> {
    let all = store.all_connections().await?;
    let known = stored(store).await?.map(|restored| restored.held).unwrap_or_default();
    let pausing: Vec<&Connection> = all.iter().filter(|connection| !connection.paused).collect();
    // A copy of a copy that was never resumed keeps what the first restore paused.
    let held = pausing.iter().map(|connection| connection.id).chain(known).collect();
    // First the memory of it: a cut between the two pauses too little in a file that has not got its name yet.
    store.set_value(VALUE, Some(text(&Restored { at: now, held })?)).await?;
    store.configure(pausing.into_iter().map(|connection| changed(connection, true, now)).collect()).await?;
    Ok(all.len())
}

/// `serve --resume`: lets the queues go on that the restore paused, before an engine opens the store. How many.
///
/// # Errors
/// Those of the store.
pub async fn resume_held(store: &dyn Store, clock: &dyn Clock, dice: &dyn Dice) -> Result<usize, StoreError> {
    let Some(restored) = stored(store).await? else { return Ok(0) };
    let all = store.all_connections().await?;
    let held: Vec<&Connection> = all.iter().filter(|known| known.paused && restored.held.contains(&known.id)).collect();
    let (now, actor) = (clock.now(), Actor::system());
    let first = AuditId::new(now, dice.bits()).as_u128();
    let entries = held.iter().zip(0u128..).map(|(known, number)| {
        let id = AuditId::from_u128(first.wrapping_add(number));
        let entry = audit::blank(id, now, &actor, Some(known.project_id), "connection.resume");
        entry.about(known.id, &known.name).with_after(json!({"paused": false}))
    });
    let entries = entries.collect();
    store.configure_by_hand(held.iter().map(|known| changed(known, false, now)).collect(), entries).await?;
    store.set_value(VALUE, None).await?;
    Ok(held.len())
}

/// At the start of an engine.
pub(crate) async fn load(shared: &Shared) -> Result<(), StoreError> {
    let Some(mut restored) = stored(&*shared.store).await? else { return Ok(()) };
    restored.held.retain(|id| shared.connections.get(*id).is_some_and(|known| known.paused));
    if restored.held.is_empty() {
        return shared.store.set_value(VALUE, None).await;
    }
    tracing::warn!(
        event = log::STORE_RESTORED,
        held = restored.held.len(),
        restored_at = %restored.at,
        "this store was restored from a backup and its queues are paused: once no other server works on the original, start with --resume, or resume the connections"
    );
    shared.holding.set(Some(restored));
    Ok(())
}

/// Somebody has resumed a connection, or it is gone.
pub(crate) async fn goes_on(shared: &Shared, id: ConnectionId) {
    let Some(mut restored) = shared.holding.read() else { return };
    if !restored.held.remove(&id) {
        return;
    }
    let left = Some(restored).filter(|restored| !restored.held.is_empty());
    shared.holding.set(left.clone());
    if left.is_none()
        && let Err(error) = shared.store.set_value(VALUE, None).await
    {
        // The next start sees that nothing is paused any more.
        tracing::debug!(event = log::STORE_RESTORED_KEPT, %error, "the note of the restore stays for now");
    }
}

fn changed(connection: &Connection, paused: bool, now: Timestamp) -> ConfigChange {
    let (version, id) = (connection.version, connection.id);
    let connection =
        Connection { id, paused, version: version.saturating_add(1), updated_at: now, ..connection.clone() };
    ConfigChange::ReplaceConnection { connection: Box::new(connection), version }
}

async fn stored(store: &dyn Store) -> Result<Option<Restored>, StoreError> {
    let Some(text) = store.value(VALUE).await? else { return Ok(None) };
    let unreadable = |error: serde_json::Error| StoreError::Corrupt(format!("the value `{VALUE}`: {error}"));
    serde_json::from_str(&text).map(Some).map_err(unreadable)
}

fn text(restored: &Restored) -> Result<String, StoreError> {
    serde_json::to_string(restored).map_err(|error| StoreError::Corrupt(error.to_string()))
}
