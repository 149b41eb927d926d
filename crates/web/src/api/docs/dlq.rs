//! Of `dlq`.

use http::StatusCode;
use serde_json::json;

use super::super::dlq::IDS_MAX;
use super::delivery_acts::{RETRY, act};
use super::jobs::{counted, job};
use super::{CONFLICT, FULL, filter_object, filters};
use crate::openapi::{Operation, Schema, Tag, always, optional, shapes};

fn dead_letter() -> Schema {
    let text = |example: &str| Schema::text().or_null().example(example);
    Schema::object([
        always("deliveryId", shapes::delivery_id()),
        always("eventId", Schema::id("evt_").or_null().example(json!(null))),
        always("endpointId", Schema::id("ep_").or_null().example(json!(null))),
        always("subscriptionId", Schema::id("sub_").or_null().example(json!(null))),
        always("eventType", text("invoice.paid")),
        always("endpointUrl", text("https://billing.example.org/invoices/{id}")),
        always("attemptCount", Schema::count()),
        always("maxAttempts", Schema::count().or_null()),
        always("lastError", text("status 503")),
        always("failedAt", shapes::time_or_null()),
        always("createdAt", Schema::time()),
        always("cid", shapes::cid()),
        always("connection", shapes::name().or_null()),
        always("connectionId", shapes::connection_id()),
        always("failure", shapes::failure().or_null()),
        always("rounds", Schema::count()),
        always("method", Schema::text().example("POST")),
        always("bodyBytes", Schema::count()),
        always("edited", Schema::flag()),
        always("dlqRetries", Schema::count()),
        always("dlqNote", Schema::text().or_null().example(json!(null))),
    ])
    .named("DeadLetter")
}

pub fn list() -> Operation {
    filters(Operation::new(Tag::DeadLetters, "listDeadLetters", "Failed messages, newest first"))
        .details("The filters are those of the list of deliveries, without `status`.")
        .pages()
        .lists("A page.", dead_letter())
}

pub fn one() -> Operation {
    Operation::new(Tag::DeadLetters, "getDeadLetter", "A failed message").gives("The failed message.", dead_letter())
}

pub fn retry() -> Operation {
    act(Tag::DeadLetters, "retryDeadLetter", "Retry a failed message", RETRY)
}

pub fn retry_several() -> Operation {
    let refused = Schema::object([
        always("deliveryId", shapes::delivery_id()),
        always("status", Schema::whole(400, 599).example(409)),
        always("detail", Schema::text()),
    ]);
    let answer = Schema::object([
        always("retried", Schema::count()),
        always("requested", Schema::count()),
        always("refused", Schema::list(refused).example(json!([]))),
    ]);
    let by_ids = Schema::closed([
        always("deliveryIds", Schema::list(shapes::delivery_id()).length(0, IDS_MAX)),
        optional("filter", Schema::null()),
        optional("dry_run", Schema::flag()),
    ]);
    let by_filter = Schema::closed([always("filter", filter_object()), optional("dry_run", Schema::flag())]);
    Operation::new(Tag::DeadLetters, "retryDeadLetters", "Retry failed messages, by ids or by filter")
        .details("With ids at once and in the order given, so that they keep it; with a filter as a job.")
        .takes_such_as(Schema::either([by_ids, by_filter]), json!({"filter": {"connection": "Billing API"}}))
        .gives("What was retried, or for a dry run how many it would be.", Schema::either([answer, counted()]))
        .answers(StatusCode::ACCEPTED, "The job.", job())
        .with_header("Location", "The job's address.")
        .refuses([CONFLICT, FULL, StatusCode::TOO_MANY_REQUESTS])
}
