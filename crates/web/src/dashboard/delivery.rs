//! A delivery as the API shows it, and the words that pages have for it. It must not know of any page.

use postrider_core::explanation::{Explanation, explain};
use postrider_core::{Failure, Timestamp};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::parts::{Badge, Tone};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: String,
    pub cid: String,
    pub status: String,
    pub label: String,
    pub failure: Option<String>,
    pub error: Option<String>,
    pub attempts: u32,
    pub max_attempts: Option<u32>,
    pub rounds: u32,
    pub next_attempt_at: Option<Timestamp>,
    pub deferred_by: Option<String>,
    /// Until when it is held up, where that is known.
    pub deferred_until: Option<Timestamp>,
    /// The one that it waits for.
    pub behind: Option<String>,
    pub connection: Option<String>,
    /// Of a forward: where it came in.
    pub source_name: Option<String>,
    /// Of a forward: the delivery that it is.
    pub delivery_id: Option<String>,
    pub event_id: Option<String>,
    pub event_type: Option<String>,
    pub origin: String,
    pub method: String,
    pub operation: Option<String>,
    pub path: String,
    #[serde(default)]
    pub params: Value,
    #[serde(default)]
    pub headers: Map<String, Value>,
    /// What a channel runs it with.
    pub service: Option<String>,
    pub body_bytes: u64,
    pub edited: bool,
    pub created_at: Timestamp,
    pub delivered_at: Option<Timestamp>,
    pub dead_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    pub dlq_retries: u32,
    pub dlq_note: Option<String>,
}

#[derive(Deserialize)]
pub struct Deliveries {
    pub data: Vec<Delivery>,
    pub next_cursor: Option<String>,
}

impl Delivery {
    pub fn badge(&self) -> Badge {
        let (tone, word) = match self.status.as_str() {
            "PENDING" if self.attempts == 0 => (Tone::Waiting, "Waiting"),
            "PENDING" => (Tone::Warning, "Retrying"),
            "PROCESSING" => (Tone::Waiting, "In flight"),
            "SUCCESS" => (Tone::Good, "Delivered"),
            "DLQ" => (Tone::Bad, "Dead letter"),
            "FAILED" => (Tone::Bad, "Failed"),
            "DISCARDED" => (Tone::Quiet, "Discarded"),
            "FORWARDED" => (Tone::Quiet, "Forwarded"),
            "EXPIRED" => (Tone::Quiet, "Expired"),
            _ => (Tone::Quiet, "Unknown"),
        };
        Badge { tone, word }
    }

    /// `POST /invoices`, the operation, or the event's type: what a person knows the request by.
    pub fn what(&self) -> String {
        if let Some(event) = &self.event_type {
            return event.clone();
        }
        match (&self.operation, self.path.is_empty()) {
            (Some(operation), _) => operation.clone(),
            (None, true) => self.method.clone(),
            (None, false) => format!("{} {}", self.method, self.path),
        }
    }

    /// What came in from outside is retried as a new forward (R12).
    pub fn is_forward(&self) -> bool {
        self.origin == "incoming"
    }

    /// Under which its page is.
    pub fn page_id(&self) -> &str {
        self.delivery_id.as_deref().unwrap_or(&self.id)
    }

    pub fn is_waiting(&self) -> bool {
        matches!(self.status.as_str(), "PENDING" | "PROCESSING")
    }

    pub fn is_dead(&self) -> bool {
        self.status == "DLQ"
    }

    pub fn is_delivered(&self) -> bool {
        self.status == "SUCCESS"
    }

    /// What a retry puts back: the DLQ, and what was given up without an attempt (D27).
    pub fn may_retry(&self) -> bool {
        matches!(self.status.as_str(), "DLQ" | "FAILED")
    }

    /// Why it is where it is, with what to do; nothing for what is delivered or has not failed. `status`: that of the last answer, where it is known;
    /// else it is read from the error.
    pub fn explanation(&self, status: Option<u16>) -> Option<Explanation> {
        if self.is_delivered() {
            return None;
        }
        let status = status.or_else(|| status_in(self.error.as_deref()?));
        self.failure.as_deref().and_then(Failure::parse).map(|failure| explain(failure, status))
    }

    /// What holds it up before it is sent, which uses no attempt (R04, R15).
    pub fn deferral(&self) -> Option<String> {
        let reason = self.deferred_by.as_deref()?;
        let said = match reason {
            "breaker" => {
                "Its endpoint failed so often in a row that it is left alone for a while; then one request tries it."
            }
            "project_concurrency" => {
                "As many requests of its project are under way as may be; it goes as soon as one has ended."
            }
            "endpoint_concurrency" => {
                "As many requests are under way at its endpoint as may be; it goes as soon as one has ended."
            }
            "project_rate_limit" => "Its project may send no more at the moment: the rate limit is reached.",
            "endpoint_rate_limit" => "Its endpoint may be sent no more at the moment: the rate limit is reached.",
            "ordering" => "It waits for an earlier one of the same order.",
            other => return Some(format!("It is held up: {}.", other.replace('_', " "))),
        };
        Some(said.to_owned())
    }

    pub fn attempts_of(&self) -> String {
        match self.max_attempts {
            Some(most) => format!("{} of {most}", self.attempts),
            None => self.attempts.to_string(),
        }
    }
}

/// `HTTP 503: …`
fn status_in(error: &str) -> Option<u16> {
    error.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

/// A header as lines: one that was sent several times has several.
pub fn header_lines(headers: &Map<String, Value>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    for (name, value) in headers {
        match value {
            Value::Array(values) => lines.extend(values.iter().map(|value| (name.clone(), plain(value)))),
            value => lines.push((name.clone(), plain(value))),
        }
    }
    lines
}

/// A text without its quotes.
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
