//! How much the store does for one message at full load on PostgreSQL, by its own counters.

use super::end_to_end::whole;
use super::postgres_end_to_end::stage;
use super::{Measured, detail};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::load::FULL_LOAD_CALLERS;
use crate::postgres::{NO_SERVER, Schema};

pub const FIGURES: &[Figure] = &[
    at_most("PostgreSQL: SQL statements a message", Unit::PerMessage, 4.0, 3.0),
    at_most("PostgreSQL: fsyncs (commits) a message", Unit::PerMessage, 0.02, 0.01),
];

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let Some(schema) = Schema::make().await? else { return Ok(Measured::NotMeasured(NO_SERVER.to_owned())) };
    bench.progress.step("postgres_statements");
    let stage = stage(bench, &schema).await?;
    let Some(before) = stage.server.store_work().await? else {
        return Ok(Measured::NotMeasured("this server shows no counters of its store at /metrics".to_owned()));
    };
    let syncs_before = schema.wal_syncs().await;
    let whole = whole(bench, &stage, FULL_LOAD_CALLERS, bench.seconds(5, 2)).await?;
    let after = stage.server.store_work().await?.ok_or_else(|| Failure::new("the counters are gone"))?;
    let syncs = schema.wal_syncs().await.zip(syncs_before).map_or(f64::NAN, |(after, before)| after - before);
    drop(stage);
    schema.drop().await?;
    let messages = whole.loaded.accepted.max(1) as f64;
    let each = |from: f64, to: f64| (to - from) / messages;
    Ok(Measured::Values {
        values: vec![each(before.statements, after.statements), each(before.commits, after.commits)],
        details: vec![
            detail("messages a second", whole.per_second()),
            detail("callers", FULL_LOAD_CALLERS as f64),
            detail("flushes of the database server's log a message, whoever asked for them", syncs / messages),
        ],
    })
}
