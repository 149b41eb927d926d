//! Of `send`.

use http::StatusCode;
use serde_json::json;

use super::super::send::{PAIRS_MAX, PATH_BYTES_MAX};
use super::{FULL, method, names_a_connection, takes_cid};
use crate::openapi::{Member, Operation, Schema, Tag, optional, shapes};

/// An object of names and values, or a list of pairs.
pub fn pairs(example: serde_json::Value) -> Schema {
    let plain = || Schema::either([Schema::text(), Schema::number(), Schema::flag()]);
    let object = Schema::map(Schema::either([plain(), Schema::list(plain())])).with("maxProperties", PAIRS_MAX.into());
    let pair = Schema::any().with("type", "array".into()).with("minItems", 2.into()).with("maxItems", 2.into());
    Schema::either([object, Schema::list(pair).length(0, PAIRS_MAX)]).example(example)
}

/// `body` and `body_base64`.
pub fn body_members() -> [Member; 2] {
    let encoded = Schema::text().with("contentEncoding", "base64".into()).example(json!(null));
    [
        optional("body", Schema::any().example(json!({"total": 12.5})).describe("A text as it is, or a JSON value.")),
        optional(
            "body_base64",
            encoded.describe("Instead of `body`, for bytes that are no text (RFC 4648, section 4)."),
        ),
    ]
}

pub fn message() -> Schema {
    let path = Schema::text().length(0, PATH_BYTES_MAX).pattern("^[^\\u0000-\\u0020?#\\u007f-\\u009f]*$");
    let members = [
        optional("method", method().default_value("POST")),
        optional("path", path.example("").describe("Goes on behind the connection's own path.")),
        optional(
            "params",
            pairs(json!({"id": "17"})).describe("Fill the path's placeholders; the others are the query string."),
        ),
        optional("headers", pairs(json!({"X-Trace": "abc"})).describe("Sent on; framing is written by the sender.")),
    ];
    let of_soap = [
        optional(
            "operation",
            Schema::text()
                .example(json!(null))
                .describe("SOAP: what to invoke. FHIR: the interaction, such as create, search or $validate."),
        ),
        optional(
            "message",
            Schema::any().example(json!(null)).describe("SOAP, FHIR and MLLP: another name of `body`."),
        ),
        optional(
            "soap_headers",
            Schema::any().example(json!(null)).describe("SOAP only: header blocks, as an object or as XML."),
        ),
    ];
    Schema::closed(members.into_iter().chain(body_members()).chain(of_soap).chain(of_fhir())).named("Request")
}

/// Beside `operation`, in place of method and path.
fn of_fhir() -> Vec<Member> {
    [
        ("resource_type", "FHIR only: where the body does not say it."),
        ("id", "FHIR only: of the resource."),
        ("version_id", "FHIR only: of the version that `vread` reads."),
        ("url", "FHIR only: the link to the next page, for `page`; followed only below the connection's address."),
        ("if_none_exist", "FHIR only: `create` makes nothing where this search finds one."),
        ("if_match", "FHIR only: the version that is changed; 412 when it is another by now."),
        ("if_none_match", "FHIR only: the version that is known."),
        ("if_modified_since", "FHIR only: a date of HTTP."),
        ("prefer", "FHIR only: minimal, representation, OperationOutcome, or a whole Prefer."),
    ]
    .map(|(name, words)| optional(name, Schema::text().example(json!(null)).describe(words)))
    .to_vec()
}

fn example() -> serde_json::Value {
    json!({"method": "POST", "params": {"id": "17"}, "body": {"total": 12.5}})
}

fn sending(id: &'static str, summary: &'static str) -> Operation {
    let operation = names_a_connection(Operation::new(Tag::Sending, id, summary));
    takes_cid(operation.takes_idempotency_key()).may_take_such_as(message(), example()).refuses([FULL])
}

pub fn send() -> Operation {
    sending("send", "Call a remote system, and be told what became of it")
        .details("200 whatever the remote system answered: look at `is_ok`. With the queue on, the request is stored before it is attempted.")
        .gives("The result.", shapes::result())
        .answers(StatusCode::ACCEPTED, "The result: it is in the queue.", shapes::queued_result())
}

pub fn publish() -> Operation {
    sending("publish", "Store a request to be delivered").details("Nothing is attempted before the answer.").answers(
        StatusCode::ACCEPTED,
        "It is stored, and will be delivered.",
        shapes::result(),
    )
}
