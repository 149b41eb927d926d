//! Of `endpoint_acts`.

use http::StatusCode;
use postrider_core::endpoint::Verification;
use serde_json::json;

use super::CONFLICT;
use super::endpoints::{endpoint, off, test_outcome};
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

const OFTEN: &str = "Tests, verifications and resends of a project together are limited to 10 a minute; `Retry-After` says when the next may come.";

pub fn test() -> Operation {
    let data = Schema::any().describe("Any JSON.").example(json!({"total": 12.5}));
    let body = Schema::closed([
        optional(
            "type",
            shapes::topic_name().example("invoice.paid").describe("`postrider.test` where it is left out."),
        ),
        optional("data", data),
    ]);
    let answer = Schema::object([
        always("succeeded", Schema::flag().example(true)),
        always("deliveryId", shapes::delivery_id().describe("What the receiver saw; no delivery is kept.")),
        always("eventId", Schema::id("evt_")),
        always("attempt", shapes::attempt()),
    ]);
    Operation::new(Tag::Webhooks, "testEndpoint", "Send an endpoint a test")
        .details(format!(
            "One signed event with the header `X-Postrider-Test: true`, never tried again, also to an endpoint that is off. It counts for nothing; \
             the endpoint shows when it was and whether it succeeded. {OFTEN}"
        ))
        .may_take(body)
        .gives("What the endpoint answered.", answer.named("EndpointTest"))
        .refuses([StatusCode::TOO_MANY_REQUESTS])
}

pub fn verify() -> Operation {
    let words = Schema::words(Verification::ALL.map(Verification::as_str)).example("verified");
    let attempt = shapes::attempt().or_null().describe("Null where it had been verified before, and nothing was sent.");
    let answer = Schema::object([always("verification", words), always("attempt", attempt)]);
    Operation::new(Tag::Webhooks, "verifyEndpoint", "Ask an endpoint to show that it wants what it is sent")
        .details(format!(
            "It is sent `{{\"type\": \"webhook.verification\", \"challenge\", \"timestamp\"}}` and verified when it answers 2xx with a JSON object that \
             has the same `challenge`, or with the challenge alone. What it has shown holds for its present address. {OFTEN}"
        ))
        .gives("What it has shown.", answer.named("EndpointVerification"))
        .refuses([StatusCode::TOO_MANY_REQUESTS])
}

pub fn enable() -> Operation {
    Operation::new(Tag::Webhooks, "enableEndpoint", "Switch an endpoint on")
        .details(
            "Its failure count starts over. `warnings` says when its last test did not succeed. What still waits is delivered; what came while it \
             was off was never made.",
        )
        .gives("The endpoint.", endpoint())
        .refuses([CONFLICT])
}

pub fn disable() -> Operation {
    Operation::new(Tag::Webhooks, "disableEndpoint", "Switch an endpoint off")
        .details(
            "New events are not sent to it, now or later; what waits is dead-lettered when it comes due. To hold what comes, pause its connection.",
        )
        .gives("The endpoint.", endpoint())
        .refuses([CONFLICT])
}

pub fn health() -> Operation {
    let rules = Schema::object([
        always("onGone", Schema::flag().describe("An answer 410 switches it off.")),
        always("afterFailures", Schema::count().or_null().example(100).describe("Different deliveries in a row.")),
        always("failingForSeconds", Schema::number().or_null().example(259_200)),
        always(
            "dueAt",
            shapes::time_or_null().describe("When the timer switches it off if it does not succeed before."),
        ),
    ]);
    let answer = Schema::object([
        always("endpointId", Schema::id("ep_")),
        always("enabled", Schema::flag().example(true)),
        always("switchedOff", off().or_null().example(json!(null))),
        always("verification", Schema::words(Verification::ALL.map(Verification::as_str))),
        always("failingSince", shapes::time_or_null().describe("The first failure after the last success.")),
        always("failedInARow", Schema::count().describe("Different deliveries, since the last success.")),
        always("lastTest", test_outcome().or_null().example(json!(null))),
        always("switchOff", rules.describe("What switches it off.")),
        always("waiting", Schema::count()),
        always("dead", Schema::count()),
        always("oldestWaitingSince", shapes::time_or_null()),
    ]);
    Operation::new(Tag::Webhooks, "getEndpointHealth", "How an endpoint does")
        .gives("How it does.", answer.named("EndpointHealth"))
}
