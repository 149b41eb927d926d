//! Collects what runs show and makes the report of it. It must not know how anything is measured.

use std::process::Command;

use crate::failure::Failure;
use crate::figure::{Reached, Spread, show};
use crate::parts::Parts;
use crate::process::Machine;
use crate::report::{DetailLine, Line, PartLine, Report};
use crate::rows::{Measured, Row};

#[derive(Default)]
pub struct Gathered {
    rows: Vec<Runs>,
    parts: Vec<Parts>,
    runs_max: usize,
}

/// All runs of one row.
struct Runs {
    row: Row,
    /// One list a figure.
    values: Vec<Vec<f64>>,
    details: Vec<(&'static str, Vec<f64>)>,
    note: Option<String>,
}

/// A part's title, its unit, whether it counts into the ceiling, and its value.
type PartColumn = (&'static str, &'static str, bool, fn(&Parts) -> f64);

const PARTS: [PartColumn; 9] = [
    ("load generator", "µs", true, |parts| parts.load_generator_us),
    ("HTTP server, bare hyper", "µs", true, |parts| parts.http_server_us),
    ("store, life cycle with fsync, 256 a transaction", "µs", true, |parts| parts.store_us),
    ("HTTP client, hyper with a pool", "µs", true, |parts| parts.http_client_us),
    ("receiver", "µs", true, |parts| parts.receiver_us),
    ("our own HTTP sender", "µs", false, |parts| parts.our_sender_us),
    ("bare SQL in place of the store", "µs", false, |parts| parts.bare_sqlite_us),
    ("store, life cycles", "a second", false, |parts| parts.store_per_second),
    ("store, inserts", "a second", false, |parts| parts.inserts_per_second),
];

impl Gathered {
    /// Takes in one run and says in a few words what it showed.
    pub fn add(&mut self, row: Row, measured: Result<Measured, Failure>) -> String {
        let figures = row.figures();
        let index = self.rows.iter().position(|runs| runs.row == row).unwrap_or_else(|| {
            let values = vec![Vec::new(); figures.len()];
            self.rows.push(Runs { row, values, details: Vec::new(), note: None });
            self.rows.len() - 1
        });
        let runs = &mut self.rows[index];
        let note = match measured {
            Ok(Measured::Values { values, details }) => {
                let shown: Vec<String> =
                    values.iter().zip(figures).map(|(value, figure)| show(*value, figure.unit)).collect();
                for (kept, value) in runs.values.iter_mut().zip(values) {
                    kept.push(value);
                }
                for detail in details {
                    match runs.details.iter_mut().find(|(name, _)| *name == detail.name) {
                        Some((_, kept)) => kept.push(detail.value),
                        None => runs.details.push((detail.name, vec![detail.value])),
                    }
                }
                self.runs_max = self.runs_max.max(runs.values.first().map_or(0, Vec::len));
                return shown.join(", ");
            }
            Ok(Measured::NotMeasured(why)) => why,
            Err(failure) => format!("it failed: {failure}"),
        };
        let shown = format!("not measured: {note}");
        runs.note = Some(note);
        shown
    }

    pub fn add_parts(&mut self, parts: Parts) {
        self.parts.push(parts);
    }

    pub fn report(&self, quick: bool, cores: usize) -> Report {
        let mut parts = Vec::new();
        for (title, unit, counts, read) in PARTS {
            if let Some(value) = Spread::of(self.parts.iter().map(read).collect()) {
                parts.push(PartLine { title: title.to_owned(), unit: unit.to_owned(), counts, value });
            }
        }
        Report {
            machine: Machine::read(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: rustc(),
            quick,
            runs: self.runs_max.max(self.parts.len()),
            parts,
            ceiling: Spread::of(self.parts.iter().map(|parts| parts.ceiling(cores)).collect()),
            bare_ceiling: Spread::of(self.parts.iter().map(|parts| parts.bare_ceiling(cores)).collect()),
            lines: self.rows.iter().flat_map(lines).collect(),
        }
    }
}

fn lines(runs: &Runs) -> Vec<Line> {
    let details = || {
        let spreads = runs.details.iter().map(|(name, values)| (name, Spread::of(values.clone())));
        spreads.filter_map(|(name, value)| Some(DetailLine { name: (*name).to_owned(), value: value? })).collect()
    };
    let figures = runs.row.figures().iter().zip(&runs.values).enumerate();
    figures
        .map(|(index, (figure, values))| {
            let value = Spread::of(values.clone());
            let reached = value
                .as_ref()
                .map_or(Reached::NotMeasured, |value| Reached::of(value.median, figure.good, figure.must, figure.goal));
            let is_first = index == 0;
            Line {
                row: runs.row.name().to_owned(),
                title: figure.title.to_owned(),
                unit: figure.unit,
                good: figure.good,
                must: figure.must,
                goal: figure.goal,
                value,
                reached,
                // What stands behind a row is said once.
                note: runs.note.clone().filter(|_| is_first),
                details: if is_first { details() } else { Vec::new() },
            }
        })
        .collect()
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(
        |_| "an unknown compiler".to_owned(),
        |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
    )
}
