//! Of `forwards` and `incoming-dlq`.

use http::StatusCode;
use serde_json::json;

use super::super::filter::VALUES_MAX;
use super::super::forwards::IDS_MAX;
use super::{CONFLICT, FULL, filter_object, filters_of_forwards};
use crate::openapi::{Member, Operation, Schema, Tag, always, optional, shapes};

fn way() -> Vec<Member> {
    vec![
        always(
            "deliveryId",
            shapes::delivery_id().describe("The forward is a delivery too: both ids have the same letters."),
        ),
        always("incomingEventId", Schema::id("evt_").or_null()),
        always("sourceId", Schema::id("src_").or_null()),
        always("sourceName", shapes::name().or_null()),
        always("destinationId", Schema::id("dst_").or_null()),
        always("destinationUrl", Schema::text().or_null().example("https://ci.example.org/hooks")),
    ]
}

fn forward() -> Schema {
    let own = [always("id", Schema::id("fwd_"))].into_iter().chain(way());
    let of_delivery =
        shapes::delivery_members().into_iter().filter(|member| !["id", "deliveryId"].contains(&member.name()));
    Schema::object(own.chain(of_delivery)).named("Forward")
}

fn failed_forward() -> Schema {
    let own = [always("forwardId", Schema::id("fwd_"))].into_iter().chain(way());
    let rest = [
        always("connection", shapes::name().or_null()),
        always("attemptCount", Schema::count()),
        always("lastError", Schema::text().or_null().example("status 503")),
        always("failure", shapes::failure().or_null()),
        always("failedAt", shapes::time_or_null()),
        always("createdAt", Schema::time()),
        always("cid", shapes::cid()),
        always("bodyBytes", Schema::count()),
    ];
    Schema::object(own.chain(rest)).named("FailedForward")
}

pub fn list() -> Operation {
    let statuses = Schema::list(shapes::status()).length(1, VALUES_MAX);
    filters_of_forwards(Operation::new(Tag::Incoming, "listForwards", "Forwards, newest first"))
        .query("status", statuses, "One or several, with commas between.")
        .pages()
        .lists("A page.", forward())
}

pub fn one() -> Operation {
    Operation::new(Tag::Incoming, "getForward", "A forward")
        .details("Its attempts and its body are those of its delivery, at `/deliveries`.")
        .gives("The forward.", forward())
}

pub fn failed() -> Operation {
    filters_of_forwards(Operation::new(Tag::Incoming, "listFailedForwards", "Failed Forwards, newest first"))
        .pages()
        .lists("A page.", failed_forward())
}

pub fn one_failed() -> Operation {
    Operation::new(Tag::Incoming, "getFailedForward", "A failed forward").gives("The failed forward.", failed_forward())
}

pub fn retry() -> Operation {
    retrying("retryFailedForward", "Retry a failed forward")
}

pub fn retry_forward() -> Operation {
    retrying("retryForward", "Retry a forward that failed")
}

fn retrying(id: &'static str, summary: &'static str) -> Operation {
    Operation::new(Tag::Incoming, id, summary)
        .details("A new forward to the same destination, from attempt 1. The failed one ends as FAILED, and its `dlqNote` says which took its place.")
        .creates("The new forward.", forward())
        .refuses([CONFLICT, FULL])
}

pub fn retry_several() -> Operation {
    let refused = Schema::object([
        always("forwardId", Schema::id("fwd_")),
        always("status", Schema::whole(400, 599).example(409)),
        always("detail", Schema::text()),
    ]);
    let renewed = Schema::object([always("retried", Schema::id("fwd_")), always("forward", Schema::id("fwd_"))]);
    let answer = Schema::object([
        always("retried", Schema::count()),
        always("requested", Schema::count()),
        always("forwards", Schema::list(renewed)),
        always("refused", Schema::list(refused).example(json!([]))),
        always("hasMore", Schema::flag()),
    ]);
    let counted = Schema::object([always("matched", Schema::count()), always("hasMore", Schema::flag())]);
    let by_ids = Schema::closed([
        always("forwardIds", Schema::list(Schema::id("fwd_")).length(0, IDS_MAX)),
        optional("filter", Schema::null()),
        optional("dry_run", Schema::flag()),
    ]);
    let by_filter = Schema::closed([always("filter", filter_object()), optional("dry_run", Schema::flag())]);
    Operation::new(Tag::Incoming, "retryFailedForwards", "Retry failed forwards, by ids or by filter")
        .details("The oldest of what the filter lets through go first. A filter takes at most 1000 at once; `hasMore` tells of others.")
        .takes_such_as(Schema::either([by_ids, by_filter]), json!({"filter": {"error": "timeout"}}))
        .gives("What was retried, or for a dry run how many it would be.", Schema::either([answer, counted]))
        .refuses([CONFLICT, FULL, StatusCode::NOT_FOUND])
}
