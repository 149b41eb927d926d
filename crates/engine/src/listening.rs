//! The ports of MLLP channels: open while their channels are there and active, opened anew when a channel changes, and tried again when one could not be opened.
//!
//! It must not know how a message is framed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::{Connection, Door, MllpDoor};
use postrider_core::id::{ConnectionId, DeliveryId};
use postrider_core::log;
use postrider_core::message::{HeaderList, Message, Method, RequestHead};
use postrider_core::{Timestamp, Wait};
use postrider_store::Idempotency;
use postrider_wire::codec::hl7::{Disposition, acknowledge, check, has_control_ids};
use postrider_wire::receive::mllp::{MllpListener, Take};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::accepting::{self, Accepted};
use crate::engine::SendOptions;
use crate::refusal::Refusal;
use crate::shared::Shared;

/// How often a port that could not be opened is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// So many tries are a minute.
const TOLD_EVERY: u32 = 120;
const CONTENT_TYPE: &str = "application/hl7-v2";

/// The channels of this process whose ports are not open, each with why.
#[derive(Default)]
pub(crate) struct Ports(Mutex<BTreeMap<ConnectionId, String>>);

impl Ports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn shut(&self, id: ConnectionId) -> Option<String> {
        self.lock().get(&id).cloned()
    }
}

/// A port that is open, or could not be opened yet.
struct Port {
    door: Arc<MllpDoor>,
    /// Ends the listener. `None`: it is not open.
    stop: Option<watch::Sender<bool>>,
    /// Tries that came to nothing.
    failures: u32,
}

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut changes = shared.connections.changes();
    let mut ports: BTreeMap<ConnectionId, Port> = BTreeMap::new();
    loop {
        changes.mark_unchanged();
        let wanted = wanted(&shared);
        ports.retain(|id, port| wanted.get(id).is_some_and(|(_, door)| **door == *port.door));
        shared.ports.lock().retain(|id, _| ports.contains_key(id));
        for (id, (name, door)) in wanted {
            let port = ports.entry(id).or_insert_with(|| Port { door: Arc::clone(&door), stop: None, failures: 0 });
            if port.stop.is_none() {
                port.stop = open(&shared, id, &name, door, port.failures).await;
                port.failures = port.failures.saturating_add(1);
            }
        }
        let all_open = ports.values().all(|port| port.stop.is_some());
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RETRY), if !all_open => {}
        }
    }
}

/// The channels that should listen now.
fn wanted(shared: &Shared) -> BTreeMap<ConnectionId, (String, Arc<MllpDoor>)> {
    let all = shared.connections.all().into_iter().filter(|known| known.spec.is_active);
    all.filter_map(|known| match &known.spec.target.channel()?.door {
        Door::Mllp(door) => Some((known.id, (known.name.clone(), Arc::clone(door)))),
        Door::Http(_) | Door::Soap(..) => None,
    })
    .collect()
}

/// A port that was just closed for a change of settings may take a moment to be free: only what goes on failing is told, and then once a minute.
async fn open(
    shared: &Arc<Shared>,
    id: ConnectionId,
    name: &str,
    door: Arc<MllpDoor>,
    failures: u32,
) -> Option<watch::Sender<bool>> {
    let listen = door.listen;
    let take = Arc::new(Intake { shared: Arc::clone(shared), id, name: name.to_owned() });
    match MllpListener::open(door, take).await {
        Ok(listener) => {
            tracing::info!(event = log::CHANNEL_LISTENS, channel = name, address = %listen, "a channel listens");
            let (stop, stopped) = watch::channel(false);
            shared.spawn(listener.serve(stopped));
            shared.ports.lock().remove(&id);
            Some(stop)
        }
        Err(why) => {
            shared.ports.lock().insert(id, why.to_string());
            if failures % TOLD_EVERY == 1 {
                tracing::error!(event = log::CHANNEL_NOT_LISTENING, channel = name, address = %listen, why, "a channel cannot listen; it is tried again");
            }
            None
        }
    }
}

/// What comes in at one channel.
struct Intake {
    shared: Arc<Shared>,
    id: ConnectionId,
    name: String,
}

impl Intake {
    /// Under which delivery it is stored; of a repeat, under which it was.
    async fn stored(&self, channel: &Arc<Connection>, message: Bytes) -> Result<DeliveryId, Refusal> {
        let mut headers = HeaderList::default();
        // Both are constants.
        let _ = headers.push("content-type".to_owned(), CONTENT_TYPE.to_owned());
        let head = RequestHead { method: Method::POST, headers, ..RequestHead::default() };
        let idempotency = repeat_of(channel, &message, self.shared.now());
        let options = SendOptions { idempotency, ..SendOptions::default() };
        let accepted = accepting::accept(&self.shared, channel, Message { head, body: message }, options);
        match accepted.await {
            Ok(Accepted::Stored(receipt)) => Ok(receipt.msg_id),
            // It was stored, and what became of it is no longer in the log.
            Err(Refusal::OutcomeUnknown { msg_id }) => Ok(msg_id),
            // Its settings say that it is queued.
            Ok(Accepted::Ran(_)) => Err(Refusal::Stopping),
            Err(refusal) => Err(refusal),
        }
    }

    /// Of what is stored, number and time are the delivery's, so that a repeat gets the same bytes for an answer.
    fn acknowledged(&self, message: &[u8], disposition: Disposition<'_>, of: Option<DeliveryId>) -> Option<Bytes> {
        let shared = &self.shared;
        let (number, at) = match of {
            Some(id) => (id.as_u128(), Timestamp::from_millis(i64::try_from(id.as_u128() >> 80).unwrap_or_default())),
            None => (shared.dice.bits(), shared.now()),
        };
        // MSH-10 has room for 20 characters.
        let control_id = format!("PR{:016X}", number as u64);
        let time: String = at.to_string().chars().filter(char::is_ascii_digit).take(14).collect();
        acknowledge(message, disposition, &control_id, &time).map(Bytes::from)
    }
}

/// By what the store knows a repeat: all bytes, so that another message under a control id that came before is run as well.
fn repeat_of(channel: &Connection, message: &[u8], now: Timestamp) -> Option<Idempotency> {
    let Door::Mllp(door) = &channel.spec.target.channel()?.door else { return None };
    if door.duplicates_for == Wait::ZERO {
        return None;
    }
    let request_hash: [u8; 32] = Sha256::digest(message).into();
    let key = Sha256::new().chain_update(b"mllp").chain_update(channel.id.as_u128().to_be_bytes());
    let key_hash = key.chain_update(request_hash).finalize().into();
    Some(Idempotency { key_hash, request_hash, ends_at: now + door.duplicates_for })
}

#[async_trait]
impl Take for Intake {
    async fn take(&self, message: Bytes, peer: SocketAddr) -> Option<Bytes> {
        if let Err(error) = check(&message) {
            self.told(peer, &format!("what came is no HL7: {error}"));
            return self.acknowledged(&message, Disposition::Unfit("this is no HL7 version 2"), None);
        }
        // Nobody could tell which message an acknowledgment without it is about.
        if !has_control_ids(&message) {
            return self.acknowledged(&message, Disposition::Unfit("the message control id (MSH-10) is missing"), None);
        }
        let Some(channel) = self.shared.connections.get(self.id) else {
            return self.acknowledged(&message, Disposition::NotNow("this channel is gone"), None);
        };
        match self.stored(&channel, message.clone()).await {
            Ok(id) => self.acknowledged(&message, Disposition::Taken, Some(id)),
            Err(refusal @ (Refusal::TooLarge { .. } | Refusal::Invalid(_))) => {
                self.acknowledged(&message, Disposition::Unfit(&refusal.to_string()), None)
            }
            Err(Refusal::Full { limit }) => {
                let why = format!("nothing can be taken now: the limit {limit} is reached");
                self.acknowledged(&message, Disposition::NotNow(&why), None)
            }
            // The words of a store are for the log, which has them.
            Err(_) => self.acknowledged(&message, Disposition::NotNow("nothing can be taken now: send it again"), None),
        }
    }

    fn refuse(&self, why: &str) -> Bytes {
        self.acknowledged(b"", Disposition::Unfit(why), None).unwrap_or_default()
    }

    fn told(&self, peer: SocketAddr, why: &str) {
        tracing::warn!(event = log::CHANNEL_CONNECTION, channel = self.name, %peer, why, "a connection to a channel was refused or ended badly");
    }
}
