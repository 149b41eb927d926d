//! Of `ping`.

use postrider_core::reach::ReachStage;
use serde_json::json;

use super::names_a_connection;
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

pub fn ping() -> Operation {
    let stage = Schema::words(ReachStage::ALL.map(ReachStage::as_str));
    let request = Schema::closed([optional(
        "method",
        Schema::words(["HEAD", "GET", "OPTIONS"])
            .default_value("HEAD")
            .describe("Type rest only: what it is asked with, at the path up to its first placeholder."),
    )])
    .named("Ping");
    let took = Schema::object([always("stage", stage.clone()), always("tookMs", Schema::number().example(0.42))]);
    let answer = Schema::object([
        always(
            "is_reachable",
            Schema::flag()
                .example(true)
                .describe("It is there and, where something is asked, answers; whatever the status."),
        ),
        always("target", Schema::text().example("https://billing.example.org/invoices/{id}")),
        always(
            "address",
            Schema::text().or_null().example("10.1.1.5:443").describe("Which of its addresses accepted."),
        ),
        always("stages", Schema::list(took).describe("Those that were reached, in their order.")),
        always("failedAt", stage.or_null().example(json!(null))),
        always(
            "status",
            Schema::whole(100, 999)
                .or_null()
                .example(200)
                .describe("Null where nothing is asked: over SOAP, MLLP and of endpoints."),
        ),
        always("certificateEndsAt", shapes::time_or_null()),
        always("error", Schema::text().or_null().example(json!(null)).describe("What failed.")),
        always("advice", Schema::text().or_null().example(json!(null)).describe("What to do about it.")),
    ])
    .named("Reached");
    names_a_connection(Operation::new(Tag::Connections, "pingConnection", "Try whether the remote system can be reached"))
        .details("Looks the name up, connects, speaks TLS, and asks what changes nothing: HEAD of a REST path, the capabilities of a FHIR server; no message over SOAP, MLLP or of an endpoint. Never stored as a delivery; works while the connection is paused too.")
        .may_take_such_as(request, json!({}))
        .gives("What came of it; 200 also where nothing was reached.", answer)
}
