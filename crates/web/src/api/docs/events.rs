//! Of `events`.

use serde_json::json;

use super::super::events::LINES_MAX;
use super::{CONFLICT, FULL, takes_only_cid};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes, sometimes};

fn new_event() -> Schema {
    let id = Schema::id("evt_").describe("Your own for it: published again, it is the same event.");
    Schema::closed([
        always("type", shapes::topic_name().example("invoice.paid")),
        always("data", Schema::any().describe("Any JSON.").example(json!({"total": 12.5}))),
        optional("id", id),
    ])
    .named("NewEvent")
}

fn published() -> Vec<Member> {
    vec![
        always("eventId", Schema::id("evt_")),
        always("type", shapes::topic_name().example("invoice.paid")),
        always("deliveriesCreated", Schema::count()),
        always("repeated", Schema::flag().describe("It had been published before, and nothing was stored.")),
    ]
}

fn event() -> Vec<Member> {
    vec![
        always("id", Schema::id("evt_")),
        always("type", shapes::topic_name().example("invoice.paid")),
        always("cid", shapes::cid()),
        always("bodyBytes", Schema::count()),
        always("createdAt", Schema::time()),
    ]
}

fn example() -> serde_json::Value {
    json!({"type": "invoice.paid", "data": {"total": 12.5}})
}

pub fn publish() -> Operation {
    let operation = Operation::new(Tag::Webhooks, "publishEvent", "Publish an event to whoever subscribed to its type");
    takes_only_cid(operation)
        .details("It is stored with its deliveries when it is answered; at most 50 of them (`fan_out_max`).")
        .takes_such_as(new_event(), example())
        .gives("It had been published before.", Schema::object(published()).named("PublishedEvent"))
        .creates("It is stored.", Schema::object(published()).named("PublishedEvent"))
        .refuses([CONFLICT, FULL])
}

pub fn publish_batch() -> Operation {
    let error = Schema::object([
        always("field", Schema::text().example("type")),
        always("message", Schema::text().example("`type` is missing")),
        always("allowed", Schema::text().or_null()),
    ]);
    let result = Schema::object([
        always("line", Schema::whole(1, u32::MAX.into())),
        sometimes("eventId", Schema::id("evt_")),
        sometimes("type", shapes::topic_name()),
        sometimes("deliveriesCreated", Schema::count()),
        sometimes("repeated", Schema::flag()),
        sometimes("error", error),
    ]);
    let answer = Schema::object([
        always("accepted", Schema::count()),
        always("refused", Schema::count().example(0)),
        always("results", Schema::list(result)),
    ]);
    let lines = Schema::text().describe("One event a line.").with("x-line", new_event().sample());
    Operation::new(Tag::Webhooks, "publishEvents", "Publish many events in their order")
        .details(format!(
            "At most {LINES_MAX} lines (`event_batch_lines_max`). A bad line is refused by its number, and the others are stored."
        ))
        .takes_as(
            &["application/x-ndjson", "application/jsonl"],
            lines,
            true,
            Some(format!("{}\n", example()).into()),
        )
        .gives("What became of each line; look at `refused`.", answer.named("EventBatchResult"))
        .refuses([FULL])
}

pub fn list() -> Operation {
    Operation::new(Tag::Webhooks, "listEvents", "Events and messages of all topics, newest first")
        .query("type", shapes::topic_name(), "The event's type, whole.")
        .query("created_from", Schema::time(), "Not before this time.")
        .query("created_before", Schema::time(), "Before this time.")
        .pages()
        .lists("A page.", Schema::object(event()).named("Event"))
}

pub fn one() -> Operation {
    let data = always("data", Schema::any().example(json!({"total": 12.5})));
    Operation::new(Tag::Webhooks, "getEvent", "An event with its data")
        .details("That it was seen stands in the audit log.")
        .gives("The event.", Schema::object(event().into_iter().chain([data])).named("EventWithData"))
}
