//! `users`: who may log in to the dashboard.

use clap::Subcommand;

use super::{BodyArg, WhoseArgs};

#[derive(Debug, Subcommand)]
pub enum UsersCommand {
    List {
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Make a user; without --password one is made up and printed, this once
    Create {
        /// What the user logs in with, such as an e-mail address
        name: String,
        /// owner, developer or viewer
        #[arg(long)]
        role: String,
        /// A viewer who sees bodies, which are health data
        #[arg(long)]
        sees_bodies: bool,
        #[command(flatten)]
        password: PasswordArg,
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Another role; whoever is logged in as this user logs in again
    SetRole {
        /// The user's id (usr_…) or name
        #[arg(value_name = "ID|NAME")]
        which: String,
        /// owner, developer or viewer
        role: String,
        /// Whether a viewer sees bodies; it stays when left out
        #[arg(long, value_name = "BOOL")]
        sees_bodies: Option<bool>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Another password; without --password one is made up and printed, this once
    SetPassword {
        /// The user's id (usr_…) or name
        #[arg(value_name = "ID|NAME")]
        which: String,
        #[command(flatten)]
        password: PasswordArg,
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Delete a user with all sessions
    Delete {
        /// The user's id (usr_…) or name
        #[arg(value_name = "ID|NAME")]
        which: String,
        #[command(flatten)]
        whose: WhoseArgs,
    },
}

#[derive(Debug, clap::Args)]
pub struct PasswordArg {
    /// A file with the password; `-` reads standard input, so that it stands in no list of processes
    #[arg(long, value_name = "FILE|-")]
    pub password: Option<BodyArg>,
}
