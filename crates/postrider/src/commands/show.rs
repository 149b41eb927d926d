//! What `queue`, `dlq` and `deliveries` share: they all show deliveries and act on them by id.

use postrider::{Client, ClientError, Delivery, DeliveryQuery, JobAct, Page, PageQuery};
use postrider_core::Failure;
use postrider_core::explanation::explain;
use serde_json::Value;

use super::{deliveries, jobs, reach};
use crate::args::{BulkArgs, DownloadArgs, EditArgs, FilterArgs, GlobalArgs, ListArgs};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint, status_tint};

pub fn asked(list: ListArgs, statuses: Vec<String>) -> DeliveryQuery {
    let page = PageQuery { limit: list.page.limit, cursor: list.page.cursor };
    DeliveryQuery { connection: list.connection, statuses, page, ..filtered(list.filter) }
}

pub fn filtered(filter: FilterArgs) -> DeliveryQuery {
    DeliveryQuery {
        failure: filter.error,
        error_text: filter.error_text,
        cid: filter.cid,
        created_from: filter.from,
        created_before: filter.before,
        more: filter.conditions,
        ..DeliveryQuery::default()
    }
}

/// One act on ids one by one, or on what a filter chooses as a job.
pub async fn act(
    global: &GlobalArgs,
    client: &Client,
    act: JobAct,
    which: BulkArgs,
    only: &[&str],
) -> Result<Exit, Failed> {
    if which.ids.is_empty() {
        return jobs::begin(global, client, act, which, only).await;
    }
    each(global, &which.ids, async |id| match &act {
        JobAct::Retry => client.retry(id).await,
        JobAct::Resend => client.resend(id).await,
        JobAct::Discard => client.discard(id).await,
        JobAct::SetAside => client.set_aside(id).await,
        JobAct::Forward { topic, keep_header } => client.forward(id, topic, *keep_header).await,
    })
    .await
}

pub fn deliveries(global: &GlobalArgs, found: &Page<Delivery>, when_empty: &str) {
    if global.json {
        return output::print_json(found);
    }
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("CONNECTION", Align::Left),
        ("STATUS", Align::Left),
        ("LABEL", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("ROUNDS", Align::Right),
        ("ARRIVED (UTC)", Align::Left),
        ("NEXT ATTEMPT (UTC)", Align::Left),
        ("LAST ERROR", Align::Left),
    ]);
    for delivery in &found.data {
        table.row(vec![
            Cell::new(&delivery.id),
            Cell::maybe(delivery.connection.as_deref()),
            Cell::new(&delivery.status).tinted(status_tint(&delivery.status)),
            blocked_or_label(delivery),
            delivery.attempts.into(),
            delivery.rounds.into(),
            Cell::maybe(delivery.created_at.as_deref().map(output::utc)),
            Cell::maybe(delivery.next_attempt_at.as_deref().map(output::utc)),
            Cell::maybe(delivery.error.as_deref()),
        ]);
    }
    table.print(when_empty);
    say_more(found.next_cursor.as_deref());
}

/// D25: the head of a queue that its receiver has refused for good.
fn blocked_or_label(delivery: &Delivery) -> Cell {
    match delivery.more.get("blocked").and_then(Value::as_str) {
        Some(code) => Cell::new(format!("blocked: {code}")).tinted(Some(Tint::Bad)),
        None => Cell::new(&delivery.label),
    }
}

/// Standard error, so that a table piped on stays a table.
pub fn say_more(next_cursor: Option<&str>) {
    if let Some(cursor) = next_cursor {
        output::remark(&format!("there are more: --cursor '{cursor}'"));
    }
}

/// Everything about one delivery: itself and its attempts.
pub async fn delivery_in_full(global: &GlobalArgs, client: &Client, id: &str) -> Result<Exit, Failed> {
    let delivery = client.delivery(id).await?;
    if global.json {
        output::print_json(&delivery);
        return Ok(Exit::Done);
    }
    let attempts = client.attempts(id).await?;
    let status = attempts.data.last().and_then(|attempt| attempt.status);
    sheet(&delivery, status).print();
    if !attempts.data.is_empty() {
        output::print("");
        deliveries::attempts(&attempts);
    }
    Ok(Exit::Done)
}

/// `status`: that of the last attempt.
fn sheet(delivery: &Delivery, status: Option<u16>) -> Sheet {
    let mut sheet = Sheet::default();
    let more = |name: &str| delivery.more.get(name);
    let time = |text: Option<&str>| text.map(output::local_beside);
    let time_in_more = |name: &str| time(more(name).and_then(Value::as_str));
    sheet.line("id", &delivery.id);
    sheet.maybe("cid", delivery.cid.as_deref());
    sheet.maybe("connection", delivery.connection.as_deref());
    sheet.line("status", format!("{} ({})", delivery.status, delivery.label));
    sheet.maybe("failure", delivery.failure.as_deref());
    sheet.maybe("error", delivery.error.as_deref());
    if let Some(failure) = delivery.failure.as_deref().and_then(Failure::parse) {
        let explanation = explain(failure, status);
        sheet.line("what happened", explanation.happened);
        sheet.line("what to do", explanation.to_do);
    }
    sheet.line("attempts", delivery.attempts);
    sheet.value("attempts at most", more("maxAttempts"));
    sheet.line("rounds failed", delivery.rounds);
    sheet.maybe("arrived", time(delivery.created_at.as_deref()));
    sheet.maybe("last attempt", time(delivery.last_attempt_at.as_deref()));
    sheet.maybe("next attempt", time(delivery.next_attempt_at.as_deref()));
    sheet.value("held back by", more("deferredBy"));
    sheet.maybe("held back until", time_in_more("deferredUntil"));
    sheet.value("waits behind", more("behind"));
    sheet.maybe("delivered", time_in_more("deliveredAt"));
    sheet.maybe("in the DLQ since", time_in_more("deadAt"));
    sheet.maybe("ended", time_in_more("endedAt"));
    sheet.value("DLQ note", more("dlqNote"));
    sheet.value("origin", more("origin"));
    sheet.value("method", more("method"));
    sheet.value("path", more("path"));
    sheet.value("params", more("params"));
    sheet.value("headers", more("headers"));
    sheet.maybe("body", more("bodyBytes").and_then(Value::as_u64).map(output::bytes));
    if more("edited") == Some(&Value::Bool(true)) {
        sheet.line("edited", "yes; the original: download --original");
    }
    sheet
}

/// Does one thing to each delivery, in the order given. One that is refused does not hold up the rest; the first refusal's code ends it.
pub async fn each(
    global: &GlobalArgs,
    ids: &[String],
    act: impl AsyncFn(&str) -> Result<Delivery, ClientError>,
) -> Result<Exit, Failed> {
    let mut exit = Exit::Done;
    for id in ids {
        match act(id).await {
            Ok(delivery) => changed(global, &delivery),
            Err(error) => {
                let mut failed = Failed::from(error);
                if ids.len() > 1 {
                    failed.message = format!("{id}: {}", failed.message);
                }
                failed.show();
                if exit == Exit::Done {
                    exit = failed.exit;
                }
            }
        }
    }
    Ok(exit)
}

fn changed(global: &GlobalArgs, delivery: &Delivery) {
    if global.json {
        output::print_json(delivery);
    } else {
        output::print(&output::plain(&format!("{}  {} ({})", delivery.id, delivery.status, delivery.label)));
    }
}

pub async fn edit(global: &GlobalArgs, client: &Client, args: &EditArgs) -> Result<Exit, Failed> {
    let body = reach::body(Some(&args.body))?;
    changed(global, &client.edit(&args.id, &body).await?);
    Ok(Exit::Done)
}

/// Byte for byte, to a file or to standard output.
pub async fn download(client: &Client, args: &DownloadArgs) -> Result<Exit, Failed> {
    use std::io::Write;
    let body = client.body(&args.id, args.original).await?;
    let (written, place) = match &args.output {
        Some(path) => (std::fs::write(path, &body), path.display().to_string()),
        None => {
            let mut out = std::io::stdout().lock();
            (out.write_all(&body).and_then(|()| out.flush()), "standard output".to_owned())
        }
    };
    written.map_err(|error| Failed::new(Exit::Failure, format!("{place} cannot be written: {error}")))?;
    Ok(Exit::Done)
}
