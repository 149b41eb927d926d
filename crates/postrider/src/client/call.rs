//! Sending: a request for a connection, and the result object that comes back (Z30, Z31).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Client, ClientError, Problem};

/// A request for a connection, as the remote system is to get it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `GET`, `POST`, …; the server's default (`POST`) when `None`.
    pub method: Option<String>,
    /// Appended to the connection's own path.
    pub path: Option<String>,
    /// Fill the placeholders of the path; what is left over becomes the query string.
    pub params: Vec<(String, String)>,
    /// Added to the connection's own headers. A name that comes twice is sent twice.
    pub headers: Vec<(String, String)>,
    /// What to invoke, on a connection of type `soap`: the body is its message. On one of type `fhir` the interaction.
    pub operation: Option<String>,
    /// What belongs to an interaction of FHIR.
    pub fhir: FhirFields,
    /// Sent byte for byte; over SOAP within an envelope.
    pub body: Bytes,
}

/// Beside the operation of a call to a connection of type `fhir`; what is `None` is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FhirFields {
    /// Where the body does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// The link to the next page: `next` of the answer to a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `create` makes nothing where this search finds one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_none_exist: Option<String>,
    /// The version that is to be changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_match: Option<String>,
    /// The version that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_none_match: Option<String>,
    /// A date of HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_modified_since: Option<String>,
    /// `minimal`, `representation`, `OperationOutcome`, or a whole `Prefer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefer: Option<String>,
}

impl Call {
    /// A `POST` with this body.
    pub fn post(body: impl Into<Bytes>) -> Call {
        Call { method: Some("POST".into()), body: body.into(), ..Call::default() }
    }

    /// An operation of a SOAP service with its message: an object of JSON, or the XML of its element.
    pub fn invoke(operation: impl Into<String>, message: impl Into<Bytes>) -> Call {
        Call { operation: Some(operation.into()), body: message.into(), ..Call::default() }
    }

    /// A resource to be created, or where it has an id to be updated.
    pub fn save(resource: impl Into<Bytes>) -> Call {
        Call { operation: Some("save".to_owned()), body: resource.into(), ..Call::default() }
    }

    /// An interaction of FHIR, such as `read` or `$validate`.
    pub fn interaction(operation: impl Into<String>, fhir: FhirFields) -> Call {
        Call { operation: Some(operation.into()), fhir, ..Call::default() }
    }

    /// Text goes as text and everything else in base64, so that each byte arrives as it is.
    pub(super) fn to_json(&self) -> Value {
        let mut json = Map::new();
        if let Some(method) = &self.method {
            json.insert("method".into(), method.as_str().into());
        }
        if let Some(path) = &self.path {
            json.insert("path".into(), path.as_str().into());
        }
        if !self.params.is_empty() {
            json.insert("params".into(), pairs_json(&self.params));
        }
        if !self.headers.is_empty() {
            json.insert("headers".into(), pairs_json(&self.headers));
        }
        if let Some(operation) = &self.operation {
            json.insert("operation".into(), operation.as_str().into());
        }
        if let Ok(Value::Object(fhir)) = serde_json::to_value(&self.fhir) {
            json.extend(fhir);
        }
        insert_body(&mut json, &self.body);
        Value::Object(json)
    }
}

/// `[[name, value], …]`: keeps the order, and a name that comes twice.
pub(super) fn pairs_json(pairs: &[(String, String)]) -> Value {
    pairs.iter().map(|(name, value)| Value::from(vec![name.as_str(), value.as_str()])).collect()
}

pub(super) fn insert_body(json: &mut Map<String, Value>, body: &[u8]) {
    match std::str::from_utf8(body) {
        Ok("") => {}
        Ok(text) => {
            json.insert("body".into(), text.into());
        }
        Err(_) => {
            json.insert("body_base64".into(), STANDARD.encode(body).into());
        }
    }
}

/// What became of a call. At most one flag is set; with none set it was not delivered and is nowhere, and `error` says why.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SendResult {
    /// Delivered: the remote system answered 2xx, or acknowledged with `AA` or `CA`; its answer is in `response`.
    pub is_ok: bool,
    /// In the connection's queue under `msg_id`.
    pub is_in_queue: bool,
    /// In its dead-letter queue under `msg_id`.
    pub is_in_dlq: bool,
    #[serde(default)]
    pub msg_id: Option<String>,
    /// The correlation id, the same over all attempts.
    #[serde(default)]
    pub cid: Option<String>,
    /// Why it was not delivered, or not yet.
    #[serde(default)]
    pub error: Option<String>,
    /// What the remote system answered, a refusal included.
    #[serde(default)]
    pub response: Option<Response>,
    /// What a newer server adds.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The HTTP status; `None` where the remote system does not speak HTTP (MLLP).
    #[serde(default)]
    pub status: Option<u16>,
    /// The code of an HL7 acknowledgment: `AA`, `AE`, `AR`, `CA`, `CE` or `CR`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_code: Option<String>,
    /// Over FHIR: the resource that the answer is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Over FHIR: its id, from the body or from `Location`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Over FHIR: its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_id: Option<String>,
    /// Over FHIR: the link to the next page of a search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[serde(default)]
    pub headers: Value,
    /// As text; `None` where it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Base64 of a body that is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// The body read as JSON, where it is; numbers as exact as 64 bits are. `body` is exact.
    #[serde(default)]
    pub data: Value,
    /// What a newer server adds.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl Response {
    /// The bytes of the body. `None` when its base64 cannot be read.
    pub fn bytes(&self) -> Option<Bytes> {
        match (&self.body, &self.body_base64) {
            (Some(text), _) => Some(Bytes::copy_from_slice(text.as_bytes())),
            (None, Some(coded)) => STANDARD.decode(coded).ok().map(Bytes::from),
            (None, None) => Some(Bytes::new()),
        }
    }
}

impl Client {
    /// Calls a connection and waits for the outcome (Z05, D10). A remote system that refused or did not answer is a result, no error;
    /// so is a store that could not take the request: all flags false and no `msg_id`.
    ///
    /// # Errors
    /// The server refused the request itself (no such connection, not active, body too large), or could not be reached.
    pub async fn send(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        self.hand_in(&self.under_connection(connection, "/send"), call).await
    }

    /// Stores a request for a connection without calling it first (Z31); it is durable when this returns.
    ///
    /// # Errors
    /// As for `send`.
    pub async fn publish(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        self.hand_in(&self.under_connection(connection, "/publish"), call).await
    }

    async fn hand_in(&self, path: &str, call: &Call) -> Result<SendResult, ClientError> {
        match self.transport.json(Method::POST, path, &call.to_json()).await {
            Err(ClientError::Refused(problem)) => not_stored(&problem).ok_or(ClientError::Refused(problem)),
            other => other,
        }
    }
}

/// A refusal that carries the flags is a result: nothing was stored (Z30).
fn not_stored(problem: &Problem) -> Option<SendResult> {
    let is_result = problem.more.get("is_ok") == Some(&Value::Bool(false));
    let error = problem.more.get("error").and_then(Value::as_str).map_or_else(|| problem.to_string(), str::to_owned);
    is_result.then(|| SendResult { error: Some(error), ..SendResult::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_keeps_its_bytes_on_the_way_to_the_server() {
        assert_eq!(Call::post("a\0é").to_json()["body"], "a\0é");
        assert_eq!(Call::post(&b"\xff\x00"[..]).to_json()["body_base64"], "/wA=");
        assert_eq!(Call::default().to_json(), Value::Object(Map::new()));
    }

    #[test]
    fn a_header_that_comes_twice_is_sent_twice() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [pair("a", "1"), pair("b", "2"), pair("a", "3")];
        assert_eq!(pairs_json(&headers), serde_json::json!([["a", "1"], ["b", "2"], ["a", "3"]]));
    }

    // proves: Z30
    #[test]
    fn z30_a_result_object_reads_and_writes_the_same() {
        let json = serde_json::json!({"is_ok": false, "is_in_queue": true, "is_in_dlq": false, "msg_id": "msg_1", "cid": "c",
            "error": "status 500", "response": {"status": 500, "headers": {}, "body_base64": "/wA=", "data": null}});
        let acknowledged = serde_json::json!({"is_ok": true, "is_in_queue": false, "is_in_dlq": false, "msg_id": "msg_1", "cid": "c", "error": null,
            "response": {"status": null, "headers": {}, "body": "MSH|", "ack_code": "AA", "ack_text": null, "data": null}});
        let read: SendResult = serde_json::from_value(acknowledged.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), acknowledged);
        let result: SendResult = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(result.response.as_ref().unwrap().bytes().unwrap(), &b"\xff\x00"[..]);
        assert_eq!(serde_json::to_value(&result).unwrap(), json);
    }

    #[test]
    fn z30_what_could_not_be_stored_is_a_result_with_all_flags_false() {
        let problem = |json: Value| serde_json::from_value::<Problem>(json).unwrap();
        let full =
            problem(serde_json::json!({"title": "Insufficient Storage", "status": 507, "detail": "the store is full",
            "is_ok": false, "is_in_queue": false, "is_in_dlq": false, "error": "full"}));
        let result = not_stored(&full).unwrap();
        assert_eq!((result.is_ok, result.msg_id, result.error.as_deref()), (false, None, Some("full")));
        assert_eq!(not_stored(&problem(serde_json::json!({"title": "Not Found", "status": 404}))), None);
    }
}
