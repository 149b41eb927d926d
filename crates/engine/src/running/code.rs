//! A service as code in this process: asked like one elsewhere, and judged by the same words.
//!
//! It must not know where requests come from.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::id::{Cid, DeliveryId};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::verdict::{RUN_ERROR_HEADER, RUN_HEADER};
use postrider_core::{Answer, NoAnswerKind, Reply};
use postrider_wire::Outgoing;
use postrider_wire::send::service::Ask;

const ERROR_CHARS_MAX: usize = 200;

/// Code that a channel runs. A run that returns `Ok` has succeeded, whatever status it set; one that returns an error has failed, and from a queue
/// it is tried again under the channel's settings. It may run again under the same `msg_id`: at least once.
#[async_trait]
pub trait Service: Send + Sync + 'static {
    async fn handle(&self, request: ServiceRequest) -> Result<ServiceResponse, ServiceError>;

    /// Whether it writes the acknowledgment of a queued request itself.
    fn has_queue_response(&self) -> bool {
        false
    }

    /// The acknowledgment: called once the request is stored, beside runs. After an error the default one is sent.
    async fn queue_response(&self, _request: ServiceRequest) -> Result<ServiceResponse, ServiceError> {
        Err(ServiceError::new("it writes no acknowledgments"))
    }
}

/// The request as it arrived, and what is known about it.
#[derive(Clone, Debug)]
pub struct ServiceRequest {
    /// Method, path with query, what placeholders stood for (`params`), headers.
    pub head: Arc<RequestHead>,
    pub body: Bytes,
    pub cid: Cid,
    /// Of the stored request, the same over all runs; `None` where the channel's queue is off.
    pub msg_id: Option<DeliveryId>,
    /// Which run it is, from 1.
    pub attempt: u32,
    pub channel: String,
    pub project: String,
}

/// What the caller is told where the queue is off, and in an acknowledgment. `default()` is an empty 200.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceResponse {
    pub status: u16,
    pub headers: HeaderList,
    pub body: Bytes,
}

/// Why a run failed, in one sentence for operators; callers are not told.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceError(String);

impl Default for ServiceResponse {
    fn default() -> Self {
        ServiceResponse { status: 200, headers: HeaderList::default(), body: Bytes::new() }
    }
}

impl ServiceResponse {
    /// A body of this content type.
    pub fn of(content_type: &str, body: impl Into<Bytes>) -> Self {
        let headers = HeaderList::try_from(vec![("content-type".to_owned(), content_type.to_owned())]);
        ServiceResponse { headers: headers.unwrap_or_default(), body: body.into(), ..ServiceResponse::default() }
    }
}

impl ServiceError {
    pub fn new(why: impl fmt::Display) -> Self {
        ServiceError(why.to_string().chars().filter(|c| !c.is_control()).take(ERROR_CHARS_MAX).collect())
    }
}

impl fmt::Debug for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// So that `?` takes whatever ended the run.
impl<E: std::error::Error> From<E> for ServiceError {
    fn from(error: E) -> Self {
        ServiceError::new(error)
    }
}

pub(super) async fn run(
    service: &dyn Service,
    project: String,
    outgoing: Outgoing,
    ask: Ask,
    is_stored: bool,
) -> Reply {
    let request = ServiceRequest {
        head: Arc::clone(&outgoing.head),
        body: outgoing.body.clone(),
        cid: outgoing.cid.clone(),
        msg_id: is_stored.then_some(outgoing.delivery_id),
        attempt: outgoing.attempt,
        channel: outgoing.connection.name.clone(),
        project,
    };
    let wait = outgoing.timeout;
    let run = match ask {
        Ask::Run | Ask::Announce => service.handle(request),
        Ask::QueueResponse => service.queue_response(request),
    };
    match tokio::time::timeout(wait.as_duration(), run).await {
        Ok(result) => Reply::Answered(answer(result)),
        Err(_) => Reply::unanswered(NoAnswerKind::Timeout, format!("the service did not end within {wait}")),
    }
}

fn answer(result: Result<ServiceResponse, ServiceError>) -> Answer {
    let (response, said) = match result {
        Ok(response) => (response, vec![(RUN_HEADER, "ok".to_owned())]),
        Err(ServiceError(why)) => {
            let problem =
                r#"{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the service failed"}"#;
            let response = ServiceResponse { status: 500, ..ServiceResponse::of("application/problem+json", problem) };
            (response, vec![(RUN_HEADER, "failed".to_owned()), (RUN_ERROR_HEADER, why)])
        }
    };
    let mut headers = response.headers;
    for ours in [RUN_HEADER, RUN_ERROR_HEADER] {
        headers.remove(ours);
    }
    for (name, value) in said {
        // Control characters were taken out of it.
        let _ = headers.push(name.to_owned(), value);
    }
    Answer { status: Some(response.status), headers, said: None, body: response.body, incomplete: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::verdict::{Verdict, of_run};

    #[test]
    fn z41_a_run_that_ends_in_an_error_has_failed_and_callers_are_not_told_why() {
        let ended = |result| Reply::Answered(answer(result));
        let refused = ServiceResponse { status: 404, ..ServiceResponse::default() };
        assert_eq!(of_run(&ended(Ok(refused))), Verdict::Delivered);
        let failed = ended(Err(ServiceError::new("no such table: orders\r\nX-Evil: 1")));
        let Verdict::Failed(verdict) = of_run(&failed) else { panic!("it failed") };
        assert_eq!(verdict.error, "the service failed: no such table: ordersX-Evil: 1");
        let body = &failed.answer().unwrap().body;
        assert!(!String::from_utf8_lossy(body).contains("orders"));
    }
}
