//! End to end on PostgreSQL with one server, as `end_to_end` is on the embedded store, against the same life cycle in bare SQL.

use std::time::Duration;

use super::end_to_end::{CONNECTIONS, whole};
use super::{Measured, detail};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::load::{CALLERS, FULL_LOAD_CALLERS};
use crate::million::unordered;
use crate::parts::bare_postgres;
use crate::postgres::{NO_SERVER, Schema};
use crate::server::names;

pub const FIGURES: &[Figure] = &[at_least("PostgreSQL: end to end, of the same SQL run bare", Unit::Share, 0.4, 0.6)];

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let Some(schema) = Schema::make().await? else { return Ok(Measured::NotMeasured(NO_SERVER.to_owned())) };
    bench.progress.step("postgres_end_to_end: bare SQL");
    let bare = bare_postgres::life_cycles_per_second(&schema, bench.cores, bench.seconds(8, 2)).await?;
    bench.progress.step("postgres_end_to_end");
    let stage = stage(bench, &schema).await?;
    let few = whole(bench, &stage, CALLERS, bench.seconds(10, 3)).await?;
    let full = whole(bench, &stage, FULL_LOAD_CALLERS, bench.seconds(10, 3)).await?;
    drop(stage);
    schema.drop().await?;
    Ok(Measured::Values {
        values: vec![full.per_second().max(few.per_second()) / bare],
        details: vec![
            detail("messages a second, 64 callers", few.per_second()),
            detail("messages a second, full load", full.per_second()),
            detail("bare SQL, life cycles a second", bare),
            detail("server CPU µs a message, full load", full.server_us()),
            detail("busy share of all cores without the database, %", full.busy(bench.cores) * 100.0),
        ],
    })
}

/// A server with the connections of this row, warmed up.
pub async fn stage(bench: &Bench, schema: &Schema) -> Result<Stage, Failure> {
    let stage = schema.stage(bench).await?;
    for name in names("bench", CONNECTIONS) {
        stage.server.create_connection(&name, &bench.receiver.origin(), unordered()).await?;
    }
    whole(bench, &stage, CALLERS, Duration::from_secs(1)).await?;
    Ok(stage)
}
