//! `connections`, `topics` and `schedule`.

use clap::{Subcommand, ValueEnum};

use super::{BodyArg, PageArgs};

#[derive(Debug, Subcommand)]
pub enum ConnectionsCommand {
    List(PageArgs),
    Show {
        name: String,
    },
    /// For example: connections create rest "Billing API" host=http://127.0.0.1:9000 use_queue=true max_retries=3
    Create {
        /// rest, mllp, soap or fhir; left out with --file
        #[arg(required_unless_present = "file", value_name = "TYPE")]
        kind: Option<String>,
        #[arg(required_unless_present = "file")]
        name: Option<String>,
        #[command(flatten)]
        settings: SettingsArgs,
        #[command(flatten)]
        wsdl: WsdlArgs,
    },
    /// Change the settings given and leave the others; `key=null` takes one back to its default, `name=…` renames
    Update {
        name: String,
        #[command(flatten)]
        settings: SettingsArgs,
        #[command(flatten)]
        wsdl: WsdlArgs,
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
    /// Hold its queue: calls are stored, nothing is sent
    Pause {
        name: String,
    },
    /// Try whether its remote system can be reached: nothing is delivered or stored
    Ping {
        name: String,
        /// HEAD, GET or OPTIONS; on a connection of type rest
        #[arg(long)]
        method: Option<String>,
    },
    Resume {
        #[arg(required_unless_present = "all")]
        name: Option<String>,
        /// Every paused connection of the project
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
}

/// What fills the settings of a connection of type soap.
#[derive(Debug, clap::Args)]
pub struct WsdlArgs {
    /// A WSDL 1.1: gives host, url_path, soap_version, namespace, element_form and operations where they are not given
    #[arg(long, value_name = "FILE|-")]
    pub wsdl: Option<BodyArg>,
    /// A document that the WSDL imports; nothing is fetched
    #[arg(long = "wsdl-import", value_name = "FILE", requires = "wsdl")]
    pub imports: Vec<BodyArg>,
    /// Which of its ports is meant, where several services are in it
    #[arg(long = "wsdl-port", value_name = "NAME", requires = "wsdl")]
    pub port: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct SettingsArgs {
    /// Settings as KEY=VALUE; a value is read as JSON where it is JSON, else as text
    #[arg(value_name = "KEY=VALUE")]
    pub pairs: Vec<String>,
    /// A file with a JSON object of settings; `-` reads standard input. Pairs win over it
    #[arg(long, value_name = "FILE|-")]
    pub file: Option<BodyArg>,
}

#[derive(Debug, Subcommand)]
pub enum SecurityCommand {
    List(PageArgs),
    /// Everything but the secret
    Show {
        name: String,
    },
    /// For example: security create basic_auth lab.sec username=lab --secret -
    Create {
        /// basic_auth, apikey, bearer, oauth2, smart or wss; left out with --file
        #[arg(required_unless_present = "file", value_name = "TYPE")]
        kind: Option<String>,
        #[arg(required_unless_present = "file")]
        name: Option<String>,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Read the secret (password, key, token, client_secret, private_key) from a file; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
    },
    /// Change the settings given and leave the others, the secret too; holds from the next attempt on
    Update {
        name: String,
        #[command(flatten)]
        settings: SettingsArgs,
        /// Read a new secret from a file; `-` reads standard input
        #[arg(long, value_name = "FILE|-")]
        secret: Option<BodyArg>,
        /// Replace all settings instead; the secret stays unless it is given
        #[arg(long)]
        replace: bool,
    },
    /// Refused while connections refer to it
    Delete {
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum TopicsCommand {
    List(PageArgs),
    Create {
        name: String,
        #[arg(long, default_value = "")]
        description: String,
        /// How long messages are kept, in seconds (default 7 days)
        #[arg(long)]
        retention_seconds: Option<u64>,
    },
    Delete {
        name: String,
    },
    /// Store a message on a topic
    Publish {
        name: String,
        #[arg(long, value_name = "FILE|-")]
        body: Option<BodyArg>,
        #[arg(long = "header", value_name = "K:V", value_parser = super::sending::header)]
        headers: Vec<(String, String)>,
    },
    /// What is on a topic; takes nothing
    Messages {
        name: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Create a subscription that `pull` takes messages from
    Subscribe {
        name: String,
        subscription: String,
    },
    /// Take messages; each comes again until it is acknowledged
    Pull {
        name: String,
        subscription: String,
        /// Messages, 1 to 1000
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        max: u32,
        /// Acknowledge them once they are printed
        #[arg(long)]
        ack: bool,
    },
    Ack {
        name: String,
        subscription: String,
        /// Messages' ids (evt_…)
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

/// Of a connection, of a preset, or of settings tried out here; only the first asks a server.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("whose").required(true).multiple(true)
    .args(["connection", "preset", "max_retries", "retry_delays"])))]
pub struct ScheduleArgs {
    #[arg(conflicts_with_all = ["preset", "max_retries", "retry_delays"])]
    pub connection: Option<String>,

    #[arg(long, value_enum, conflicts_with_all = ["max_retries", "retry_delays"])]
    pub preset: Option<Preset>,

    /// Try out rounds: retries after the first attempt, 0 to 1000
    #[arg(long, conflicts_with = "retry_delays")]
    pub max_retries: Option<u32>,
    /// The first wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0, allow_negative_numbers = true)]
    pub retry_sleep_time: f64,
    /// Each next wait is the previous one times this
    #[arg(long, value_name = "NUMBER", default_value_t = 2.0, allow_negative_numbers = true)]
    pub retry_backoff_multiplier: f64,
    /// All waits together at most, in seconds; 0 means no retry
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0, allow_negative_numbers = true)]
    pub retry_backoff_threshold: f64,

    /// Try out a ladder: its waits in seconds, with commas
    #[arg(long, value_name = "SECONDS,…", value_delimiter = ',')]
    pub retry_delays: Vec<f64>,
    /// Attempts of the ladder in all, 1 to 20; one more than delays when left out
    #[arg(long)]
    pub max_attempts: Option<u32>,
    /// Spread the ladder's waits between half and one and a half
    #[arg(long)]
    pub jitter: bool,
}

/// The ready-made policies for webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    Webhook,
    Forward,
    Patient,
}
