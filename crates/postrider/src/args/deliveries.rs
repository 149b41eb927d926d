//! `queue`, `dlq` and `deliveries`.

use std::path::PathBuf;

use clap::Subcommand;

use super::{BodyArg, BulkArgs};

#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// Of a connection, from head to tail; of all of them, newest first
    List {
        connection: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    Show(IdArg),
    /// Another body before the next attempt; the original is kept
    Edit(EditArgs),
    /// Give up what waits; it stays in the log
    Discard(BulkArgs),
    Download(DownloadArgs),
    /// Move it to the DLQ, so that the rest goes on; with --all or a filter, all that waits
    SetAside(BulkArgs),
    /// Attempt it without waiting for its time
    AttemptNow {
        /// Deliveries' ids (msg_…)
        #[arg(required_unless_present = "head_of")]
        ids: Vec<String>,
        /// The head of this connection's queue
        #[arg(long, value_name = "CONNECTION", conflicts_with = "ids")]
        head_of: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub enum DlqCommand {
    /// Newest first; of one connection or of all
    List(ListArgs),
    Show(IdArg),
    /// Another body before a retry; the original is kept
    Edit(EditArgs),
    /// Back to the queue: another round, or three more attempts on a ladder
    Retry(BulkArgs),
    /// Back to the queue, the schedule from its beginning
    Resend(BulkArgs),
    Discard(BulkArgs),
    /// Publish it to a topic
    Forward(ForwardArgs),
    Download(DownloadArgs),
}

#[derive(Debug, Subcommand)]
pub enum DeliveriesCommand {
    List {
        #[command(flatten)]
        list: ListArgs,
        /// PENDING, PROCESSING, SUCCESS, FAILED, DLQ, DISCARDED, FORWARDED, EXPIRED; several with commas
        #[arg(long, value_delimiter = ',')]
        status: Vec<String>,
    },
    Show(IdArg),
    /// The schedule from its beginning, from any ended state; by filter and time range it is a replay
    Resend(BulkArgs),
    /// Another round; for dead letters and failed ones
    Retry(BulkArgs),
    Attempts(IdArg),
    /// Its body, as it is sent
    Download(DownloadArgs),
    Discard(BulkArgs),
    /// Publish it to a topic; for dead letters and failed ones
    Forward(ForwardArgs),
}

#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Newest first
    List(PageArgs),
    Show {
        /// A job's id (job_…)
        id: String,
        /// Wait for its end, with a progress bar on a terminal
        #[arg(long)]
        wait: bool,
    },
    /// It stands still until it is resumed
    Pause {
        id: String,
    },
    Resume {
        id: String,
    },
    /// What it has done stays done
    Cancel {
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Of this connection only
    pub connection: Option<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub page: PageArgs,
}

#[derive(Debug, clap::Args)]
pub struct ForwardArgs {
    #[command(flatten)]
    pub which: BulkArgs,
    #[arg(long)]
    pub topic: String,
    /// Leave out the headers that say why it was dead-lettered
    #[arg(long)]
    pub without_header: bool,
}

/// All of them must hold.
#[derive(Debug, Default, clap::Args)]
pub struct FilterArgs {
    /// A failure code such as status, timeout, unreachable
    #[arg(long)]
    pub error: Option<String>,
    /// A part of the last error's text
    #[arg(long, value_name = "TEXT")]
    pub error_text: Option<String>,
    /// The whole correlation id
    #[arg(long)]
    pub cid: Option<String>,
    /// Accepted at or after this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Accepted before this RFC 3339 time
    #[arg(long, value_name = "TIME", visible_alias = "to")]
    pub before: Option<String>,
    /// Any other filter of the API, such as attempts_min=3, method=PUT, ended_from=TIME
    #[arg(long = "where", value_name = "NAME=VALUE", value_parser = condition)]
    pub conditions: Vec<(String, String)>,
}

impl FilterArgs {
    pub fn is_empty(&self) -> bool {
        let one = [&self.error, &self.error_text, &self.cid, &self.from, &self.before];
        one.iter().all(|value| value.is_none()) && self.conditions.is_empty()
    }
}

fn condition(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a filter is NAME=VALUE")?;
    if name.is_empty() { Err("a filter is NAME=VALUE".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

#[derive(Debug, Default, clap::Args)]
pub struct PageArgs {
    /// Rows, 1 to 1000 (the server's default is 50)
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: Option<u32>,
    /// Go on behind this one, from the end of the page before
    #[arg(long)]
    pub cursor: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct IdArg {
    /// A delivery's id (msg_…)
    pub id: String,
}

#[derive(Debug, clap::Args)]
pub struct EditArgs {
    pub id: String,
    /// A file with the new body; `-` reads standard input
    #[arg(long, value_name = "FILE|-")]
    pub body: BodyArg,
}

#[derive(Debug, clap::Args)]
pub struct DownloadArgs {
    pub id: String,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The body as it was accepted, before any edit
    #[arg(long)]
    pub original: bool,
}
