//! `queue`: what waits for a connection, and what an operator can do to it (Z23, D44).

use postrider::{DeliveryQuery, JobAct, PageQuery};

use super::{reach, show};
use crate::args::{GlobalArgs, QueueCommand};
use crate::exit::{Exit, Failed};

pub async fn run(global: &GlobalArgs, command: QueueCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        QueueCommand::List { connection, page } => {
            let page = PageQuery { limit: page.limit, cursor: page.cursor };
            let found = match connection {
                Some(connection) => client.queue(&connection, &page).await?,
                None => client.deliveries(&waiting(page)).await?,
            };
            show::deliveries(global, &found, "nothing is waiting");
            Ok(Exit::Done)
        }
        QueueCommand::Show(arg) => show::delivery_in_full(global, &client, &arg.id).await,
        QueueCommand::Edit(args) => show::edit(global, &client, &args).await,
        QueueCommand::Download(args) => show::download(&client, &args).await,
        QueueCommand::Discard(which) => show::act(global, &client, JobAct::Discard, which, WAITING).await,
        QueueCommand::SetAside(which) => show::act(global, &client, JobAct::SetAside, which, WAITING).await,
        QueueCommand::AttemptNow { ids, head_of: None } => {
            show::each(global, &ids, async |id| client.attempt_now(id).await).await
        }
        QueueCommand::AttemptNow { head_of: Some(connection), .. } => {
            show::each(global, &[connection], async |connection| client.attempt_head_now(connection).await).await
        }
    }
}

const WAITING: &[&str] = &["PENDING", "PROCESSING"];

/// What waits anywhere.
fn waiting(page: PageQuery) -> DeliveryQuery {
    let statuses = WAITING.iter().map(|word| (*word).to_owned()).collect();
    DeliveryQuery { statuses, page, ..DeliveryQuery::default() }
}
