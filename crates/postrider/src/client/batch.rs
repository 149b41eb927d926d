//! Publishing many requests at once, one a line of `application/x-ndjson`.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::transport::Content;
use super::{Call, Client, ClientError, FieldProblem, Problem};

/// What became of the lines of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchResult {
    pub accepted: u64,
    pub refused: u64,
    /// In the order of the lines.
    pub results: Vec<LineResult>,
    /// Why the server did not take the batch to its end: too many lines, or its store takes no more. Lines without a result were not stored.
    #[serde(skip)]
    pub stopped: Option<Box<Problem>>,
}

/// One line: stored under `msg_id`, or refused for what `error` says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineResult {
    /// Counted from 1, empty lines included.
    pub line: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<FieldProblem>,
}

impl Call {
    /// The call as one line of a batch, with its end.
    pub fn to_line(&self) -> String {
        format!("{}\n", self.to_json())
    }
}

impl Client {
    /// Stores the requests in `lines` for a connection in their order: what was accepted is durable when this returns. A bad line is
    /// refused by its number, and the others are stored. With an `idempotency_key`, the same lines sent again within 24 hours are
    /// stored once.
    ///
    /// # Errors
    /// The server refused the request as a whole, or could not be reached: then some lines may have been stored (at-least-once).
    pub async fn publish_batch(
        &self,
        connection: &str,
        lines: impl Into<Bytes>,
        idempotency_key: Option<&str>,
    ) -> Result<BatchResult, ClientError> {
        let headers = idempotency_key.map(|key| ("idempotency-key", key.to_owned()));
        let content =
            Content { kind: "application/x-ndjson", bytes: lines.into(), headers: headers.into_iter().collect() };
        match self.transport.content(Method::POST, &self.under_connection(connection, "/publish/batch"), content).await
        {
            Err(ClientError::Refused(problem)) => so_far(&problem).ok_or(ClientError::Refused(problem)),
            other => other,
        }
    }
}

/// A refusal that says what became of lines is a result that ends early.
fn so_far(problem: &Problem) -> Option<BatchResult> {
    problem.more.get("results").filter(|results| results.as_array().is_some_and(|results| !results.is_empty()))?;
    let result: BatchResult = serde_json::from_value(Value::Object(problem.more.clone())).ok()?;
    Some(BatchResult { stopped: Some(Box::new(problem.clone())), ..result })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_is_one_line() {
        assert_eq!(Call::post("a\nb").to_line(), "{\"method\":\"POST\",\"body\":\"a\\nb\"}\n");
    }

    #[test]
    fn a_refusal_with_results_is_a_result() {
        let problem = |json: Value| serde_json::from_value::<Problem>(json).unwrap();
        let full = problem(json!({"status": 413, "detail": "too many", "accepted": 1, "refused": 0, "next_line": 2,
            "results": [{"line": 1, "msg_id": "msg_1"}]}));
        let result = so_far(&full).unwrap();
        assert_eq!((result.accepted, result.results[0].msg_id.as_deref()), (1, Some("msg_1")));
        assert_eq!(result.stopped.unwrap().status, 413);
        assert_eq!(so_far(&problem(json!({"status": 404}))), None);
    }
}
