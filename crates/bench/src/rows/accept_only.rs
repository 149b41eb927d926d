//! Accept only: a durable acknowledgment for each message, nothing delivered, since the connections are paused.
//!
//! Measured at full load. With few callers a commit holds only what those few have brought, and the cores idle while it is synced;
//! that figure is given beside it.

use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load;
use crate::load::{CALLERS, FULL_LOAD_CALLERS, Loaded, Plan, Until};
use crate::million::unordered;
use crate::process;
use crate::server::{names, publish_paths};

pub const FIGURES: &[Figure] = &[at_least("accept only, of the store's batched inserts", Unit::Share, 0.3, 0.5)];
const CONNECTIONS: usize = 16;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let parts = bench.parts().await?;
    bench.progress.step("accept_only");
    let Stage { data: _data, server } = stage(bench).await?;
    let paths = publish_paths(&names("bench", CONNECTIONS));
    let plan = |callers, at_most| Plan {
        callers,
        ..Plan::publish(server.address, paths.clone(), Until { messages: u64::MAX, at_most })
    };
    let book = bench.receiver.open_book(0);
    full_load::publish(bench, plan(CALLERS, bench.seconds(1, 1)), &book).await?;
    let few = full_load::publish(bench, plan(CALLERS, bench.seconds(4, 2)), &book).await?;
    let before = process::cpu(server.pid)?;
    let loaded = full_load::publish(bench, plan(FULL_LOAD_CALLERS, bench.seconds(8, 3)), &book).await?;
    let spent = process::cpu(server.pid)?.saturating_sub(before);
    let mut measured = values(&loaded, 1, spent, parts.inserts_per_second);
    if let Measured::Values { details, .. } = &mut measured {
        details.push(detail("callers", FULL_LOAD_CALLERS as f64));
        details.push(detail("accepted a second from 64 callers", few.per_second()));
        details.push(detail("share from 64 callers, %", few.per_second() / parts.inserts_per_second * 100.0));
    }
    Ok(measured)
}

pub async fn stage(bench: &Bench) -> Result<Stage, Failure> {
    let stage = bench.stage().await?;
    for name in names("bench", CONNECTIONS) {
        stage.server.create_connection(&name, &bench.receiver.origin(), unordered()).await?;
        stage.server.pause(&name).await?;
    }
    Ok(stage)
}

/// The figures of a load of which each request carries so many messages.
pub fn values(loaded: &Loaded, each: u64, server_cpu: std::time::Duration, inserts_per_second: f64) -> Measured {
    let rate = loaded.per_second() * each as f64;
    let messages = (loaded.accepted * each).max(1) as f64;
    Measured::Values {
        values: vec![rate / inserts_per_second],
        details: vec![
            detail("accepted a second", rate),
            detail("store inserts a second", inserts_per_second),
            detail("server CPU µs a message", server_cpu.as_secs_f64() * 1e6 / messages),
            detail("load generator CPU µs a message", loaded.cpu.as_secs_f64() * 1e6 / messages),
        ],
    }
}
