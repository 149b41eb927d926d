//! Deliveries, wherever they are: the log, a queue, a DLQ. What a person can see of them and do to them.

use bytes::Bytes;
use http::Method;
use postrider_core::connection::ConnectionKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::insert_body;
use super::page::query;
use super::{Client, ClientError, Page, PageQuery, segment};

/// A delivery as the server shows it. Times are RFC 3339 in UTC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub id: String,
    #[serde(default)]
    pub cid: Option<String>,
    #[serde(default)]
    pub connection: Option<String>,
    /// `PENDING`, `PROCESSING`, `SUCCESS`, `FAILED`, `DLQ`, `DISCARDED`, `FORWARDED`, `EXPIRED`.
    pub status: String,
    /// `Waiting`, `Retrying`, `Delivered`, `Not delivered`.
    #[serde(default)]
    pub label: String,
    /// A code such as `status`, `timeout`, `unreachable`, where the last attempt failed.
    #[serde(default)]
    pub failure: Option<String>,
    /// The same in words.
    #[serde(default)]
    pub error: Option<String>,
    #[serde(default)]
    pub attempts: u32,
    #[serde(default)]
    pub rounds: u32,
    #[serde(default)]
    pub created_at: Option<String>,
    #[serde(default)]
    pub last_attempt_at: Option<String>,
    #[serde(default)]
    pub next_attempt_at: Option<String>,
    /// Everything else that the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One time on the wire.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    /// 1, 2, 3, … without gaps.
    pub number: u32,
    #[serde(default)]
    pub started_at: Option<String>,
    #[serde(default)]
    pub took_ms: u64,
    /// `None`: delivered.
    #[serde(default)]
    pub failure: Option<String>,
    /// The HTTP status that came back, where one did.
    #[serde(default)]
    pub status: Option<u16>,
    #[serde(default)]
    pub error: Option<String>,
    /// Everything else that the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A dead letter as the list of Failed Messages shows it (R10).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    pub delivery_id: String,
    #[serde(default)]
    pub connection: Option<String>,
    #[serde(default)]
    pub attempt_count: u32,
    #[serde(default)]
    pub rounds: u32,
    /// Why, in words.
    #[serde(default)]
    pub last_error: Option<String>,
    /// A code such as `status`, `timeout`, `unreachable`.
    #[serde(default)]
    pub failure: Option<String>,
    /// When it arrived in the DLQ.
    #[serde(default)]
    pub failed_at: Option<String>,
    /// Everything else that the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Which deliveries a list shows; all conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryQuery {
    pub connection: Option<String>,
    /// Empty = all.
    pub statuses: Vec<String>,
    pub failure: Option<String>,
    /// A part of the last error's text.
    pub error_text: Option<String>,
    /// The whole correlation id.
    pub cid: Option<String>,
    /// RFC 3339: accepted at or after this.
    pub created_from: Option<String>,
    /// RFC 3339: accepted before this.
    pub created_before: Option<String>,
    /// Any other filter of the API by its name, such as `attempts_min`, `method`, `ended_from`.
    pub more: Vec<(String, String)>,
    pub page: PageQuery,
}

impl DeliveryQuery {
    /// Name and value of everything but the page.
    pub(super) fn conditions(&self) -> Vec<(String, String)> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        let mut add = |name: &str, value: Option<&str>| {
            pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        };
        match self.connection.as_deref().map(|name| (name, name.split_once(':'))) {
            Some((_, Some((kind, name)))) if ConnectionKind::parse(kind).is_some() => {
                add("connection", Some(name));
                add("type", Some(kind));
            }
            known => add("connection", known.map(|(name, _)| name)),
        }
        add("error", self.failure.as_deref());
        add("error_text", self.error_text.as_deref());
        add("cid", self.cid.as_deref());
        add("created_from", self.created_from.as_deref());
        add("created_before", self.created_before.as_deref());
        pairs.extend(self.statuses.iter().map(|status| ("status".to_owned(), status.clone())));
        pairs.extend(self.more.iter().cloned());
        pairs
    }

    pub(super) fn text(&self) -> String {
        let mut pairs = self.conditions();
        pairs.extend(self.page.pairs().into_iter().map(|(name, value)| (name.to_owned(), value)));
        query(&pairs)
    }
}

impl Client {
    /// Newest first.
    pub async fn deliveries(&self, asked: &DeliveryQuery) -> Result<Page<Delivery>, ClientError> {
        self.transport.get(&self.under_project(&format!("/deliveries{}", asked.text()))).await
    }

    pub async fn delivery(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.get(&self.under_delivery(id, "")).await
    }

    /// Every attempt, the first one first.
    pub async fn attempts(&self, id: &str) -> Result<Page<Attempt>, ClientError> {
        self.transport.get(&self.under_delivery(id, "/attempts")).await
    }

    /// The body that will be sent, or was; with `original` the one that was accepted, before any edit.
    pub async fn body(&self, id: &str, original: bool) -> Result<Bytes, ClientError> {
        self.transport.bytes(&self.under_delivery(id, if original { "/body?original=true" } else { "/body" })).await
    }

    /// What waits in a connection's queue, from head to tail.
    pub async fn queue(&self, connection: &str, page: &PageQuery) -> Result<Page<Delivery>, ClientError> {
        self.transport.get(&self.under_connection(connection, &format!("/queue{}", query(&page.pairs())))).await
    }

    /// What is in the DLQ, of one connection or of all, newest first. `statuses` of the query are not asked.
    pub async fn dead_letters(&self, asked: &DeliveryQuery) -> Result<Page<DeadLetter>, ClientError> {
        let asked = DeliveryQuery { statuses: Vec::new(), ..asked.clone() };
        self.transport.get(&self.under_project(&format!("/dlq{}", asked.text()))).await
    }

    /// Another round, or three more attempts on a ladder; for dead letters and failed deliveries only (D27).
    pub async fn retry(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.act(Method::POST, &self.under_delivery(id, "/retry")).await
    }

    /// The schedule from its beginning, from any ended state; a waiting delivery is attempted now (D27).
    pub async fn resend(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.act(Method::POST, &self.under_delivery(id, "/resend")).await
    }

    /// A dead letter goes to a topic, with or without its note in the headers.
    pub async fn forward(&self, id: &str, topic: &str, keep_header: bool) -> Result<Delivery, ClientError> {
        let body = json!({"topic": topic, "keep_header": keep_header});
        self.transport.json(Method::POST, &self.under_delivery(id, "/forward"), &body).await
    }

    /// A waiting delivery leaves the queue for the DLQ (D44).
    pub async fn set_aside(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.act(Method::POST, &self.under_delivery(id, "/set-aside")).await
    }

    /// A waiting delivery is attempted without waiting for its time (D44).
    pub async fn attempt_now(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.act(Method::POST, &self.under_delivery(id, "/attempt-now")).await
    }

    /// Another body before the next attempt; the one accepted is kept (Z23).
    pub async fn edit(&self, id: &str, body: &[u8]) -> Result<Delivery, ClientError> {
        let mut json = Map::new();
        insert_body(&mut json, body);
        if body.is_empty() {
            json.insert("body".into(), "".into());
        }
        self.transport.json(Method::PATCH, &self.under_delivery(id, ""), &json).await
    }

    /// A waiting delivery or a dead letter is given up; it stays in the log.
    pub async fn discard(&self, id: &str) -> Result<Delivery, ClientError> {
        self.transport.act(Method::DELETE, &self.under_delivery(id, "")).await
    }

    fn under_delivery(&self, id: &str, rest: &str) -> String {
        self.under_project(&format!("/deliveries/{}{rest}", segment(id)))
    }
}
