//! The sender of MLLP connections: one message on a socket that stays open, and the acknowledgment that is about it.
//!
//! At most one message is in flight on a socket. A socket whose message was not acknowledged in time is closed, so that an acknowledgment
//! which comes late is nobody else's. It must not know what a reply leads to.

mod check;
mod exchange;
mod lane;
mod wanted;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use postrider_core::ack::{Ack, AckItem};
use postrider_core::connection::{Connection, MllpTarget, SegmentEnds};
use postrider_core::id::ConnectionId;
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::{NoAnswerKind, Reply};
use tokio::sync::Semaphore;

pub(super) use check::check;

use super::connect::Connector;
use super::origin::TlsRoute;
use super::pool::Pool;
use super::reach::{Reach, Trial};
use super::{Outgoing, Sender, cause};
use crate::codec::{hl7, mllp};
use crate::egress::{Destination, Egress, Host, Stage};
use crate::guard::Policy;
use crate::tls::Speaks;
use exchange::Exchange;
use lane::Lane;
use wanted::Wanted;

/// Somebody waits for this when a connection is saved.
const JUDGED_WITHIN: Duration = Duration::from_secs(5);
/// As good as never.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

pub struct MllpSender {
    answer_bytes_max: usize,
    connector: Arc<Connector>,
    routes: RwLock<HashMap<ConnectionId, Arc<Route>>>,
}

/// All that is worked out once for a version of a connection.
struct Route {
    version: u32,
    target: MllpTarget,
    host: Host,
    tls: Option<TlsRoute>,
    slots: Semaphore,
    lanes: Arc<Pool<Lane>>,
}

impl MllpSender {
    /// Of an acknowledgment `answer_bytes_max` bytes are kept (D07). `egress` is the way out that this sender shares with all else that goes
    /// out.
    pub fn new(answer_bytes_max: usize, egress: Arc<Egress>) -> Self {
        MllpSender { answer_bytes_max, connector: Arc::new(Connector::new(egress)), routes: RwLock::default() }
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

    async fn attempt(&self, outgoing: &Outgoing) -> Result<Reply, Reply> {
        let unsendable = |detail: String| Reply::unanswered(NoAnswerKind::Unsendable, detail);
        let route = self.route(&outgoing.connection).map_err(unsendable)?;
        let body = route.on_the_wire(&outgoing.body);
        let outline = hl7::outline(&body).map_err(|error| unsendable(format!("the message is no HL7: {error}")))?;
        let wanted = Wanted::new(&outline, &route.target);
        let mut frame = BytesMut::new();
        mllp::encode(&route.target.framing, &body, &mut frame).map_err(|error| unsendable(error.to_string()))?;
        let slot = tokio::time::timeout(outgoing.timeout.as_duration(), route.slots.acquire()).await;
        let _slot =
            slot.map_err(|_| cause::timed_out(&route.host, outgoing.timeout, Stage::Slot, route.target.pool_size))?;
        let mut lane = route.lanes.take().unwrap_or_default();
        lane.rest().await;
        let exchange = Exchange { sender: self, route: &route, wanted, frame: &frame };
        let reply = exchange.run(&mut lane).await;
        lane.pause(route.target.gap_min);
        route.lanes.put(lane);
        reply
    }
}

impl Route {
    fn new(connection: &Connection) -> Result<Self, String> {
        let not_mllp = || format!("a connection of type `{}` does not go over MLLP", connection.kind().as_str());
        let target = connection.spec.target.mllp().ok_or_else(not_mllp)?.clone();
        let host = Host::new(&target.host, target.port);
        let tls = target.tls.as_ref().map(|settings| TlsRoute::new(&host, settings, Speaks::Unnamed)).transpose();
        Ok(Route {
            version: connection.version,
            tls: tls.map_err(|_| format!("`address` is {}, which no certificate can be for", host.shown()))?,
            host,
            slots: Semaphore::new(usize::try_from(target.pool_size).unwrap_or(1).clamp(1, Semaphore::MAX_PERMITS)),
            lanes: Pool::new(target.idle_close.map_or(NEVER, |wait| wait.as_duration())),
            target,
        })
    }

    fn destination(&self) -> Destination<'_> {
        Destination { host: &self.host, tls: self.tls.is_some(), policy: Policy::Connections }
    }

    /// The accepted bytes, or what `segment_ends` declares to make of them.
    fn on_the_wire(&self, body: &Bytes) -> Bytes {
        match self.target.segment_ends {
            SegmentEnds::AsIs => body.clone(),
            SegmentEnds::Cr => with_cr_ends(body),
        }
    }
}

/// The acknowledgment that these bytes are, of whichever message.
pub(super) fn ack_of(bytes: &[u8]) -> Option<Ack> {
    let mut items: Vec<AckItem> = hl7::acknowledgment(bytes).ok()?.items.into_iter().map(|(_, item)| item).collect();
    match items.len() {
        0 => None,
        1 => items.pop().map(|item| Ack::single(item.code, item.text)),
        _ => Ack::of_batch(items),
    }
}

/// CR for LF and CR LF, and one at the end.
fn with_cr_ends(body: &[u8]) -> Bytes {
    let mut ends = Vec::with_capacity(body.len() + 1);
    let mut rest = body;
    while let Some(at) = memchr::memchr(b'\n', rest) {
        ends.extend_from_slice(&rest[..at]);
        if !rest[..at].ends_with(b"\r") {
            ends.push(b'\r');
        }
        rest = &rest[at + 1..];
    }
    ends.extend_from_slice(rest);
    if !ends.ends_with(b"\r") {
        ends.push(b'\r');
    }
    ends.into()
}

#[async_trait]
impl Sender for MllpSender {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        match self.attempt(&outgoing).await {
            Ok(reply) | Err(reply) => reply,
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

    /// No message is sent: a receiver would have to acknowledge it.
    async fn reach(&self, wanted: Reach) -> Reached {
        let route = match Route::new(&wanted.connection) {
            Ok(route) => route,
            Err(why) => return Reached::not(ReachStage::Resolve, NoAnswerKind::Unsendable, why),
        };
        let (to, tls) = (route.destination(), route.tls.as_ref());
        Trial { connector: &self.connector, to, tls, timeout: wanted.timeout }.connect().await
    }

    fn forget(&self, connection: ConnectionId) {
        let gone = self.routes.write().unwrap_or_else(PoisonError::into_inner).remove(&connection);
        drop(gone);
    }
}

#[cfg(test)]
mod tests {
    use super::with_cr_ends;

    #[test]
    fn m29_line_feeds_become_the_ends_that_the_standard_asks_for() {
        for (given, made) in [
            (&b"MSH|a\nPID|b\n"[..], &b"MSH|a\rPID|b\r"[..]),
            (b"MSH|a\r\nPID|b", b"MSH|a\rPID|b\r"),
            (b"MSH|a\rPID|b\r", b"MSH|a\rPID|b\r"),
            (b"MSH|a\n\nPID|b\r\n", b"MSH|a\r\rPID|b\r"),
        ] {
            assert_eq!(&with_cr_ends(given)[..], made);
        }
    }
}
