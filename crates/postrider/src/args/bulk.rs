//! Which deliveries a command acts on: by ids, by filter, or all of them.

use super::deliveries::FilterArgs;

/// Ids are acted on one after another and each is told; a filter, or `--all`, begins a job on the server.
#[derive(Debug, clap::Args)]
pub struct BulkArgs {
    /// Deliveries' ids (msg_…), taken in this order
    #[arg(value_name = "ID", conflicts_with_all = ["all", "connection", "status", "error", "error_text", "cid", "from", "before", "conditions",
        "dry_run", "wait"])]
    pub ids: Vec<String>,
    /// All that the act can be done to
    #[arg(long)]
    pub all: bool,
    /// Of this connection only
    #[arg(long, value_name = "NAME")]
    pub connection: Option<String>,
    /// In these states; several with commas
    #[arg(long, value_delimiter = ',')]
    pub status: Vec<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
    /// Only say how many there are
    #[arg(long)]
    pub dry_run: bool,
    /// Wait for the job's end, with a progress bar on a terminal
    #[arg(long)]
    pub wait: bool,
}

impl BulkArgs {
    /// Neither ids nor anything that chooses.
    pub fn is_empty(&self) -> bool {
        let narrows = self.connection.is_some() || !self.status.is_empty() || !self.filter.is_empty();
        self.ids.is_empty() && !self.all && !narrows
    }
}
