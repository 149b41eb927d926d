//! `projects`, `keys` and `audit`.

use clap::Subcommand;

use super::{PageArgs, SettingsArgs};

#[derive(Debug, Subcommand)]
pub enum ProjectsCommand {
    List,
    /// The project that --project names
    Show,
    /// For example: projects create clinic ownerEmail=ada@example.org rateLimitPerSecond=50
    Create {
        name: String,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change the settings given of the project that --project names; `key=null` takes one back to its default
    Update {
        #[command(flatten)]
        settings: SettingsArgs,
    },
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    List {
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// Make a key and print it, this once
    Create {
        name: String,
        /// What it may do: read, send, operate, admin; several with commas
        #[arg(long, required = true, value_delimiter = ',', value_name = "SCOPE,…")]
        scopes: Vec<String>,
        /// When it ends, such as 2027-03-12T12:00:00Z; never when left out
        #[arg(long, value_name = "TIME")]
        expires_at: Option<String>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// A new key in the place of an old one, which works on for a while
    Rotate {
        /// The key's id (key_…) or name
        #[arg(value_name = "ID|NAME")]
        which: String,
        /// How long both work; a day when left out, 0 ends the old one at once
        #[arg(long, value_name = "SECONDS")]
        overlap_seconds: Option<u64>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
    /// End a key now
    Revoke {
        /// The key's id (key_…) or name
        #[arg(value_name = "ID|NAME")]
        which: String,
        #[command(flatten)]
        whose: WhoseArgs,
    },
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct WhoseArgs {
    /// Of the installation instead of the project; needs a key of the installation
    #[arg(long)]
    pub installation: bool,
}

#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// Who changed what and who saw which body, newest first
    List {
        #[command(flatten)]
        page: PageArgs,
        /// A key's id, `bootstrap` or `system`
        #[arg(long)]
        actor: Option<String>,
        /// Such as connection.replace, or its beginning: connection
        #[arg(long)]
        action: Option<String>,
        /// The id of what it was done to
        #[arg(long)]
        object: Option<String>,
        #[arg(long, value_name = "TIME")]
        from: Option<String>,
        #[arg(long, value_name = "TIME")]
        before: Option<String>,
        #[command(flatten)]
        whose: WhoseArgs,
    },
}
