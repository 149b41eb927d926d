//! The sender of REST connections: one attempt over HTTP/1.1, from a free socket to a `Reply`.
//!
//! One deadline runs over the whole attempt (D24). Nothing is followed, unpacked or remembered: no redirects, no cookies, no proxies, no
//! decompression. It must not know what a reply leads to.

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use http::Response;
use hyper::body::Incoming;
use postrider_core::connection::Connection;
use postrider_core::id::ConnectionId;
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::{NoAnswerKind, Reply};
use tokio::time::Sleep;

use super::answer::answer;
use super::cause;
use super::connect::Connector;
use super::link::{Broken, Link, OutgoingRequest};
use super::reach::{self, Reach, Trial};
use super::route::{Route, RouteError};
use super::{Outgoing, Sender, request};
use crate::auth::Authorization;
use crate::egress::{Egress, Progress, Stage};

/// Somebody waits for this when a connection is saved.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// A response's body is kept up to this many bytes (D07).
    pub response_bytes_max: usize,
    /// A socket idle for this long is closed. Below the 5 s after which widespread servers close theirs.
    pub pool_idle_timeout: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions { response_bytes_max: 1 << 20, pool_idle_timeout: Duration::from_secs(4) }
    }
}

pub struct HttpSender {
    response_bytes_max: usize,
    pool_idle_timeout: Duration,
    connector: Arc<Connector>,
    routes: RwLock<HashMap<ConnectionId, Arc<Route>>>,
}

impl HttpSender {
    /// `egress` is the way out that this sender shares with all else that goes out.
    pub fn new(options: HttpOptions, egress: Arc<Egress>) -> Self {
        HttpSender {
            response_bytes_max: options.response_bytes_max,
            pool_idle_timeout: options.pool_idle_timeout,
            connector: Arc::new(Connector::new(egress)),
            routes: RwLock::default(),
        }
    }

    /// What is kept for this version of the connection. Another version's is let go; its attempts under way end as they began.
    fn route(&self, connection: &Arc<Connection>) -> Result<Arc<Route>, RouteError> {
        let known = self.routes.read().unwrap_or_else(PoisonError::into_inner).get(&connection.id).cloned();
        let newest = match known {
            Some(route) if route.connection.version == connection.version => return Ok(route),
            Some(route) => connection.version > route.connection.version,
            None => true,
        };
        let route = Arc::new(Route::new(connection, self.pool_idle_timeout)?);
        if !newest {
            // An attempt that was prepared before a change: it may end under the settings that it began with, but does not bring them back.
            return Ok(route);
        }
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        match routes.get(&connection.id) {
            // Another attempt was faster: one pool a version.
            Some(same) if same.connection.version == connection.version => Ok(same.clone()),
            _ => {
                routes.insert(connection.id, route.clone());
                Ok(route)
            }
        }
    }

    /// The header that proves who we are, within the attempt's own time. A token that cannot be had is a failed attempt (D32).
    async fn authorization(
        &self,
        route: &Route,
        outgoing: &Outgoing,
        deadline: Pin<&mut Sleep>,
    ) -> Result<Option<Authorization>, Reply> {
        let Some(credentials) = &outgoing.credentials else { return Ok(None) };
        if let Some(ready) = credentials.ready() {
            return Ok(Some(ready));
        }
        tokio::select! {
            biased;
            fetched = credentials.fetched(&self.connector, outgoing.stamp) => fetched.map(Some).map_err(Reply::Unanswered),
            () = deadline => Err(timed_out(route, outgoing, Stage::Token)),
        }
    }

    async fn attempt(&self, outgoing: &Outgoing, mut deadline: Pin<&mut Sleep>) -> Result<Reply, Reply> {
        let unsendable = |detail: String| Reply::unanswered(NoAnswerKind::Unsendable, detail);
        let route = self.route(outgoing.at()).map_err(|error| unsendable(error.to_string()))?;
        let authorization = self.authorization(&route, outgoing, deadline.as_mut()).await?;
        let request = request::build(&route, outgoing, authorization.as_ref());
        let request = request.map_err(|error| unsendable(error.to_string()))?;
        // Dropped after the link went back to the pool, so sockets never outnumber slots.
        let is_beside = outgoing.service.as_ref().is_some_and(|run| run.is_beside_runs());
        let slots = if is_beside { &route.beside } else { &route.slots };
        let _slot = match slots.try_acquire() {
            Ok(slot) => slot,
            Err(_) => tokio::select! {
                biased;
                slot = slots.acquire() => {
                    slot.map_err(|_| Reply::unanswered(NoAnswerKind::Internal, "the connection's sockets were closed"))?
                }
                () = deadline.as_mut() => return Err(timed_out(&route, outgoing, Stage::Slot)),
            },
        };
        let exchange = Exchange { sender: self, route: &route, outgoing, authorization: authorization.as_ref() };
        let (mut link, response) = exchange.ask(request, deadline.as_mut()).await?;
        let (head, body) = response.into_parts();
        if let (Some(credentials), Some(used)) = (&outgoing.credentials, &authorization) {
            credentials.answered(used, head.status);
        }
        let body = link.read_body(body, self.response_bytes_max, deadline).await;
        if !body.incomplete && link.is_usable().await {
            route.pool.put(link);
        }
        Ok(Reply::Answered(answer(&head, body)))
    }
}

#[async_trait]
impl Sender for HttpSender {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        // The attempt's one timer: all that waits, waits against it.
        let deadline = pin!(tokio::time::sleep(outgoing.timeout.as_duration()));
        match self.attempt(&outgoing, deadline).await {
            Ok(reply) | Err(reply) => reply,
        }
    }

    async fn may_reach(&self, connection: &Arc<Connection>) -> Result<(), String> {
        let route = Route::new(connection, self.pool_idle_timeout).map_err(|error| error.to_string())?;
        match tokio::time::timeout(JUDGED_WITHIN, self.connector.judge(&route.origin)).await {
            Ok(judged) => judged.map_err(|refused| refused.to_string()),
            // A slow name server says nothing about the name.
            Err(_) => Ok(()),
        }
    }

    async fn reach(&self, wanted: Reach) -> Reached {
        let route = match Route::new(&wanted.connection, self.pool_idle_timeout) {
            Ok(route) => route,
            Err(error) => return Reached::not(ReachStage::Resolve, NoAnswerKind::Unsendable, error.to_string()),
        };
        let origin = &route.origin;
        let (to, tls) = (origin.destination(), origin.tls.as_ref());
        let trial = Trial { connector: &self.connector, to, tls, timeout: wanted.timeout };
        match reach::request(&wanted, origin.host_header.clone()) {
            None => trial.connect().await,
            Some(Ok(request)) => trial.ask(&wanted, request).await,
            Some(Err(why)) => Reached::not(ReachStage::Resolve, NoAnswerKind::Unsendable, why),
        }
    }

    fn forget(&self, connection: ConnectionId) {
        let gone = self.routes.write().unwrap_or_else(PoisonError::into_inner).remove(&connection);
        drop(gone);
    }
}

/// One attempt that has its slot.
struct Exchange<'a> {
    sender: &'a HttpSender,
    route: &'a Route,
    outgoing: &'a Outgoing,
    authorization: Option<&'a Authorization>,
}

impl Exchange<'_> {
    /// Up to the status line. At most one request reaches the remote: a second one is made only if not one byte of the first could.
    async fn ask(
        &self,
        request: OutgoingRequest,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<(Box<Link>, Response<Incoming>), Reply> {
        let Some(mut link) = self.idle_link().await else {
            return self.ask_afresh(request, deadline).await;
        };
        match link.ask(request, true, deadline.as_mut()).await {
            Ok(response) => Ok((link, response)),
            Err(Broken::Failed { sent: false, .. }) => {
                // The peer had closed the idle socket. The request went down with it, so it is built again.
                drop(link);
                let again = request::build(self.route, self.outgoing, self.authorization)
                    .map_err(|error| Reply::unanswered(NoAnswerKind::Unsendable, error.to_string()))?;
                self.ask_afresh(again, deadline).await
            }
            Err(broken) => Err(self.told(broken)),
        }
    }

    async fn ask_afresh(
        &self,
        request: OutgoingRequest,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<(Box<Link>, Response<Incoming>), Reply> {
        // Rare and large, so it does not weigh on the attempts that find an open socket.
        let mut link = Box::pin(self.connect(deadline.as_mut())).await?;
        match link.ask(request, false, deadline).await {
            Ok(response) => Ok((link, response)),
            Err(broken) => Err(self.told(broken)),
        }
    }

    async fn connect(&self, deadline: Pin<&mut Sleep>) -> Result<Box<Link>, Reply> {
        let progress = Progress::new();
        let opened = tokio::select! {
            biased;
            opened = self.sender.connector.open(&self.route.origin, &progress) => opened,
            () = deadline => return Err(timed_out(self.route, self.outgoing, progress.stage())),
        };
        opened.map_err(|error| cause::not_connected(&self.route.origin.host, &error))
    }

    /// An open socket that is not known to be closed.
    async fn idle_link(&self) -> Option<Box<Link>> {
        while let Some(mut link) = self.route.pool.take() {
            if link.is_usable().await {
                return Some(link);
            }
        }
        None
    }

    fn told(&self, broken: Broken) -> Reply {
        match broken {
            Broken::Deadline => timed_out(self.route, self.outgoing, Stage::Answer),
            Broken::Failed { error, sent } => cause::broken_off(&self.route.origin.host, &error, sent),
        }
    }
}

fn timed_out(route: &Route, outgoing: &Outgoing, stage: Stage) -> Reply {
    cause::timed_out(&route.origin.host, outgoing.timeout, stage, route.slots_max)
}
