//! `alerts`, as it is written.

use clap::Subcommand;

use super::{PageArgs, WhoseArgs};

#[derive(Debug, Subcommand)]
pub enum AlertsCommand {
    /// What is wrong now and what was, newest first
    List {
        #[command(flatten)]
        page: PageArgs,
        /// Only those that are open, or only those that have recovered
        #[arg(long, value_parser = ["open", "past"])]
        state: Option<String>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
}
