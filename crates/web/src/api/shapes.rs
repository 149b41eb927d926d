//! How deliveries, attempts and results look as JSON. Names and shapes are those of the interface and are fixed.
//!
//! Nothing here asks the engine; credentials that callers sent along are masked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postrider_core::attempt::Attempt;
use postrider_core::connection::{Connection, ConnectionKind};
use postrider_core::deferral::Deferred;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::fhir::FhirAnswer;
use postrider_core::id::EndpointId;
use postrider_core::masking::MaskedHeaders;
use postrider_core::message::HeaderList;
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::{Answer, Said};
use serde_json::{Map, Value, json};

use crate::read::compact;

/// What the caller may see of what is kept.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    pub masked: &'a MaskedHeaders,
    pub bodies: bool,
}

impl Seen<'_> {
    /// What a remote system said of a failure may repeat what the body has, so it is for those who see bodies; the failure's code is for all.
    pub fn error(self, error: Option<&str>) -> Value {
        error.filter(|_| self.bodies).map_or(Value::Null, Value::from)
    }
}

pub fn delivery_json(delivery: &Delivery, connection: Option<&Connection>, seen: Seen<'_>) -> Value {
    let progress = &delivery.progress;
    let waits = progress.status == Status::Pending;
    json!({
        "id": delivery.id,
        "cid": delivery.cid,
        "status": progress.status,
        "label": progress.label().as_str(),
        "failure": progress.failure,
        "error": seen.error(progress.error.as_deref()),
        "attempts": progress.attempts,
        "maxAttempts": max_attempts(delivery),
        "rounds": progress.rounds,
        "lastAttemptAt": progress.last_attempt_at,
        "nextAttemptAt": waits.then_some(progress.due_at),
        "deferredBy": Value::Null,
        "deferredUntil": Value::Null,
        "behind": Value::Null,
        "connection": connection.map(|known| &known.name),
        "connectionId": delivery.connection_id,
        // Z45: what a request of a channel is for.
        "service": connection.and_then(|known| known.spec.target.channel()?.service()),
        "eventId": delivery.event.as_ref().map(|event| event.id),
        "eventType": delivery.event.as_ref().map(|event| &event.event_type),
        "subscriptionId": delivery.event.as_ref().map(|event| event.subscription_id),
        "origin": delivery.origin,
        "method": delivery.head.method,
        "operation": delivery.head.soap.as_ref().map(|soap| &soap.operation).filter(|operation| !operation.is_empty()),
        "path": delivery.head.path,
        "params": delivery.head.params,
        "headers": headers_json(&delivery.head.headers, seen.masked),
        "bodyBytes": delivery.body_bytes,
        "edited": delivery.original_body_id.is_some(),
        "createdAt": delivery.created_at,
        "deliveredAt": progress.delivered_at,
        "deadAt": progress.dead_at,
        "endedAt": progress.ended_at,
        "dlqRetries": progress.dlq_retries,
        "dlqNote": progress.dlq_note,
        "version": delivery.version,
    })
}

/// The same of one that is held up (R04, R15).
pub fn with_deferral(mut delivery: Value, deferred: Option<&Deferred>) -> Value {
    if let (Some(Deferred { by, until, behind }), Some(members)) = (deferred, delivery.as_object_mut()) {
        members.insert("deferredBy".to_owned(), json!(by));
        members.insert("deferredUntil".to_owned(), json!(until));
        members.insert("behind".to_owned(), json!(behind));
    }
    delivery
}

/// Attempts in all: a ladder's, raised by retries by hand. Rounds go on as long as the policy says, so there is none.
fn max_attempts(delivery: &Delivery) -> Option<u32> {
    let terms = delivery.ladder.as_ref()?;
    Some(delivery.progress.allowed_attempts.unwrap_or(terms.ladder.max_attempts()))
}

/// An item of Failed Messages as the second seed has it, and ours behind.
pub fn dead_letter_json(delivery: &Delivery, connection: Option<&Connection>, seen: Seen<'_>) -> Value {
    let progress = &delivery.progress;
    json!({
        "deliveryId": delivery.id,
        "eventId": delivery.event.as_ref().map(|event| event.id),
        "endpointId": connection.filter(|known| known.kind() == ConnectionKind::Webhook).map(|known| EndpointId::of(known.id)),
        "subscriptionId": delivery.event.as_ref().map(|event| event.subscription_id),
        "eventType": delivery.event.as_ref().map(|event| &event.event_type),
        "endpointUrl": connection.map(address),
        "attemptCount": progress.attempts,
        "maxAttempts": max_attempts(delivery),
        "lastError": seen.error(progress.error.as_deref()),
        "failedAt": progress.dead_at.or(progress.ended_at),
        "createdAt": delivery.created_at,
        "cid": delivery.cid,
        "connection": connection.map(|connection| &connection.name),
        "connectionId": delivery.connection_id,
        "failure": progress.failure,
        "rounds": progress.rounds,
        "method": delivery.head.method,
        "bodyBytes": delivery.body_bytes,
        "edited": delivery.original_body_id.is_some(),
        "dlqRetries": progress.dlq_retries,
        "dlqNote": progress.dlq_note,
    })
}

/// Where a connection's requests go, placeholders as written.
fn address(connection: &Connection) -> String {
    connection.spec.target.address()
}

pub fn attempt_json(attempt: &Attempt, seen: Seen<'_>) -> Value {
    let mut object = Map::new();
    object.insert("number".into(), attempt.number.into());
    object.insert("startedAt".into(), json!(attempt.started_at));
    object.insert("tookMs".into(), attempt.took.as_millis().into());
    object.insert("failure".into(), json!(attempt.failure));
    object.insert("status".into(), json!(attempt.status));
    object.insert("error".into(), seen.error(attempt.error.as_deref()));
    object.insert("responseHeaders".into(), headers_json(&attempt.response_headers, seen.masked));
    body_into(&mut object, "responseBody", "responseBodyBase64", &attempt.response_body);
    object.insert("responseBytes".into(), attempt.response_bytes.into());
    object.insert("incomplete".into(), attempt.incomplete.into());
    Value::Object(object)
}

/// The result object (Z30) as JSON text. `data` goes in as the remote wrote it, so that no number is rounded.
pub fn outcome_text(outcome: &Outcome) -> String {
    // Written as text at once: this is the answer of every request that is taken in.
    let or_null = |text: Option<String>| text.map_or_else(|| "null".to_owned(), |text| Value::from(text).to_string());
    let [is_ok, is_in_queue, is_in_dlq] =
        [OutcomeState::IsOk, OutcomeState::IsInQueue, OutcomeState::IsInDlq].map(|state| outcome.state == state);
    format!(
        r#"{{"is_ok":{is_ok},"is_in_queue":{is_in_queue},"is_in_dlq":{is_in_dlq},"msg_id":{},"cid":{},"error":{},"response":{}}}"#,
        or_null(outcome.msg_id.map(|id| id.to_string())),
        or_null(Some(outcome.cid.as_str().to_owned())),
        or_null(outcome.error.clone()),
        outcome.response.as_ref().map_or_else(|| "null".to_owned(), answer_text),
    )
}

fn answer_text(answer: &Answer) -> String {
    let mut object = Map::new();
    object.insert("status".into(), answer.status.into());
    object.insert("headers".into(), headers_in_full(&answer.headers));
    body_into(&mut object, "body", "body_base64", &answer.body);
    if let Some(said) = &answer.said {
        said_into(&mut object, said);
    }
    if answer.incomplete {
        object.insert("incomplete".into(), true.into());
    }
    joined(&Value::Object(object).to_string(), "data", &data(answer).unwrap_or_else(|| "null".to_owned()))
}

/// What the protocol says in the answer itself: over MLLP the acknowledgment (Z32), over SOAP the fault (Z34), over FHIR the outcome (Z33).
fn said_into(object: &mut Map<String, Value>, said: &Said) {
    match said {
        Said::Ack(ack) => {
            object.insert("ack_code".into(), ack.code.as_str().into());
            object.insert("ack_text".into(), ack.text.clone().into());
            if !ack.items.is_empty() {
                object.insert("acks".into(), json!(ack.items));
            }
        }
        Said::Soap(soap) => {
            object.insert("element".into(), soap.element.clone().into());
            object.insert("fault".into(), json!(soap.fault));
            if !soap.header.is_null() {
                object.insert("soap_header".into(), soap.header.clone());
            }
            if !soap.attachments.is_empty() {
                object.insert("attachments".into(), soap.attachments.clone().into());
            }
        }
        Said::Fhir(fhir) => fhir_into(object, fhir),
    }
}

/// Which resource it is about, and what the server says of the outcome (Z33).
fn fhir_into(object: &mut Map<String, Value>, fhir: &FhirAnswer) {
    object.insert("resource_type".into(), fhir.resource_type.clone().into());
    object.insert("id".into(), fhir.id.clone().into());
    object.insert("version_id".into(), fhir.version_id.clone().into());
    if !fhir.issues.is_empty() {
        object.insert("issues".into(), json!(fhir.issues));
    }
    if !fhir.entries.is_empty() {
        object.insert("entries".into(), json!(fhir.entries));
    }
    if let Some(next) = &fhir.next {
        object.insert("next".into(), next.clone().into());
    }
}

/// The parsed body when the answer says that it is JSON and it is; over SOAP what is in the envelope.
fn data(answer: &Answer) -> Option<String> {
    if let Some(soap) = answer.soap() {
        return Some(soap.data.to_string());
    }
    let content_type = answer.headers.get("content-type")?.split(';').next()?.trim().to_ascii_lowercase();
    if content_type != "application/json" && !content_type.ends_with("+json") {
        return None;
    }
    let raw: &serde_json::value::RawValue = serde_json::from_slice(&answer.body).ok()?;
    // What only looks like JSON (half a surrogate pair, a number beyond all bounds) would make the whole result unreadable to strict readers.
    serde_json::from_str::<Value>(raw.get()).ok()?;
    compact(raw.get()).ok()
}

/// Adds a member, given as JSON text, to an object that has members already.
fn joined(object: &str, name: &str, json: &str) -> String {
    let open = object.strip_suffix('}').unwrap_or(object);
    format!("{open},\"{name}\":{json}}}")
}

/// Text as it is, anything else as base64.
fn body_into(object: &mut Map<String, Value>, plain: &str, encoded: &str, body: &[u8]) {
    match std::str::from_utf8(body) {
        Ok(text) => object.insert(plain.into(), text.into()),
        Err(_) => object.insert(encoded.into(), STANDARD.encode(body).into()),
    };
}

/// A name that comes once has a string, one that comes several times a list of them.
fn headers_in_full(headers: &HeaderList) -> Value {
    headers_object(headers, |_, value| value.into())
}

/// The same for what is kept: secrets are masked.
pub fn headers_json(headers: &HeaderList, masked: &MaskedHeaders) -> Value {
    headers_object(headers, |name, value| masked.shown(name, value).into())
}

fn headers_object(headers: &HeaderList, shown: impl Fn(&str, &str) -> Value) -> Value {
    let mut object: Map<String, Value> = Map::new();
    for (name, value) in headers.iter() {
        let value = shown(name, value);
        let known = object.keys().find(|known| known.eq_ignore_ascii_case(name)).cloned();
        match known.and_then(|known| object.get_mut(&known)) {
            None => {
                object.insert(name.to_owned(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use postrider_core::ack::{Ack, AckCode};
    use postrider_core::id::{Cid, DeliveryId};

    fn outcome(content_type: &str, body: &'static [u8]) -> Value {
        let fields =
            vec![("Content-Type".to_owned(), content_type.to_owned()), ("content-type".into(), "again".into())];
        let headers = HeaderList::try_from(fields).unwrap();
        let answer =
            Answer { status: Some(500), said: None, headers, body: Bytes::from_static(body), incomplete: false };
        let outcome = Outcome {
            state: OutcomeState::IsInQueue,
            msg_id: Some(DeliveryId::from_u128(7)),
            cid: Cid::from_stored("c"),
            error: Some("status 500".into()),
            failure: None,
            response: Some(answer),
        };
        serde_json::from_str(&outcome_text(&outcome)).unwrap()
    }

    // proves: Z30
    #[test]
    fn z30_the_result_object_has_flags_ids_error_and_response() {
        let json = outcome("application/problem+json; charset=utf-8", b"{\"a\": [1]}");
        assert_eq!(json["is_ok"], false);
        assert_eq!(json["is_in_queue"], true);
        assert_eq!(json["is_in_dlq"], false);
        assert_eq!(json["msg_id"], DeliveryId::from_u128(7).to_string());
        assert_eq!(json["error"], "status 500");
        assert_eq!(json["response"]["status"], 500);
        assert_eq!(json["response"]["body"], "{\"a\": [1]}");
        assert_eq!(json["response"]["data"], json!({"a": [1]}));
        assert_eq!(json["response"]["headers"]["Content-Type"][1], "again");
    }

    #[test]
    fn a_body_that_is_no_text_comes_as_base64_and_bad_json_without_data() {
        let json = outcome("application/json", b"\xff\x00");
        assert_eq!(json["response"]["body_base64"], "/wA=");
        assert_eq!(json["response"].get("body"), None);
        assert_eq!(json["response"]["data"], Value::Null);
        assert_eq!(outcome("application/json", b"{\"a\":1}}")["response"]["data"], Value::Null);
        assert_eq!(outcome("text/plain", b"{}")["response"]["data"], Value::Null);
        // What strict readers would refuse, and with it the whole result.
        for body in [&b"{\"id\":\"\\ud800\"}"[..], b"{\"n\":1e999999}"] {
            assert_eq!(outcome("application/fhir+json", body)["response"]["data"], Value::Null);
        }
    }

    #[test]
    fn z32_an_acknowledgment_has_its_code_and_text() {
        let ack = Ack::single(AckCode::Ae, Some("Unknown patient".to_owned()));
        let answer = Answer { said: Some(Said::Ack(ack)), body: Bytes::from_static(b"MSH|"), ..Answer::default() };
        let json: Value = serde_json::from_str(&answer_text(&answer)).unwrap();
        let wanted = json!({"status": null, "headers": {}, "body": "MSH|", "ack_code": "AE", "ack_text": "Unknown patient", "data": null});
        assert_eq!(json, wanted);
    }

    #[test]
    fn numbers_are_not_rounded() {
        let fields = vec![("content-type".to_owned(), "application/json".to_owned())];
        let headers = HeaderList::try_from(fields).unwrap();
        let body = Bytes::from_static(b"{\"n\": 12345678901234567890123}");
        let text = answer_text(&Answer { status: Some(200), said: None, headers, body, incomplete: false });
        assert!(text.ends_with(r#""data":{"n":12345678901234567890123}}"#), "{text}");
    }

    #[test]
    fn p07_what_a_remote_system_said_of_a_failure_is_for_those_who_see_bodies() {
        let masked = MaskedHeaders::default();
        let said = Some("HTTP 422: error:invalid: the patient Doe is not known");
        assert_eq!(Seen { masked: &masked, bodies: true }.error(said), json!(said));
        assert_eq!(Seen { masked: &masked, bodies: false }.error(said), Value::Null);
    }

    #[test]
    fn kept_secrets_are_masked() {
        let fields = vec![("AUTHORIZATION".to_owned(), "Bearer x".to_owned()), ("X-A".into(), "1".into())];
        let headers = HeaderList::try_from(fields).unwrap();
        assert_eq!(headers_json(&headers, &MaskedHeaders::default()), json!({"AUTHORIZATION": "***", "X-A": "1"}));
    }
}
