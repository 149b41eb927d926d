//! One file per command. Each asks the server through the client and shows the answer; none knows how the server does it.

mod access;
mod alerts;
mod backup;
mod completions;
mod connections;
mod deliveries;
mod dlq;
mod doctor;
mod export;
mod health;
mod import;
mod jobs;
mod man;
mod migrate;
mod openapi;
mod people;
mod ping;
mod publish;
mod queue;
mod reach;
mod restore;
mod schedule;
mod schema;
mod security;
mod send;
mod show;
mod topics;
mod webhooks;

use postrider::Configured;

use crate::args::{Args, Command};
use crate::exit::{Exit, Failed};
use crate::serve;

pub async fn run(args: Args) -> Result<Exit, Failed> {
    let global = args.global;
    match args.command {
        Command::Serve(args) => serve::run(&global.data, args).await,
        Command::Worker(args) => serve::worker::run(&global.data, args).await,
        Command::Send(args) => send::run(&global, args, send::How::Send).await,
        Command::Publish(args) => publish::run(&global, args).await,
        Command::Queue(command) => queue::run(&global, command).await,
        Command::Dlq(command) => dlq::run(&global, command).await,
        Command::Deliveries(command) => deliveries::run(&global, command).await,
        Command::Jobs(command) => jobs::run(&global, command).await,
        Command::Connections(command) => connections::run(&global, Configured::Connections, command).await,
        Command::Channels(command) => connections::run(&global, Configured::Channels, command.into()).await,
        Command::Services(command) => connections::run(&global, Configured::Services, command.into()).await,
        Command::Security(command) => security::run(&global, command).await,
        Command::Topics(command) => topics::run(&global, command).await,
        Command::Endpoints(command) => webhooks::endpoints(&global, command).await,
        Command::Subscriptions(command) => webhooks::subscriptions(&global, command).await,
        Command::Events(command) => webhooks::events(&global, command).await,
        Command::Projects(command) => access::projects(&global, command).await,
        Command::Keys(command) => access::keys(&global, command).await,
        Command::Users(command) => people::run(&global, command).await,
        Command::Audit(command) => access::audit(&global, command).await,
        Command::Alerts(command) => alerts::run(&global, command).await,
        Command::Schedule(args) => schedule::run(&global, args).await,
        Command::Import(args) => import::run(&global, args).await,
        Command::Export(args) => export::run(&global, args).await,
        Command::Schema(args) => schema::run(args),
        Command::Health => health::run(&global).await,
        Command::Openapi => Ok(openapi::run()),
        Command::Backup(args) => backup::run(&global, args).await,
        Command::Restore(args) => restore::run(&global, args).await,
        Command::Migrate(args) => migrate::run(&global, args).await,
        Command::Doctor => doctor::run(&global).await,
        Command::Completions { shell } => Ok(completions::run(shell)),
        Command::Man { dir } => man::run(dir.as_deref()),
        // `main` has run it before there was a runtime.
        Command::Transform { .. } => Ok(Exit::Done),
    }
}
