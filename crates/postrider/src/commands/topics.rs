//! `topics`: where dead letters and events are published, and how they are taken from there.

use postrider::{PageQuery, TopicMessage};
use serde::Serialize;
use serde_json::Value;

use super::{reach, show};
use crate::args::{GlobalArgs, TopicsCommand};
use crate::exit::{Exit, Failed};
use crate::output::{self, Align, Cell, Table};

pub async fn run(global: &GlobalArgs, command: TopicsCommand) -> Result<Exit, Failed> {
    let client = reach::client(global)?;
    match command {
        TopicsCommand::List(page) => {
            let found = client.topics(&PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
                return Ok(Exit::Done);
            }
            let mut table = Table::new(&[("NAME", Align::Left), ("KEPT", Align::Right), ("DESCRIPTION", Align::Left)]);
            for topic in &found.data {
                let kept = topic.more.get("retention_seconds").and_then(Value::as_f64).map(output::seconds);
                table.row(vec![Cell::new(&topic.name), Cell::maybe(kept), Cell::new(&topic.description)]);
            }
            table.print("there are no topics");
            show::say_more(found.next_cursor.as_deref());
        }
        TopicsCommand::Create { name, description, retention_seconds } => {
            let topic = client.create_topic(&name, &description, retention_seconds).await?;
            say(global, &topic, &format!("{}  created", topic.name));
        }
        TopicsCommand::Delete { name } => {
            client.delete_topic(&name).await?;
            if !global.json {
                output::print(&output::plain(&format!("{name}  deleted")));
            }
        }
        TopicsCommand::Publish { name, body, headers } => {
            let published = client.publish_to_topic(&name, &headers, &reach::body(body.as_ref())?).await?;
            say(global, &published, published["msg_id"].as_str().unwrap_or_default());
        }
        TopicsCommand::Messages { name, page } => {
            let found = client.topic_messages(&name, &PageQuery { limit: page.limit, cursor: page.cursor }).await?;
            if global.json {
                output::print_json(&found);
            } else {
                messages(&found.data, "there are no messages");
                show::say_more(found.next_cursor.as_deref());
            }
        }
        TopicsCommand::Subscribe { name, subscription } => {
            let made = client.create_subscription(&name, &subscription).await?;
            say(global, &made, &format!("{}  subscribed to {name}", made.name));
        }
        TopicsCommand::Pull { name, subscription, max, ack } => {
            let pulled = client.pull(&name, &subscription, max).await?;
            if global.json {
                output::print_json(&pulled);
            } else {
                messages(&pulled.data, "nothing to pull");
            }
            if ack && !pulled.data.is_empty() {
                let ids: Vec<String> = pulled.data.iter().map(|message| message.id.clone()).collect();
                client.acknowledge(&name, &subscription, &ids).await?;
            }
        }
        TopicsCommand::Ack { name, subscription, ids } => {
            let answer = client.acknowledge(&name, &subscription, &ids).await?;
            say(global, &answer, &format!("{} of {} acknowledged", answer["acknowledged"], answer["requested"]));
        }
    }
    Ok(Exit::Done)
}

fn say(global: &GlobalArgs, answer: &impl Serialize, words: &str) {
    if global.json { output::print_json(answer) } else { output::print(&output::plain(words)) }
}

fn messages(messages: &[TopicMessage], when_empty: &str) {
    let mut table = Table::new(&[("ID", Align::Left), ("PUBLISHED (UTC)", Align::Left), ("BODY", Align::Left)]);
    for message in messages {
        // What is not text comes in base64.
        let body = message.body.as_deref().or_else(|| message.more.get("body_base64").and_then(Value::as_str));
        let published = message.published_at.as_deref().map(output::utc);
        table.row(vec![Cell::new(&message.id), Cell::maybe(published), Cell::maybe(body)]);
    }
    table.print(when_empty);
}
