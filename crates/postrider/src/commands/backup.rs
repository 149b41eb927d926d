//! `backup`: the store of the data directory as one file, of one instant, read back before it gets its name (D08).
//!
//! It reads beside a running server, which never waits for it. It must not know what is in the tables.

use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use postrider_store::StoreError;
use postrider_store::sqlite::backup::{self, Copied, Progress};
use serde_json::{Map, Value, json};

use crate::args::{BackupArgs, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::output;
use crate::serve::store::{DATABASE, StoreAddress};

pub async fn run(global: &GlobalArgs, args: BackupArgs) -> Result<Exit, Failed> {
    let named = std::env::var("POSTRIDER_STORE").ok();
    let address = StoreAddress::parse(named.as_deref(), &global.data)
        .map_err(|error| Failed::new(Exit::Refused, error.to_string()))?;
    let StoreAddress::Sqlite(database) = address else {
        let message =
            "`backup` copies the store of a data directory; for PostgreSQL use its own tools, such as pg_dump";
        return Err(Failed::new(Exit::Refused, message));
    };
    let copied = copy(&database, &args.to).await?;
    report(global, &args.to, &copied, &[]);
    if !global.json && global.data.join("secrets.key").exists() {
        output::remark(
            "`secrets.key` is not in it: without that key its secrets cannot be read, so keep a copy elsewhere",
        );
    }
    Ok(Exit::Done)
}

/// With a bar where somebody watches.
pub async fn copy(from: &Path, to: &Path) -> Result<Copied, Failed> {
    let bar = progress();
    let (from, to, shown) = (from.to_owned(), to.to_owned(), bar.clone());
    let copying = tokio::task::spawn_blocking(move || -> Result<Copied, StoreError> {
        backup::copy(&from, &to, &mut |Progress { pages, pages_total }| {
            shown.set_length(pages_total * PAGE_BYTES);
            shown.set_position(pages * PAGE_BYTES);
        })
    });
    let copied = copying.await.map_err(|error| Failed::new(Exit::Failure, format!("the copy ended: {error}")))?;
    bar.finish_and_clear();
    Ok(copied?)
}

/// For the bar: what SQLite makes its files of.
const PAGE_BYTES: u64 = 4096;

/// On standard error, and only where that is a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new(0);
    match ProgressStyle::with_template("{bar:32} {bytes}/{total_bytes}  {bytes_per_sec}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

pub fn report(global: &GlobalArgs, file: &Path, copied: &Copied, more: &[(&str, Value)]) {
    let rows: Map<String, Value> = copied.rows.iter().map(|(table, rows)| ((*table).to_owned(), json!(rows))).collect();
    if global.json {
        let mut answer = json!({"file": file.display().to_string(), "bytes": copied.bytes, "rows": rows});
        for (name, value) in more {
            answer[*name] = value.clone();
        }
        output::print_json(&answer);
        return;
    }
    let count = |table: &str| rows.get(table).and_then(Value::as_u64).unwrap_or(0);
    let waiting = format!("{} deliveries waiting or dead, {} ended", count("delivery"), count("delivery_log"));
    let size = output::bytes(copied.bytes);
    output::print(&output::plain(&format!("{}  {size}, {waiting}, read back and whole", file.display())));
}

/// The place of a restored store.
pub fn database_in(data: &Path) -> std::path::PathBuf {
    data.join(DATABASE)
}
