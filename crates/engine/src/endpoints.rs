//! How the webhook endpoints stand now, with their signing keys ready, in memory: every attempt looks here and none asks the store.
//!
//! It must not know how an endpoint is changed, nor what a signature looks like.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::endpoint::{EndpointState, NotSendable, Verification, not_sendable, takes_events};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_store::EndpointRow;
use postrider_wire::signature::SigningKey;

use crate::shared::Shared;

/// An endpoint's row, and what became of its keys.
#[derive(Clone)]
pub struct Endpoint {
    pub row: EndpointRow,
    /// Why not, in words for an operator.
    pub(crate) key: Result<Arc<SigningKey>, String>,
    /// Signs too, for as long as the row says. One that cannot be read is done without: the current key signs.
    pub(crate) former: Option<Arc<SigningKey>>,
}

impl Endpoint {
    /// Why its signing key cannot be read; attempts fail until it is rotated or the server's own key is back.
    pub fn unreadable(&self) -> Option<&str> {
        self.key.as_ref().err().map(String::as_str)
    }

    /// `whpk_…`, when requests are signed with Ed25519.
    pub fn public_key(&self) -> Option<String> {
        self.key.as_ref().ok()?.public()
    }

    /// `symmetric` or `asymmetric`.
    pub fn scheme(&self) -> Option<&'static str> {
        Some(self.key.as_ref().ok()?.scheme().as_str())
    }

    fn keys_at(&self, now: Timestamp) -> Result<Vec<Arc<SigningKey>>, String> {
        let mut keys = vec![self.key.clone()?];
        let signs_until = self.row.keys.former.as_ref().map(|former| former.signs_until);
        if signs_until.is_some_and(|until| now < until) {
            keys.extend(self.former.clone());
        }
        Ok(keys)
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("row", &self.row).finish_non_exhaustive()
    }
}

#[derive(Default)]
pub(crate) struct Endpoints(RwLock<BTreeMap<ConnectionId, Arc<Endpoint>>>);

impl Endpoints {
    pub fn get(&self, id: ConnectionId) -> Option<Arc<Endpoint>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub fn put(&self, endpoint: Arc<Endpoint>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(endpoint.row.id, endpoint);
    }

    pub fn remove(&self, id: ConnectionId) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// The same endpoint as it was read from the store. `is_ours`: its attempts are made here, so that what is known here may be ahead of
    /// what is written.
    pub fn put_read(&self, read: Endpoint, is_ours: bool) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let ahead = known.get(&read.row.id).filter(|known| is_ours && known.row.state.epoch >= read.row.state.epoch);
        let row = match ahead {
            Some(ahead) => with_health_of(read.row.clone(), &ahead.row),
            None => read.row.clone(),
        };
        known.insert(read.row.id, Arc::new(Endpoint { row, ..read }));
    }

    /// Other keys; how it stands is as it is known here.
    pub fn put_keys(&self, changed: Endpoint) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let row = match known.get(&changed.row.id) {
            Some(known) => {
                EndpointRow { keys: changed.row.keys.clone(), version: changed.row.version, ..known.row.clone() }
            }
            None => changed.row.clone(),
        };
        known.insert(changed.row.id, Arc::new(Endpoint { row, ..changed }));
    }

    /// What follows for the endpoint is known from here on, also while it is being written.
    pub fn foresee<T>(&self, id: ConnectionId, change: impl FnOnce(&mut EndpointRow) -> Option<T>) -> Option<T> {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let endpoint = known.get_mut(&id)?;
        let mut row = endpoint.row.clone();
        let answer = change(&mut row)?;
        *endpoint = Arc::new(Endpoint { row, ..(**endpoint).clone() });
        Some(answer)
    }

    /// How the endpoint stands; one without a row is new.
    pub fn state(&self, id: ConnectionId) -> EndpointState {
        self.get(id).map(|endpoint| endpoint.row.state).unwrap_or_default()
    }

    /// What signs an attempt at this time. `Err`: nothing may be sent, since it would go without a signature.
    pub fn keys_at(&self, id: ConnectionId, now: Timestamp) -> Result<Vec<Arc<SigningKey>>, String> {
        self.get(id).ok_or_else(|| "the endpoint has no signing key: rotate it".to_owned())?.keys_at(now)
    }
}

fn with_health_of(read: EndpointRow, ahead: &EndpointRow) -> EndpointRow {
    let (health, off, epoch) = (ahead.state.health, ahead.state.off, ahead.state.epoch);
    EndpointRow { state: EndpointState { health, off, epoch, ..read.state }, ..read }
}

/// How it stands at its present address: what was shown at another one counts for nothing.
pub(crate) fn standing(connection: &Connection, row: &EndpointRow) -> EndpointState {
    let mut state = row.state;
    if matches!(state.verification, Verification::Verified | Verification::Failed) {
        let url = connection.spec.target.webhook().map(|target| target.url.to_string());
        if row.verified_url != url {
            state.verification = Verification::Pending;
        }
    }
    state
}

/// The epoch in which an attempt begins; connections of other kinds have none.
pub(crate) fn epoch(shared: &Shared, connection: &Connection) -> u32 {
    connection.spec.target.webhook().map_or(0, |_| shared.endpoints.state(connection.id).epoch)
}

/// Why nothing may be sent on this connection now, as far as its endpoint and its project say.
pub(crate) fn refused(shared: &Shared, connection: &Connection) -> Option<NotSendable> {
    let target = connection.spec.target.webhook()?;
    let state = shared.endpoints.get(connection.id).map(|endpoint| standing(connection, &endpoint.row));
    not_sendable(target, &state.unwrap_or_default(), is_entitled(shared, connection.project_id))
}

/// Whether a message makes a delivery on this connection: an endpoint that is off gets none (V05, D29), any other connection always does.
pub(crate) fn takes(shared: &Shared, connection: &Connection) -> bool {
    let target = connection.spec.target.webhook();
    target.is_none_or(|target| takes_events(target, &shared.endpoints.state(connection.id)))
}

fn is_entitled(shared: &Shared, project: ProjectId) -> bool {
    shared.projects.settings(project).is_none_or(|settings| settings.entitled)
}
