//! The command line of the benchmark. It must not know what a row does.

use std::path::PathBuf;

use clap::Parser;

use crate::rows::Row;

/// Measures the release binary against the parts of the ceiling, all in one run on this machine.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench", version, max_term_width = 120)]
pub struct Args {
    /// Rows to measure; all when none is named
    #[arg(value_name = "ROW")]
    pub rows: Vec<Row>,

    /// How often each row is measured; medians and spread are over these
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub runs: u16,

    /// Where the result goes as JSON; else beside the build
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Less of everything: a tenth of the messages, shorter spans
    #[arg(long)]
    pub quick: bool,

    /// Measure only the parts of the ceiling
    #[arg(long, conflicts_with = "rows")]
    pub parts: bool,

    /// Write the document from the result
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "docs/benchmarks.md")]
    pub docs: Option<PathBuf>,

    /// Measure nothing: table and document from an earlier result
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rows", "json"])]
    pub from: Option<PathBuf>,

    /// The server to measure; else the one built beside this program
    #[arg(long, value_name = "FILE")]
    pub binary: Option<PathBuf>,
}
