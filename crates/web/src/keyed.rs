//! `Idempotency-Key` on every POST that does not see to it itself (D15): the request is acted on once, and a repeat is given the first answer again.
//!
//! The key is claimed, durably, before the handler runs, and its answer is kept afterwards. After a crash in between nobody knows what was
//! done, and a repeat is told so. It must not know what a handler does.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use postrider_core::Timestamp;
use postrider_core::id::ProjectId;
use postrider_engine::{Clock, Engine};
use postrider_store::{Claimed, KeptAnswer};
use tokio::sync::watch;

use crate::api::{caller_cid, idempotency};
use crate::dispatch::Next;
use crate::gate::Caller;
use crate::problem::Problem;
use crate::read::{BodyBounds, collect, decoded};
use crate::routes::PROJECT;

/// A longer answer is not kept: a repeat is told that the request was done.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What repeats are given instead of an answer that has a secret in it, which is shown once.
#[derive(Clone, Debug)]
pub struct WithoutSecret(pub String);

/// Answers that are under way in this process, so that a repeat waits for them.
pub struct Keyed {
    engine: Engine,
    clock: Arc<dyn Clock>,
    bounds: BodyBounds,
    under_way: Mutex<BTreeMap<[u8; 32], watch::Receiver<()>>>,
}

/// The one request of a key that is worked on. Its end lets the next one of that key go on.
struct Turn {
    keyed: Arc<Keyed>,
    key_hash: [u8; 32],
    _ends: watch::Sender<()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.keyed.lock().remove(&self.key_hash);
    }
}

impl Keyed {
    pub fn new(engine: Engine, clock: Arc<dyn Clock>, bounds: BodyBounds) -> Keyed {
        Keyed { engine, clock, bounds, under_way: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], watch::Receiver<()>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the others of this key.
    async fn turn(self: &Arc<Self>, key_hash: [u8; 32]) -> Turn {
        loop {
            let mut others = {
                let mut under_way = self.lock();
                match under_way.get(&key_hash) {
                    Some(others) => others.clone(),
                    None => {
                        let (ends, others) = watch::channel(());
                        under_way.insert(key_hash, others);
                        return Turn { keyed: Arc::clone(self), key_hash, _ends: ends };
                    }
                }
            };
            // It ends by the other's end being dropped.
            while others.changed().await.is_ok() {}
        }
    }

    /// Runs the request unless its key has an answer.
    pub async fn answer(self: Arc<Self>, request: Request, next: Next) -> Response {
        match self.begin(request, next).await {
            Ok(response) => response,
            Err(problem) => problem.into_response(),
        }
    }

    async fn begin(self: Arc<Self>, request: Request, next: Next) -> Result<Response, Problem> {
        let (parts, body) = request.into_parts();
        let own = parts.extensions.get::<Caller>().and_then(Caller::only_project);
        let (project, path) = self.scope(parts.uri.path(), own).await?;
        // A repeat with an unusable one is refused, too.
        caller_cid(&parts.headers)?;
        let bytes = collect(&parts.headers, body, &self.bounds).await?;
        let asked = [parts.uri.query().unwrap_or_default().as_bytes(), b"\n", &bytes].concat();
        let now: Timestamp = self.clock.now();
        let Some(key) = idempotency::read(&parts.headers, project, &path, &asked, now)? else {
            return Ok(next.run(Request::from_parts(parts, Body::from(bytes))).await);
        };
        let turn = self.turn(key.key_hash).await;
        match self.engine.claim_answer(key).await? {
            Claimed::Answered(answer) => return again(answer),
            Claimed::Unanswered | Claimed::KeyReused => return Err(outcome_unknown()),
            Claimed::First => {}
        }
        // In a task of its own, so that a caller who leaves takes neither the change nor the answer along.
        let request = Request::from_parts(parts, Body::from(bytes));
        let worked_on = tokio::spawn(async move {
            let response = next.run(request).await;
            self.keep(turn, response).await
        });
        worked_on.await.map_err(|_| outcome_unknown())
    }

    /// The project by its id, and the path below it with its segments decoded: another way of writing an address must not make it another one.
    /// Where the path names no project, what is asked is about the caller's own, so that nobody is given the answer of another project.
    async fn scope(&self, path: &str, own: Option<ProjectId>) -> Result<(ProjectId, String), Problem> {
        let mut segments = Vec::new();
        for segment in path.split('/') {
            segments.push(decoded("path", segment)?);
        }
        let prefix: Vec<&str> = PROJECT.split('/').collect();
        let is_below = segments.len() >= prefix.len() && segments.iter().zip(&prefix).take(4).all(|(a, b)| a == b);
        if !is_below {
            return Ok((own.unwrap_or(ProjectId::from_u128(0)), segments.join("/")));
        }
        let project = self.engine.project(&segments[4]).await?;
        Ok((project, segments[5..].join("/")))
    }

    async fn keep(&self, turn: Turn, response: Response) -> Response {
        if !response.status().is_success() {
            // It was refused and nothing was changed: once the reason is gone, the same request may come again.
            self.engine.keep_answer(turn.key_hash, None).await;
            return response;
        }
        let (parts, body) = response.into_parts();
        let Ok(bytes) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
            return outcome_unknown().into_response();
        };
        let shown = parts.extensions.get::<WithoutSecret>().map(|instead| instead.0.clone());
        let kept = shown.or_else(|| short_text(&bytes));
        let location = parts.headers.get(LOCATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let answer = KeptAnswer { status: parts.status.as_u16(), location, body: kept };
        self.engine.keep_answer(turn.key_hash, Some(answer)).await;
        Response::from_parts(parts, Body::from(bytes))
    }
}

fn short_text(bytes: &Bytes) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    (text.len() <= ANSWER_BYTES_MAX).then(|| text.to_owned())
}

fn again(answer: KeptAnswer) -> Result<Response, Problem> {
    let Some(body) = answer.body else {
        let detail = "the request was done before, and its answer was too long to be kept";
        return Err(Problem::new(StatusCode::CONFLICT, detail).with_member("code", "answer_not_kept".into()));
    };
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let has_body = !body.is_empty();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(Ok(location)) = answer.location.map(|location| HeaderValue::from_str(&location)) {
        headers.insert(LOCATION, location);
    }
    Ok(response)
}

fn outcome_unknown() -> Problem {
    let detail = "a request with this idempotency key was cut off, and whether it was done is not known: look before you ask again under another key";
    Problem::new(StatusCode::CONFLICT, detail).with_member("code", "outcome_unknown".into())
}
