//! `sources`, `destinations` and `forwards`.

use clap::Subcommand;

use super::{BodyArg, FilterArgs, PageArgs, SettingsArgs};

#[derive(Debug, Subcommand)]
pub enum SourcesCommand {
    List(PageArgs),
    /// With what came of what came in, and the last rejections
    Show {
        /// The source's id (src_…) or name
        source: String,
    },
    /// Make one and print its address and secret, this once; for example: sources create name=GitHub provider=github
    Create {
        #[command(flatten)]
        settings: SettingsArgs,
        /// Read the provider's secret from a file; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default
    Set {
        source: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Replace all settings instead; address and secret stay
        #[arg(long)]
        replace: bool,
    },
    /// Whoever still sends to it is answered 404; its destinations stay
    Delete {
        source: String,
    },
    /// Make a new address and print it, this once; the former one goes on for a day unless said
    RotateToken {
        source: String,
        /// How long the former address goes on; 0: not at all
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u64>,
    },
    /// Set another secret; the former one verifies too for a day unless said
    RotateSecret {
        source: String,
        /// How long the former secret verifies too; 0: not at all
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u64>,
        /// Read it from a file; `-` reads standard input; else one is made, where the provider takes one
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
    },
    /// Forward again what came in, by ids or by time
    Replay {
        source: String,
        /// Webhooks' ids (evt_…)
        #[arg(value_name = "ID", required_unless_present_any = ["from", "before"])]
        ids: Vec<String>,
        /// RFC 3339: what came at or after this
        #[arg(long, value_name = "TIME", conflicts_with = "ids")]
        from: Option<String>,
        /// RFC 3339: what came before this
        #[arg(long, value_name = "TIME", conflicts_with = "ids")]
        before: Option<String>,
        /// To this one alone (dst_…)
        #[arg(long, value_name = "ID")]
        destination: Option<String>,
        /// Only say how many there are
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum DestinationsCommand {
    List {
        #[command(flatten)]
        page: PageArgs,
        /// Those of one source (src_… or its name)
        #[arg(long, value_name = "SOURCE")]
        source: Option<String>,
    },
    Show {
        /// The destination's id (dst_…)
        id: String,
    },
    /// For example: destinations create GitHub url=https://ci.example.org/hooks
    Create {
        /// The source's id (src_…) or name
        source: String,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default
    Set {
        id: String,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Forwards that are there already go on; its endpoint stays
    Delete { id: String },
}

#[derive(Debug, Subcommand)]
pub enum ForwardsCommand {
    /// Newest first
    List {
        #[command(flatten)]
        which: ForwardsArgs,
        #[command(flatten)]
        page: PageArgs,
        /// PENDING, PROCESSING, SUCCESS, FAILED, DLQ, …; several with commas
        #[arg(long, value_delimiter = ',')]
        status: Vec<String>,
    },
    Show {
        /// The forward's id (fwd_…)
        id: String,
    },
    /// Failed Forwards, newest first
    Failed {
        #[command(flatten)]
        which: ForwardsArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Each as a new forward to the same destination, from attempt 1
    Retry {
        /// Failed forwards' ids (fwd_…)
        #[arg(value_name = "ID", conflicts_with_all = ["all", "source", "destination", "error", "error_text", "cid", "from", "before", "conditions"])]
        ids: Vec<String>,
        /// All that failed; at most 1000 at once, the oldest first
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        which: ForwardsArgs,
        /// Only say how many there are
        #[arg(long)]
        dry_run: bool,
    },
}

/// Which forwards.
#[derive(Debug, clap::Args)]
pub struct ForwardsArgs {
    /// From this source (src_… or its name)
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// To this destination (dst_…)
    #[arg(long, value_name = "ID")]
    pub destination: Option<String>,
    #[command(flatten)]
    pub filter: FilterArgs,
}

impl ForwardsArgs {
    /// Nothing chooses.
    pub fn is_empty(&self) -> bool {
        self.source.is_none() && self.destination.is_none() && self.filter.is_empty()
    }
}
