//! Of `publish_batch`.

use super::super::publish_batch::BATCH_LINES_MAX;
use super::send::message;
use super::{FULL, names_a_connection, takes_cid};
use crate::openapi::{Operation, Schema, Tag, always, rarely, shapes, sometimes};

pub fn publish_batch() -> Operation {
    let error = Schema::object([
        always("field", Schema::text().example("method")),
        always("message", Schema::text().example("`method` is `7`")),
        always("allowed", Schema::text().or_null().example("a string")),
    ]);
    let result = Schema::object([
        always("line", Schema::whole(1, u32::MAX.into())),
        sometimes("msg_id", shapes::delivery_id()),
        rarely("error", error),
    ]);
    let answer = Schema::object([
        always("accepted", Schema::count()),
        always("refused", Schema::count().example(0)),
        always("results", Schema::list(result)),
    ]);
    let line = message();
    let lines = Schema::any().describe("One request a line, as `publish` takes it.");
    let example = format!("{}\n", serde_json::json!({"body": {"total": 12.5}}));
    let operation = Operation::new(Tag::Sending, "publishBatch", "Store many requests in their order");
    takes_cid(names_a_connection(operation).takes_idempotency_key())
        .details(format!(
            "At most {BATCH_LINES_MAX} lines (`batch_lines_max`). A bad line is refused by its number, and the others are stored; with an idempotency \
             key a batch that is sent again is stored once."
        ))
        .takes_as(&["application/x-ndjson", "application/jsonl"], lines.with("x-line", line.sample()), true, Some(example.into()))
        .gives("What became of each line; look at `refused`.", answer.named("BatchResult"))
        .refuses([FULL])
}
