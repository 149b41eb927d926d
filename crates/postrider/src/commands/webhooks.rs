//! `endpoints`, `subscriptions` and `events`: where events go, which of them, and the events themselves.
//!
//! Settings are checked by the server, which names each field it refuses.

use postrider::{Client, Endpoint, EventBatch, PageQuery, PushSubscription};
use serde::Serialize;
use serde_json::{Map, Value};

use super::connections::settings_of;
use super::publish::{Lines, not_taken};
use super::{reach, show};
use crate::args::{BodyArg, EndpointsCommand, EventsCommand, GlobalArgs, SubscriptionsCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Sheet, Table, Tint};

pub async fn endpoints(global: &GlobalArgs, command: EndpointsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        EndpointsCommand::List(page) => {
            let found = client.endpoints(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                endpoint_table(&found.data);
                show::say_more(found.next_cursor.as_deref());
            }
        }
        EndpointsCommand::Show { id } => one(global, &client.endpoint(&id).await?),
        EndpointsCommand::Create { settings, secret } => {
            let mut written = settings_of(&settings)?;
            put_secret(&mut written, secret.as_ref())?;
            one(global, &client.create_endpoint(&written).await?);
        }
        EndpointsCommand::Set { id, settings, replace } => {
            let written = settings_of(&settings)?;
            let changed = if replace {
                client.replace_endpoint(&id, &written).await?
            } else {
                client.change_endpoint(&id, &written).await?
            };
            one(global, &changed);
        }
        EndpointsCommand::Delete { id, force } => {
            client.delete_endpoint(&id, force).await?;
            deleted(global, &id);
        }
        EndpointsCommand::Test { id, event_type, body } => {
            let event = event_of(event_type, body.as_ref())?;
            return Ok(tried(global, &client.test_endpoint(&id, &event).await?, "succeeded"));
        }
        EndpointsCommand::Verify { id } => {
            return Ok(tried(global, &client.verify_endpoint(&id).await?, "verification"));
        }
        EndpointsCommand::Enable { id } => one(global, &client.enable_endpoint(&id).await?),
        EndpointsCommand::Disable { id } => one(global, &client.disable_endpoint(&id).await?),
        EndpointsCommand::RotateSecret { id, overlap, secret } => {
            let mut wish = Map::new();
            put_secret(&mut wish, secret.as_ref())?;
            if let Some(seconds) = overlap {
                wish.insert("overlapSeconds".to_owned(), seconds.into());
            }
            one(global, &client.rotate_endpoint_secret(&id, &wish).await?);
        }
        EndpointsCommand::Health { id } => one(global, &client.endpoint_health(&id).await?),
    }
    Ok(Exit::Done)
}

pub async fn subscriptions(global: &GlobalArgs, command: SubscriptionsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        SubscriptionsCommand::List { page, endpoint } => {
            let page = PageQuery { limit: page.limit, cursor: page.cursor };
            let found = client.push_subscriptions(endpoint.as_deref(), &page).await?;
            if global.json {
                output::print_json(&found);
            } else {
                subscription_table(&found.data);
                show::say_more(found.next_cursor.as_deref());
            }
        }
        SubscriptionsCommand::Show { id } => one(global, &client.push_subscription(&id).await?),
        SubscriptionsCommand::Create { settings } => {
            one(global, &client.create_push_subscription(&settings_of(&settings)?).await?);
        }
        SubscriptionsCommand::Set { id, settings, replace } => {
            let written = settings_of(&settings)?;
            let changed = if replace {
                client.replace_push_subscription(&id, &written).await?
            } else {
                client.change_push_subscription(&id, &written).await?
            };
            one(global, &changed);
        }
        SubscriptionsCommand::Delete { id } => {
            client.delete_push_subscription(&id).await?;
            deleted(global, &id);
        }
    }
    Ok(Exit::Done)
}

pub async fn events(global: &GlobalArgs, command: EventsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    let EventsCommand::Publish { event_type, body, id, cid, batch } = command;
    if let Some(from) = batch {
        return publish_all(global, &client, &from).await;
    }
    let mut event = event_of(event_type, body.as_ref())?;
    event.entry("data").or_insert(Value::Null);
    if let Some(id) = id {
        event.insert("id".to_owned(), id.into());
    }
    let published = client.publish_event(&event, cid.as_deref()).await?;
    if global.json {
        output::print_json(&published);
    } else {
        let words = if published.repeated { "published before" } else { "published" };
        let text = format!("{}  {words}, {} deliveries", published.event_id, published.deliveries_created);
        output::print(&output::plain(&text));
    }
    Ok(Exit::Done)
}

/// Group after group, so that a file of any length is never in memory as a whole.
async fn publish_all(global: &GlobalArgs, client: &Client, from: &BodyArg) -> Result<Exit, Failed> {
    let mut lines = Lines::open(from)?;
    let mut all = EventBatch::default();
    while let Some(group) = lines.group()? {
        let (before, count) = (group.before, group.lines);
        let published = client.publish_events(group.text).await.map_err(|error| not_taken(error, before, count))?;
        all.accepted += published.accepted;
        all.refused += published.refused;
        for mut line in published.results {
            let number = line["line"].as_u64().unwrap_or_default() + before;
            if let (Some(message), false) = (line["error"]["message"].as_str(), global.json) {
                let allowed = line["error"]["allowed"].as_str().unwrap_or_default();
                output::remark(&format!("line {number}: {message} (allowed: {allowed})"));
            }
            if global.json {
                line["line"] = number.into();
                all.results.push(line);
            }
        }
    }
    if global.json {
        output::print_json(&all);
    } else {
        output::print(&format!("{} stored, {} refused", all.accepted, all.refused));
    }
    Ok(if all.refused == 0 { Exit::Done } else { Exit::Refused })
}

fn event_of(event_type: Option<String>, data: Option<&BodyArg>) -> Result<Map<String, Value>, Failed> {
    let mut event = Map::new();
    if let Some(event_type) = event_type {
        event.insert("type".to_owned(), event_type.into());
    }
    if data.is_some() {
        let bytes = reach::body(data)?;
        let data: Value = serde_json::from_slice(&bytes)
            .map_err(|error| Failed::new(Exit::Refused, format!("the data is no JSON: {error}")))?;
        event.insert("data".to_owned(), data);
    }
    Ok(event)
}

pub(super) fn put_secret(written: &mut Map<String, Value>, secret: Option<&BodyArg>) -> Result<(), Failed> {
    if secret.is_none() {
        return Ok(());
    }
    let bytes = reach::body(secret)?;
    let text = String::from_utf8(bytes.to_vec())
        .map_err(|_| Failed::new(Exit::Refused, "the secret is not UTF-8".to_owned()))?;
    written.insert("secret".to_owned(), text.trim_end_matches(['\r', '\n']).into());
    Ok(())
}

/// What an endpoint made of a test or of a challenge.
fn tried(global: &GlobalArgs, answer: &Value, member: &str) -> Exit {
    if global.json {
        output::print_json(answer);
    } else {
        let mut sheet = Sheet::default();
        sheet.value(member, Some(&answer[member]));
        let attempt = &answer["attempt"];
        for (label, name) in [("status", "status"), ("failure", "failure"), ("error", "error"), ("took ms", "tookMs")] {
            sheet.value(label, Some(&attempt[name]));
        }
        sheet.print();
    }
    let is_well = answer[member] == Value::Bool(true) || answer[member] == "verified";
    if is_well { Exit::Done } else { Exit::NotDelivered }
}

pub(super) fn deleted(global: &GlobalArgs, id: &str) {
    if !global.json {
        output::print(&output::plain(&format!("{id}  deleted")));
    }
}

/// Every member a line; times beside their local ones.
pub(super) fn one(global: &GlobalArgs, thing: &impl Serialize) {
    if global.json {
        return output::print_json(thing);
    }
    let mut sheet = Sheet::default();
    let Ok(Value::Object(members)) = serde_json::to_value(thing) else { return };
    for (name, value) in &members {
        match value.as_str().filter(|_| name.ends_with("At") || name.ends_with("Since") || name.ends_with("Until")) {
            Some(time) => sheet.line(name, output::local_beside(time)),
            None => sheet.value(name, Some(value)),
        }
    }
    sheet.print();
}

fn endpoint_table(endpoints: &[Endpoint]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("NAME", Align::Left),
        ("URL", Align::Left),
        ("STATE", Align::Left),
        ("WAITING", Align::Right),
        ("DEAD", Align::Right),
        ("FAILED IN A ROW", Align::Right),
    ]);
    for endpoint in endpoints {
        let more = |name: &str| endpoint.more.get(name).unwrap_or(&Value::Null);
        let (state, tint) = match endpoint.enabled {
            true if more("state")["paused"] == true => ("paused", Some(Tint::Waiting)),
            true => ("on", None),
            false if more("switchedOff").is_null() => ("off", Some(Tint::Waiting)),
            false => ("switched off", Some(Tint::Bad)),
        };
        let dead = more("state")["dead"].as_u64().unwrap_or_default();
        let failed = more("health")["failedInARow"].as_u64().unwrap_or_default();
        table.row(vec![
            Cell::new(&endpoint.id),
            Cell::new(&endpoint.name),
            Cell::maybe(endpoint.url.as_deref()),
            Cell::new(state).tinted(tint),
            more("state")["waiting"].as_u64().unwrap_or_default().into(),
            Cell::from(dead).tinted((dead > 0).then_some(Tint::Bad)),
            Cell::from(failed).tinted((failed > 0).then_some(Tint::Waiting)),
        ]);
    }
    table.print("there are no endpoints");
}

fn subscription_table(subscriptions: &[PushSubscription]) {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("NAME", Align::Left),
        ("EVENT TYPE", Align::Left),
        ("TO", Align::Left),
        ("STATE", Align::Left),
    ]);
    for subscription in subscriptions {
        let to = subscription.endpoint_id.as_deref();
        let to = to.or_else(|| subscription.more.get("connection").and_then(Value::as_str));
        table.row(vec![
            Cell::new(&subscription.id),
            Cell::new(&subscription.name),
            Cell::new(&subscription.event_type),
            Cell::maybe(to),
            Cell::new(if subscription.enabled { "on" } else { "off" }),
        ]);
    }
    table.print("there are no subscriptions");
}
