//! `/connections/{name}/send` and `/publish`: a request for a remote system, and its result object (Z30, Z31, D13).

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, StatusCode};
use postrider_core::connection::{Connection, DataFormat, Target};
use postrider_core::id::Cid;
use postrider_core::message::{HeaderList, Message, Method, RequestHead};
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::trace::TraceContext;
use postrider_engine::{Refusal, SendOptions};
use serde_json::value::RawValue;

use super::shapes::outcome_text;
use super::{Acting, AppState, Input, connection_ref, fhir_call, idempotency, soap_call};
use crate::problem::{Problem, clipped};
use crate::read::{Fields, Given, Query, Segments};

const FIELDS: [&str; 6] = ["method", "path", "params", "headers", "body", "body_base64"];
/// The caller's own correlation id.
const CID_HEADER: &str = "x-postrider-cid";
/// Headers that frame the request or belong to the hop: the sender writes them itself.
const NOT_THE_CALLERS: [&str; 9] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
];
pub(super) const PATH_BYTES_MAX: usize = 8192;
pub(super) const PAIRS_MAX: usize = 1000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Send,
    Publish,
}

impl How {
    const fn as_str(self) -> &'static str {
        match self {
            How::Send => "send",
            How::Publish => "publish",
        }
    }
}

pub async fn send(state: Acting, segments: Segments, query: Query, input: Input) -> Result<Response, Problem> {
    take(state, segments, query, input, How::Send).await
}

pub async fn publish(state: Acting, segments: Segments, query: Query, input: Input) -> Result<Response, Problem> {
    take(state, segments, query, input, How::Publish).await
}

async fn take(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    input: Input,
    how: How,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let connection = state.engine.connection(project, &named).await?;
    let cid = caller_cid(&input.headers)?;
    // The path by the connection's id: a rename or another way of percent-encoding must not make it another one.
    let path = format!("/connections/{}/{}", connection.id, how.as_str());
    let mut idempotency = idempotency::read(&input.headers, project, &path, &input.bytes, state.clock.now())?;
    let message = message(input.fields, &connection.spec.target)?;
    state.check_body_size(&message.body)?;
    state.refuse_our_keys(&message.head.headers)?;
    if how == How::Send && connection.spec.target.only_reads(&message.head) {
        // Z12: a request that only reads is made anew each time; nothing is stored that a repeat could answer from.
        idempotency = None;
    }
    let options = SendOptions { cid, idempotency, trace: caller_trace(&input.headers) };
    let outcome = match how {
        // In a box, so that what only stores is not as large as what waits for an answer: this future is moved with each request.
        How::Send => Box::pin(state.engine.send(project, &named, message, options)).await,
        How::Publish => state.engine.publish(project, &named, message, options).await,
    };
    outcome.map(|outcome| outcome_response(&outcome)).map_err(not_taken)
}

/// Z30, D07: a result that could not be stored has all its flags false.
pub(super) fn not_taken(refusal: Refusal) -> Problem {
    let problem = Problem::from(refusal);
    if !problem.status().is_server_error() {
        return problem;
    }
    let error = problem.detail().to_owned();
    ["is_ok", "is_in_queue", "is_in_dlq"]
        .into_iter()
        .fold(problem, |problem, flag| problem.with_member(flag, false.into()))
        .with_member("msg_id", serde_json::Value::Null)
        .with_member("error", error.into())
        .with_member("response", serde_json::Value::Null)
}

/// D13: 200 with the result whatever the remote did, 202 when it is in the queue; 503 when it could not be stored.
fn outcome_response(outcome: &Outcome) -> Response {
    let status = match outcome.state {
        OutcomeState::IsInQueue => StatusCode::ACCEPTED,
        OutcomeState::NotDelivered if outcome.msg_id.is_none() => StatusCode::SERVICE_UNAVAILABLE,
        OutcomeState::IsOk | OutcomeState::IsInDlq | OutcomeState::NotDelivered => StatusCode::OK,
    };
    result_response(status, outcome)
}

pub(super) fn result_response(status: StatusCode, outcome: &Outcome) -> Response {
    (status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], outcome_text(outcome)).into_response()
}

pub(crate) fn caller_cid(headers: &HeaderMap) -> Result<Option<Cid>, Problem> {
    let Some(value) = headers.get(CID_HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || text.len() > 64 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        let allowed = "1 to 64 visible ASCII characters";
        return Err(Problem::bad_request("X-Postrider-Cid", "`X-Postrider-Cid` is not usable", allowed));
    }
    Ok(Some(Cid::from_stored(text)))
}

/// What the caller's `traceparent` says; one that cannot be read, or that comes twice, is as good as none.
pub(super) fn caller_trace(headers: &HeaderMap) -> Option<TraceContext> {
    let mut parents = headers.get_all("traceparent").iter();
    let parent = parents.next()?.to_str().ok()?;
    if parents.next().is_some() {
        return None;
    }
    // Several lines are one list.
    let states: Vec<&str> = headers.get_all("tracestate").iter().filter_map(|state| state.to_str().ok()).collect();
    TraceContext::parse(parent, Some(&states.join(","))).ok()
}

/// The request for a remote system that the body of a `/send` or `/publish` asks for.
///
/// # Errors
/// 415 and 400 when it is not JSON, and otherwise 422 with every field that is refused.
pub fn read_message(headers: &HeaderMap, body: &[u8], format: DataFormat) -> Result<Message, Problem> {
    plain(Fields::read(headers, body)?, format)
}

pub(super) fn message(mut fields: Fields, target: &Target) -> Result<Message, Problem> {
    let interaction = target.fhir().and_then(|fhir| Some((fields.text("operation")?, fhir)));
    match interaction {
        Some((operation, fhir)) => fhir_call::read(fields, operation, fhir),
        None => plain(fields, target.data_format()),
    }
}

/// By method and path, or over SOAP by its operation.
fn plain(mut fields: Fields, format: DataFormat) -> Result<Message, Problem> {
    let takes_message = matches!(format, DataFormat::Soap | DataFormat::Hl7 | DataFormat::Fhir);
    if takes_message {
        one_body(&mut fields);
    }
    let method = method(&mut fields);
    let path = path(&mut fields);
    let params = pairs(&mut fields, "params");
    let headers = headers(&mut fields);
    let soap = soap_call::read(&mut fields, format);
    let given = fields.body();
    let body = body_bytes(&mut fields, given, format);
    let own: &[&str] = match format {
        DataFormat::Soap => &soap_call::FIELDS,
        DataFormat::Fhir => &["operation", "message"],
        DataFormat::Hl7 => &["message"],
        DataFormat::Json | DataFormat::Text | DataFormat::Form | DataFormat::Xml => &[],
    };
    fields.finish(&[&FIELDS, own].concat())?;
    Ok(Message { head: RequestHead { method, path, params, headers, trace: None, soap }, body })
}

/// `message` is another name of the body, where a body is a message.
pub(super) fn one_body(fields: &mut Fields) {
    if fields.has("message") && (fields.has("body") || fields.has("body_base64")) {
        fields.take("message");
        fields.refuse("message", "`message` and a body are both there", "one of the two: they are the same");
    } else {
        fields.rename("message", "body");
    }
}

pub(super) fn method(fields: &mut Fields) -> Method {
    let Some(given) = fields.text("method") else { return Method::default() };
    given.parse().unwrap_or_else(|error: postrider_core::message::MessageError| {
        fields.refuse("method", error.to_string(), "an HTTP method such as POST");
        Method::default()
    })
}

fn path(fields: &mut Fields) -> String {
    let Some(path) = fields.text("path") else { return String::new() };
    let bad = path.len() > PATH_BYTES_MAX || path.chars().any(|c| c.is_control() || matches!(c, ' ' | '?' | '#'));
    if bad {
        let allowed = format!("at most {PATH_BYTES_MAX} bytes, no spaces, `?`, `#` and control characters");
        fields.refuse("path", format!("`path` is `{}`", clipped(&path.escape_debug().to_string())), allowed);
    }
    path
}

pub(super) fn headers(fields: &mut Fields) -> HeaderList {
    let mut list = HeaderList::default();
    for (name, value) in pairs(fields, "headers") {
        if NOT_THE_CALLERS.iter().any(|ours| ours.eq_ignore_ascii_case(&name)) {
            let allowed = format!("any but {}", NOT_THE_CALLERS.join(", "));
            fields.refuse("headers", format!("the header `{name}` is written by the sender"), allowed);
        } else if let Err(error) = list.push(name, value) {
            fields.refuse("headers", error.to_string(), "names that are tokens, values without control characters");
        }
    }
    list
}

/// An object of names and values, or a list of pairs. A value may be a list, for a name that comes several times.
pub(super) fn pairs(fields: &mut Fields, field: &str) -> Vec<(String, String)> {
    let Some(given) = fields.take(field) else { return Vec::new() };
    let read = read_pairs(given.get());
    let allowed = format!(
        "an object of strings, numbers, true and false or lists of them, or a list of [name, value]; at most {PAIRS_MAX}"
    );
    match read {
        Some(pairs) if pairs.len() <= PAIRS_MAX => pairs,
        Some(pairs) => {
            fields.refuse(field, format!("`{field}` has {} entries", pairs.len()), allowed);
            Vec::new()
        }
        None => {
            fields.refuse(field, format!("`{field}` cannot be read"), allowed);
            Vec::new()
        }
    }
}

fn read_pairs(json: &str) -> Option<Vec<(String, String)>> {
    if json.starts_with('[') {
        let list: Vec<(String, Box<RawValue>)> = serde_json::from_str(json).ok()?;
        return list.into_iter().map(|(name, value)| Some((name, scalar(value.get())?))).collect();
    }
    let mut pairs = Vec::new();
    for (name, value) in crate::read::object_pairs(json)? {
        if value.get().starts_with('[') {
            let values: Vec<Box<RawValue>> = serde_json::from_str(value.get()).ok()?;
            for value in values {
                pairs.push((name.clone(), scalar(value.get())?));
            }
        } else {
            pairs.push((name, scalar(value.get())?));
        }
    }
    Some(pairs)
}

/// Numbers stay as they were written.
fn scalar(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => serde_json::from_str(json).ok(),
        b'{' | b'[' | b'n' => None,
        _ => Some(json.to_owned()),
    }
}

pub(super) fn data_format(connection: &Connection) -> DataFormat {
    connection.spec.target.data_format()
}

/// The bytes to send. A JSON value is for connections that speak JSON, and an object of plain values for those that speak forms.
pub(super) fn body_bytes(fields: &mut Fields, given: Option<Given>, format: DataFormat) -> Bytes {
    let json = match given {
        None => return Bytes::new(),
        Some(Given::Bytes(bytes)) => return bytes,
        Some(Given::Json(json)) => json,
    };
    let allowed = match format {
        DataFormat::Json | DataFormat::Soap | DataFormat::Fhir => return json.into(),
        DataFormat::Form => match read_pairs(&json) {
            Some(pairs) => return form(&pairs).into(),
            None => "a string, or an object of names and plain values, since `data_format` is form",
        },
        DataFormat::Text | DataFormat::Xml => "a string, since `data_format` is not json",
        DataFormat::Hl7 => "a string, since the connection takes messages of HL7",
    };
    fields.refuse("body", "`body` is a JSON value", allowed);
    Bytes::new()
}

pub(super) fn form(pairs: &[(String, String)]) -> String {
    let encode =
        |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    pairs.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect::<Vec<_>>().join("&")
}

impl AppState {
    pub(super) fn check_body_size(&self, body: &Bytes) -> Result<(), Problem> {
        let allowed = self.options.body.body_bytes_max;
        if body.len() as u64 > allowed { Err(Problem::too_large(allowed)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(json: &str) -> Result<RequestHead, Vec<String>> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let mut fields = Fields::read(&headers, json.as_bytes()).unwrap();
        let (method, path) = (method(&mut fields), path(&mut fields));
        let (params, list) = (pairs(&mut fields, "params"), super::headers(&mut fields));
        fields
            .finish(&FIELDS)
            .map(|()| RequestHead { method, path, params, headers: list, trace: None, soap: None })
            .map_err(|problem| {
                let json = problem.to_json();
                json["errors"].as_array().unwrap().iter().map(|e| e["field"].as_str().unwrap().to_owned()).collect()
            })
    }

    #[test]
    fn params_and_headers_come_as_objects_or_pairs() {
        let head =
            taken(r#"{"method": "put", "params": {"n": 1.50, "t": true, "l": ["a", 2]}, "headers": [["X-A", "1"]]}"#);
        let head = head.unwrap();
        assert_eq!(head.method.as_str(), "PUT");
        let expected = [("n", "1.50"), ("t", "true"), ("l", "a"), ("l", "2")];
        assert_eq!(head.params, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(head.headers.get("x-a"), Some("1"));
        assert_eq!(taken("{}").unwrap(), RequestHead::default());
    }

    #[test]
    fn each_bad_field_is_named() {
        for (json, field) in [
            (r#"{"method": "GET /"}"#, "method"),
            (r#"{"method": 7}"#, "method"),
            (r#"{"path": "/a\r\nX: 1"}"#, "path"),
            (r#"{"path": "/a\u0000"}"#, "path"),
            (r#"{"path": "/a?b"}"#, "path"),
            (r#"{"params": "a=1"}"#, "params"),
            (r#"{"params": {"a": {"b": 1}}}"#, "params"),
            (r#"{"params": {"a": null}}"#, "params"),
            (r#"{"params": [["a"]]}"#, "params"),
            (r#"{"headers": {"X-A": "1\r\nX-B: 2"}}"#, "headers"),
            (r#"{"headers": {"X-A": "\u0000"}}"#, "headers"),
            (r#"{"headers": {"X A": "1"}}"#, "headers"),
            (r#"{"headers": {"Content-Length": "1"}}"#, "headers"),
            (r#"{"operation": "x"}"#, "operation"),
        ] {
            assert_eq!(taken(json), Err(vec![field.to_owned()]), "{json}");
        }
    }

    #[test]
    fn a_form_is_percent_encoded() {
        let pairs = read_pairs(r#"{"a b": "ä&=", "n": 1}"#).unwrap();
        assert_eq!(form(&pairs), "a%20b=%C3%A4%26%3D&n=1");
    }

    #[test]
    fn d13_the_status_follows_the_result() {
        let cid = Cid::from_stored("c");
        let id = postrider_core::id::DeliveryId::from_u128(1);
        let outcome =
            |state, msg_id| Outcome { state, msg_id, cid: cid.clone(), error: None, failure: None, response: None };
        for (state, msg_id, status) in [
            (OutcomeState::IsOk, Some(id), 200),
            (OutcomeState::IsInQueue, Some(id), 202),
            (OutcomeState::IsInDlq, Some(id), 200),
            (OutcomeState::NotDelivered, Some(id), 200),
            (OutcomeState::NotDelivered, None, 503),
        ] {
            assert_eq!(outcome_response(&outcome(state, msg_id)).status(), status);
        }
    }
}
