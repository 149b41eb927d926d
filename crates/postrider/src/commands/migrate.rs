//! `migrate`: everything of a SQLite store into an empty PostgreSQL database, which goes on where it was when it was cut off (P03).
//!
//! Every queue of the target is paused before a server may open it (D08). It must not know what is in the tables.

use std::io::IsTerminal as _;
use std::sync::Arc;

use indicatif::{ProgressBar, ProgressStyle};
use postrider_core::{Timestamp, Wait};
use postrider_engine::{Clock, SystemClock};
use postrider_store::moving::{self, Move, MovedTable, Progress};
use postrider_store::{Store as _, StoreError};
use serde_json::{Map, Value, json};

use crate::args::{GlobalArgs, MigrateArgs};
use crate::exit::{Exit, Failed};
use crate::output;
use crate::serve::store::StoreAddress;

/// Between two lines of progress where nobody watches a bar.
const TOLD_EVERY: Wait = Wait::from_millis(500);

pub async fn run(global: &GlobalArgs, args: MigrateArgs) -> Result<Exit, Failed> {
    let StoreAddress::Sqlite(from) = address("--from", &args.from)? else {
        return Err(Failed::new(Exit::Refused, "--from is a database of PostgreSQL; allowed is sqlite:PATH"));
    };
    if args.take_back {
        return take_back(global, &from);
    }
    let Some(to) = args.to.as_deref() else {
        return Err(Failed::usage("--to is missing: postgres://USER@HOST/DATABASE"));
    };
    let StoreAddress::Postgres(to) = address("--to", to)? else {
        return Err(Failed::new(
            Exit::Refused,
            "--to is a database of SQLite; allowed is postgres://USER@HOST/DATABASE",
        ));
    };
    let clock = SystemClock::shared();
    let mut moving = Move::begin(&from, &to, clock.now()).await.map_err(failed)?;
    if moving.resumed_rows() > 0 {
        output::remark(&format!(
            "going on with a move that was cut off: {} rows are there already",
            moving.resumed_rows()
        ));
    }
    let mut shown = Shown::begin(clock.clone());
    let moved = moving.run(&mut |progress| shown.tell(progress)).await;
    shown.end();
    let moved = moved.map_err(failed)?;
    let store = moving.store().await.map_err(failed)?;
    let held = postrider_engine::hold_all(&store, clock.now()).await?;
    store.close().await?;
    moving.end(clock.now()).await.map_err(failed)?;
    report(global, &to.shown(), &moved, held);
    if !global.json {
        tell_what_is_next(&from, held);
    }
    Ok(Exit::Done)
}

fn address(option: &str, given: &str) -> Result<StoreAddress, Failed> {
    // Nothing would be the database in the data directory, and a move is from and to what is named.
    let named = if given.is_empty() { ":" } else { given };
    StoreAddress::parse(Some(named), std::path::Path::new(""))
        .map_err(|error| Failed::new(Exit::Refused, format!("{option}: {error}")))
}

/// What an operator can put right by another command line is refused; all else is the stores'.
fn failed(error: StoreError) -> Failed {
    match error {
        StoreError::Conflict(why) => Failed::new(Exit::Refused, why),
        error => error.into(),
    }
}

fn take_back(global: &GlobalArgs, from: &std::path::Path) -> Result<Exit, Failed> {
    let was = moving::take_back(from)?;
    if global.json {
        output::print_json(&json!({"store": from.display().to_string(), "was_moved_to": was}));
        return Ok(Exit::Done);
    }
    let text = match was {
        Some(to) => format!("{} may be served again; it was moved to the {to}", from.display()),
        None => format!("{} was not moved", from.display()),
    };
    output::print(&output::plain(&text));
    Ok(Exit::Done)
}

fn report(global: &GlobalArgs, to: &str, moved: &[MovedTable], held: usize) {
    let rows: u64 = moved.iter().map(|table| table.rows).sum();
    if global.json {
        let tables: Map<String, Value> = moved
            .iter()
            .map(|one| (one.table.to_owned(), json!({"rows": one.rows, "checksum": format!("{:032x}", one.sum)})))
            .collect();
        output::print_json(&json!({"to": to, "rows": rows, "paused": held, "tables": tables}));
        return;
    }
    for one in moved.iter().filter(|one| one.rows > 0) {
        output::print(&format!("{:<18} {:>12} rows  {:032x}", one.table, one.rows, one.sum));
    }
    output::print(&output::plain(&format!("{to}: {rows} rows in {} tables, read back and the same", moved.len())));
}

fn tell_what_is_next(from: &std::path::Path, held: usize) {
    let key = from.with_file_name("secrets.key");
    if key.exists() {
        output::remark(&format!(
            "secrets are sealed as they were: give `{}` to every server of the database (POSTRIDER_SECRETS_KEY_FILE)",
            key.display()
        ));
    }
    output::remark(&format!(
        "all {held} connections are paused: start a server with `--store postgres://… --resume`, or resume them one by one; `{}` is not served any more",
        from.display()
    ));
}

/// Progress on standard error: a bar on a terminal, else lines.
struct Shown {
    bar: Option<ProgressBar>,
    clock: Arc<dyn Clock>,
    told_at: Option<Timestamp>,
    table: &'static str,
}

impl Shown {
    fn begin(clock: Arc<dyn Clock>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            match ProgressStyle::with_template("{msg:28} {bar:32} {human_pos}/{human_len} rows  {per_sec}  {eta}") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Shown { bar, clock, told_at: None, table: "" }
    }

    fn tell(&mut self, progress: Progress) {
        let (what, table, rows, rows_total) = match progress {
            Progress::Moving { table, rows, rows_total } => ("moving", table, rows, rows_total),
            Progress::Verifying { table, rows, rows_total } => ("verifying", table, rows, rows_total),
        };
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{what} {table}"));
            bar.set_length(rows_total);
            bar.set_position(rows);
            return;
        }
        let now = self.clock.now();
        let is_due = self.told_at.is_none_or(|at| now >= at + TOLD_EVERY);
        // Each table is named once, and its end is told.
        if is_due || self.table != table || rows == rows_total {
            eprintln!("{what} {table}: {rows} of {rows_total} rows");
            (self.told_at, self.table) = (Some(now), table);
        }
    }

    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
