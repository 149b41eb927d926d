//! Schemas that several resources share: pages, names, headers, deliveries, results, problems.
//!
//! They describe what `api/shapes.rs` and `problem.rs` write; a test holds every answer of a running server against them.

use postrider_core::Failure;
use postrider_core::ack::AckCode;
use postrider_core::deferral::DeferredBy;
use postrider_core::delivery::{Label, Origin, Status};
use serde_json::json;

use super::schema::{Member, Schema, always, rarely, sometimes};

/// `{"data": […], "next_cursor": …}`
pub fn page(entry: Schema) -> Schema {
    let cursor = Schema::text().or_null().example(json!(null)).describe("Of the next page; null at the end.");
    Schema::object([always("data", Schema::list(entry)), always("next_cursor", cursor)])
}

/// What objects may be called.
pub fn name() -> Schema {
    Schema::text().length(1, 200).pattern("^[^/\\u0000-\\u001f\\u007f-\\u009f]+$").example("Billing API")
}

pub fn topic_name() -> Schema {
    Schema::text().length(1, 200).pattern("^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$").example("lab.failed")
}

/// Header fields: a name that comes several times has a list.
pub fn headers() -> Schema {
    let value = Schema::either([Schema::text(), Schema::list(Schema::text())]);
    Schema::map(value).example(json!({"content-type": "application/json"}))
}

pub fn failure() -> Schema {
    Schema::words(Failure::ALL.map(Failure::as_str)).example("timeout")
}

pub fn status() -> Schema {
    Schema::words(Status::ALL.map(Status::as_str)).example("PENDING")
}

pub fn origin() -> Schema {
    Schema::words(Origin::ALL.map(Origin::as_str))
}

pub fn delivery_id() -> Schema {
    Schema::id("msg_")
}

pub fn connection_id() -> Schema {
    Schema::id("con_")
}

pub fn cid() -> Schema {
    Schema::text().example("20260312-120534-7301-0a1b2c3d4").describe("The correlation id.")
}

/// Null in what has not happened.
pub fn time_or_null() -> Schema {
    Schema::time().or_null()
}

pub fn delivery() -> Schema {
    Schema::object(delivery_members()).named("Delivery")
}

pub fn delivery_members() -> Vec<Member> {
    let labels = [Label::Waiting, Label::Retrying, Label::Delivered, Label::NotDelivered].map(Label::as_str);
    let pairs = Schema::list(Schema::list(Schema::text()).length(2, 2)).example(json!([["page", "1"]]));
    let max_attempts = Schema::count().or_null().describe("Of a ladder; rounds go on as long as their policy says.");
    vec![
        always("id", delivery_id()),
        always("cid", cid()),
        always("status", status()),
        always("label", Schema::words(labels)),
        always("failure", failure().or_null().describe("Why the last attempt failed.")),
        always("error", Schema::text().or_null().example("status 503").describe("The same in words.")),
        always("attempts", Schema::count()),
        always("maxAttempts", max_attempts),
        always("rounds", Schema::count()),
        always("lastAttemptAt", time_or_null()),
        always("nextAttemptAt", time_or_null().describe("While it waits.")),
        always("deferredBy", deferred_by().or_null().describe("Why it is due and not sent yet, or for whom it waits.")),
        always("deferredUntil", time_or_null().describe("When it may go at the earliest, where that is known.")),
        always(
            "behind",
            Schema::id("msg_")
                .or_null()
                .example(json!(null))
                .describe("The delivery that it waits for, with `ordering`."),
        ),
        always("connection", name().or_null().describe("Null when it is gone.")),
        always("connectionId", connection_id()),
        always(
            "service",
            name().or_null().example(json!(null)).describe("Of a channel's request: the service that it is for."),
        ),
        always("eventId", Schema::id("evt_").or_null().example(json!(null))),
        always("eventType", Schema::text().or_null().example(json!(null))),
        always("subscriptionId", Schema::id("sub_").or_null().example(json!(null))),
        always("origin", origin()),
        always("method", Schema::text().example("POST")),
        always("operation", Schema::text().or_null().example(json!(null)).describe("SOAP only: what is invoked.")),
        always("path", Schema::text().example("/invoices")),
        always("params", pairs),
        always("headers", headers().describe("Credentials are shown as `***`.")),
        always("bodyBytes", Schema::count()),
        always("edited", Schema::flag()),
        always("createdAt", Schema::time()),
        always("deliveredAt", time_or_null()),
        always("deadAt", time_or_null()),
        always("endedAt", time_or_null()),
        always("dlqRetries", Schema::count()),
        always("dlqNote", Schema::text().or_null().example(json!(null))),
        always("version", Schema::count()),
        rarely(
            "blocked",
            Schema::text()
                .or_null()
                .example("AE")
                .describe("In a queue: the code that the receiver refused its head with for good."),
        ),
    ]
}

fn deferred_by() -> Schema {
    Schema::words(DeferredBy::ALL.map(DeferredBy::as_str))
}

pub fn attempt() -> Schema {
    Schema::object([
        always("number", Schema::whole(1, u32::MAX.into())),
        always("startedAt", Schema::time()),
        always("tookMs", Schema::count().example(42)),
        always("failure", failure().or_null()),
        always("status", Schema::whole(100, 999).or_null().example(503).describe("Of the answer, if there was one.")),
        always("error", Schema::text().or_null().example("status 503")),
        always("responseHeaders", headers()),
        sometimes("responseBody", Schema::text().example("overloaded")),
        rarely("responseBodyBase64", Schema::text().example("AP8=").describe("Instead, where the body is no text.")),
        always("responseBytes", Schema::count().describe("As they came, also those that were not kept.")),
        always("incomplete", Schema::flag().describe("Whether the body was cut.")),
    ])
    .named("Attempt")
}

/// Z30.
pub fn result() -> Schema {
    let codes = Schema::words(AckCode::ALL.map(AckCode::as_str));
    let ack = Schema::object([
        always("code", codes.clone()),
        always("control_id", Schema::text().example("MSG00001").describe("Which message: its MSH-10.")),
        sometimes("text", Schema::text().example("Unknown patient")),
    ]);
    let response = Schema::object([
        always("status", Schema::whole(100, 999).or_null().example(200).describe("Null over MLLP, which has none.")),
        always("headers", headers()),
        sometimes("ack_code", codes.clone().describe("Over MLLP: the code of the acknowledgment.")),
        sometimes(
            "ack_text",
            Schema::text().or_null().example("Unknown patient").describe("Over MLLP: what the receiver says about it."),
        ),
        sometimes("acks", Schema::list(ack).describe("Over MLLP: of a batch, one for each acknowledged message.")),
        sometimes("body", Schema::text().example("{\"id\": 17}")),
        rarely("body_base64", Schema::text().example("AP8=").describe("Instead, where the body is no text.")),
        rarely("incomplete", Schema::flag().describe("There, and true, where the body was cut.")),
        sometimes(
            "resource_type",
            Schema::text().or_null().example("Patient").describe("Over FHIR: the resource that the answer is about."),
        ),
        sometimes(
            "id",
            Schema::text().or_null().example("7301").describe("Over FHIR: its id, from the body or from Location."),
        ),
        sometimes(
            "version_id",
            Schema::text().or_null().example("1").describe("Over FHIR: its version, from the body, ETag or Location."),
        ),
        sometimes("issues", Schema::list(fhir_issue()).describe("Over FHIR: of an OperationOutcome.")),
        sometimes(
            "entries",
            Schema::list(fhir_entry()).describe("Over FHIR: what became of each entry of a batch or transaction."),
        ),
        sometimes(
            "next",
            Schema::text()
                .example("https://fhir.example.org/r4?page=2")
                .describe("Over FHIR: the next page, for the operation `page`."),
        ),
        always("data", Schema::any().example(json!({"id": 17})).describe("The body, where it is JSON; else null.")),
    ]);
    let flag = |words: &str| Schema::flag().describe(words);
    Schema::object([
        always("is_ok", flag("It was delivered.").example(true)),
        always("is_in_queue", flag("It is stored, and will be delivered.")),
        always("is_in_dlq", flag("It could not be delivered, and waits for somebody.")),
        always("msg_id", delivery_id().or_null().describe("The delivery's id.")),
        always("cid", cid()),
        always("error", Schema::text().or_null().example(json!(null))),
        always("response", response.named("RemoteAnswer").or_null()),
    ])
    .named("Result")
}

fn fhir_issue() -> Schema {
    let text = |example: &str| Schema::text().example(example);
    Schema::object([
        always("severity", text("error")),
        always("code", text("invalid")),
        always("diagnostics", text("no such date")),
        always("details", text("")),
        always("expression", Schema::list(text("Patient.birthDate"))),
    ])
    .named("FhirIssue")
}

fn fhir_entry() -> Schema {
    let text = |example: &str| Schema::text().or_null().example(example);
    let status = Schema::whole(100, 599).or_null().example(201).describe("Null where the server did not say.");
    Schema::object([
        always("status", status),
        always("resource_type", text("Patient")),
        always("id", text("7301")),
        always("version_id", text("1")),
        always("issues", Schema::list(fhir_issue()).example(json!([]))),
    ])
    .named("FhirEntry")
}

/// The same of a request that waits.
pub fn queued_result() -> Schema {
    let mut example = result().sample();
    example["is_ok"] = false.into();
    example["is_in_queue"] = true.into();
    example["response"] = json!(null);
    result().example(example)
}

/// RFC 9457.
pub fn problem() -> Schema {
    let error = Schema::object([
        always("field", Schema::text().example("limit")),
        always("message", Schema::text().example("`limit` is `0`")),
        always("allowed", Schema::text().or_null().example("a whole number from 1 to 1000")),
        rarely("line", Schema::count().describe("Of a configuration file.")),
        rarely("column", Schema::count().describe("Of a configuration file.")),
    ]);
    let problem = Schema::object([
        always("type", Schema::text().example("about:blank")),
        always("title", Schema::text().example("Bad Request")),
        always("status", Schema::whole(400, 599)),
        always("detail", Schema::text().example("`limit` is `0`: allowed is a whole number from 1 to 1000")),
        sometimes("errors", Schema::list(error)),
        rarely("code", Schema::text().example("in_flight").describe("Which conflict it is, for programs.")),
    ]);
    problem.describe("What was wrong, which field, and what is allowed (RFC 9457).").named("Problem")
}
