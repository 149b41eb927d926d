//! Connections, attempts and resolvers for the tests.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::{Connection, ConnectionKind, ConnectionSpec};
use postrider_core::id::{Cid, ConnectionId, DeliveryId, ProjectId};
use postrider_core::message::RequestHead;
use postrider_core::{Answer, NoAnswer, NoAnswerKind, Reply, Timestamp, Wait};
use postrider_wire::resolve::Resolver;
use postrider_wire::{Egress, HttpOptions, HttpSender, Outgoing, Sender};
use serde_json::{Map, Value, json};

/// Long enough never to run out in a test that passes.
pub const AMPLE: Wait = Wait::from_secs(20);
/// For tests in which the deadline itself is at stake.
pub const SHORT: Wait = Wait::from_millis(200);

pub fn connection_with(host: &str, keys: Value) -> Arc<Connection> {
    let mut written = Map::new();
    written.insert("host".into(), json!(host));
    written.insert("url_path".into(), json!("/in"));
    written.extend(keys.as_object().unwrap().clone());
    Arc::new(Connection {
        id: ConnectionId::from_u128(1),
        project_id: ProjectId::from_u128(1),
        name: "peer".into(),
        spec: ConnectionSpec::parse(ConnectionKind::Rest, &written).unwrap(),
        written,
        paused: false,
        version: 1,
        created_at: Timestamp::default(),
        updated_at: Timestamp::default(),
    })
}

pub fn connection(host: &str) -> Arc<Connection> {
    connection_with(host, json!({}))
}

pub fn outgoing(connection: &Arc<Connection>) -> Outgoing {
    Outgoing {
        connection: connection.clone(),
        delivery_id: DeliveryId::from_u128(77),
        cid: Cid::from_stored("20260312-120534-7301-7f2c0e51a"),
        attempt: 1,
        head: Arc::new(RequestHead::default()),
        body: Bytes::from_static(b"{\"claim\":1}"),
        credentials: None,
        webhook: None,
        service: None,
        trace: None,
        stamp: None,
        timeout: AMPLE,
    }
}

pub fn within(connection: &Arc<Connection>, timeout: Wait) -> Outgoing {
    Outgoing { timeout, ..outgoing(connection) }
}

pub fn head(value: Value) -> Arc<RequestHead> {
    Arc::new(serde_json::from_value(value).unwrap())
}

pub fn sender() -> HttpSender {
    sender_of(HttpOptions::default())
}

pub fn sender_of(options: HttpOptions) -> HttpSender {
    HttpSender::new(options, Arc::new(Egress::new(&[])))
}

/// A sender whose names resolve as the test says.
pub fn sender_with(resolver: impl Resolver + 'static) -> HttpSender {
    HttpSender::new(HttpOptions::default(), Arc::new(Egress::with_resolver(&[], Arc::new(resolver))))
}

/// One attempt of a new sender.
pub async fn send_once(host: &str, timeout: Wait) -> Reply {
    sender().send(within(&connection(host), timeout)).await
}

#[track_caller]
pub fn answered(reply: Reply) -> Answer {
    match reply {
        Reply::Answered(answer) => answer,
        Reply::Unanswered(none) => panic!("no answer: {none:?}"),
    }
}

/// The detail of a reply without an answer, of this kind.
#[track_caller]
pub fn unanswered(reply: Reply, expected: NoAnswerKind) -> String {
    match reply {
        Reply::Unanswered(NoAnswer { kind, detail }) => {
            assert_eq!(kind, expected, "{detail}");
            detail
        }
        Reply::Answered(answer) => panic!("answered: {answer:?}"),
    }
}

/// Every name has these addresses.
pub struct Fixed(pub Vec<IpAddr>);

#[async_trait]
impl Resolver for Fixed {
    async fn resolve(&self, _host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(self.0.iter().map(|address| SocketAddr::new(*address, port)).collect())
    }
}

pub struct Failing;

#[async_trait]
impl Resolver for Failing {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        Err(io::Error::other("Name or service not known"))
    }
}

pub struct Hanging;

#[async_trait]
impl Resolver for Hanging {
    async fn resolve(&self, _host: &str, _port: u16) -> io::Result<Vec<SocketAddr>> {
        std::future::pending().await
    }
}
