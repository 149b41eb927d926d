//! What a server with 10,000 connections costs while nothing is due.

use std::time::{Duration, Instant};

use super::many_connections::with_connections;
use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::process;

pub const FIGURES: &[Figure] = &[at_most("idle CPU with 10,000 connections, of a core", Unit::Share, 0.005, 0.001)];
/// After the connections were made, what they left to do is done.
const SETTLE: Duration = Duration::from_secs(3);

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let connections = bench.number(10_000, 1_000);
    let Stage { data: _data, server } = with_connections(bench, connections).await?;
    bench.progress.step("idle");
    tokio::time::sleep(SETTLE).await;
    let (began_at, before) = (Instant::now(), process::cpu_of_threads(server.pid)?);
    tokio::time::sleep(bench.seconds(20, 5)).await;
    let spent = process::cpu_of_threads(server.pid)?.saturating_sub(before);
    Ok(Measured::Values {
        values: vec![spent.as_secs_f64() / began_at.elapsed().as_secs_f64()],
        details: vec![
            detail("CPU ms a second", spent.as_secs_f64() * 1e3 / began_at.elapsed().as_secs_f64()),
            detail("resident memory, MiB", process::resident_kib(server.pid)? as f64 / 1024.0),
        ],
    })
}
