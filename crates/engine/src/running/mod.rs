//! What runs for a request that a channel took: a service, in this process or at an address, or the queues of other connections (Z41).
//!
//! A run is one attempt of a delivery like any other. It must not know what follows from the reply, nor how a service is reached.

mod code;
mod forwarding;
mod local;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use postrider_core::connection::{Connection, ConnectionKind, Runs, Target};
use postrider_core::id::{Cid, ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::{Method, RequestHead};
use postrider_core::{NoAnswerKind, Reply, Wait};
use postrider_wire::send::service::Ask;
use postrider_wire::{Outgoing, ServiceRun, Stamp};
use serde_json::Value;

use crate::engine::ConnectionRef;
use crate::shared::Shared;

pub use code::{Service, ServiceError, ServiceRequest, ServiceResponse};
pub use local::HostedService;
pub(crate) use local::LocalServices;

/// For how long a host's word on its hooks holds.
const ANNOUNCED_FOR: Wait = Wait::from_secs(30);
const ANNOUNCE_TIMEOUT: Wait = Wait::from_secs(2);

/// A service that was found by its name.
pub(crate) enum Found {
    /// Code in this process.
    Code(Arc<dyn Service>),
    /// Of a host that this process started.
    Hosted(Arc<HostedService>),
    /// An address that somebody configured.
    Configured(Arc<Connection>),
}

/// What hosts have said of their services, each with when.
#[derive(Default)]
pub(crate) struct Announced(Mutex<BTreeMap<(ConnectionId, u32), (Wait, bool)>>);

/// Code in this process first, then what is configured, then what the host of this process has.
pub(crate) fn find(shared: &Shared, project: ProjectId, name: &str) -> Option<Found> {
    if let Some(code) = shared.services.code(name) {
        return Some(Found::Code(code));
    }
    let named = ConnectionRef { name: name.to_owned(), kind: Some(ConnectionKind::Service) };
    if let Ok(configured) = shared.connections.find(project, &named) {
        return Some(Found::Configured(configured));
    }
    shared.services.hosted(name).map(Found::Hosted)
}

/// Queues go on as soon as the server is there, and its host takes a few seconds to start: a run in between must not fail for that.
async fn find_or_wait(shared: &Shared, project: ProjectId, name: &str) -> Option<Found> {
    match find(shared, project, name) {
        None if shared.options.hosts_services => {
            shared.services.host_heard().await;
            find(shared, project, name)
        }
        found => found,
    }
}

/// One run of a request from a channel's queue, or of a message for a service.
pub(crate) async fn reply(shared: &Shared, outgoing: Outgoing) -> Reply {
    let connection = Arc::clone(&outgoing.connection);
    match &connection.spec.target {
        Target::Channel(channel) => match &channel.runs {
            Runs::Service(name) => {
                let Some(service) = find_or_wait(shared, connection.project_id, name).await else {
                    return no_service(name);
                };
                // D31: a channel whose queue was turned off still runs what is stored.
                let is_stored = connection.spec.policy.queue.use_queue
                    || shared.queues.get(connection.id).is_some_and(|queue| queue.has_backlog());
                service.ask(shared, outgoing, Ask::Run, is_stored).await
            }
            Runs::Connections(list) => forwarding::reply(shared, &outgoing, list).await,
        },
        _ => Found::Configured(connection).ask(shared, outgoing, Ask::Run, true).await,
    }
}

/// Somebody may add it before the next run.
fn no_service(name: &str) -> Reply {
    Reply::unanswered(NoAnswerKind::Unsendable, format!("there is no service `{name}` now"))
}

impl Found {
    /// One request to the service; whatever happens is a reply.
    pub async fn ask(&self, shared: &Shared, outgoing: Outgoing, ask: Ask, is_stored: bool) -> Reply {
        let project = shared.projects.name(outgoing.connection.project_id);
        match self {
            Found::Code(code) => code::run(&**code, project, outgoing, ask, is_stored).await,
            Found::Hosted(hosted) => {
                let token = Some(hosted.token.clone());
                let run = ServiceRun { at: Arc::clone(&hosted.at), project, ask, is_stored, token };
                shared.sender.send(Outgoing { service: Some(Box::new(run)), ..outgoing }).await
            }
            Found::Configured(at) => {
                let credentials = match shared.securities.credentials_for(at) {
                    Ok(credentials) => credentials,
                    // V08: nothing goes out without the credentials that it should carry.
                    Err(why) => return Reply::unanswered(NoAnswerKind::SecretUnreadable, why),
                };
                let is_stamped = credentials.as_ref().is_some_and(|credentials| credentials.is_stamped());
                let stamp = is_stamped.then(|| Stamp { at: shared.now(), nonce: shared.dice.bits() });
                let run = ServiceRun { at: Arc::clone(at), project, ask, is_stored, token: None };
                shared.sender.send(Outgoing { service: Some(Box::new(run)), credentials, stamp, ..outgoing }).await
            }
        }
    }

    /// The same as far as can be told without asking anybody.
    pub fn may_have_queue_response(&self) -> bool {
        match self {
            Found::Code(code) => code.has_queue_response(),
            Found::Hosted(hosted) => hosted.has_queue_response,
            Found::Configured(at) => {
                at.spec.target.service().is_some_and(|service| {
                    service.has_queue_response.unwrap_or_else(|| service.announced_at().is_some())
                })
            }
        }
    }

    /// Whether it writes acknowledgments itself (Z44).
    ///
    /// # Errors
    /// In words: its host could not be asked.
    pub async fn has_queue_response(&self, shared: &Shared, project: ProjectId) -> Result<bool, String> {
        match self {
            Found::Code(code) => Ok(code.has_queue_response()),
            Found::Hosted(hosted) => Ok(hosted.has_queue_response),
            Found::Configured(at) => match at.spec.target.service().and_then(|service| service.has_queue_response) {
                Some(said) => Ok(said),
                None => announced(shared, at, project).await,
            },
        }
    }

    /// What was said of its hooks does not hold any more.
    pub fn forget_hooks(&self, shared: &Shared) {
        if let Found::Configured(at) = self {
            shared.services.announced.lock().remove(&(at.id, at.version));
        }
    }
}

impl Announced {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(ConnectionId, u32), (Wait, bool)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only a host of services is asked: to any other server the question would be a request like all others.
async fn announced(shared: &Shared, at: &Arc<Connection>, project: ProjectId) -> Result<bool, String> {
    let Some((list, name)) = at.spec.target.service().and_then(|service| service.announced_at()) else {
        return Ok(false);
    };
    let now = shared.clock.monotonic();
    let known = shared.services.announced.lock().get(&(at.id, at.version)).copied();
    if let Some((asked_at, has_it)) = known
        && now.saturating_sub(asked_at) < ANNOUNCED_FOR
    {
        return Ok(has_it);
    }
    debug_assert_eq!(at.project_id, project, "a service of the project");
    let body = list_of(shared, &Found::Configured(Arc::clone(at)), at, list).await?;
    let has_it = local::hooks_of(&body, &name).ok_or("its host lists no services, or not this one")?;
    let mut known = shared.services.announced.lock();
    known.retain(|(id, version), _| *id != at.id || *version == at.version);
    known.insert((at.id, at.version), (now, has_it));
    Ok(has_it)
}

/// What a host says that it has, as it says it.
async fn list_of(shared: &Shared, host: &Found, at: &Arc<Connection>, path: String) -> Result<Bytes, String> {
    let outgoing = Outgoing {
        connection: Arc::clone(at),
        delivery_id: DeliveryId::from_u128(0),
        cid: Cid::new(shared.now(), 0),
        attempt: 1,
        head: Arc::new(RequestHead { method: Method::GET, path, ..RequestHead::default() }),
        body: Bytes::new(),
        credentials: None,
        webhook: None,
        service: None,
        trace: None,
        stamp: None,
        timeout: ANNOUNCE_TIMEOUT,
    };
    match host.ask(shared, outgoing, Ask::Announce, false).await {
        Reply::Answered(answer) if answer.status == Some(200) && !answer.incomplete => Ok(answer.body),
        Reply::Answered(answer) => Err(format!("its host answered HTTP {}", answer.status.unwrap_or_default())),
        Reply::Unanswered(none) => Err(none.detail),
    }
}

/// The services in a host's list.
pub(crate) fn listed(body: &[u8]) -> Option<Vec<(String, bool)>> {
    let list: Value = serde_json::from_slice(body).ok()?;
    let one = |service: &Value| {
        let name = service.get("name")?.as_str()?.to_owned();
        let hooks = service.get("hooks")?.as_array()?;
        Some((name, hooks.iter().any(|hook| hook == postrider_core::connection::QUEUE_RESPONSE_HOOK)))
    };
    list.as_array()?.iter().map(one).collect()
}
