//! Spans to an OpenTelemetry collector: OTLP over HTTP, in its JSON encoding (OTLP 1.5, section OTLP/HTTP).
//!
//! A buffer of its own and a task of its own stand between a delivery and the collector: whatever happens there, an attempt never waits.
//! It must not know what is done in a span.

mod encode;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use postrider_core::connection::TlsSettings;
use postrider_core::trace::Span;
use postrider_core::{SettingError, log};
use tokio::sync::mpsc;

use crate::egress::{Egress, Progress};
use crate::send::connect::Connector;
use crate::send::origin::Origin;

/// `spans_waiting_max`: one more is dropped and counted.
pub const SPANS_WAITING_MAX: usize = 4096;
const BATCH_MAX: usize = 512;
/// How long a batch that is not full waits for more.
const GATHER: Duration = Duration::from_secs(1);
/// From connect to the end of the answer.
const TIMEOUT: Duration = Duration::from_secs(5);
const TRIES_MAX: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: usize = 64 << 10;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ALLOWED: &str = "the address of a collector such as http://localhost:4318";

/// Takes spans that have ended. It never waits.
pub trait SpanSink: Send + Sync {
    fn ended(&self, span: Span);
    /// Spans that were dropped because the collector did not take them.
    fn dropped(&self) -> u64;
}

/// Where the collector is, and what it wants to see.
pub struct Collector {
    origin: Origin,
    target: Uri,
    headers: HeaderMap,
}

impl Collector {
    /// `endpoint` is the base address, to which `/v1/traces` is added; `headers` are `name=value` with commas between, such as a key.
    ///
    /// # Errors
    /// `SettingError` under the name of the variable; values of headers are never shown.
    pub fn parse(
        endpoint: (&'static str, &str),
        headers: (&'static str, Option<&str>),
    ) -> Result<Collector, SettingError> {
        let refused =
            || SettingError::new(endpoint.0, endpoint.1.split(['?', '@']).next_back().unwrap_or_default(), ALLOWED);
        let origin = Origin::new(endpoint.1, &TlsSettings::PUBLIC).map_err(|_| refused())?;
        let uri: Uri = endpoint.1.parse().map_err(|_| refused())?;
        if uri.query().is_some() {
            return Err(refused());
        }
        let target = format!("{}/v1/traces", uri.path().trim_end_matches('/')).parse().map_err(|_| refused())?;
        let mut map = HeaderMap::new();
        map.insert(HOST, origin.host_header.clone());
        map.insert(CONTENT_TYPE, JSON);
        map.insert(ACCEPT, JSON);
        map.insert(USER_AGENT, crate::send::OUR_USER_AGENT);
        for pair in headers.1.unwrap_or_default().split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
            let refused = || SettingError::new(headers.0, postrider_core::MASK, "name=value, with commas between");
            let (name, value) = pair.split_once('=').ok_or_else(refused)?;
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| refused())?;
            let mut value = HeaderValue::from_str(value.trim()).map_err(|_| refused())?;
            value.set_sensitive(true);
            map.insert(name, value);
        }
        Ok(Collector { origin, target, headers: map })
    }
}

/// Sends spans to one collector.
pub struct OtlpExporter {
    waiting: mpsc::Sender<Span>,
    dropped: Arc<AtomicU64>,
}

impl OtlpExporter {
    /// Starts its task, which ends when the exporter is dropped.
    pub fn start(collector: Collector, egress: Arc<Egress>) -> Arc<OtlpExporter> {
        let (waiting, spans) = mpsc::channel(SPANS_WAITING_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let task = Task { collector, connector: Connector::new(egress), dropped: Arc::clone(&dropped), is_down: false };
        tokio::spawn(task.run(spans));
        Arc::new(OtlpExporter { waiting, dropped })
    }
}

impl SpanSink for OtlpExporter {
    fn ended(&self, span: Span) {
        if self.waiting.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

struct Task {
    collector: Collector,
    connector: Connector,
    dropped: Arc<AtomicU64>,
    is_down: bool,
}

impl Task {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while spans.recv_many(&mut batch, BATCH_MAX).await > 0 {
            if batch.len() < BATCH_MAX {
                tokio::time::sleep(GATHER).await;
                while batch.len() < BATCH_MAX
                    && let Ok(span) = spans.try_recv()
                {
                    batch.push(span);
                }
            }
            self.export(&batch).await;
            batch.clear();
        }
    }

    /// A batch that is not taken in a few tries is dropped: the newest spans say more than the oldest.
    async fn export(&mut self, batch: &[Span]) {
        let body = Bytes::from(encode::request(batch).to_string());
        let mut pause = FIRST_PAUSE;
        for tried in 1..=TRIES_MAX {
            let detail = match tokio::time::timeout(TIMEOUT, self.post(body.clone())).await {
                Ok(Ok(())) => {
                    if std::mem::take(&mut self.is_down) {
                        tracing::info!(event = log::SPANS_TAKEN, "the collector takes spans again");
                    }
                    return;
                }
                Ok(Err(Refused { detail, is_final: true })) => {
                    self.told_down(&detail);
                    break;
                }
                Ok(Err(Refused { detail, is_final: false })) => detail,
                Err(_) => format!("no answer within {} s", TIMEOUT.as_secs()),
            };
            self.told_down(&detail);
            if tried < TRIES_MAX {
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
        }
        self.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }

    fn told_down(&mut self, detail: &str) {
        if !std::mem::replace(&mut self.is_down, true) {
            tracing::warn!(event = log::SPANS_NOT_TAKEN, detail, "the collector does not take spans");
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), Refused> {
        let again = |detail: String| Refused { detail, is_final: false };
        let opened = self.connector.open(&self.collector.origin, &Progress::new()).await;
        let mut link = opened.map_err(|error| again(error.to_string()))?;
        let mut request = Request::new(Full::new(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.collector.target.clone();
        *request.headers_mut() = self.collector.headers.clone();
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        let mut deadline = pin!(tokio::time::sleep(TIMEOUT));
        let answer = link.ask(request, false, deadline.as_mut()).await.map_err(|_| again("no answer".to_owned()))?;
        let (head, answer) = answer.into_parts();
        let _ = link.read_body(answer, ANSWER_BYTES_MAX, deadline).await;
        match head.status.as_u16() {
            200..=299 => Ok(()),
            // OTLP 1.5, "Retryable Response Codes".
            status @ (429 | 502 | 503 | 504) => Err(again(format!("it answered {status}"))),
            status => Err(Refused { detail: format!("it answered {status}"), is_final: true }),
        }
    }
}

struct Refused {
    detail: String,
    is_final: bool,
}
