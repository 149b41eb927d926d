//! The rows of the table, one file each: what is measured, and what it must reach.
//!
//! A row measures once; runs, medians and the table are made elsewhere.

mod accept_channel;
mod accept_only;
mod batch_publish;
mod end_to_end;
mod fifo;
mod idle;
mod latency;
mod many_connections;
mod memory_million;
mod mllp;
mod neighbour;
mod postgres_end_to_end;
mod postgres_statements;
mod start_million;
mod statements;

use crate::bench::Bench;
use crate::failure::Failure;
use crate::figure::Figure;

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Row {
    EndToEnd,
    AcceptOnly,
    AcceptChannel,
    BatchPublish,
    Fifo,
    Mllp,
    Latency,
    Statements,
    PostgresEndToEnd,
    PostgresStatements,
    ManyConnections,
    Idle,
    MemoryMillion,
    StartMillion,
    Neighbour,
}

/// What one run of a row showed.
pub enum Measured {
    /// A value for each figure of the row, in their order, and what stands behind them.
    Values { values: Vec<f64>, details: Vec<Detail> },
    /// Why there is none.
    NotMeasured(String),
}

/// A figure behind the figure, such as messages a second.
pub struct Detail {
    pub name: &'static str,
    pub value: f64,
}

pub const fn detail(name: &'static str, value: f64) -> Detail {
    Detail { name, value }
}

impl Row {
    /// Those that need a million messages come last and in the order in which they can share them.
    pub const ALL: [Row; 15] = [
        Row::EndToEnd,
        Row::AcceptOnly,
        Row::AcceptChannel,
        Row::BatchPublish,
        Row::Fifo,
        Row::Mllp,
        Row::Latency,
        Row::Statements,
        Row::PostgresEndToEnd,
        Row::PostgresStatements,
        Row::ManyConnections,
        Row::Idle,
        Row::MemoryMillion,
        Row::StartMillion,
        Row::Neighbour,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Row::EndToEnd => "end_to_end",
            Row::AcceptOnly => "accept_only",
            Row::AcceptChannel => "accept_channel",
            Row::BatchPublish => "batch_publish",
            Row::Fifo => "fifo",
            Row::Mllp => "mllp",
            Row::Latency => "latency",
            Row::Statements => "statements",
            Row::PostgresEndToEnd => "postgres_end_to_end",
            Row::PostgresStatements => "postgres_statements",
            Row::ManyConnections => "many_connections",
            Row::Idle => "idle",
            Row::MemoryMillion => "memory_million",
            Row::StartMillion => "start_million",
            Row::Neighbour => "neighbour",
        }
    }

    pub const fn figures(self) -> &'static [Figure] {
        match self {
            Row::EndToEnd => end_to_end::FIGURES,
            Row::AcceptOnly => accept_only::FIGURES,
            Row::AcceptChannel => accept_channel::FIGURES,
            Row::BatchPublish => batch_publish::FIGURES,
            Row::Fifo => fifo::FIGURES,
            Row::Mllp => mllp::FIGURES,
            Row::Latency => latency::FIGURES,
            Row::Statements => statements::FIGURES,
            Row::PostgresEndToEnd => postgres_end_to_end::FIGURES,
            Row::PostgresStatements => postgres_statements::FIGURES,
            Row::ManyConnections => many_connections::FIGURES,
            Row::Idle => idle::FIGURES,
            Row::MemoryMillion => memory_million::FIGURES,
            Row::StartMillion => start_million::FIGURES,
            Row::Neighbour => neighbour::FIGURES,
        }
    }

    /// Loading a million takes minutes: it is done once, whatever `--runs` says.
    pub const fn is_run_once(self) -> bool {
        matches!(self, Row::MemoryMillion | Row::Neighbour)
    }

    pub async fn measure(self, bench: &mut Bench) -> Result<Measured, Failure> {
        match self {
            Row::EndToEnd => end_to_end::measure(bench).await,
            Row::AcceptOnly => accept_only::measure(bench).await,
            Row::AcceptChannel => accept_channel::measure(bench).await,
            Row::BatchPublish => batch_publish::measure(bench).await,
            Row::Fifo => fifo::measure(bench).await,
            Row::Mllp => mllp::measure(bench).await,
            Row::Latency => latency::measure(bench).await,
            Row::Statements => statements::measure(bench).await,
            Row::PostgresEndToEnd => postgres_end_to_end::measure(bench).await,
            Row::PostgresStatements => postgres_statements::measure(bench).await,
            Row::ManyConnections => many_connections::measure(bench).await,
            Row::Idle => idle::measure(bench).await,
            Row::MemoryMillion => memory_million::measure(bench).await,
            Row::StartMillion => start_million::measure(bench).await,
            Row::Neighbour => neighbour::measure(bench).await,
        }
    }
}
