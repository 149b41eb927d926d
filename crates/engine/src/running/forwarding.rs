//! A channel that feeds connections: its request goes into the queue of each, as it arrived (Z41).
//!
//! A run that was cut off half-way goes on where it stood: what a queue has already is not put there again. It must not know how a connection delivers.

use bytes::Bytes;
use postrider_core::connection::{Connection, Family, ForwardTo};
use postrider_core::delivery::Origin;
use postrider_core::message::{HeaderList, Message, Method, RequestHead};
use postrider_core::{Answer, NoAnswerKind, Reply, Wait};
use postrider_store::{Enqueued, Idempotency};
use postrider_wire::Outgoing;
use postrider_wire::send::service::without_ours;
use serde_json::json;

use crate::engine::{ConnectionRef, SendOptions};
use crate::entry;
use crate::shared::Shared;

/// For so long a run that was cut off finds what it has done.
const REMEMBERED: Wait = Wait::from_secs(24 * 3600);

pub(super) async fn reply(shared: &Shared, outgoing: &Outgoing, list: &[ForwardTo]) -> Reply {
    let episode = match shared.store.delivery(outgoing.delivery_id).await {
        // Sent again by hand after a success, it is another request for the connections.
        Ok(delivery) => delivery.and_then(|delivery| delivery.progress.delivered_at).map_or(0, |at| at.as_millis()),
        Err(_) => return Reply::unanswered(NoAnswerKind::Internal, "the store is unavailable"),
    };
    let mut stored = Vec::with_capacity(list.len());
    for to in list {
        match one(shared, outgoing, to, episode).await {
            Ok(id) => stored.push(json!({"connection": to.name, "msg_id": id})),
            Err(why) => return Reply::unanswered(NoAnswerKind::Unsendable, format!("connection `{}`: {why}", to.name)),
        }
    }
    let body = Bytes::from(json!({"forwarded": stored}).to_string());
    Reply::Answered(Answer { status: Some(202), body, ..Answer::default() })
}

async fn one(shared: &Shared, outgoing: &Outgoing, to: &ForwardTo, episode: i64) -> Result<String, String> {
    let named = ConnectionRef { name: to.name.clone(), kind: to.kind };
    let connection = shared.connections.find(outgoing.connection.project_id, &named).map_err(|why| why.to_string())?;
    if connection.kind().family() != Family::Connection {
        return Err("it is none that requests are sent to".to_owned());
    }
    let message = Message { head: head(&connection, &outgoing.head), body: outgoing.body.clone() };
    entry::check_message(shared, &connection, &message).map_err(|why| why.to_string())?;
    let options = SendOptions { cid: Some(outgoing.cid.clone()), idempotency: None, trace: None };
    let mut new = entry::new_delivery(shared, &connection, message, options, Origin::Channel);
    new.idempotency = Some(once(shared, outgoing, &connection, episode));
    let id = new.id;
    match shared.intake.store(new).await.map_err(|why| why.to_string())? {
        Ok(Enqueued::Stored { .. }) => Ok(id.to_string()),
        Ok(Enqueued::Repeated(before)) => Ok(before.to_string()),
        Ok(Enqueued::KeyReused) => Err("another request was put there under the same key".to_owned()),
        Ok(Enqueued::Full { limit }) => Err(format!("its queue is full (`{limit}`)")),
        Ok(Enqueued::NoConnection) => Err("it does not exist".to_owned()),
        Err(_) => Err("the store is unavailable".to_owned()),
    }
}

/// Unique already, so there is nothing to hash.
fn once(shared: &Shared, outgoing: &Outgoing, connection: &Connection, episode: i64) -> Idempotency {
    let mut key_hash = [0; 32];
    let (delivery, target) =
        (outgoing.delivery_id.as_u128(), connection.id.as_u128() ^ u128::from(episode.unsigned_abs()));
    key_hash[..16].copy_from_slice(&delivery.to_be_bytes());
    key_hash[16..].copy_from_slice(&target.to_be_bytes());
    Idempotency { key_hash, request_hash: [0; 32], ends_at: shared.now() + REMEMBERED }
}

/// Method, query and headers as they arrived, and of the path what the connection's own has placeholders for.
fn head(connection: &Connection, given: &RequestHead) -> RequestHead {
    let Some(rest) = connection.spec.target.rest() else {
        // Others have one method, and their address is whole.
        return RequestHead { method: Method::POST, trace: given.trace.clone(), ..RequestHead::default() };
    };
    let is_asked_for = |name: &String| rest.url_path.placeholders().any(|placeholder| placeholder == name.as_str());
    let mut headers: HeaderList = without_ours(&given.headers);
    // Each delivery has one of its own.
    headers.remove("idempotency-key");
    RequestHead {
        method: given.method.clone(),
        path: given.path.find('?').map(|at| given.path[at..].to_owned()).unwrap_or_default(),
        params: given.params.iter().filter(|(name, _)| is_asked_for(name)).cloned().collect(),
        headers,
        trace: given.trace.clone(),
        soap: None,
    }
}
