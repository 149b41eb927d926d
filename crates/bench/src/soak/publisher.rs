//! Publishes at a fixed rate and keeps the books of what was accepted, message by message.
//!
//! An answer that is no success, or none at all, is counted, and the next message goes out. It must not know what the remotes do.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Uri};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::lane::Lane;
use crate::load::{TURNS, due};
use crate::messages;
use crate::peer::Peer;

/// Sent later than this after its time, a message counts as late.
const LATE: Duration = Duration::from_secs(1);
/// Before a caller connects again.
const PAUSE: Duration = Duration::from_millis(100);

const ACCEPTED: u8 = 1;

/// Where each message goes: number n to place n modulo their number.
pub struct Route {
    pub connections: Vec<usize>,
    pub paths: Vec<Uri>,
    /// By connection: the ids of its messages are kept.
    pub keeps_ids: Vec<bool>,
}

impl Route {
    pub fn connection_of(&self, number: u64) -> usize {
        self.connections[usize::try_from(number).unwrap_or(0) % self.connections.len()]
    }
}

pub struct Sent {
    states: Vec<AtomicU8>,
    pub accepted: AtomicU64,
    /// Answered, and not with a success.
    pub refused: AtomicU64,
    /// Not answered: whether it was accepted is not known.
    pub unanswered: AtomicU64,
    pub late: AtomicU64,
    ids: Mutex<HashMap<String, u64>>,
}

impl Sent {
    pub fn new(messages: usize) -> Sent {
        Sent {
            states: std::iter::repeat_with(|| AtomicU8::new(0)).take(messages).collect(),
            accepted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unanswered: AtomicU64::new(0),
            late: AtomicU64::new(0),
            ids: Mutex::new(HashMap::new()),
        }
    }

    /// Numbers of the messages accepted.
    pub fn accepted_numbers(&self) -> impl Iterator<Item = u64> {
        let states = self.states.iter().enumerate();
        states.filter(|(_, state)| state.load(Ordering::Relaxed) == ACCEPTED).map(|(number, _)| number as u64)
    }

    /// Ids, where they are kept, and the numbers of their messages.
    pub fn ids(&self) -> HashMap<String, u64> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn accept(&self, number: u64, id: Option<String>) {
        if let Some(state) = self.states.get(usize::try_from(number).unwrap_or(usize::MAX)) {
            state.store(ACCEPTED, Ordering::Relaxed);
        }
        if let Some(id) = id {
            self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id, number);
        }
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }
}

/// Publishes `messages` at the rate by callers who take turns.
pub async fn publish(
    lane: &Lane,
    address: SocketAddr,
    route: Arc<Route>,
    (messages, per_second): (u64, u64),
    sent: Arc<Sent>,
) -> Result<(), Failure> {
    lane.on(async move {
        let began_at = Instant::now() + Duration::from_millis(100);
        let mut callers = JoinSet::new();
        for turn in 0..TURNS {
            let (route, sent) = (route.clone(), sent.clone());
            callers.spawn(async move {
                let mut peer = None;
                for number in (turn..messages).step_by(TURNS as usize) {
                    let due_at = due(began_at, number, per_second).await;
                    if due_at.elapsed() > LATE {
                        sent.late.fetch_add(1, Ordering::Relaxed);
                    }
                    if let Err(_lost) = one(&mut peer, address, &route, number, &sent).await {
                        sent.unanswered.fetch_add(1, Ordering::Relaxed);
                        peer = None;
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.map_err(|error| Failure::new(error.to_string()))?;
        }
        Ok(())
    })
    .await
}

async fn one(
    place: &mut Option<Peer>,
    address: SocketAddr,
    route: &Route,
    number: u64,
    sent: &Sent,
) -> Result<(), Failure> {
    let peer = match place {
        Some(peer) => peer,
        None => place.insert(Peer::connect(address).await?),
    };
    let connection = route.connection_of(number);
    let (path, body) = (&route.paths[connection], messages::publish(number));
    let (status, id) = if route.keeps_ids[connection] {
        let (status, answer) = peer.call(Method::POST, path, body).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        (status, answer["msg_id"].as_str().map(str::to_owned))
    } else {
        (peer.post(path, "application/json", body).await?, None)
    };
    if status.is_success() {
        sent.accept(number, id);
    } else {
        sent.refused.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
