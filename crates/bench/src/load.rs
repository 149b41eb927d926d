//! The load generator: callers that publish as fast as they are answered, or at a fixed rate whatever the answers do.
//!
//! Runs on a lane of its own. It must not know what is behind the address that it calls.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Uri;
use tokio::task::JoinSet;

use crate::failure::Failure;
use crate::lane::Lane;
use crate::messages;
use crate::peer::Peer;

/// Callers of a closed loop: each sends its next request when the last one was answered.
pub const CALLERS: usize = 64;
/// Callers that never leave the store without work: with fewer of them a commit holds what those few have brought.
pub const FULL_LOAD_CALLERS: usize = 256;
/// After so many refusals in a row of one caller there is no point in going on.
const REFUSALS_MAX: u32 = 100;

/// When a closed loop ends: after so many messages or after so long, whichever comes first.
#[derive(Clone, Copy)]
pub struct Until {
    pub messages: u64,
    pub at_most: Duration,
}

#[derive(Clone)]
pub struct Plan {
    pub address: SocketAddr,
    /// Message n goes to path n modulo their number.
    pub paths: Arc<[Uri]>,
    pub content_type: &'static str,
    /// Makes the request body of message n.
    pub request: fn(u64) -> Bytes,
    pub callers: usize,
    pub until: Until,
}

impl Plan {
    /// Single messages by `CALLERS` callers.
    pub fn publish(address: SocketAddr, paths: Arc<[Uri]>, until: Until) -> Plan {
        Plan { address, paths, content_type: "application/json", request: messages::publish, callers: CALLERS, until }
    }
}

#[derive(Debug)]
pub struct Loaded {
    /// Requests answered with 2xx.
    pub accepted: u64,
    pub began_at: Instant,
    pub took: Duration,
    /// CPU time of the generator.
    pub cpu: Duration,
}

impl Loaded {
    pub fn per_second(&self) -> f64 {
        self.accepted as f64 / self.took.as_secs_f64()
    }

    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.accepted.max(1) as f64
    }
}

/// Counts of a load under way.
#[derive(Default)]
pub struct Meter {
    pub accepted: AtomicU64,
    next: AtomicU64,
}

/// Runs a closed loop. Connections are opened before the clock starts.
///
/// # Errors
/// A connection that breaks, or a server that refuses again and again: a benchmark of refusals is none.
pub async fn closed_loop(lane: &Lane, plan: Plan, meter: Arc<Meter>) -> Result<Loaded, Failure> {
    let address = plan.address;
    let callers = plan.callers;
    let peers = lane
        .on(async move {
            let mut peers = Vec::with_capacity(callers);
            for _ in 0..callers {
                peers.push(Peer::connect(address).await?);
            }
            Ok::<_, Failure>(peers)
        })
        .await?;
    let cpu_before = lane.cpu().await;
    let began_at = Instant::now();
    let stop_at = began_at + plan.until.at_most;
    let result = lane
        .on({
            let meter = meter.clone();
            async move {
                let mut callers = JoinSet::new();
                for peer in peers {
                    callers.spawn(caller(peer, plan.clone(), meter.clone(), stop_at));
                }
                while let Some(ended) = callers.join_next().await {
                    ended.map_err(|error| Failure::new(error.to_string()))??;
                }
                Ok::<_, Failure>(Instant::now())
            }
        })
        .await?;
    let cpu = lane.cpu().await.saturating_sub(cpu_before);
    let accepted = meter.accepted.load(Ordering::Relaxed);
    Ok(Loaded { accepted, began_at, took: result.duration_since(began_at), cpu })
}

async fn caller(mut peer: Peer, plan: Plan, meter: Arc<Meter>, stop_at: Instant) -> Result<(), Failure> {
    while Instant::now() < stop_at {
        let number = meter.next.fetch_add(1, Ordering::Relaxed);
        if number >= plan.until.messages {
            break;
        }
        let path = &plan.paths[usize::try_from(number).unwrap_or(0) % plan.paths.len()];
        let mut refusals = 0;
        // The same message again, so that numbers have no gaps.
        loop {
            let status = peer.post(path, plan.content_type, (plan.request)(number)).await?;
            if status.is_success() {
                break;
            }
            refusals += 1;
            if refusals > REFUSALS_MAX || status.is_client_error() {
                return Err(Failure::new(format!("{path} answered {status}")));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        meter.accepted.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Callers of an open loop, who take turns.
pub const TURNS: u64 = 64;

/// A fixed rate, kept by many callers taking turns, so that a slow answer delays no later message.
#[derive(Clone)]
pub struct Rate {
    pub address: SocketAddr,
    pub path: Uri,
    pub request: fn(u64) -> Bytes,
    pub per_second: u64,
    pub messages: u64,
}

/// Waits until message `number` is due, and returns when it counts as sent: a message that is late counts from the time at which it ought
/// to have gone.
pub async fn due(began_at: Instant, number: u64, per_second: u64) -> Instant {
    let due_at = began_at + Duration::from_nanos(number * 1_000_000_000 / per_second);
    if Instant::now() > due_at {
        return due_at;
    }
    tokio::time::sleep_until(due_at.into()).await;
    Instant::now()
}

/// Sends at the rate and returns when each message was sent, by its number.
///
/// A message whose caller was still busy counts from the time at which it ought to have gone, so that a stall shows in full.
pub async fn open_loop(lane: &Lane, rate: Rate) -> Result<Vec<Option<Instant>>, Failure> {
    lane.on(async move {
        let began_at = Instant::now() + Duration::from_millis(100);
        let mut callers = JoinSet::new();
        for turn in 0..TURNS {
            let rate = rate.clone();
            callers.spawn(async move {
                let mut peer = Peer::connect(rate.address).await?;
                let mut sent = Vec::new();
                for number in (turn..rate.messages).step_by(TURNS as usize) {
                    let sent_at = due(began_at, number, rate.per_second).await;
                    let status = peer.post(&rate.path, "application/json", (rate.request)(number)).await?;
                    if !status.is_success() {
                        return Err(Failure::new(format!("{} answered {status}", rate.path)));
                    }
                    sent.push((number, sent_at));
                }
                Ok(sent)
            });
        }
        let mut times = vec![None; usize::try_from(rate.messages).unwrap_or(0)];
        while let Some(ended) = callers.join_next().await {
            for (number, sent_at) in ended.map_err(|error| Failure::new(error.to_string()))?? {
                times[usize::try_from(number).unwrap_or(0)] = Some(sent_at);
            }
        }
        Ok(times)
    })
    .await
}
