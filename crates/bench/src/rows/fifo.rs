//! One FIFO connection with a full queue, against a bare client that sends one request after the other to the same receiver.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load;
use crate::messages;
use crate::million;
use crate::peer::Peer;
use crate::server::uri;

pub const FIGURES: &[Figure] = &[at_least("one FIFO connection, of a bare sequential client", Unit::Share, 0.7, 0.9)];
const CONNECTION: &str = "fifo";

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let bare = sequential(bench, bench.seconds(3, 1)).await?;
    let messages = bench.number(60_000, 15_000);
    bench.progress.step("fifo: loading");
    let Stage { data: _data, server } = bench.stage().await?;
    server.create_connection(CONNECTION, &bench.receiver.origin(), json!({"ordered": true})).await?;
    server.pause(CONNECTION).await?;
    million::fill(bench, &server, CONNECTION, messages).await?;
    bench.progress.step("fifo: delivering");
    let book = bench.receiver.open_book(usize::try_from(messages).unwrap_or(usize::MAX));
    server.resume(CONNECTION).await?;
    full_load::drained(bench, &server, &book, messages).await?;
    let (Some(first), Some(last)) = (book.first_at(), book.last_at()) else {
        return Err(Failure::new("nothing was received"));
    };
    let rate = (messages - 1) as f64 / last.duration_since(first).as_secs_f64();
    Ok(Measured::Values {
        values: vec![rate / bare],
        details: vec![detail("messages a second", rate), detail("bare client, messages a second", bare)],
    })
}

/// Requests a second of one keep-alive connection, each sent when the last one was answered.
async fn sequential(bench: &mut Bench, at_most: Duration) -> Result<f64, Failure> {
    bench.progress.step("fifo: bare sequential client");
    let address = bench.receiver.address;
    bench.receiver.open_book(0);
    bench
        .generator
        .on(async move {
            let path = uri("/in");
            let mut peer = Peer::connect(address).await?;
            let began_at = Instant::now();
            let mut sent = 0u64;
            while began_at.elapsed() < at_most {
                peer.post(&path, "application/json", messages::body(sent)).await?;
                sent += 1;
            }
            Ok(sent as f64 / began_at.elapsed().as_secs_f64())
        })
        .await
}
