//! What the caller of a channel is told: that its request is stored, in the service's words, in a fixed text or in ours (Z42-Z44); or, with the
//! queue off, what the service answered.
//!
//! It must not know how either came about.

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderName, StatusCode};
use postrider_core::connection::{Connection, SoapDoor};
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::{Answer, Failure};
use postrider_engine::{Receipt, without_ours};
use serde_json::Value;

use super::envelope::{self, Asked};
use super::refused;
use crate::api::raw::remote_answer;
use crate::problem::Problem;

const CID: HeaderName = HeaderName::from_static("x-postrider-cid");
const MSG_ID: HeaderName = HeaderName::from_static("x-postrider-msg-id");
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// A request that was stored.
pub struct Told<'t> {
    pub channel: &'t Connection,
    pub asked: Option<&'t Asked>,
    pub receipt: &'t Receipt,
}

/// The service's own words win over a fixed text, and both over the default (Z43, Z44).
pub fn of(told: &Told<'_>, by_service: Option<Answer>) -> Response {
    let fixed = told.channel.spec.target.channel().and_then(|channel| channel.queue_response.as_deref());
    let soap = told.channel.spec.target.channel().and_then(|channel| channel.door.soap());
    let (status, content_type, body) = match (by_service, fixed) {
        (Some(answer), _) => {
            let status = answer.status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::OK);
            let own = answer.headers.get("content-type").map(str::to_owned);
            (status, own.unwrap_or_else(|| type_of(&answer.body, soap).to_owned()), answer.body)
        }
        (None, Some(text)) => {
            (StatusCode::OK, type_of(text.as_bytes(), soap).to_owned(), Bytes::copy_from_slice(text.as_bytes()))
        }
        (None, None) => default(told, soap),
    };
    let mut response = (status, body).into_response();
    let value = HeaderValue::from_str(&content_type).unwrap_or(HeaderValue::from_static(TEXT));
    response.headers_mut().insert(CONTENT_TYPE, value);
    named(response, told.receipt.cid.as_str(), Some(told.receipt.msg_id.to_string()))
}

fn default(told: &Told<'_>, soap: Option<&SoapDoor>) -> (StatusCode, String, Bytes) {
    let cid = told.receipt.cid.as_str();
    match (soap, told.asked) {
        (Some(soap), Some(asked)) => {
            let content_type = envelope::content_type(soap.version).to_owned();
            (StatusCode::OK, content_type, Bytes::from(envelope::acknowledgment(asked, cid)))
        }
        // Written as text at once: this is the answer to every request that is taken in.
        _ => {
            (StatusCode::OK, JSON.to_owned(), Bytes::from(format!(r#"{{"is_ok": true, "cid": {}}}"#, Value::from(cid))))
        }
    }
}

/// By what it opens with: JSON, XML or plain text; on a SOAP channel always XML (Z43).
fn type_of(body: &[u8], soap: Option<&SoapDoor>) -> &'static str {
    if let Some(soap) = soap {
        return envelope::content_type(soap.version);
    }
    match body.trim_ascii_start().first() {
        Some(b'{' | b'[') => JSON,
        Some(b'<') => "application/xml",
        _ => TEXT,
    }
}

/// The service's response is the answer; without one, 502 or 504 (Z40).
pub fn of_run(outcome: &Outcome, soap: Option<&SoapDoor>, only_head: bool) -> Response {
    let response = match &outcome.response {
        Some(answer) if has_no_service(answer) => {
            refused(Problem::new(StatusCode::BAD_GATEWAY, "the service of this channel is not there"), soap)
        }
        // 101 would hand the connection over, and nobody knows what to make of a status beyond 599.
        Some(answer) if answer.status.is_some_and(|status| !(200..=599).contains(&status)) => {
            refused(Problem::new(StatusCode::BAD_GATEWAY, "the service answered with a status that is none"), soap)
        }
        // A fault is what callers of SOAP can read.
        Some(answer) if soap.is_some() && outcome.state != OutcomeState::IsOk && !is_xml(answer) => {
            refused(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the service failed"), soap)
        }
        Some(answer) => remote_answer(&Answer { headers: without_ours(&answer.headers), ..answer.clone() }, only_head),
        None => refused(unanswered(outcome), soap),
    };
    named(response, outcome.cid.as_str(), None)
}

/// Where it was sent and why it failed is for the log, which the cid leads to.
fn unanswered(outcome: &Outcome) -> Problem {
    let problem = match outcome.failure {
        Some(Failure::Timeout) => Problem::new(StatusCode::GATEWAY_TIMEOUT, "the service did not answer in time"),
        _ => Problem::new(StatusCode::BAD_GATEWAY, "the service did not answer"),
    };
    problem.with_member("cid", outcome.cid.as_str().into())
}

/// A host that has no such service says so in its own words; to the caller of the channel, a path that is there would seem not to be.
fn has_no_service(answer: &Answer) -> bool {
    let is_problem =
        answer.headers.get("content-type").is_some_and(|text| text.starts_with("application/problem+json"));
    answer.status == Some(404)
        && is_problem
        && serde_json::from_slice::<Value>(&answer.body).is_ok_and(|problem| problem["code"] == "no_service")
}

fn is_xml(answer: &Answer) -> bool {
    answer.headers.get("content-type").is_some_and(|text| text.to_ascii_lowercase().contains("xml"))
}

fn named(mut response: Response, cid: &str, msg_id: Option<String>) -> Response {
    for (name, text) in [(CID, Some(cid.to_owned())), (MSG_ID, msg_id)] {
        if let Some(Ok(value)) = text.map(|text| HeaderValue::from_str(&text)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::soap::SoapVersion;

    #[test]
    fn z43_the_opening_of_a_fixed_text_says_what_it_is() {
        for (text, wanted) in [
            (" {\"a\": 1}", JSON),
            ("[]", JSON),
            ("\n<ok/>", "application/xml"),
            ("OK", TEXT),
            ("", TEXT),
            ("\"quoted\"", TEXT),
        ] {
            assert_eq!(type_of(text.as_bytes(), None), wanted, "{text}");
            let soap = SoapDoor {
                version: SoapVersion::V11,
                action: String::new(),
                namespace: String::new(),
                operations: Vec::new(),
            };
            assert_eq!(type_of(text.as_bytes(), Some(&soap)), "text/xml; charset=utf-8");
        }
    }

    #[test]
    fn z40_a_status_that_is_none_for_an_answer_is_a_bad_gateway() {
        for (status, wanted) in [(101, 502), (103, 502), (600, 502), (999, 502), (200, 200), (304, 304), (503, 503)] {
            let outcome = Outcome {
                state: OutcomeState::IsOk,
                msg_id: None,
                cid: postrider_core::id::Cid::from_stored("c"),
                error: None,
                failure: None,
                response: Some(Answer { status: Some(status), ..Answer::default() }),
            };
            assert_eq!(of_run(&outcome, None, false).status().as_u16(), wanted, "{status}");
        }
    }

    #[test]
    fn z40_a_host_without_the_service_is_no_404_of_ours() {
        let answer = |body: &'static str, content_type: &str| Answer {
            status: Some(404),
            headers: vec![("content-type".to_owned(), content_type.to_owned())].try_into().unwrap(),
            body: Bytes::from_static(body.as_bytes()),
            ..Answer::default()
        };
        assert!(has_no_service(&answer(r#"{"code": "no_service"}"#, "application/problem+json")));
        assert!(!has_no_service(&answer(r#"{"code": "no_order"}"#, "application/problem+json")), "the service's own");
        assert!(!has_no_service(&answer(r#"{"code": "no_service"}"#, "application/json")));
    }
}
