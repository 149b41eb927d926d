//! `queue`: what waits for a connection, and what an operator can do to it (Z23, D44).

use postrider::{DeliveryQuery, PageQuery};

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
        QueueCommand::Discard(args) => show::each(global, &args.ids, async |id| client.discard(id).await).await,
        QueueCommand::SetAside(args) => show::each(global, &args.ids, async |id| client.set_aside(id).await).await,
        QueueCommand::AttemptNow(args) => show::each(global, &args.ids, async |id| client.attempt_now(id).await).await,
    }
}

/// What waits anywhere.
fn waiting(page: PageQuery) -> DeliveryQuery {
    let statuses = ["PENDING", "PROCESSING"].map(str::to_owned).to_vec();
    DeliveryQuery { statuses, page, ..DeliveryQuery::default() }
}
