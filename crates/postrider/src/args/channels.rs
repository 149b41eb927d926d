//! `channels` and `services`: the same commands as of connections, in their own words.

use clap::Subcommand;

use super::{ConnectionsCommand, PageArgs, SettingsArgs, WsdlArgs};

#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    List(PageArgs),
    /// By name; `rest:Orders` where several types have it
    Show {
        name: String,
    },
    /// For example: channels create rest Orders service=orders.order-intake url_path=/orders use_queue=true max_retries=3
    Create {
        /// rest, soap or mllp; left out with --file
        #[arg(required_unless_present = "file", value_name = "TYPE")]
        kind: Option<String>,
        #[arg(required_unless_present = "file")]
        name: Option<String>,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default, `name=…` renames
    Update {
        name: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Replace all settings instead
        #[arg(long)]
        replace: bool,
    },
    Delete {
        name: String,
        /// Even with requests in its queue or DLQ: they end as discarded, in the log
        #[arg(long)]
        force: bool,
    },
    /// Hold its queue: requests are accepted, nothing runs
    Pause {
        name: String,
    },
    Resume {
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum ServicesCommand {
    /// Those that are configured, and those of the server's own process
    List(PageArgs),
    Show {
        name: String,
    },
    /// For example: services create orders.order-intake address=http://127.0.0.1:9900/services/orders.order-intake
    Create {
        #[arg(required_unless_present = "file")]
        name: Option<String>,
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change the settings given and leave the others
    Update {
        name: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Replace all settings instead
        #[arg(long)]
        replace: bool,
    },
    /// Runs of channels that name it fail until there is one again
    Delete {
        name: String,
        /// Even with messages that wait for it: they end as discarded, in the log
        #[arg(long)]
        force: bool,
    },
}

const NO_WSDL: WsdlArgs = WsdlArgs { wsdl: None, imports: Vec::new(), port: None };

impl From<ChannelsCommand> for ConnectionsCommand {
    fn from(command: ChannelsCommand) -> Self {
        match command {
            ChannelsCommand::List(page) => ConnectionsCommand::List(page),
            ChannelsCommand::Show { name } => ConnectionsCommand::Show { name },
            ChannelsCommand::Create { kind, name, settings } => {
                ConnectionsCommand::Create { kind, name, settings, wsdl: NO_WSDL }
            }
            ChannelsCommand::Update { name, settings, replace } => {
                ConnectionsCommand::Update { name, settings, wsdl: NO_WSDL, replace }
            }
            ChannelsCommand::Delete { name, force } => ConnectionsCommand::Delete { name, force },
            ChannelsCommand::Pause { name } => ConnectionsCommand::Pause { name },
            ChannelsCommand::Resume { name } => ConnectionsCommand::Resume { name: Some(name), all: false },
        }
    }
}

impl From<ServicesCommand> for ConnectionsCommand {
    fn from(command: ServicesCommand) -> Self {
        match command {
            ServicesCommand::List(page) => ConnectionsCommand::List(page),
            ServicesCommand::Show { name } => ConnectionsCommand::Show { name },
            ServicesCommand::Create { name, settings } => {
                ConnectionsCommand::Create { kind: None, name, settings, wsdl: NO_WSDL }
            }
            ServicesCommand::Update { name, settings, replace } => {
                ConnectionsCommand::Update { name, settings, wsdl: NO_WSDL, replace }
            }
            ServicesCommand::Delete { name, force } => ConnectionsCommand::Delete { name, force },
        }
    }
}
