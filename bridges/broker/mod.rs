//! The sender of connections to message brokers: one message on a connection that stays open, and the broker's word that it is kept.
//!
//! What is spoken is in the file of the broker's name, each with its own proof of delivery: JetStream's acknowledgment, a publisher confirm, the
//! id of an entry. Every socket comes through the one way out. It must not know what a reply leads to.

mod nats;
mod rabbitmq;
mod redis;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::HeaderName;
use postrider_core::broker::BrokerAnswer;
use postrider_core::connection::{BrokerTarget, Connection, Place};
use postrider_core::id::ConnectionId;
use postrider_core::message::Message;
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::{Answer, NoAnswerKind, Reply, Said, SettingError};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

use super::connect::Connector;
use super::link::Stream;
use super::metered::Meter;
use super::origin::TlsRoute;
use super::pool::Pool;
use super::reach::{Reach, Trial};
use super::{Outgoing, Sender, cause, request};
use crate::auth::{Credentials, Login};
use crate::egress::{Destination, Egress, Host, Progress, Stage};
use crate::guard::Policy;
use crate::tls::Speaks;

/// Somebody waits for this when a connection is saved.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);
/// Sooner than servers ask a silent client whether it is still there.
const IDLE_CLOSE: Duration = Duration::from_secs(45);
const READ_BYTES: usize = 8 * 1024;

pub struct BrokerSender {
    connector: Arc<Connector>,
    routes: RwLock<HashMap<ConnectionId, Arc<Route>>>,
}

/// All that is worked out once for a version of a connection.
struct Route {
    version: u32,
    target: BrokerTarget,
    host: Host,
    tls: Option<TlsRoute>,
    slots: Semaphore,
    idle: Arc<Pool<Box<Session>>>,
}

/// A connection on which somebody is logged in.
struct Session {
    link: Link,
    spoken: Spoken,
    /// Whose credentials they were.
    credentials: Option<Arc<Credentials>>,
}

enum Spoken {
    Nats(nats::Nats),
    RabbitMq(rabbitmq::RabbitMq),
    Redis(redis::Redis),
}

/// A stream, and what has come on it that nobody has read yet.
struct Link {
    stream: Stream,
    meter: Arc<Meter>,
    buffer: BytesMut,
}

/// Why a message is not known to be kept.
enum Failed {
    /// The connection broke.
    Broken(io::Error),
    /// What came is nothing that a broker of this kind says.
    Garbled(String),
    /// The broker has said no; `goes_on` tells whether the connection can be used further.
    Said { answer: BrokerAnswer, goes_on: bool },
}

impl BrokerSender {
    /// `egress` is the way out that this sender shares with all else that goes out.
    pub fn new(egress: Arc<Egress>) -> Self {
        BrokerSender { connector: Arc::new(Connector::new(egress)), routes: RwLock::default() }
    }

    /// What is kept for this version of the connection; see the HTTP sender's.
    fn route(&self, connection: &Connection) -> Result<Arc<Route>, String> {
        let known = self.routes.read().unwrap_or_else(PoisonError::into_inner).get(&connection.id).cloned();
        let is_newest = match known {
            Some(route) if route.version == connection.version => return Ok(route),
            Some(route) => connection.version > route.version,
            None => true,
        };
        let route = Arc::new(Route::new(connection)?);
        if is_newest {
            let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
            match routes.get(&connection.id) {
                // Another attempt was faster.
                Some(same) if same.version == connection.version => return Ok(same.clone()),
                _ => drop(routes.insert(connection.id, route.clone())),
            }
        }
        Ok(route)
    }

    async fn attempt(&self, route: &Route, outgoing: &Outgoing, progress: &Progress) -> Reply {
        // It is never closed.
        let Ok(_slot) = route.slots.acquire().await else {
            return Reply::unanswered(NoAnswerKind::Internal, "the connection's sockets are gone");
        };
        let fields = fields(outgoing);
        let message = Publication { outgoing, target: &route.target, fields: &fields };
        let same = |session: &Session| is_same(session.credentials.as_ref(), outgoing.credentials.as_ref());
        if let Some(mut session) = route.idle.take().filter(|session| same(session)) {
            progress.reach(Stage::Answer);
            match session.publish(&message, true).await {
                // It was closed while it rested, and not a byte of the message has left.
                Err(Failed::Broken(_)) if !session.link.meter.has_written() => {}
                done => return route.told(session, done),
            }
        }
        match self.open(route, outgoing, progress).await {
            Ok(mut session) => {
                let done = session.publish(&message, false).await;
                route.told(session, done)
            }
            Err(reply) => reply,
        }
    }

    /// Connected and logged in.
    async fn open(&self, route: &Route, outgoing: &Outgoing, progress: &Progress) -> Result<Box<Session>, Reply> {
        let credentials = outgoing.credentials.clone();
        let login = credentials.as_ref().map(|credentials| credentials.login()).transpose();
        let login = login.map_err(Reply::Unanswered)?.unwrap_or_default();
        let destination = route.destination();
        // NATS speaks first and in the clear, whatever follows.
        let is_nats = matches!(route.target.place, Place::Nats { .. });
        let tls_first = route.tls.as_ref().filter(|_| !is_nats);
        let opened = self.connector.open_stream(destination, tls_first, progress).await;
        let (stream, meter) = opened.map_err(|error| cause::not_connected(&route.host, &error))?;
        let mut link = Link { stream, meter, buffer: BytesMut::new() };
        let spoken = match &route.target.place {
            Place::Nats { .. } => {
                let greeted = nats::Greeting::read(&mut link).await.map_err(|failed| route.failed(failed))?;
                if let Some(tls) = &route.tls {
                    link = link.secured(&self.connector, tls, progress).await.map_err(|error| cause::not_connected(&route.host, &error))?;
                }
                progress.reach(Stage::Answer);
                greeted.log_in(&mut link, &login, outgoing, route.tls.is_some()).await.map(Spoken::Nats)
            }
            Place::RabbitMq { vhost, .. } => {
                progress.reach(Stage::Answer);
                rabbitmq::RabbitMq::log_in(&mut link, &login, vhost).await.map(Spoken::RabbitMq)
            }
            Place::Redis { database, .. } => {
                progress.reach(Stage::Answer);
                redis::Redis::log_in(&mut link, &login, *database).await.map(Spoken::Redis)
            }
        };
        let spoken = spoken.map_err(|failed| route.failed(failed))?;
        Ok(Box::new(Session { link, spoken, credentials }))
    }
}

/// What is published, and where.
struct Publication<'a> {
    outgoing: &'a Outgoing,
    target: &'a BrokerTarget,
    /// What goes beside the body, the content type among them.
    fields: &'a [(String, String)],
}

impl Session {
    /// What the broker said when it took it, in JSON.
    async fn publish(&mut self, message: &Publication<'_>, reused: bool) -> Result<Value, Failed> {
        self.link.meter.begin(reused);
        // What bounds an answer is the codec.
        self.link.meter.head_is_complete();
        match &mut self.spoken {
            Spoken::Nats(nats) => nats.publish(&mut self.link, message).await,
            Spoken::RabbitMq(rabbitmq) => rabbitmq.publish(&mut self.link, message).await,
            Spoken::Redis(redis) => redis.publish(&mut self.link, message).await,
        }
    }
}

impl Link {
    async fn write(&mut self, bytes: &[u8]) -> Result<(), Failed> {
        self.stream.write_all(bytes).await.map_err(Failed::Broken)?;
        self.stream.flush().await.map_err(Failed::Broken)
    }

    /// More bytes, at least one.
    async fn read_more(&mut self) -> Result<(), Failed> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err(Failed::Broken(io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Ok(()),
            Err(error) => Err(Failed::Broken(error)),
        }
    }

    /// The same with TLS on it.
    async fn secured(
        self,
        connector: &Connector,
        tls: &TlsRoute,
        progress: &Progress,
    ) -> Result<Link, super::connect::ConnectError> {
        let Link { stream, meter, buffer } = self;
        let stream = match stream {
            Stream::Plain(metered) => connector.secure(metered, tls, progress).await?,
            already @ Stream::Tls(_) => already,
        };
        Ok(Link { stream, meter, buffer })
    }
}

impl Failed {
    fn not_taken(words: impl Into<String>, goes_on: bool) -> Failed {
        Failed::Said { answer: BrokerAnswer::NotTaken(shown(&words.into())), goes_on }
    }

    fn unfit(words: impl Into<String>, goes_on: bool) -> Failed {
        Failed::Said { answer: BrokerAnswer::Unfit(shown(&words.into())), goes_on }
    }
}

/// A broker's words, without control characters and not too many of them.
fn shown(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(300).collect()
}

impl Route {
    fn new(connection: &Connection) -> Result<Self, String> {
        let no_broker = || format!("a connection of type `{}` goes to no broker", connection.kind().as_str());
        let target = connection.spec.target.broker().ok_or_else(no_broker)?.clone();
        let host = Host::new(&target.host, target.port);
        let tls = target.tls.as_ref().map(|settings| TlsRoute::new(&host, settings, Speaks::Unnamed)).transpose();
        Ok(Route {
            version: connection.version,
            tls: tls.map_err(|_| format!("`address` is {}, which no certificate can be for", host.shown()))?,
            host,
            slots: Semaphore::new(usize::try_from(target.pool_size).unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS)),
            idle: Pool::new(IDLE_CLOSE),
            target,
        })
    }

    fn destination(&self) -> Destination<'_> {
        Destination { host: &self.host, tls: self.tls.is_some(), policy: Policy::Connections }
    }

    /// Keeps what can be used further.
    fn told(&self, session: Box<Session>, done: Result<Value, Failed>) -> Reply {
        match done {
            Ok(said) => {
                self.idle.put(session);
                answered(BrokerAnswer::Taken, &said)
            }
            Err(failed) => {
                if matches!(&failed, Failed::Said { goes_on: true, .. }) {
                    self.idle.put(session);
                }
                self.failed(failed)
            }
        }
    }

    fn failed(&self, failed: Failed) -> Reply {
        let shown = self.host.shown();
        match failed {
            Failed::Broken(error) => cause::broken(shown, &error, "before the broker had said that the message is kept"),
            Failed::Garbled(why) => Reply::unanswered(NoAnswerKind::Unreachable, format!("{shown}: {why}")),
            Failed::Said { answer, .. } => {
                let said = json!({"error": answer.error()});
                answered(answer, &said)
            }
        }
    }
}

fn answered(answer: BrokerAnswer, said: &Value) -> Reply {
    let body = Bytes::from(said.to_string());
    Reply::Answered(Answer { said: Some(Said::Broker(answer)), body, ..Answer::default() })
}

fn is_same(one: Option<&Arc<Credentials>>, other: Option<&Arc<Credentials>>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        _ => false,
    }
}

/// The headers of the request, less those of one hop, and ours: the same names as over HTTP. A name that comes twice has its values joined.
fn fields(outgoing: &Outgoing) -> Vec<(String, String)> {
    let hops = request::hop_names(outgoing);
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: String| match fields.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = format!("{known}, {value}"),
        None => fields.push((name.to_owned(), value)),
    };
    for (name, value) in outgoing.head.headers.iter() {
        let Ok(field) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        if !request::is_ours(&field) && !request::is_trace(&field, outgoing) && !hops.contains(&field) {
            add(field.as_str(), value.to_owned());
        }
    }
    add("x-postrider-cid", outgoing.cid.as_str().to_owned());
    add("x-postrider-msg-id", outgoing.delivery_id.to_string());
    if let Some(trace) = &outgoing.trace {
        add("traceparent", trace.parent());
        if let Some(state) = trace.state() {
            add("tracestate", state.to_owned());
        }
    }
    fields
}

/// Everything is published to one place, under the request's own headers.
pub(super) fn check(message: &Message) -> Result<(), SettingError> {
    const ONLY: &str = "nothing here: everything goes to the place that the connection names";
    let head = &message.head;
    if head.method.as_str() != "POST" {
        return Err(SettingError::new("method", &head.method, "POST: a broker takes nothing else"));
    }
    if !head.path.is_empty() {
        return Err(SettingError::new("path", &head.path, ONLY));
    }
    if let Some((name, _)) = head.params.first() {
        return Err(SettingError::new("params", name, ONLY));
    }
    match head.headers.iter().find(|(name, _)| HeaderName::from_bytes(name.as_bytes()).is_err()) {
        Some((name, _)) => Err(SettingError::new("headers", name, "names of letters, digits and `-`")),
        None => Ok(()),
    }
}

/// What an answer that was kept said.
pub(super) fn said(body: &[u8]) -> BrokerAnswer {
    let error = serde_json::from_slice::<Value>(body).ok().and_then(|said| Some(said.get("error")?.as_str()?.to_owned()));
    error.map_or(BrokerAnswer::Taken, BrokerAnswer::NotTaken)
}

#[async_trait]
impl Sender for BrokerSender {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        let route = match self.route(&outgoing.connection) {
            Ok(route) => route,
            Err(why) => return Reply::unanswered(NoAnswerKind::Unsendable, why),
        };
        let progress = Progress::new();
        // Whoever is cut off here drops its session, so that an answer which comes late is nobody's.
        let attempt = self.attempt(&route, &outgoing, &progress);
        match tokio::time::timeout(outgoing.timeout.as_duration(), attempt).await {
            Ok(reply) => reply,
            Err(_) => cause::timed_out(&route.host, outgoing.timeout, progress.stage(), route.target.pool_size),
        }
    }

    async fn may_reach(&self, connection: &Arc<Connection>) -> Result<(), String> {
        let route = Route::new(connection)?;
        match tokio::time::timeout(JUDGED_WITHIN, self.connector.judge_destination(route.destination())).await {
            Ok(judged) => judged.map_err(|refused| refused.to_string()),
            // A slow name server says nothing about the name.
            Err(_) => Ok(()),
        }
    }

    /// Nothing is published.
    async fn reach(&self, wanted: Reach) -> Reached {
        let route = match Route::new(&wanted.connection) {
            Ok(route) => route,
            Err(why) => return Reached::not(ReachStage::Resolve, NoAnswerKind::Unsendable, why),
        };
        let is_nats = matches!(route.target.place, Place::Nats { .. });
        let (to, tls) = (route.destination(), route.tls.as_ref().filter(|_| !is_nats));
        Trial { connector: &self.connector, to, tls, timeout: wanted.timeout }.connect().await
    }

    fn forget(&self, connection: ConnectionId) {
        let gone = self.routes.write().unwrap_or_else(PoisonError::into_inner).remove(&connection);
        drop(gone);
    }
}

/// Where a log-in is needed and none is given.
impl Login {
    fn user(&self) -> &str {
        self.username.as_deref().unwrap_or_default()
    }
}
