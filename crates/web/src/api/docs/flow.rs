//! Of `flow`.

use postrider_core::flow::FlowRange;
use serde_json::json;

use crate::openapi::{Operation, Schema, Tag, always, shapes};

fn figures() -> Vec<(&'static str, Schema)> {
    let count = |words: &str| Schema::whole(0, u32::MAX.into()).describe(words);
    let took = |words: &str| Schema::whole(0, 60_000).or_null().example(json!(12)).describe(words);
    vec![
        ("delivered", count("Attempts that delivered.")),
        ("failed", count("Attempts that failed.")),
        ("dead", count("Deliveries that became dead letters.")),
        ("p50_ms", took("Half of the attempts took less.")),
        ("p95_ms", took("95 % of the attempts took less.")),
        ("p99_ms", took("99 % of the attempts took less.")),
    ]
}

pub fn of_project() -> Operation {
    let ranges = Schema::words(FlowRange::ALL.map(FlowRange::as_str)).default_value("hour");
    let total = Schema::object(figures().into_iter().map(|(name, schema)| always(name, schema)));
    let bucket = std::iter::once(("at", Schema::time())).chain(figures());
    let bucket = Schema::object(bucket.map(|(name, schema)| always(name, schema)));
    let flow = Schema::object([
        always("range", Schema::words(FlowRange::ALL.map(FlowRange::as_str))),
        always("step_seconds", Schema::whole(60, 3600)),
        always("since", Schema::time().describe("Since when this server has counted.")),
        always("total", total),
        always("data", Schema::list(bucket)),
    ])
    .named("Flow");
    Operation::new(Tag::Connections, "showFlow", "What was delivered and what failed, lately")
        .details("From the memory of the server that answers, since its start. The last bucket is the one under way.")
        .query("range", ranges, "How far back: an hour by the minute, a day by ten minutes, a week by the hour.")
        .gives("The buckets, oldest first.", flow)
}

pub fn of_connections() -> Operation {
    let minutes = |words: &str| Schema::list(Schema::whole(0, u32::MAX.into())).describe(words);
    let last = Schema::object([
        always("at", Schema::time()),
        always("failure", shapes::failure()),
        always("error", Schema::text().or_null().describe("Null also for whoever may see no bodies.")),
    ]);
    let entry = Schema::object([
        always("connectionId", shapes::connection_id()),
        always("connection", Schema::text().example("Billing API")),
        always("type", Schema::text().example("rest")),
        always("delivered", minutes("Attempts that delivered, in each of the last 60 minutes.")),
        always("failed", minutes("Attempts that failed; both lists are empty when there was none in the last hour.")),
        always("lastError", last.or_null().describe("The last attempt that failed since this server started.")),
    ]);
    Operation::new(Tag::Connections, "showConnectionFlows", "The last hour of each connection")
        .details("From the memory of the server that answers. Connections without an attempt in it, and without any that failed since the start, are left out.")
        .gives("Those with attempts.", Schema::object([always("data", Schema::list(entry))]))
}
