//! The remote systems: each goes through phases of health and trouble, and remembers what reached it.
//!
//! The oracle looks at every send before it happens. This module must not know what the engine makes of a reply.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::id::{ConnectionId, DeliveryId};
use postrider_core::{Answer, NoAnswerKind, Reply, Timestamp};
use postrider_engine::Clock;
use postrider_wire::{Outgoing, Sender};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::clock::SimClock;
use crate::oracle::Oracle;

/// How a remote system behaves for a while.
#[derive(Clone, Copy, Debug)]
enum Behaviour {
    Healthy,
    Slow,
    Hangs,
    Refuses,
    ResetsBeforeReceipt,
    ResetsAfterReceipt,
    Answers(u16),
    Garbage,
    /// Fails this many of a hundred.
    Flaky(u32),
}

/// One request that reached a remote system.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub at: Timestamp,
    pub connection: ConnectionId,
    pub delivery: DeliveryId,
    pub attempt: u32,
    pub body: Bytes,
}

#[derive(Default)]
struct Seen {
    receipts: Vec<Receipt>,
    phases: BTreeMap<ConnectionId, (u64, Behaviour)>,
}

pub struct Network {
    clock: Arc<SimClock>,
    oracle: Arc<Oracle>,
    rng: Mutex<StdRng>,
    seen: Mutex<Seen>,
    healed: Mutex<bool>,
}

impl Network {
    pub fn new(seed: u64, clock: Arc<SimClock>, oracle: Arc<Oracle>) -> Self {
        Network {
            clock,
            oracle,
            rng: Mutex::new(StdRng::seed_from_u64(seed ^ 0x4E45_5457)),
            seen: Mutex::default(),
            healed: Mutex::new(false),
        }
    }

    /// From now on every remote system is healthy.
    pub fn heal(&self) {
        *self.healed.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    pub fn receipts(&self) -> Vec<Receipt> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).receipts.clone()
    }

    fn roll(&self, below: u32) -> u32 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..below.max(1))
    }

    /// Phases last 1 to 40 virtual seconds.
    fn behaviour(&self, connection: ConnectionId) -> Behaviour {
        if *self.healed.lock().unwrap_or_else(PoisonError::into_inner) {
            return Behaviour::Healthy;
        }
        let now = self.clock.monotonic().as_millis();
        let known = self.seen.lock().unwrap_or_else(PoisonError::into_inner).phases.get(&connection).copied();
        if let Some((until, behaviour)) = known
            && now < until
        {
            return behaviour;
        }
        let behaviour = match self.roll(13) {
            0..=3 => Behaviour::Healthy,
            4 => Behaviour::Slow,
            5 => Behaviour::Hangs,
            6 => Behaviour::Refuses,
            7 => Behaviour::ResetsBeforeReceipt,
            8 => Behaviour::ResetsAfterReceipt,
            9 => Behaviour::Answers([429, 500, 503, 404, 302, 410][self.roll(6) as usize]),
            10 => Behaviour::Garbage,
            _ => Behaviour::Flaky(10 + self.roll(80)),
        };
        let until = now + 1_000 + u64::from(self.roll(40_000));
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).phases.insert(connection, (until, behaviour));
        behaviour
    }

    fn receive(&self, outgoing: &Outgoing) {
        let receipt = Receipt {
            at: self.clock.now(),
            connection: outgoing.connection.id,
            delivery: outgoing.delivery_id,
            attempt: outgoing.attempt,
            body: outgoing.body.clone(),
        };
        let (connection, id, attempt) = (receipt.connection, receipt.delivery, receipt.attempt);
        self.oracle.note(format!("{} {connection} {id} attempt {attempt} received {:?}", receipt.at, receipt.body));
        self.oracle.saw_received(receipt.connection, receipt.delivery);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).receipts.push(receipt);
    }

    fn answer(&self, outgoing: &Outgoing, status: u16) -> Reply {
        if (200..300).contains(&status) {
            self.oracle.saw_answered_ok(outgoing.delivery_id);
        }
        let mut answer = Answer { status: Some(status), body: Bytes::from_static(b"seen"), ..Answer::default() };
        if status == 429 {
            let wait = [0, 1, 3, 30][self.roll(4) as usize];
            let pushed = answer.headers.push("Retry-After".to_owned(), wait.to_string());
            debug_assert!(pushed.is_ok());
        }
        Reply::Answered(answer)
    }
}

#[async_trait]
impl Sender for Network {
    async fn send(&self, outgoing: Outgoing) -> Reply {
        self.oracle.before_send(&outgoing, self.clock.now()).await;
        let timeout = outgoing.timeout.as_duration();
        let latency = Duration::from_millis(u64::from(1 + self.roll(30)));
        match self.behaviour(outgoing.connection.id) {
            Behaviour::Refuses => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                Reply::unanswered(NoAnswerKind::Unreachable, "connection refused")
            }
            Behaviour::ResetsBeforeReceipt => {
                tokio::time::sleep(latency).await;
                Reply::unanswered(NoAnswerKind::Unreachable, "connection reset")
            }
            Behaviour::ResetsAfterReceipt => {
                self.receive(&outgoing);
                tokio::time::sleep(latency).await;
                Reply::unanswered(NoAnswerKind::Unreachable, "connection closed before an answer")
            }
            Behaviour::Garbage => {
                self.receive(&outgoing);
                tokio::time::sleep(latency).await;
                Reply::unanswered(NoAnswerKind::Unreachable, "the answer is not HTTP")
            }
            Behaviour::Hangs => {
                self.receive(&outgoing);
                tokio::time::sleep(timeout).await;
                Reply::unanswered(NoAnswerKind::Timeout, "no answer in time")
            }
            Behaviour::Slow => {
                self.receive(&outgoing);
                let wait = Duration::from_millis(u64::from(200 + self.roll(3_000)));
                if wait >= timeout {
                    tokio::time::sleep(timeout).await;
                    return Reply::unanswered(NoAnswerKind::Timeout, "no answer in time");
                }
                tokio::time::sleep(wait).await;
                self.answer(&outgoing, 200)
            }
            Behaviour::Answers(status) => {
                self.receive(&outgoing);
                tokio::time::sleep(latency).await;
                self.answer(&outgoing, status)
            }
            Behaviour::Flaky(percent) => {
                self.receive(&outgoing);
                tokio::time::sleep(latency).await;
                let status = if self.roll(100) < percent { 500 } else { 200 };
                self.answer(&outgoing, status)
            }
            Behaviour::Healthy => {
                self.receive(&outgoing);
                tokio::time::sleep(latency).await;
                self.answer(&outgoing, 200)
            }
        }
    }

    async fn may_reach(&self, _: &Arc<Connection>) -> Result<(), String> {
        Ok(())
    }

    fn forget(&self, _connection: ConnectionId) {}
}
