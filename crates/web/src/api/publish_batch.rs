//! `/connections/{name}/publish/batch`: many requests in one, a line each (`application/x-ndjson`), stored in their order.
//!
//! The body is read as a stream and stored as it comes: what a caller gets no answer for may have been stored (law 6).

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use postrider_core::connection::Target;
use postrider_core::id::{Cid, DeliveryId, ProjectId};
use postrider_core::message::Message;
use postrider_core::outcome::Outcome;
use postrider_engine::{ConnectionRef, Refusal, SendOptions};
use serde_json::{Value, json};

use super::send::{caller_cid, caller_trace, message};
use super::{Acting, AppState, connection_ref, idempotency, ok};
use crate::problem::{FieldError, Problem};
use crate::read::{Fields, Lines, Query, Segments, essence};

/// `batch_lines_max`: requests in one batch; empty lines do not count.
pub(super) const BATCH_LINES_MAX: usize = 10_000;
/// Lines that are handed on in one go, at most.
const LINES_AT_ONCE: usize = 256;

/// What has become of the lines so far.
struct Batch {
    state: AppState,
    project: ProjectId,
    named: ConnectionRef,
    /// Read and not yet handed on.
    ready: Vec<(u64, Message, SendOptions)>,
    ready_bytes: usize,
    results: Vec<(u64, Result<DeliveryId, FieldError>)>,
    /// The store took no more: nothing further is read.
    stopped: Option<Problem>,
}

/// What each line is read with.
struct Caller {
    headers: HeaderMap,
    cid: Option<Cid>,
    path: String,
}

pub async fn publish_batch(
    Acting(state): Acting,
    segments: Segments,
    mut query: Query,
    request: Request,
) -> Result<Response, Problem> {
    let project = state.project(&segments).await?;
    let named = connection_ref(&segments, &mut query)?;
    query.finish()?;
    let (parts, body): (_, Body) = request.into_parts();
    if !matches!(essence(&parts.headers).as_str(), "application/x-ndjson" | "application/jsonl") {
        return Err(Problem::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be JSON objects, one a line: `Content-Type: application/x-ndjson`",
        ));
    }
    let connection = state.engine.connection(project, &named).await?;
    let cid = caller_cid(&parts.headers)?;
    let path = format!("/connections/{}/publish/batch", connection.id);
    // A key that cannot be used is refused before anything is read.
    idempotency::read(&parts.headers, project, &path, b"", state.clock.now())?;
    let caller = Caller { headers: parts.headers, cid, path };
    let bounds = state.options.body.clone();
    let mut lines = Lines::new(body, &bounds);
    let bytes_at_once = usize::try_from(bounds.request_bytes_max()).unwrap_or(usize::MAX);
    let mut batch =
        Batch { state, project, named, ready: Vec::new(), ready_bytes: 0, results: Vec::new(), stopped: None };
    let ended = loop {
        let line = match lines.next().await {
            Ok(Some(line)) => line,
            Ok(None) => break None,
            Err(problem) => break Some(problem),
        };
        if batch.results.len() + batch.ready.len() >= BATCH_LINES_MAX {
            break Some(too_many_lines(line.number));
        }
        batch.take(line.number, line.content, &caller, &connection.spec.target);
        if batch.ready.len() >= LINES_AT_ONCE || batch.ready_bytes >= bytes_at_once {
            batch.hand_on().await;
            lines.begin_window();
        }
        if batch.stopped.is_some() {
            break None;
        }
    };
    batch.hand_on().await;
    let (counts, stopped) = (batch.counts(), batch.stopped.take());
    match stopped.or(ended) {
        None => Ok(ok(&counts)),
        Some(problem) => {
            let members = counts.as_object().cloned().unwrap_or_default();
            Err(members.into_iter().fold(problem, |problem, (name, value)| problem.with_member(&name, value)))
        }
    }
}

fn too_many_lines(next_line: u64) -> Problem {
    let detail = format!(
        "a batch has at most {BATCH_LINES_MAX} lines (`batch_lines_max`); those before line {next_line} were taken, go on from it"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).with_member("next_line", next_line.into())
}

impl Batch {
    /// Reads one line; what is wrong with it is noted under its number.
    fn take(&mut self, number: u64, content: Option<Bytes>, caller: &Caller, target: &Target) {
        let read = match content {
            None => Err(Problem::too_large(self.state.options.body.body_bytes_max)),
            Some(content) => self.read(number, &content, caller, target),
        };
        match read {
            Ok((message, options)) => {
                self.ready_bytes += message.body.len();
                self.ready.push((number, message, options));
            }
            Err(problem) => self.results.push((number, Err(line_error(&problem)))),
        }
    }

    /// The key holds for the batch, and with the line's number for each line: a batch that is sent again is stored once.
    fn read(
        &self,
        number: u64,
        line: &[u8],
        caller: &Caller,
        target: &Target,
    ) -> Result<(Message, SendOptions), Problem> {
        let message = message(Fields::parse(line)?, target)?;
        self.state.check_body_size(&message.body)?;
        self.state.refuse_our_keys(&message.head.headers)?;
        let path = format!("{}/{number}", caller.path);
        let now = self.state.clock.now();
        let idempotency = idempotency::read(&caller.headers, self.project, &path, line, now)?;
        Ok((message, SendOptions { cid: caller.cid.clone(), idempotency, trace: caller_trace(&caller.headers) }))
    }

    /// Stores what is ready, in its order.
    async fn hand_on(&mut self) {
        if self.ready.is_empty() {
            return;
        }
        self.ready_bytes = 0;
        let mut numbers = Vec::with_capacity(self.ready.len());
        let mut messages = Vec::with_capacity(self.ready.len());
        for (number, message, options) in self.ready.drain(..) {
            numbers.push(number);
            messages.push((message, options));
        }
        let answers = match self.state.engine.publish_batch(self.project, &self.named, messages).await {
            Ok(answers) => answers,
            Err(refusal) => {
                // The connection is gone or inactive by now, or the server stops: so it is for all that follow.
                let problem = Problem::from(refusal);
                self.results.extend(numbers.into_iter().map(|number| (number, Err(line_error(&problem)))));
                self.stopped = Some(problem);
                return;
            }
        };
        for (number, answer) in numbers.into_iter().zip(answers) {
            let result = stored(answer).map_err(|problem| {
                let error = line_error(&problem);
                if problem.status().is_server_error() {
                    self.stopped = Some(problem);
                }
                error
            });
            self.results.push((number, result));
        }
    }

    fn counts(&mut self) -> Value {
        let mut results = std::mem::take(&mut self.results);
        results.sort_by_key(|(line, _)| *line);
        let accepted = results.iter().filter(|(_, result)| result.is_ok()).count();
        let refused = results.len() - accepted;
        let results: Vec<Value> = results
            .into_iter()
            .map(|(line, result)| match result {
                Ok(id) => json!({"line": line, "msg_id": id}),
                Err(FieldError { field, message, allowed }) => {
                    json!({"line": line, "error": {"field": field, "message": message, "allowed": allowed}})
                }
            })
            .collect();
        json!({"accepted": accepted, "refused": refused, "results": results})
    }
}

fn stored(answer: Result<Outcome, Refusal>) -> Result<DeliveryId, Problem> {
    let outcome = answer?;
    outcome.msg_id.ok_or_else(|| Problem::unavailable(outcome.error.unwrap_or_default()))
}

/// One refusal a line: the first field that is wrong, or the line as a whole.
fn line_error(problem: &Problem) -> FieldError {
    problem.errors().first().cloned().unwrap_or_else(|| {
        let allowed = match problem.status() {
            StatusCode::BAD_REQUEST => "a JSON object with the fields of a publish request",
            StatusCode::CONFLICT => "a request that fits the connection as it is now",
            StatusCode::PAYLOAD_TOO_LARGE => "a shorter body",
            _ => "the same line again, later",
        };
        FieldError::new("line", problem.detail(), allowed)
    })
}
