//! From the start of the process until the first delivery is received, after kill -9 with a million messages waiting.

use std::time::{Duration, Instant};

use super::{Measured, detail};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::million::{self, CONNECTION};
use crate::process;
use crate::server::Server;

pub const FIGURES: &[Figure] =
    &[at_most("start with 1,000,000 waiting after kill -9, to the first delivery", Unit::Seconds, 2.0, 0.5)];
const FIRST_AT_MOST: Duration = Duration::from_secs(60);

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    million::prepare(bench).await?;
    bench.progress.step("start_million");
    let million = bench.million.as_ref().ok_or_else(|| Failure::new("the million is gone"))?;
    let messages = usize::try_from(million.messages).unwrap_or(usize::MAX);

    // Under way when it is killed: requests hang at the receiver, so that something has to be taken up again.
    let server = Server::start(&bench.binary, million.data.path()).await?;
    bench.receiver.hang(true);
    server.resume(CONNECTION).await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.kill_nine().await?;
    bench.receiver.hang(false);

    let book = bench.receiver.open_book(messages);
    let server = Server::start(&bench.binary, million.data.path()).await?;
    let started_at = server.started_at;
    let listening = started_at.elapsed();
    let first_at = first(&book, started_at).await?;
    let resident_kib = process::resident_kib(server.pid)?;
    // Few are delivered, so that the next run finds as many waiting.
    server.pause(CONNECTION).await?;
    let delivered = book.distinct();
    server.stop().await?;
    Ok(Measured::Values {
        values: vec![first_at.duration_since(started_at).as_secs_f64()],
        details: vec![
            detail("listening after, s", listening.as_secs_f64()),
            detail("resident memory then, MiB", resident_kib as f64 / 1024.0),
            detail("delivered until paused", delivered as f64),
        ],
    })
}

async fn first(book: &crate::receiver::Book, started_at: Instant) -> Result<Instant, Failure> {
    loop {
        if let Some(first_at) = book.first_at() {
            return Ok(first_at);
        }
        if started_at.elapsed() > FIRST_AT_MOST {
            return Err(Failure::new("nothing was delivered within a minute of the start"));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
