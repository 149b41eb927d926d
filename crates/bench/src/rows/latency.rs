//! Latency at 1,000 messages a second, from the caller's request to the receiver, against a direct call at the same rate.

use bytes::Bytes;

use super::end_to_end::{self, CONNECTIONS};
use super::{Measured, detail};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most, percentile};
use crate::load::{Rate, open_loop};
use crate::messages;
use crate::server::{names, of, uri};

pub const FIGURES: &[Figure] = &[
    at_most("latency at 1,000/s over a direct call, p50", Unit::Milliseconds, 1.0, 0.4),
    at_most("latency at 1,000/s over a direct call, p99", Unit::Milliseconds, 4.0, 1.5),
];
const PER_SECOND: u64 = 1000;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let messages = PER_SECOND * bench.number(10, 4);
    bench.progress.step("latency: direct");
    let direct = Rate {
        address: bench.receiver.address,
        path: uri("/in"),
        request: messages::body,
        per_second: PER_SECOND,
        messages,
    };
    let (direct_p50, direct_p99) = percentiles(bench, direct).await?;
    let stage = end_to_end::stage(bench).await?;
    bench.progress.step("latency: published");
    let name = &names("bench", CONNECTIONS)[0];
    let published = Rate {
        address: stage.server.address,
        path: uri(&of(name, "publish")),
        request: messages::publish as fn(u64) -> Bytes,
        per_second: PER_SECOND,
        messages,
    };
    let (p50, p99) = percentiles(bench, published).await?;
    Ok(Measured::Values {
        values: vec![p50 - direct_p50, p99 - direct_p99],
        details: vec![
            detail("published p50, ms", p50),
            detail("published p99, ms", p99),
            detail("direct p50, ms", direct_p50),
            detail("direct p99, ms", direct_p99),
        ],
    })
}

/// p50 and p99 in milliseconds from sending to receipt. The first second is for warming up and does not count.
pub async fn percentiles(bench: &Bench, rate: Rate) -> Result<(f64, f64), Failure> {
    let messages = usize::try_from(rate.messages).unwrap_or(usize::MAX);
    let skipped = usize::try_from(rate.per_second).unwrap_or(0).min(messages / 4);
    let book = bench.receiver.open_book(messages);
    let sent = open_loop(&bench.generator, rate).await?;
    crate::full_load::received(bench, &book, sent.len() as u64).await?;
    let mut waits = Vec::with_capacity(messages);
    for (number, sent_at) in sent.iter().enumerate().skip(skipped) {
        let (Some(sent_at), Some(received_at)) = (sent_at, book.received_at(number)) else {
            return Err(Failure::new(format!("message {number} was not received")));
        };
        waits.push(received_at.saturating_duration_since(*sent_at).as_secs_f64() * 1e3);
    }
    let none = || Failure::new("no message was timed");
    Ok((percentile(&mut waits, 0.5).ok_or_else(none)?, percentile(&mut waits, 0.99).ok_or_else(none)?))
}
