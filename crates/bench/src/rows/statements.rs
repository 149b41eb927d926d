//! How much the store does for one message at full load, by its own counters.
//!
//! Full load means that callers never leave the store without work: with fewer of them a commit holds what those few have brought.

use super::end_to_end;
use super::{Measured, detail};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::load::FULL_LOAD_CALLERS;

pub const FIGURES: &[Figure] = &[
    at_most("SQL statements a message", Unit::PerMessage, 4.0, 3.0),
    at_most("fsyncs (commits) a message", Unit::PerMessage, 0.02, 0.01),
];

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    bench.progress.step("statements");
    let stage = end_to_end::stage(bench).await?;
    let Some(before) = stage.server.store_work().await? else {
        return Ok(Measured::NotMeasured("this server shows no counters of its store at /metrics".to_owned()));
    };
    let whole = end_to_end::whole(bench, &stage, FULL_LOAD_CALLERS, bench.seconds(5, 2)).await?;
    let after = stage.server.store_work().await?.ok_or_else(|| Failure::new("the counters are gone"))?;
    let each = |from: f64, to: f64| (to - from) / whole.loaded.accepted.max(1) as f64;
    Ok(Measured::Values {
        values: vec![each(before.statements, after.statements), each(before.commits, after.commits)],
        details: vec![detail("messages a second", whole.per_second()), detail("callers", FULL_LOAD_CALLERS as f64)],
    })
}
