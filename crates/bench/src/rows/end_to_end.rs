//! End to end: published over HTTP by 64 callers to 16 unordered connections, durable, delivered, the attempt recorded.

use std::time::Duration;

use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load::{self, Whole};
use crate::load::{CALLERS, Until};
use crate::million::unordered;
use crate::server::{names, publish_paths};

pub const FIGURES: &[Figure] = &[at_least("end to end, of the ceiling", Unit::Share, 0.35, 0.6)];
pub const CONNECTIONS: usize = 16;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let parts = bench.parts().await?;
    bench.progress.step("end_to_end");
    let stage = stage(bench).await?;
    let whole = whole(bench, &stage, CALLERS, bench.seconds(10, 3)).await?;
    let ceiling = parts.ceiling(bench.cores);
    Ok(Measured::Values {
        values: vec![whole.per_second() / ceiling],
        details: vec![
            detail("messages a second", whole.per_second()),
            detail("ceiling a second", ceiling),
            detail(
                "share of the ceiling with bare SQL, %",
                100.0 * whole.per_second() / parts.bare_ceiling(bench.cores),
            ),
            detail("accepted a second", whole.loaded.per_second()),
            detail("server CPU µs a message", whole.server_us()),
            detail("load generator CPU µs a message", whole.loaded.cpu_us()),
            detail("receiver CPU µs a message", whole.receiver_us()),
            detail("busy share of all cores, %", whole.busy(bench.cores) * 100.0),
        ],
    })
}

/// A server with the connections of this row, warmed up.
pub async fn stage(bench: &Bench) -> Result<Stage, Failure> {
    let stage = bench.stage().await?;
    for name in names("bench", CONNECTIONS) {
        stage.server.create_connection(&name, &bench.receiver.origin(), unordered()).await?;
    }
    whole(bench, &stage, CALLERS, Duration::from_secs(1)).await?;
    Ok(stage)
}

pub async fn whole(bench: &Bench, stage: &Stage, callers: usize, at_most: Duration) -> Result<Whole, Failure> {
    let paths = publish_paths(&names("bench", CONNECTIONS));
    full_load::run(bench, &stage.server, paths, callers, Until { messages: 5_000_000, at_most }).await
}
