//! Batch publish: a thousand messages a request, a line each, nothing delivered.

use std::sync::Arc;

use super::{Measured, accept_only};
use crate::bench::{Bench, Stage};
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_least};
use crate::full_load;
use crate::load::{Plan, Until};
use crate::messages;
use crate::process;
use crate::server::{BATCH_TYPE, names, of, uri};

/// The bounds are those of accepting one by one.
pub const FIGURES: &[Figure] = &[at_least("batch publish, of the store's batched inserts", Unit::Share, 0.3, 0.5)];
const LINES: u64 = 1000;
const CALLERS: usize = 4;

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    let parts = bench.parts().await?;
    bench.progress.step("batch_publish");
    let Stage { data: _data, server } = accept_only::stage(bench).await?;
    let connections = names("bench", 16);
    if !server.takes_batches(&connections[0]).await? {
        return Ok(Measured::NotMeasured("this server takes no batches".to_owned()));
    }
    let paths: Arc<[_]> = connections.iter().map(|name| uri(&of(name, "publish/batch"))).collect();
    let until = Until { messages: u64::MAX, at_most: bench.seconds(8, 3) };
    let mut plan = Plan::publish(server.address, paths, until);
    plan.content_type = BATCH_TYPE;
    plan.callers = CALLERS;
    plan.request = |batch| messages::publish_lines(batch * LINES, LINES);
    let book = bench.receiver.open_book(0);
    let before = process::cpu(server.pid)?;
    let loaded = full_load::publish(bench, plan, &book).await?;
    let spent = process::cpu(server.pid)?.saturating_sub(before);
    Ok(accept_only::values(&loaded, LINES, spent, parts.inserts_per_second))
}
