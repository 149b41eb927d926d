//! The connections as they are now, by id and by name, in memory: every send looks here and none asks the store.
//!
//! It must not know what follows from a change; the facade tells the runners and the sender.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use postrider_core::SettingError;
use postrider_core::connection::{Connection, ConnectionKind, Family};
use postrider_core::id::{ConnectionId, ProjectId};

use tokio::sync::watch;

use crate::channels::{self, At, ChannelRoutes};
use crate::engine::ConnectionRef;
use crate::options::LadderLimits;
use crate::refusal::Refusal;

#[derive(Default)]
pub(crate) struct Connections {
    known: RwLock<Known>,
    /// Raised by every change.
    changes: watch::Sender<u64>,
    /// What binds ladders, whatever is written.
    limits: LadderLimits,
}

#[derive(Default)]
struct Known {
    by_id: BTreeMap<ConnectionId, Arc<Connection>>,
    /// Under one name there may be one connection of each kind (D16).
    by_name: BTreeMap<ProjectId, BTreeMap<String, Vec<Arc<Connection>>>>,
    channels: ChannelRoutes,
}

impl Connections {
    pub fn bound_by(limits: LadderLimits) -> Self {
        Connections { limits, ..Connections::default() }
    }

    pub fn get(&self, id: ConnectionId) -> Option<Arc<Connection>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }

    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_id.values().cloned().collect()
    }

    /// Tells of every change from now on.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn has_channels(&self) -> bool {
        !self.known.read().unwrap_or_else(PoisonError::into_inner).channels.is_empty()
    }

    pub fn channel_at(&self, method: &str, path: &str, action: impl Fn(&Connection) -> String) -> At {
        self.known.read().unwrap_or_else(PoisonError::into_inner).channels.find(method, path, action)
    }

    /// # Errors
    /// The key of the address, when another channel has it (D16).
    pub fn check_address(&self, wanted: &Connection) -> Result<(), SettingError> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        channels::check_among(wanted, known.by_id.values().map(|known| &**known))
    }

    /// Without a type a name is that of a connection; a channel or a service is found by its type only.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` naming the kinds when the name alone is ambiguous (D16).
    pub fn find(&self, project: ProjectId, wanted: &ConnectionRef) -> Result<Arc<Connection>, Refusal> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let named = known.by_name.get(&project).and_then(|names| names.get(wanted.name.as_str()));
        let named = named.map_or(&[][..], Vec::as_slice);
        let is_meant = |found: &ConnectionKind| match wanted.kind {
            Some(kind) => kind == *found,
            None => found.family() == Family::Connection,
        };
        let mut fitting = named.iter().filter(|found| is_meant(&found.kind()));
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Arc::clone(only)),
            (None, _) => {
                let family = wanted.kind.map_or(Family::Connection, ConnectionKind::family);
                Err(Refusal::NotFound { what: family.as_str(), name: wanted.name.clone() })
            }
            (Some(_), Some(_)) => {
                let kinds = named.iter().map(|found| found.kind()).filter(is_meant);
                let kinds: Vec<&str> = kinds.map(ConnectionKind::as_str).collect();
                Err(Refusal::Conflict(format!(
                    "`{}` names several connections: say which type is meant ({})",
                    wanted.name,
                    kinds.join(", ")
                )))
            }
        }
    }

    pub fn put(&self, connection: Arc<Connection>) {
        let connection = self.limits.bind(connection);
        self.known.write().unwrap_or_else(PoisonError::into_inner).put(connection);
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Puts it unless what is known is newer or the same; whether it did.
    pub fn put_newer(&self, connection: Arc<Connection>) -> bool {
        let connection = self.limits.bind(connection);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let is_newer = known.by_id.get(&connection.id).is_none_or(|known| known.version < connection.version);
        if is_newer {
            known.put(connection);
        }
        drop(known);
        self.changes.send_modify(|changes| *changes += 1);
        is_newer
    }

    pub fn remove(&self, id: ConnectionId) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.changes.send_modify(|changes| *changes += 1);
    }
}

impl Known {
    fn put(&mut self, connection: Arc<Connection>) {
        self.remove(connection.id);
        let names = self.by_name.entry(connection.project_id).or_default();
        let named = names.entry(connection.name.clone()).or_default();
        named.push(Arc::clone(&connection));
        named.sort_by_key(|found| found.kind());
        self.channels.put(&connection);
        self.by_id.insert(connection.id, connection);
    }

    fn remove(&mut self, id: ConnectionId) {
        let Some(old) = self.by_id.remove(&id) else { return };
        self.channels.remove(&old);
        let Some(names) = self.by_name.get_mut(&old.project_id) else { return };
        if let Some(named) = names.get_mut(&old.name) {
            named.retain(|found| found.id != id);
            if named.is_empty() {
                names.remove(&old.name);
            }
        }
    }
}
