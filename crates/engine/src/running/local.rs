//! Services of this process: code that was handed in, and those of the host that it started. It must not know how a host is started.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use postrider_core::Secret;
use postrider_core::access::{Scope, ScopeSet};
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::id::{ConnectionId, KeyId, ProjectId};
use serde_json::Map;
use tokio::sync::watch;

use super::{Announced, Found, Service, list_of, listed};
use crate::engine::Engine;
use crate::keys::KeyHolder;
use crate::refusal::Refusal;

/// For how long a run waits for the host to start.
const HOST_START_MAX: Duration = Duration::from_secs(30);

/// One service of the host that this process started.
pub struct HostedService {
    pub(super) at: Arc<Connection>,
    pub(super) token: Secret,
    pub(super) has_queue_response: bool,
}

#[derive(Default)]
pub(crate) struct LocalServices {
    code: RwLock<BTreeMap<String, Arc<dyn Service>>>,
    hosted: RwLock<BTreeMap<String, Arc<HostedService>>>,
    /// Whether the host of this process has ever said what it serves.
    heard: watch::Sender<bool>,
    pub(super) announced: Announced,
    /// What the host of this process calls us with.
    lent: RwLock<Option<Arc<KeyHolder>>>,
}

impl LocalServices {
    pub fn code(&self, name: &str) -> Option<Arc<dyn Service>> {
        self.code.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub fn lent_key(&self, presented: &[u8]) -> Option<Arc<KeyHolder>> {
        let lent = self.lent.read().unwrap_or_else(PoisonError::into_inner);
        lent.as_ref().filter(|holder| holder.is_opened_by(presented)).cloned()
    }

    /// Returns once the host of this process has said what it serves, or after the longest that its start may take.
    pub async fn host_heard(&self) {
        let mut heard = self.heard.subscribe();
        // The sender lives in `self`; a host that does not come is no reason to hold a run for ever.
        let _ = tokio::time::timeout(HOST_START_MAX, heard.wait_for(|heard| *heard)).await;
    }

    pub fn hosted(&self, name: &str) -> Option<Arc<HostedService>> {
        self.hosted.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl Engine {
    /// From now on this code is the service of that name, for the channels of every project; a former one of the name is gone.
    pub fn provide_service(&self, name: &str, service: Arc<dyn Service>) {
        let mut code = self.shared.services.code.write().unwrap_or_else(PoisonError::into_inner);
        code.insert(name.to_owned(), service);
    }

    /// A key for services of this process: it is nowhere but in memory, and a former one is gone. Who has it may send, publish and read in every
    /// project.
    pub fn lend_key(&self) -> Secret {
        let shared = &self.shared;
        let key = format!("prk_{:032x}{:032x}", shared.dice.bits(), shared.dice.bits());
        let scopes = ScopeSet::of(&[Scope::Read, Scope::Send]);
        let id = KeyId::new(shared.now(), shared.dice.bits());
        let holder = KeyHolder::of_process(id, "services", scopes, key.as_bytes(), shared.now());
        *shared.services.lent.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(holder));
        Secret::new(key)
    }

    /// Asks the host at this address for its list; from now on this process has the services in it, and no others.
    ///
    /// # Errors
    /// In words: the host does not answer, or its list cannot be read. What was known goes on.
    pub async fn host_services(&self, address: &str, token: &Secret) -> Result<Vec<String>, String> {
        let shared = &self.shared;
        let at = Arc::new(self.hosted_at(address, "services")?);
        let path = "/services".to_owned();
        let list = Found::Hosted(Arc::new(HostedService {
            at: Arc::clone(&at),
            token: token.clone(),
            has_queue_response: false,
        }));
        let body = list_of(shared, &list, &at, path).await;
        shared.sender.forget(at.id);
        let list = listed(&body?).ok_or("the host's list of services cannot be read")?;
        let mut hosted = BTreeMap::new();
        for (name, has_queue_response) in list {
            let at = Arc::new(self.hosted_at(address, &name)?);
            hosted.insert(name, Arc::new(HostedService { at, token: token.clone(), has_queue_response }));
        }
        let names = hosted.keys().cloned().collect();
        let former = {
            let mut known = self.shared.services.hosted.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *known, hosted)
        };
        self.shared.services.heard.send_replace(true);
        for gone in former.values() {
            self.shared.sender.forget(gone.at.id);
        }
        Ok(names)
    }

    /// The services that this process has: code and what its host serves, by name, each with whether it writes acknowledgments.
    pub fn local_services(&self) -> Vec<(String, &'static str, bool)> {
        let services = &self.shared.services;
        let code = services.code.read().unwrap_or_else(PoisonError::into_inner);
        let hosted = services.hosted.read().unwrap_or_else(PoisonError::into_inner);
        let code = code.iter().map(|(name, code)| (name.clone(), "in_process", code.has_queue_response()));
        let hosted = hosted.iter().map(|(name, hosted)| (name.clone(), "hosted", hosted.has_queue_response));
        let mut all: Vec<_> = code.chain(hosted).collect();
        all.sort();
        all
    }

    /// The services that are configured in a project, by name.
    pub fn configured_services(&self, project: ProjectId) -> Vec<Arc<Connection>> {
        let is_ours = |known: &Arc<Connection>| known.project_id == project && known.kind() == ConnectionKind::Service;
        let mut all: Vec<_> = self.shared.connections.all().into_iter().filter(is_ours).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Why the port of an MLLP channel is not open in this process; `None`: it is, or it has none.
    pub fn port_shut(&self, channel: ConnectionId) -> Option<String> {
        self.shared.ports.shut(channel)
    }

    /// The channels of a project, by id.
    pub fn channels(&self, project: ProjectId) -> Vec<Arc<Connection>> {
        let is_ours = |known: &Arc<Connection>| known.project_id == project && known.spec.target.channel().is_some();
        self.shared.connections.all().into_iter().filter(is_ours).collect()
    }

    /// The one channel of a name; `kind` where several types have it.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` naming the types (D16).
    pub fn channel(
        &self,
        project: ProjectId,
        name: &str,
        kind: Option<ConnectionKind>,
    ) -> Result<Arc<Connection>, Refusal> {
        let is_meant = |known: &Arc<Connection>| known.name == name && kind.is_none_or(|kind| kind == known.kind());
        let mut found: Vec<_> = self.channels(project).into_iter().filter(is_meant).collect();
        match (found.pop(), found.as_slice()) {
            (Some(only), []) => Ok(only),
            (Some(last), others) => {
                let types = others.iter().chain([&last]).filter_map(|known| known.kind().channel_type());
                let types: Vec<&str> = types.collect();
                Err(Refusal::Conflict(format!(
                    "`{name}` names several channels: say which type is meant ({})",
                    types.join(", ")
                )))
            }
            (None, _) => Err(Refusal::NotFound { what: "channel", name: name.to_owned() }),
        }
    }

    fn hosted_at(&self, address: &str, name: &str) -> Result<Connection, String> {
        let shared = &self.shared;
        let encoded: String = percent_encoded(name);
        let written = Map::from_iter([("address".to_owned(), format!("{address}/services/{encoded}").into())]);
        let spec = ConnectionSpec::parse(ConnectionKind::Service, &written)
            .map_err(|errors| errors.first().map(ToString::to_string).unwrap_or_default())?;
        let now = shared.now();
        Ok(Connection {
            // Of this start of the host alone: sockets to a former one are of no use.
            id: ConnectionId::new(now, shared.dice.bits()),
            project_id: ProjectId::from_u128(0),
            name: name.to_owned(),
            written,
            spec,
            paused: false,
            version: 1,
            created_at: now,
            updated_at: now,
        })
    }
}

fn percent_encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// Whether the service of this name in a host's list writes acknowledgments. `None`: it is not there.
pub(super) fn hooks_of(body: &[u8], name: &str) -> Option<bool> {
    listed(body)?.into_iter().find(|(known, _)| known == name).map(|(_, has_it)| has_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z44_a_host_says_which_services_have_the_hook() {
        let list = br#"[{"name": "a", "hooks": ["queue-response"], "methods": null}, {"name": "b", "hooks": []}]"#;
        assert_eq!((hooks_of(list, "a"), hooks_of(list, "b"), hooks_of(list, "c")), (Some(true), Some(false), None));
        for nonsense in [&b"{}"[..], b"", b"[1]", b"[{\"name\": 1, \"hooks\": []}]", b"[{\"name\": \"a\"}]"] {
            assert_eq!(hooks_of(nonsense, "a"), None);
        }
        assert_eq!(percent_encoded("a b/ü"), "a%20b%2F%C3%BC");
    }
}
