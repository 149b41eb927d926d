//! `alerts`: what is wrong now, and what was.

use postrider::{Alert, PageQuery};

use super::access::of;
use super::{reach, show};
use crate::args::{AlertsCommand, GlobalArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table};

pub async fn run(global: &GlobalArgs, command: AlertsCommand) -> Result<Exit, Failed> {
    let AlertsCommand::List { page, state, whose } = command;
    let page = PageQuery { limit: page.limit, cursor: page.cursor };
    let found = reach::client(global)?.alerts(of(whose), state.as_deref(), &page).await?;
    if global.json {
        output::print_json(&found);
    } else {
        table(&found.data);
        show::say_more(found.next_cursor.as_deref());
    }
    Ok(Exit::Done)
}

fn table(alerts: &[Alert]) {
    let mut table = Table::new(&[
        ("RAISED (UTC)", Align::Left),
        ("RECOVERED", Align::Left),
        ("KIND", Align::Left),
        ("CONNECTION", Align::Left),
        ("WHAT", Align::Left),
    ]);
    for alert in alerts {
        let recovered = alert.recovered_at.as_deref().map(output::utc);
        table.row(vec![
            Cell::new(output::utc(&alert.raised_at)),
            Cell::maybe(recovered.as_ref()),
            Cell::new(&alert.kind),
            Cell::maybe(alert.connection.as_ref()),
            Cell::new(&alert.detail),
        ]);
    }
    table.print("there are no alerts");
}
