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
use postrider_core::id::ConnectionId;
use postrider_core::log;
use postrider_core::message::{HeaderList, Message, Method, RequestHead};
use postrider_wire::codec::hl7::{Disposition, acknowledge, check};
use postrider_wire::receive::mllp::{MllpListener, Take};
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
    async fn stored(&self, channel: &Arc<Connection>, message: Bytes) -> Result<(), Refusal> {
        let mut headers = HeaderList::default();
        // Both are constants.
        let _ = headers.push("content-type".to_owned(), CONTENT_TYPE.to_owned());
        let head = RequestHead { method: Method::POST, headers, ..RequestHead::default() };
        let accepted =
            accepting::accept(&self.shared, channel, Message { head, body: message }, SendOptions::default());
        match accepted.await? {
            Accepted::Stored(_) => Ok(()),
            // Its settings say that it is queued.
            Accepted::Ran(_) => Err(Refusal::Stopping),
        }
    }

    fn acknowledged(&self, message: &[u8], disposition: Disposition<'_>) -> Option<Bytes> {
        let shared = &self.shared;
        // MSH-10 has room for 20 characters.
        let control_id = format!("PR{:016X}", shared.dice.bits() as u64);
        let time: String = shared.now().to_string().chars().filter(char::is_ascii_digit).take(14).collect();
        acknowledge(message, disposition, &control_id, &time).map(Bytes::from)
    }
}

#[async_trait]
impl Take for Intake {
    async fn take(&self, message: Bytes, peer: SocketAddr) -> Option<Bytes> {
        if let Err(error) = check(&message) {
            self.told(peer, &format!("what came is no HL7: {error}"));
            return self.acknowledged(&message, Disposition::Unfit("this is no HL7 version 2"));
        }
        let Some(channel) = self.shared.connections.get(self.id) else {
            return self.acknowledged(&message, Disposition::NotNow("this channel is gone"));
        };
        match self.stored(&channel, message.clone()).await {
            Ok(()) => self.acknowledged(&message, Disposition::Taken),
            Err(refusal @ (Refusal::TooLarge { .. } | Refusal::Invalid(_))) => {
                self.acknowledged(&message, Disposition::Unfit(&refusal.to_string()))
            }
            Err(Refusal::Full { limit }) => {
                let why = format!("nothing can be taken now: the limit {limit} is reached");
                self.acknowledged(&message, Disposition::NotNow(&why))
            }
            // The words of a store are for the log, which has them.
            Err(_) => self.acknowledged(&message, Disposition::NotNow("nothing can be taken now: send it again")),
        }
    }

    fn refuse(&self, why: &str) -> Bytes {
        self.acknowledged(b"", Disposition::Unfit(why)).unwrap_or_default()
    }

    fn told(&self, peer: SocketAddr, why: &str) {
        tracing::warn!(event = log::CHANNEL_CONNECTION, channel = self.name, %peer, why, "a connection to a channel was refused or ended badly");
    }
}
