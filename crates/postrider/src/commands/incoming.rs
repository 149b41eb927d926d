//! `sources`, `destinations` and `forwards`: where webhooks of others come in, and what becomes of them (R12).
//!
//! Settings are checked by the server, which names each field it refuses.

use postrider::{
    Client, DeliveryQuery, Destination, FailedForward, Forward, ForwardsWanted, Page, PageQuery, ReplayedIncoming,
    Source,
};
use serde_json::{Map, Value};

use super::connections::settings_of;
use super::webhooks::{deleted, one, put_secret};
use super::{reach, show};
use crate::args::{DestinationsCommand, ForwardsArgs, ForwardsCommand, GlobalArgs, PageArgs, SourcesCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table, Tint, status_tint};

pub async fn sources(global: &GlobalArgs, command: SourcesCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        SourcesCommand::List(page) => {
            let found = client.sources(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            listed(global, &found, source_table);
        }
        SourcesCommand::Show { source } => one(global, &client.source(&id_of(&client, source).await?).await?),
        SourcesCommand::Create { settings, secret } => {
            let mut written = settings_of(&settings)?;
            put_secret(&mut written, secret.as_ref())?;
            one(global, &client.create_source(&written).await?);
        }
        SourcesCommand::Set { source, settings, replace } => {
            let (id, written) = (id_of(&client, source).await?, settings_of(&settings)?);
            let changed = if replace {
                client.replace_source(&id, &written).await?
            } else {
                client.change_source(&id, &written).await?
            };
            one(global, &changed);
        }
        SourcesCommand::Delete { source } => {
            let id = id_of(&client, source).await?;
            client.delete_source(&id).await?;
            deleted(global, &id);
        }
        SourcesCommand::RotateToken { source, overlap } => {
            let id = id_of(&client, source).await?;
            one(global, &client.rotate_source_token(&id, &wish(overlap)).await?);
        }
        SourcesCommand::RotateSecret { source, overlap, secret } => {
            let mut wish = wish(overlap);
            put_secret(&mut wish, secret.as_ref())?;
            let id = id_of(&client, source).await?;
            one(global, &client.rotate_source_secret(&id, &wish).await?);
        }
        SourcesCommand::Replay { source, ids, from, before, destination, dry_run } => {
            let id = id_of(&client, source).await?;
            let mut order = Map::new();
            for (key, value) in [("from", from), ("before", before), ("destinationId", destination)] {
                order.extend(value.map(|value| (key.to_owned(), value.into())));
            }
            if !ids.is_empty() {
                order.insert("eventIds".to_owned(), ids.into());
            }
            order.insert("dry_run".to_owned(), dry_run.into());
            replayed(global, &replay(&client, &id, order).await?, dry_run);
        }
    }
    Ok(Exit::Done)
}

pub async fn destinations(global: &GlobalArgs, command: DestinationsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        DestinationsCommand::List { page, source } => {
            let source = match source {
                Some(source) => Some(id_of(&client, source).await?),
                None => None,
            };
            let page = PageQuery { limit: page.limit, cursor: page.cursor };
            listed(global, &client.destinations(source.as_deref(), &page).await?, destination_table);
        }
        DestinationsCommand::Show { id } => one(global, &client.destination(&id).await?),
        DestinationsCommand::Create { source, settings } => {
            let mut written = settings_of(&settings)?;
            written.insert("sourceId".to_owned(), id_of(&client, source).await?.into());
            one(global, &client.create_destination(&written).await?);
        }
        DestinationsCommand::Set { id, settings } => {
            one(global, &client.change_destination(&id, &settings_of(&settings)?).await?);
        }
        DestinationsCommand::Delete { id } => {
            client.delete_destination(&id).await?;
            deleted(global, &id);
        }
    }
    Ok(Exit::Done)
}

pub async fn forwards(global: &GlobalArgs, command: ForwardsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        ForwardsCommand::List { which, page, status } => {
            let asked = asked(&client, which, page, status).await?;
            listed(global, &client.forwards(&asked).await?, forward_table);
        }
        ForwardsCommand::Show { id } => one(global, &client.incoming_forward(&id).await?),
        ForwardsCommand::Failed { which, page } => {
            let asked = asked(&client, which, page, Vec::new()).await?;
            listed(global, &client.failed_forwards(&asked).await?, failed_table);
        }
        ForwardsCommand::Retry { ids, all, which, dry_run } => {
            if ids.is_empty() && !all && which.is_empty() {
                return Err(Failed::usage("say which: ids, a filter, or --all".to_owned()));
            }
            let which = if ids.is_empty() {
                let page = PageArgs { limit: None, cursor: None };
                ForwardsWanted::Filter(Box::new(asked(&client, which, page, Vec::new()).await?))
            } else {
                ForwardsWanted::Ids(ids)
            };
            return retry(global, &client, &which, dry_run).await;
        }
    }
    Ok(Exit::Done)
}

/// 0 when all were retried, else 4.
async fn retry(global: &GlobalArgs, client: &Client, which: &ForwardsWanted, dry_run: bool) -> Result<Exit, Failed> {
    if dry_run {
        one(global, &client.count_forwards(which).await?);
        return Ok(Exit::Done);
    }
    let done = client.retry_forwards(which).await?;
    if global.json {
        output::print_json(&done);
    } else {
        for refused in &done.refused {
            let (id, why) = (refused["forwardId"].as_str(), refused["detail"].as_str());
            output::remark(&format!("{}: {}", id.unwrap_or_default(), why.unwrap_or_default()));
        }
        let more = if done.has_more { "; there are others: retry again" } else { "" };
        output::print(&format!("{} of {} retried{more}", done.retried, done.requested));
    }
    Ok(if done.refused.is_empty() { Exit::Done } else { Exit::Refused })
}

/// A range goes on until it is through.
async fn replay(client: &Client, id: &str, mut order: Map<String, Value>) -> Result<ReplayedIncoming, Failed> {
    let mut all = ReplayedIncoming::default();
    loop {
        let part = client.replay_incoming(id, &order).await?;
        all.events += part.events;
        all.forwards += part.forwards;
        let Some(cursor) = part.next_cursor else { return Ok(all) };
        order.insert("cursor".to_owned(), cursor.into());
    }
}

fn replayed(global: &GlobalArgs, all: &ReplayedIncoming, dry_run: bool) {
    if global.json {
        return output::print_json(all);
    }
    let verb = if dry_run { "would be forwarded again" } else { "forwarded again" };
    output::print(&format!("{} webhooks {verb}, {} forwards", all.events, all.forwards));
}

async fn asked(
    client: &Client,
    which: ForwardsArgs,
    page: PageArgs,
    statuses: Vec<String>,
) -> Result<DeliveryQuery, Failed> {
    let page = PageQuery { limit: page.limit, cursor: page.cursor };
    let mut asked = DeliveryQuery { statuses, page, ..show::filtered(which.filter) };
    if let Some(source) = which.source {
        asked.more.push(("source".to_owned(), id_of(client, source).await?));
    }
    asked.more.extend(which.destination.map(|id| ("destination".to_owned(), id)));
    Ok(asked)
}

/// A source is named by its id, or by its name.
async fn id_of(client: &Client, given: String) -> Result<String, Failed> {
    if given.starts_with("src_") {
        return Ok(given);
    }
    let mut cursor = None;
    loop {
        let page = client.sources(&PageQuery { limit: Some(1000), cursor }).await?;
        if let Some(found) = page.data.into_iter().find(|source| source.name == given) {
            return Ok(found.id);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Err(Failed::new(Exit::NotFound, format!("there is no source `{given}`")));
        }
    }
}

fn wish(overlap: Option<u64>) -> Map<String, Value> {
    overlap.map(|seconds| ("overlapSeconds".to_owned(), seconds.into())).into_iter().collect()
}

fn listed<T: serde::Serialize>(global: &GlobalArgs, found: &Page<T>, table: fn(&[T])) {
    if global.json {
        return output::print_json(found);
    }
    table(&found.data);
    show::say_more(found.next_cursor.as_deref());
}

fn source_table(sources: &[Source]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("NAME", Align::Left),
        ("PROVIDER", Align::Left),
        ("TOPIC", Align::Left),
        ("STATE", Align::Left),
        ("ACCEPTED", Align::Right),
        ("REJECTED", Align::Right),
        ("DESTINATIONS", Align::Right),
    ]);
    for source in sources {
        let more = |name: &str| source.more.get(name).unwrap_or(&Value::Null);
        let rejected = more("figures")["rejected"].as_object();
        let rejected: u64 = rejected.into_iter().flat_map(Map::values).filter_map(Value::as_u64).sum();
        let (state, tint) = match (source.enabled, more("secretUnreadable").is_null()) {
            (false, _) => ("off", Some(Tint::Waiting)),
            (true, false) => ("secret unreadable", Some(Tint::Bad)),
            (true, true) => ("on", None),
        };
        table.row(vec![
            Cell::new(&source.id),
            Cell::new(&source.name),
            Cell::new(&source.provider),
            Cell::new(&source.topic),
            Cell::new(state).tinted(tint),
            more("figures")["accepted"].as_u64().unwrap_or_default().into(),
            Cell::from(rejected).tinted((rejected > 0).then_some(Tint::Waiting)),
            more("destinations").as_u64().unwrap_or_default().into(),
        ]);
    }
    table.print("there are no sources");
}

fn destination_table(destinations: &[Destination]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("NAME", Align::Left),
        ("SOURCE", Align::Left),
        ("TO", Align::Left),
        ("STATE", Align::Left),
    ]);
    for destination in destinations {
        table.row(vec![
            Cell::new(&destination.id),
            Cell::new(&destination.name),
            Cell::new(&destination.source_id),
            Cell::maybe(destination.url.as_deref()),
            Cell::new(if destination.enabled { "on" } else { "off" }),
        ]);
    }
    table.print("there are no destinations");
}

fn forward_table(forwards: &[Forward]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("SOURCE", Align::Left),
        ("TO", Align::Left),
        ("STATUS", Align::Left),
        ("LABEL", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("WHY", Align::Left),
    ]);
    for forward in forwards {
        let delivery = &forward.delivery;
        table.row(vec![
            Cell::new(&delivery.id),
            Cell::maybe(forward.source_name.as_deref()),
            Cell::maybe(forward.destination_url.as_deref()),
            Cell::new(&delivery.status).tinted(status_tint(&delivery.status)),
            Cell::new(&delivery.label),
            delivery.attempts.into(),
            Cell::maybe(delivery.error.as_deref()),
        ]);
    }
    table.print("there are no forwards");
}

fn failed_table(forwards: &[FailedForward]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("SOURCE", Align::Left),
        ("TO", Align::Left),
        ("FAILED (UTC)", Align::Left),
        ("ATTEMPTS", Align::Right),
        ("FAILURE", Align::Left),
        ("WHY", Align::Left),
    ]);
    for forward in forwards {
        table.row(vec![
            Cell::new(&forward.forward_id),
            Cell::maybe(forward.source_name.as_deref()),
            Cell::maybe(forward.destination_url.as_deref()),
            Cell::maybe(forward.failed_at.as_deref().map(output::utc)),
            forward.attempt_count.into(),
            Cell::maybe(forward.failure.as_deref()),
            Cell::maybe(forward.last_error.as_deref()),
        ]);
    }
    table.print("nothing has failed");
}
