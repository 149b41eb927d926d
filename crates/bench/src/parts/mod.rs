//! The parts of the ceiling, each measured alone: what one delivery costs at least, with its load generator and its receiver.
//!
//! Ceiling = cores / sum of the CPU seconds of the five parts. It must not know what the server makes of it.

pub mod bare_postgres;
mod bare_sqlite;
mod client;
mod http;
mod store;

use serde::{Deserialize, Serialize};

use crate::bench::Bench;
use crate::failure::Failure;

/// CPU microseconds a message, 1 KiB of body.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    pub load_generator_us: f64,
    pub http_server_us: f64,
    /// Stored, then settled as delivered with its attempt, fsync on, 256 a transaction.
    pub store_us: f64,
    /// hyper with a pool.
    pub http_client_us: f64,
    pub receiver_us: f64,
    /// Our own sender in place of the bare client; beside the ceiling, not in it.
    pub our_sender_us: f64,
    /// The life cycle in bare SQL, without our store; beside the ceiling, not in it.
    pub bare_sqlite_us: f64,
    /// Whole life cycles a second of the store.
    pub store_per_second: f64,
    /// Batched inserts a second of the store, what accepting is measured against.
    pub inserts_per_second: f64,
}

impl Parts {
    pub fn sum_us(&self) -> f64 {
        self.load_generator_us + self.http_server_us + self.store_us + self.http_client_us + self.receiver_us
    }

    /// Messages a second that this many cores could deliver at best.
    pub fn ceiling(&self, cores: usize) -> f64 {
        cores as f64 * 1e6 / self.sum_us()
    }

    /// The same with bare SQL in place of our store, so that a slow store cannot hide by lowering the ceiling.
    pub fn bare_ceiling(&self, cores: usize) -> f64 {
        cores as f64 * 1e6 / (self.sum_us() - self.store_us + self.bare_sqlite_us)
    }

    pub async fn measure(bench: &mut Bench) -> Result<Parts, Failure> {
        let http = http::measure(bench).await?;
        let client = client::measure(bench).await?;
        let store = store::measure(bench).await?;
        Ok(Parts {
            load_generator_us: http.load_generator_us,
            http_server_us: http.http_server_us,
            store_us: store.life_cycle_us,
            http_client_us: client.pooled_us,
            receiver_us: client.receiver_us,
            our_sender_us: client.our_sender_us,
            bare_sqlite_us: store.bare_us,
            store_per_second: store.life_cycles_per_second,
            inserts_per_second: store.inserts_per_second,
        })
    }
}
