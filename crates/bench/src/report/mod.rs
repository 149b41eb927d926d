//! The result of a whole run, as it goes into the JSON file; table and document are made from it.

mod document;
mod table;

use serde::{Deserialize, Serialize};

use crate::figure::{Good, Reached, Spread, Unit};
use crate::process::Machine;

pub use document::document;
pub use table::table;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub machine: Machine,
    pub version: String,
    pub rustc: String,
    /// Less of everything: for a look, not for the record.
    pub quick: bool,
    pub runs: usize,
    pub parts: Vec<PartLine>,
    /// Messages a second.
    pub ceiling: Option<Spread>,
    /// The same with bare SQL in place of our store.
    pub bare_ceiling: Option<Spread>,
    pub lines: Vec<Line>,
}

/// One part of the ceiling, or a rate measured beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PartLine {
    pub title: String,
    pub unit: String,
    /// Counts into the ceiling.
    pub counts: bool,
    pub value: Spread,
}

/// One figure of one row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    pub row: String,
    pub title: String,
    pub unit: Unit,
    pub good: Good,
    pub must: f64,
    pub goal: f64,
    pub value: Option<Spread>,
    pub reached: Reached,
    /// Why it was not measured.
    pub note: Option<String>,
    pub details: Vec<DetailLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DetailLine {
    pub name: String,
    pub value: Spread,
}
