//! `deliveries`: the log and everything that waits, newest first.

use postrider::{Attempt, JobAct, Page};

use super::{reach, show};
use crate::args::{DeliveriesCommand, ForwardArgs, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table, Tint};

pub async fn run(global: &GlobalArgs, command: DeliveriesCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        DeliveriesCommand::List { list, status } => {
            let found = client.deliveries(&show::asked(list, status)).await?;
            show::deliveries(global, &found, "there are no deliveries");
            Ok(Exit::Done)
        }
        DeliveriesCommand::Show(arg) => show::delivery_in_full(global, &client, &arg.id).await,
        DeliveriesCommand::Attempts(arg) => {
            let found = client.attempts(&arg.id).await?;
            if global.json {
                output::print_json(&found)
            } else {
                attempts(&found)
            }
            Ok(Exit::Done)
        }
        DeliveriesCommand::Download(args) => show::download(&client, &args).await,
        DeliveriesCommand::Resend(which) => show::act(global, &client, JobAct::Resend, which, &[]).await,
        DeliveriesCommand::Retry(which) => show::act(global, &client, JobAct::Retry, which, &[]).await,
        DeliveriesCommand::Discard(which) => show::act(global, &client, JobAct::Discard, which, &[]).await,
        DeliveriesCommand::Forward(ForwardArgs { which, topic, without_header }) => {
            let act = JobAct::Forward { topic, keep_header: !without_header };
            show::act(global, &client, act, which, &[]).await
        }
    }
}

pub fn attempts(found: &Page<Attempt>) {
    let mut table = Table::new(&[
        ("ATTEMPT", Align::Right),
        ("STARTED (UTC)", Align::Left),
        ("TOOK", Align::Right),
        ("STATUS", Align::Right),
        ("OUTCOME", Align::Left),
        ("WHY", Align::Left),
    ]);
    for attempt in &found.data {
        let (outcome, tint) = match attempt.failure.as_deref() {
            None => ("delivered", Tint::Good),
            Some(code) => (code, Tint::Bad),
        };
        table.row(vec![
            attempt.number.into(),
            Cell::maybe(attempt.started_at.as_deref().map(output::utc)),
            format!("{} ms", attempt.took_ms).into(),
            Cell::maybe(attempt.status.map(|status| status.to_string())),
            Cell::new(outcome).tinted(Some(tint)),
            Cell::maybe(attempt.error.as_deref()),
        ]);
    }
    table.print("no attempt has been made yet");
}
