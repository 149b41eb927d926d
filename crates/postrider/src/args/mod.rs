//! The command line as it is written. What a command does is in `commands`, in the file of its name.

mod access;
mod alerts;
mod bulk;
mod channels;
mod configuration;
mod deliveries;
mod people;
mod resources;
mod sending;
mod webhooks;

pub use access::{AuditCommand, KeysCommand, ProjectsCommand, WhoseArgs};
pub use alerts::AlertsCommand;
pub use bulk::BulkArgs;
pub use channels::{ChannelsCommand, ServicesCommand};
pub use configuration::{ExportArgs, ImportArgs, SchemaArgs};
pub use deliveries::{
    DeliveriesCommand, DlqCommand, DownloadArgs, EditArgs, FilterArgs, ForwardArgs, JobsCommand, ListArgs, PageArgs,
    QueueCommand,
};
pub use people::{PasswordArg, UsersCommand};
pub use resources::{ConnectionsCommand, Preset, ScheduleArgs, SecurityCommand, SettingsArgs, TopicsCommand, WsdlArgs};
pub use sending::{BodyArg, PublishArgs, SendArgs};
pub use webhooks::{EndpointsCommand, EventsCommand, SubscriptionsCommand};

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Delivers requests to other systems: stored first, retried, and kept where you can see them.
#[derive(Debug, Parser)]
#[command(name = "postrider", version, after_help = EXIT_CODES, max_term_width = 120)]
pub struct Args {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failure (the server cannot be reached, a port in use), 2 wrong usage, 3 not found, 4 refused, \
5 store unavailable, 6 not delivered (send, publish).";

#[derive(Clone, Debug, clap::Args)]
pub struct GlobalArgs {
    /// The server's address; else that of the server running on the data directory, else http://127.0.0.1:8080
    #[arg(long, global = true, value_name = "URL", env = "POSTRIDER_SERVER")]
    pub server: Option<String>,

    /// A PEM file of authorities to trust with https, in place of the public ones
    #[arg(long, global = true, value_name = "FILE", env = "POSTRIDER_TLS_CA")]
    pub tls_ca: Option<PathBuf>,

    /// The key; else POSTRIDER_ADMIN_KEY
    #[arg(long, global = true, env = "POSTRIDER_KEY", hide_env_values = true)]
    pub key: Option<String>,

    #[arg(long, global = true, value_name = "NAME", default_value = "default")]
    pub project: String,

    /// Print JSON instead of tables
    #[arg(long, global = true)]
    pub json: bool,

    /// The data directory
    #[arg(long, global = true, value_name = "DIR", env = "POSTRIDER_DATA", default_value = "postrider-data")]
    pub data: PathBuf,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server
    Serve(ServeArgs),
    /// Deliver what waits in a store that several processes share, without an API
    Worker(WorkerArgs),
    /// Call a connection and print what became of it
    Send(SendArgs),
    /// Store a request for a connection without calling it first
    Publish(PublishArgs),
    /// What waits in a connection's queue
    #[command(subcommand)]
    Queue(QueueCommand),
    /// What could not be delivered
    #[command(subcommand)]
    Dlq(DlqCommand),
    /// Every delivery, newest first
    #[command(subcommand)]
    Deliveries(DeliveriesCommand),
    /// Acts over many deliveries, which go on by themselves
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Where requests go
    #[command(subcommand)]
    Connections(ConnectionsCommand),
    /// Addresses that accept requests, and what they run
    #[command(subcommand)]
    Channels(ChannelsCommand),
    /// What channels run
    #[command(subcommand)]
    Services(ServicesCommand),
    /// With which credentials requests go out, or come in at a channel
    #[command(subcommand)]
    Security(SecurityCommand),
    /// Topics, their messages and subscriptions
    #[command(subcommand)]
    Topics(TopicsCommand),
    /// Where events are sent, signed
    #[command(subcommand)]
    Endpoints(EndpointsCommand),
    /// Which events are sent where
    #[command(subcommand)]
    Subscriptions(SubscriptionsCommand),
    /// What has happened, for whoever subscribed to it
    #[command(subcommand)]
    Events(EventsCommand),
    /// Projects and their settings
    #[command(subcommand)]
    Projects(ProjectsCommand),
    /// API keys: who may do what
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Users: who may log in to the dashboard
    #[command(subcommand)]
    Users(UsersCommand),
    /// Who did what
    #[command(subcommand)]
    Audit(AuditCommand),
    /// What is wrong now, and what was
    #[command(subcommand)]
    Alerts(AlertsCommand),
    /// When the attempts of a policy would be made
    Schedule(ScheduleArgs),
    /// Apply a YAML file, all of it or nothing, after showing what it changes
    Import(ImportArgs),
    /// The configuration as a YAML file: what differs from the defaults
    Export(ExportArgs),
    /// The JSON Schema of such a file, for editors
    Schema(SchemaArgs),
    /// Whether the server takes requests: 0 when it does; needs no key
    Health,
    /// The HTTP API as an OpenAPI 3.1 document
    Openapi,
    /// Copy the store of the data directory to one file, while the server runs or not
    Backup(BackupArgs),
    /// Make a data directory from a backup; every queue is paused until somebody resumes it
    Restore(RestoreArgs),
    /// Move everything of a SQLite store into an empty PostgreSQL database; run it again after a cut, and it goes on
    Migrate(MigrateArgs),
    /// Look at everything that a server stands on: what is wrong, and what to do
    Doctor,
    /// Completions for a shell
    Completions { shell: clap_complete::Shell },
    /// The manual page; with a directory, one page for each command in it
    Man { dir: Option<PathBuf> },
    /// What the server starts to run transformations in: programs on standard input, answers on standard output
    #[command(hide = true)]
    Transform {
        /// Bytes of memory beyond what it starts with
        #[arg(long)]
        memory: u64,
        /// Seconds of CPU time for one program
        #[arg(long)]
        cpu: u64,
    },
}

#[derive(Debug, clap::Args)]
pub struct BackupArgs {
    /// The file to write; one that is there is never written over
    #[arg(value_name = "FILE")]
    pub to: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct RestoreArgs {
    /// A file that `backup` wrote
    #[arg(value_name = "FILE")]
    pub from: PathBuf,
}

#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// The store to move: sqlite:PATH; no server may have it open
    #[arg(long, value_name = "STORE")]
    pub from: String,

    /// Where to: postgres://USER@HOST/DATABASE, empty
    #[arg(long, value_name = "STORE", env = "POSTRIDER_STORE", hide_env_values = true)]
    pub to: Option<String>,

    /// Let the store of --from be served again that was moved; make sure that nobody serves the other one
    #[arg(long)]
    pub take_back: bool,
}

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Where to listen; port 0 picks a free one
    #[arg(long, value_name = "ADDR", env = "POSTRIDER_LISTEN", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,

    /// A YAML file to apply before anything is delivered; a bad one refuses the start
    #[arg(long, value_name = "FILE", env = "POSTRIDER_CONFIG")]
    pub config: Option<OsString>,

    /// The store: sqlite:PATH or postgres://USER@HOST/DATABASE; else `postrider.db` in the data directory
    #[arg(long, value_name = "STORE", env = "POSTRIDER_STORE", hide_env_values = true, conflicts_with = "demo")]
    pub store: Option<String>,

    /// After a restore: go on with the queues that it paused
    #[arg(long)]
    pub resume: bool,

    /// Run the Python services in this folder: started, watched and started again with the server; what they call is this server
    #[arg(long, value_name = "DIR", env = "POSTRIDER_SERVICES")]
    pub services: Option<PathBuf>,

    /// Lets their files import OLD and get the module NEW, for services that were written elsewhere
    #[arg(long, value_name = "OLD=NEW", requires = "services")]
    pub services_alias: Vec<String>,

    /// Try it out: connections to a built-in flaky receiver, some traffic, and a data directory that is gone afterwards
    #[arg(long)]
    pub demo: bool,
}

#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// The store: postgres://USER@HOST/DATABASE, shared with the servers
    #[arg(long, value_name = "STORE", env = "POSTRIDER_STORE", hide_env_values = true)]
    pub store: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn global_options_may_stand_behind_the_command() {
        let args = Args::try_parse_from(["postrider", "dlq", "list", "--json", "--server", "http://a", "--limit", "5"]);
        let args = args.unwrap();
        assert!(args.global.json);
        assert_eq!(args.global.server.as_deref(), Some("http://a"));
        assert!(matches!(args.command, Command::Dlq(DlqCommand::List(list)) if list.page.limit == Some(5)));
    }

    #[test]
    fn a_command_that_makes_no_sense_is_usage() {
        for words in [
            &["postrider"][..],
            &["postrider", "fly"],
            &["postrider", "send"],
            &["postrider", "serve", "--listen", "nowhere"],
            &["postrider", "send", "a", "--param", "no-equals-sign"],
            &["postrider", "send", "a", "--header", "no-colon"],
            &["postrider", "publish", "a", "--batch", "-", "--body", "-"],
            &["postrider", "publish", "a", "--batch", "-", "--header", "a:b"],
            &["postrider", "publish", "a", "--idempotency-key", "k"],
            &["postrider", "send", "a", "--batch", "-"],
            &["postrider", "schedule", "a", "--preset", "webhook"],
            &["postrider", "schedule", "--preset", "unheard-of"],
            &["postrider", "dlq", "list", "--limit", "0"],
            &["postrider", "dlq", "retry", "msg_1", "--all"],
            &["postrider", "dlq", "retry", "msg_1", "--cid", "c"],
            &["postrider", "dlq", "retry", "msg_1", "--wait"],
            &["postrider", "dlq", "forward", "msg_1"],
            &["postrider", "queue", "attempt-now"],
            &["postrider", "queue", "attempt-now", "msg_1", "--head-of", "a"],
            &["postrider", "deliveries", "list", "--where", "attempts_min"],
            &["postrider", "events", "publish"],
            &["postrider", "events", "publish", "a.b", "--batch", "-"],
            &["postrider", "endpoints", "set"],
            &["postrider", "jobs", "show"],
            &["postrider", "import"],
            &["postrider", "migrate", "--to", "postgres://h/d"],
        ] {
            let error = Args::try_parse_from(words).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}");
        }
    }
}
