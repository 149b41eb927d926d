//! The gate in front of every route: who asks, whether the project is theirs, whether their scopes reach (P07). Answered from memory.
//!
//! 401 without a valid key, 404 for a project that is not the key's (the same as for one that is not there), 403 for too small a scope. It
//! must not know what a request is about.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::HeaderValue;
use http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use postrider_core::access::{Scope, ScopeSet};
use postrider_core::id::ProjectId;
use postrider_engine::{Actor, Engine, KeyHolder, KeyRefused};
use postrider_store::User;

use crate::api::RemoteAnswer;
use crate::auth::{AdminKey, presented_keys};
use crate::problem::Problem;
use crate::routes::{Needs, PROJECT, Rule};

/// Where a connection came from; the server puts it into each request.
#[derive(Clone, Copy, Debug)]
pub struct PeerAddress(pub SocketAddr);

/// Somebody who was let in.
#[derive(Clone, Debug)]
pub struct Caller {
    pub actor: Arc<Actor>,
    pass: Pass,
}

/// What somebody was let in with.
#[derive(Clone, Debug)]
enum Pass {
    Bootstrap,
    Key(Arc<KeyHolder>),
    User(Arc<UserPass>),
}

/// A user with a session, and the name of the user's project.
#[derive(Debug)]
pub struct UserPass {
    pub user: User,
    pub project_name: Option<String>,
}

impl Caller {
    /// Whoever has this key.
    pub fn of_key(holder: Arc<KeyHolder>, address: Option<IpAddr>) -> Caller {
        Caller { actor: Arc::new(holder.actor(address)), pass: Pass::Key(holder) }
    }

    /// Whoever has the key that the installation was set up with.
    pub fn bootstrap(address: Option<IpAddr>) -> Caller {
        Caller { actor: Arc::new(Actor::bootstrap(address)), pass: Pass::Bootstrap }
    }

    /// Whoever is logged in as this user.
    pub fn of_user(pass: UserPass, actor: Actor) -> Caller {
        Caller { actor: Arc::new(actor), pass: Pass::User(Arc::new(pass)) }
    }

    /// The only project that the caller may see; `None`: all of them.
    pub fn only_project(&self) -> Option<ProjectId> {
        match &self.pass {
            Pass::Bootstrap => None,
            Pass::Key(holder) => holder.key.project_id,
            Pass::User(pass) => pass.user.project_id,
        }
    }

    pub fn scopes(&self) -> ScopeSet {
        match &self.pass {
            Pass::Bootstrap => ScopeSet::of(&[Scope::Admin]),
            Pass::Key(holder) => holder.scopes(),
            Pass::User(pass) => pass.user.role.scopes(),
        }
    }

    /// Whether the caller may see what is in bodies. A viewer may not unless that is allowed by name: they are health data.
    pub fn sees_bodies(&self) -> bool {
        match &self.pass {
            Pass::Bootstrap | Pass::Key(_) => true,
            Pass::User(pass) => pass.user.role.sees_bodies(pass.user.sees_bodies),
        }
    }

    /// Whether the project of this name or id is one that the caller may see.
    fn is_of(&self, name_or_id: &str) -> bool {
        match &self.pass {
            Pass::Bootstrap => true,
            Pass::Key(holder) => holder.is_of(name_or_id),
            Pass::User(pass) => pass.user.project_id.is_none_or(|id| {
                pass.project_name.as_deref() == Some(name_or_id)
                    || name_or_id.parse::<ProjectId>().is_ok_and(|given| given == id)
            }),
        }
    }
}

pub struct Gate {
    pub engine: Engine,
    pub admin: AdminKey,
}

/// No answer of the API is to be kept by a cache or guessed at by a browser.
pub fn with_safe_headers(mut response: Response) -> Response {
    if response.extensions().get::<RemoteAnswer>().is_some() {
        return response;
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

impl Gate {
    /// Who is let in to the path of this rule; where none is needed, nobody. Without a rule there is no such path.
    ///
    /// # Errors
    /// What whoever is not let in is told.
    pub fn judge(&self, request: &Request, found: Option<(&str, &Rule)>) -> Result<Option<Caller>, Problem> {
        let (path, rule) = found.unzip();
        let needs = rule.and_then(|rule| rule.needs(request.method()));
        match (rule, needs) {
            (_, Some(Needs::Nobody)) => return Ok(None),
            // Where nobody needs a key, asking for one would send the caller on a search for nothing.
            (Some(rule), None) if rule.is_open() => return Err(crate::problem::method_not_allowed(&rule.methods())),
            _ => {}
        }
        let address = request.extensions().get::<PeerAddress>().map(|peer| peer.0.ip());
        let caller = self.caller(request, address)?;
        if path.is_some_and(|path| path.starts_with(PROJECT)) {
            self.check_project(&caller, request.uri().path())?;
        }
        let Some(rule) = rule else { return Err(crate::problem::nothing_here()) };
        let Some(needs) = needs else { return Err(crate::problem::method_not_allowed(&rule.methods())) };
        let is_placed = !matches!(needs, Needs::Installation(_)) || caller.only_project().is_none();
        if is_placed && caller.scopes().cover(needs.scopes()) {
            return Ok(Some(caller));
        }
        self.engine.note_refused(KeyRefused::ScopeTooSmall, &caller.actor, caller.only_project());
        Err(Problem::forbidden(needs.scopes(), is_placed))
    }

    fn caller(&self, request: &Request, address: Option<IpAddr>) -> Result<Caller, Problem> {
        // The dashboard has recognised somebody by their session. Extensions never come from outside.
        if let Some(caller) = request.extensions().get::<Caller>() {
            return Ok(caller.clone());
        }
        let presented = presented_keys(request.uri().path(), request.headers());
        for key in &presented {
            if let Some(holder) = self.engine.key_holder(key) {
                return Ok(Caller::of_key(holder, address));
            }
            if self.admin.opens(key) {
                return Ok(Caller::bootstrap(address));
            }
        }
        if !presented.is_empty() {
            self.engine.note_refused(KeyRefused::Unknown, &Actor::unknown(address), None);
        }
        Err(Problem::unauthorized(!presented.is_empty()))
    }

    /// A foreign project looks exactly like one that does not exist, and is not even looked up.
    fn check_project(&self, caller: &Caller, path: &str) -> Result<(), Problem> {
        let segment = path.split('/').nth(4).unwrap_or_default();
        let named = percent_encoding::percent_decode_str(segment).decode_utf8_lossy();
        if caller.is_of(&named) {
            return Ok(());
        }
        self.engine.note_refused(KeyRefused::ForeignProject, &caller.actor, caller.only_project());
        Err(Problem::not_found("project", &named))
    }
}
