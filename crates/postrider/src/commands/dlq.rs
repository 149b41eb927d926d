//! `dlq`: what could not be delivered, why, and what becomes of it (Z20, Z23).

use postrider::{DeadLetter, JobAct, Page};

use super::{reach, show};
use crate::args::{DlqCommand, ForwardArgs, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table};

pub async fn run(global: &GlobalArgs, command: DlqCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        DlqCommand::List(list) => {
            let found = client.dead_letters(&show::asked(list, Vec::new())).await?;
            if global.json {
                output::print_json(&found)
            } else {
                table(&found)
            }
            Ok(Exit::Done)
        }
        DlqCommand::Show(arg) => show::delivery_in_full(global, &client, &arg.id).await,
        DlqCommand::Edit(args) => show::edit(global, &client, &args).await,
        DlqCommand::Download(args) => show::download(&client, &args).await,
        DlqCommand::Retry(which) => show::act(global, &client, JobAct::Retry, which, DEAD).await,
        DlqCommand::Resend(which) => show::act(global, &client, JobAct::Resend, which, DEAD).await,
        DlqCommand::Discard(which) => show::act(global, &client, JobAct::Discard, which, DEAD).await,
        DlqCommand::Forward(ForwardArgs { which, topic, without_header }) => {
            let act = JobAct::Forward { topic, keep_header: !without_header };
            show::act(global, &client, act, which, DEAD).await
        }
    }
}

const DEAD: &[&str] = &["DLQ"];

fn table(found: &Page<DeadLetter>) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("CONNECTION", Align::Left),
        ("DEAD SINCE (UTC)", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("ROUNDS", Align::Right),
        ("FAILURE", Align::Left),
        ("WHY", Align::Left),
    ]);
    for letter in &found.data {
        table.row(vec![
            Cell::new(&letter.delivery_id),
            Cell::maybe(letter.connection.as_deref()),
            Cell::maybe(letter.failed_at.as_deref().map(output::utc)),
            letter.attempt_count.into(),
            letter.rounds.into(),
            Cell::maybe(letter.failure.as_deref()),
            Cell::maybe(letter.last_error.as_deref()),
        ]);
    }
    table.print("nothing is in the DLQ");
    show::say_more(found.next_cursor.as_deref());
}
