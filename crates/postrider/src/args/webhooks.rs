//! `endpoints`, `subscriptions` and `events`.

use clap::Subcommand;

use super::{BodyArg, PageArgs, SettingsArgs};

#[derive(Debug, Subcommand)]
pub enum EndpointsCommand {
    List(PageArgs),
    Show {
        /// The endpoint's id (ep_…)
        id: String,
    },
    /// Make one and print its secret, this once; for example: endpoints create url=https://hooks.example.org/in preset=patient
    Create {
        #[command(flatten)]
        settings: SettingsArgs,
        /// Read a secret of your own (whsec_… or whsk_…) from a file; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default
    Set {
        id: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Replace all settings instead; the secret stays
        #[arg(long)]
        replace: bool,
    },
    Delete {
        id: String,
        /// Even with deliveries in its queue or DLQ: they end as discarded, in the log
        #[arg(long)]
        force: bool,
    },
    /// Send it one event that is tried once and leaves no delivery; 0 when it was taken, else 6
    Test {
        id: String,
        /// The event's type
        #[arg(long = "type", value_name = "TYPE")]
        event_type: Option<String>,
        /// Its data, as JSON; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        body: Option<BodyArg>,
    },
    /// Ask it for a challenge back; 0 when it gave it, else 6
    Verify {
        id: String,
    },
    Enable {
        id: String,
    },
    /// Nothing is sent to it from now on, and events make no deliveries for it
    Disable {
        id: String,
    },
    /// Make a new secret and print it, this once; the former one signs too for a day unless said
    RotateSecret {
        id: String,
        /// How long the former secret signs too; 0: not at all
        #[arg(long, value_name = "SECONDS")]
        overlap: Option<u64>,
        /// Read a secret of your own from a file; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
    },
    /// Since when it fails, and what would switch it off
    Health {
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum SubscriptionsCommand {
    List {
        #[command(flatten)]
        page: PageArgs,
        /// Those of one endpoint (ep_…)
        #[arg(long, value_name = "ID")]
        endpoint: Option<String>,
    },
    Show {
        /// The subscription's id (sub_…)
        id: String,
    },
    /// For example: subscriptions create endpointId=ep_… 'eventType=order.*'
    Create {
        #[command(flatten)]
        settings: SettingsArgs,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default
    Set {
        id: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Replace all settings instead
        #[arg(long)]
        replace: bool,
    },
    Delete {
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum EventsCommand {
    /// Store an event with a delivery for each subscription that selects its type
    Publish {
        /// Such as invoice.paid
        #[arg(required_unless_present = "batch", value_name = "TYPE")]
        event_type: Option<String>,
        /// Its data, as JSON; `-` reads standard input; null when left out
        #[arg(long, value_name = "FILE|-")]
        body: Option<BodyArg>,
        /// Your own id for it (evt_…): published again, it is the same event
        #[arg(long)]
        id: Option<String>,
        /// The correlation id of its deliveries
        #[arg(long)]
        cid: Option<String>,
        /// Many events from a file, one JSON object a line, as in the API; `-` reads standard input
        #[arg(long, value_name = "FILE|-", conflicts_with_all = ["event_type", "body", "id", "cid"])]
        batch: Option<BodyArg>,
    },
}
