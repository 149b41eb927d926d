//! What each route is, one file a resource, one function a handler, under the handler's name. The OpenAPI document and the page at `/docs` are
//! made of these and of the table of routes.
//!
//! What is listed here and elsewhere (keys, filters, statuses, limits) comes from the tables that the handlers use.

pub mod alerts;
pub mod audit;
pub mod channels;
pub mod configuration;
pub mod connections;
pub mod deliveries;
pub mod delivery_acts;
pub mod destinations;
pub mod dlq;
pub mod documentation;
pub mod endpoint_acts;
pub mod endpoints;
pub mod events;
pub mod flow;
pub mod forwards;
pub mod health;
pub mod ingress;
pub mod jobs;
pub mod keys;
pub mod metrics;
pub mod ping;
pub mod projects;
pub mod publish_batch;
pub mod queues;
pub mod raw;
pub mod schedule;
pub mod security;
pub mod send;
pub mod services;
pub mod sources;
pub mod subscriptions;
pub mod topic_messages;
pub mod topics;
pub mod transformations;
pub mod users;

use http::StatusCode;
use postrider_core::connection::ConnectionKind;
use postrider_core::delivery::Label;
use serde_json::json;

use super::filter::{COUNTS, TEXT_BYTES_MAX, TIMES};
use super::idempotency::KEY_BYTES_MAX;
use crate::openapi::{Operation, Schema, shapes};

const CONFLICT: StatusCode = StatusCode::CONFLICT;
const FULL: StatusCode = StatusCode::INSUFFICIENT_STORAGE;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;

fn kinds() -> Schema {
    Schema::words(ConnectionKind::ALL.map(ConnectionKind::as_str))
}

/// The connection in the path, which a name alone may not tell (D16).
fn names_a_connection(operation: Operation) -> Operation {
    operation.query("type", kinds(), "The connection's type, where its name alone is ambiguous.").refuses([CONFLICT])
}

fn takes_only_cid(operation: Operation) -> Operation {
    let cid = Schema::text().length(1, 64).pattern("^[!-~]+$").example("20260312-120534-7301-0a1b2c3d4");
    operation.header("X-Postrider-Cid", cid, "The caller's own correlation id.")
}

fn takes_cid(operation: Operation) -> Operation {
    let parent = Schema::text().example("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    let state = Schema::text().example("vendor=value");
    takes_only_cid(operation)
        .header("traceparent", parent, "The caller's trace (W3C Trace Context); one that cannot be read is ignored.")
        .header("tracestate", state, "Goes on with the trace.")
}

/// The filters of every list of deliveries.
fn filters(mut operation: Operation) -> Operation {
    let text = || Schema::text().length(1, TEXT_BYTES_MAX);
    let count = || Schema::whole(0, (1 << 53) - 1);
    operation = operation
        .query("connection", shapes::name(), "The connection, by its name.")
        .query("type", kinds(), "The connection's type, where its name alone is ambiguous.")
        .query("id", shapes::delivery_id(), "One delivery.")
        .query("cid", text().example("20260312-120534-7301-0a1b2c3d4"), "The correlation id, whole.")
        .query("label", Schema::words(Label::ALL.map(Label::as_str)), "What people call where it stands.")
        .query("error", shapes::failure(), "The failure code.")
        .query("error_text", text().example("timed out"), "A part of the last error's text; capitals do not matter.")
        .query("event_type", text().example("invoice.paid"), "The event's type, whole.")
        .query("event_id", Schema::id("evt_"), "The deliveries of one event.")
        .query("endpoint", Schema::id("ep_"), "A webhook endpoint, by its id.")
        .query("subscription", Schema::id("sub_"), "The subscription that made it, by its id.")
        .query("origin", shapes::origin(), "How it came in.")
        .query("method", method(), "The request's method.")
        .query("path", Schema::text().length(0, TEXT_BYTES_MAX).example("/invoices"), "The request's path, whole.")
        .query("edited", Schema::flag(), "Whether its body was edited.");
    for name in std::iter::once("created").chain(TIMES.map(|(name, _)| name)) {
        operation = operation.query(format!("{name}_from"), Schema::time(), "Not before this time.").query(
            format!("{name}_before"),
            Schema::time(),
            "Before this time.",
        );
    }
    for (name, _) in COUNTS {
        operation = operation.query(format!("{name}_min"), count(), "At least so many.").query(
            format!("{name}_max"),
            count().example(100),
            "At most so many.",
        );
    }
    operation.refuses([CONFLICT])
}

/// The same for forwards, which have ids of their own and come in only one way.
fn filters_of_forwards(operation: Operation) -> Operation {
    let mut operation = filters(operation);
    operation.parameters.retain(|parameter| !["id", "origin"].contains(&parameter.name.as_str()));
    operation
        .query("id", Schema::id("fwd_"), "One forward.")
        .query("source", Schema::id("src_"), "The source that they came in at.")
        .query("destination", Schema::id("dst_"), "Where they go.")
        .refuses([NOT_FOUND])
}

/// A filter as the member of a JSON object: the same names, with plain values or lists of them.
fn filter_object() -> Schema {
    let plain = || Schema::either([Schema::text(), Schema::number(), Schema::flag()]);
    let value = Schema::either([plain(), Schema::list(plain()).length(1, super::filter::VALUES_MAX), Schema::null()]);
    let example = json!({"connection": "Billing API", "error": "timeout"});
    Schema::map(value).example(example).describe("The filters of the list by their names; {} means all.")
}

fn method() -> Schema {
    Schema::text().length(1, 32).pattern("^[A-Za-z0-9-]+$").example("POST")
}
