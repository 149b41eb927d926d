//! Memory of a server with a million messages waiting, against the same server before.

use super::{Measured, detail};
use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::{Figure, Unit, at_most};
use crate::million;

pub const FIGURES: &[Figure] =
    &[at_most("memory with 1,000,000 waiting, more than empty", Unit::Mebibytes, 64.0, 32.0)];

pub async fn measure(bench: &mut Bench) -> Result<Measured, Failure> {
    million::prepare(bench).await?;
    let loaded = bench.million.as_ref().ok_or_else(|| Failure::new("the million is gone"))?;
    let mib = |kib: u64| kib as f64 / 1024.0;
    Ok(Measured::Values {
        values: vec![mib(loaded.loaded_kib) - mib(loaded.empty_kib)],
        details: vec![
            detail("messages waiting", loaded.messages as f64),
            detail("empty, MiB", mib(loaded.empty_kib)),
            detail("loaded, MiB", mib(loaded.loaded_kib)),
            detail("accepted a second while loading", loaded.per_second),
        ],
    })
}
