//! The whole way at full load: published over HTTP, stored, delivered, the attempt recorded. Several rows stand on it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use http::Uri;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::load::{Loaded, Meter, Plan, Until, closed_loop};
use crate::process;
use crate::progress::EVERY;
use crate::receiver::Book;
use crate::server::Server;

/// Without any receipt for this long, the rest will not come.
const STALL_MAX: Duration = Duration::from_secs(30);
/// Numbers that one load may use; more than any machine publishes in its time.
const MESSAGES_MAX: usize = 20_000_000;

pub struct Whole {
    pub loaded: Loaded,
    /// From the first request to the last recorded attempt.
    pub took: Duration,
    pub server_cpu: Duration,
    pub receiver_cpu: Duration,
}

impl Whole {
    pub fn per_second(&self) -> f64 {
        self.loaded.accepted as f64 / self.took.as_secs_f64()
    }

    fn each_us(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() * 1e6 / self.loaded.accepted.max(1) as f64
    }

    pub fn server_us(&self) -> f64 {
        self.each_us(self.server_cpu)
    }

    pub fn receiver_us(&self) -> f64 {
        self.each_us(self.receiver_cpu)
    }

    /// Share of the machine that the three programs kept busy together.
    pub fn busy(&self, cores: usize) -> f64 {
        let all = self.loaded.cpu + self.server_cpu + self.receiver_cpu;
        all.as_secs_f64() / self.took.as_secs_f64() / cores as f64
    }
}

/// Publishes until `until` and waits until everything accepted was received and nothing waits or is under way.
pub async fn run(
    bench: &Bench,
    server: &Server,
    paths: Arc<[Uri]>,
    callers: usize,
    until: Until,
) -> Result<Whole, Failure> {
    let messages = usize::try_from(until.messages).unwrap_or(usize::MAX).min(MESSAGES_MAX);
    let book = bench.receiver.open_book(messages);
    let (server_before, receiver_before) = (process::cpu(server.pid)?, bench.receiver.cpu().await);
    let until = Until { messages: messages as u64, ..until };
    let plan = Plan { callers, ..Plan::publish(server.address, paths, until) };
    let loaded = publish(bench, plan, &book).await?;
    let drained_at = drained(bench, server, &book, loaded.accepted).await?;
    for end in ["FAILED", "DLQ"] {
        if server.has_any(end).await? {
            return Err(Failure::new(format!("there are deliveries that ended as {end}, without any fault")));
        }
    }
    if book.again() > 0 {
        return Err(Failure::new(format!("{} messages were received twice without any fault", book.again())));
    }
    Ok(Whole {
        took: drained_at.duration_since(loaded.began_at),
        server_cpu: process::cpu(server.pid)?.saturating_sub(server_before),
        receiver_cpu: bench.receiver.cpu().await.saturating_sub(receiver_before),
        loaded,
    })
}

/// A closed loop with its progress shown.
pub async fn publish(bench: &Bench, plan: Plan, book: &Book) -> Result<Loaded, Failure> {
    let meter = Arc::new(Meter::default());
    let mut work = std::pin::pin!(closed_loop(&bench.generator, plan, meter.clone()));
    loop {
        tokio::select! {
            biased;
            loaded = &mut work => return loaded,
            () = tokio::time::sleep(EVERY) => {
                let (accepted, received) = (meter.accepted.load(Ordering::Relaxed), book.distinct());
                bench.progress.at(&format!("{accepted} requests accepted, {received} messages received"));
            }
        }
    }
}

/// Waits for all receipts and then for the store; returns when that was.
pub async fn drained(bench: &Bench, server: &Server, book: &Book, messages: u64) -> Result<Instant, Failure> {
    received(bench, book, messages).await?;
    let received_at = Instant::now();
    while !server.is_drained().await? {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if received_at.elapsed() > STALL_MAX {
            return Err(Failure::new("everything was received, and something still waits in the server"));
        }
    }
    Ok(Instant::now())
}

/// Waits until so many different messages have come.
pub async fn received(bench: &Bench, book: &Book, messages: u64) -> Result<(), Failure> {
    let (mut seen, mut seen_at) = (book.distinct(), Instant::now());
    while book.distinct() < messages {
        tokio::time::sleep(Duration::from_millis(2)).await;
        if book.distinct() > seen {
            (seen, seen_at) = (book.distinct(), Instant::now());
            bench.progress.at(&format!("{seen} of {messages} received"));
        } else if seen_at.elapsed() > STALL_MAX {
            return Err(Failure::new(format!("only {seen} of {messages} messages were received")));
        }
    }
    Ok(())
}
