//! Of `transformations`.

use serde_json::json;

use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

pub fn preview() -> Operation {
    let event = Schema::object([
        always("type", shapes::topic_name().example("invoice.paid")),
        always("data", Schema::any().example(json!({"total": 12.5}))),
    ]);
    let body = Schema::closed([
        always("program", Schema::text().length(1, 65_536).example("{text: .data.total}")),
        optional("body", Schema::any().describe("Any JSON: what would be sent without a transformation.")),
        optional("event", event.describe("Instead of a body: tried on the envelope that an endpoint would be sent.")),
    ])
    .named("TransformationPreview");
    let sample = json!({"type": "invoice.paid", "data": {"total": 12.5}});
    let example = json!({"program": "{text: .data.total}", "event": sample});
    let output = Schema::any().describe("What would be sent.").example(json!({"text": 12.5}));
    Operation::new(Tag::Webhooks, "previewTransformation", "Try a transformation")
        .details("Nothing is stored or sent. A program that cannot be compiled, or fails on this body, is a 422 in jq's words.")
        .takes_such_as(body, example)
        .gives("The one value that the program gives.", Schema::object([always("output", output)]).named("Transformed"))
}
