//! `queue`, `dlq` and `deliveries`.

use std::path::PathBuf;

use clap::Subcommand;

use super::BodyArg;

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
    Discard(IdsArg),
    Download(DownloadArgs),
    /// Move it to the DLQ, so that the rest goes on
    SetAside(IdsArg),
    /// Attempt it without waiting for its time
    AttemptNow(IdsArg),
}

#[derive(Debug, Subcommand)]
pub enum DlqCommand {
    /// Newest first; of one connection or of all
    List(ListArgs),
    Show(IdArg),
    /// Another body before a retry; the original is kept
    Edit(EditArgs),
    /// Back to the queue: another round, or three more attempts on a ladder
    Retry(IdsArg),
    Discard(IdsArg),
    /// Publish it to a topic
    Forward {
        id: String,
        #[arg(long)]
        topic: String,
        /// Leave out the headers that say why it was dead-lettered
        #[arg(long)]
        without_header: bool,
    },
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
    /// The schedule from its beginning, from any ended state
    Resend(IdsArg),
    /// Another round; for dead letters and failed ones
    Retry(IdsArg),
    Attempts(IdArg),
    /// Its body, as it is sent
    Download(DownloadArgs),
    Discard(IdsArg),
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Of this connection only
    pub connection: Option<String>,
    /// A failure code such as status, timeout, unreachable
    #[arg(long)]
    pub error: Option<String>,
    /// Accepted at or after this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Accepted before this RFC 3339 time
    #[arg(long, value_name = "TIME")]
    pub before: Option<String>,
    #[command(flatten)]
    pub page: PageArgs,
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
pub struct IdsArg {
    /// Deliveries' ids (msg_…), taken in this order
    #[arg(required = true)]
    pub ids: Vec<String>,
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
