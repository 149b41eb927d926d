//! A healthy connection beside one with a million waiting whose remote system is dead, or hangs: its p99 against its p99 alone.

use serde_json::json;

use super::latency::percentiles;
use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::load::Rate;
use crate::messages;
use crate::million;
use crate::receiver::Receiver;
use crate::server::{Server, of, uri};

pub const FIGURES: &[Figure] = &[
    at_most("p99 of a healthy connection beside a dead one with 1,000,000 waiting", Unit::Times, 2.0, 1.2),
    at_most("p99 of a healthy connection beside a hanging one with 1,000,000 waiting", Unit::Times, 2.0, 1.2),
];
const PER_SECOND: u64 = 200;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let waiting = bench.number(1_000_000, 100_000);
    let Stage { data: _data, server } = bench.stage().await?;
    let hanging = Receiver::start("hanging receiver", http::StatusCode::OK, "").await?;
    hanging.hang(true);
    server.create_connection("healthy", &bench.receiver.origin(), json!({"ordered": false})).await?;
    bench.progress.step("neighbour: alone");
    let before = healthy(bench, &server).await?;

    // A ladder, so that what fails waits for its next attempt and stays in the queue. Its remote is dead: nothing listens on the port.
    let ladder = json!({"retry_preset": "webhook", "timeout_seconds": 30});
    server.create_connection("dead", &closed_origin().await?, ladder.clone()).await?;
    server.pause("dead").await?;
    bench.progress.step(format!("neighbour: loading {waiting}"));
    million::fill(bench, &server, "dead", waiting).await?;
    server.resume("dead").await?;
    bench.progress.step("neighbour: beside a dead one");
    let (dead_p50, dead_p99) = healthy(bench, &server).await?;
    server.pause("dead").await?;

    server.create_connection("hanging", &hanging.origin(), ladder).await?;
    server.pause("hanging").await?;
    bench.progress.step(format!("neighbour: loading {waiting}"));
    million::fill(bench, &server, "hanging", waiting).await?;
    server.resume("hanging").await?;
    bench.progress.step("neighbour: beside a hanging one");
    let (hanging_p50, hanging_p99) = healthy(bench, &server).await?;
    server.pause("hanging").await?;
    drop(hanging);
    bench.progress.step("neighbour: alone again");
    let after = healthy(bench, &server).await?;
    // The quieter of the two, so that noise of the machine while it is alone flatters nothing.
    let (alone_p50, alone_p99) = if before.1 <= after.1 { before } else { after };
    // Killed rather than stopped: attempts that hang would be waited for.
    server.kill_nine().await?;
    Ok(Measured::Values {
        values: vec![dead_p99 / alone_p99, hanging_p99 / alone_p99],
        details: vec![
            detail("alone p50, ms", alone_p50),
            detail("alone p99, ms", alone_p99),
            detail("alone before, p99, ms", before.1),
            detail("alone after, p99, ms", after.1),
            detail("beside dead p50, ms", dead_p50),
            detail("beside dead p99, ms", dead_p99),
            detail("beside hanging p50, ms", hanging_p50),
            detail("beside hanging p99, ms", hanging_p99),
        ],
    })
}

async fn healthy(bench: &Bench, server: &Server) -> Result<(f64, f64), Failure> {
    let rate = Rate {
        address: server.address,
        path: uri(&of("healthy", "publish")),
        request: messages::publish,
        per_second: PER_SECOND,
        messages: PER_SECOND * bench.number(20, 5),
    };
    percentiles(bench, rate).await
}

/// An address on which nothing listens.
async fn closed_origin() -> Result<String, Failure> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    Ok(format!("http://{}", listener.local_addr()?))
}
