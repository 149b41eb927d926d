//! How the webhook endpoints stand now, with their signing keys ready, in memory: every attempt looks here and none asks the store.
//!
//! It must not know how an endpoint is changed, nor what a signature looks like.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::Timestamp;
use postrider_core::connection::Connection;
use postrider_core::endpoint::{EndpointState, NotSendable, not_sendable, takes_events};
use postrider_core::id::{ConnectionId, ProjectId};
use postrider_store::EndpointRow;
use postrider_wire::signature::SigningKey;

use crate::shared::Shared;

/// An endpoint's row, and what became of its keys.
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

    /// How the endpoint stands; one without a row is new.
    pub fn state(&self, id: ConnectionId) -> EndpointState {
        self.get(id).map(|endpoint| endpoint.row.state).unwrap_or_default()
    }

    /// What signs an attempt at this time. `Err`: nothing may be sent, since it would go without a signature.
    pub fn keys_at(&self, id: ConnectionId, now: Timestamp) -> Result<Vec<Arc<SigningKey>>, String> {
        self.get(id).ok_or_else(|| "the endpoint has no signing key: rotate it".to_owned())?.keys_at(now)
    }
}

/// Why nothing may be sent on this connection now, as far as its endpoint and its project say.
pub(crate) fn refused(shared: &Shared, connection: &Connection) -> Option<NotSendable> {
    let target = connection.spec.target.webhook()?;
    not_sendable(target, &shared.endpoints.state(connection.id), is_entitled(shared, connection.project_id))
}

/// Whether a message makes a delivery on this connection: an endpoint that is off gets none (V05, D29), any other connection always does.
pub(crate) fn takes(shared: &Shared, connection: &Connection) -> bool {
    let target = connection.spec.target.webhook();
    target.is_none_or(|target| takes_events(target, &shared.endpoints.state(connection.id)))
}

fn is_entitled(shared: &Shared, project: ProjectId) -> bool {
    shared.projects.settings(project).is_none_or(|settings| settings.entitled)
}
