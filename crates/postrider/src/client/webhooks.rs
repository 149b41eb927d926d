//! Webhooks: endpoints, subscriptions that push, events.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::page::query;
use super::transport::Content;
use super::{Client, ClientError, Page, PageQuery, segment};

/// An endpoint as the server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Endpoint {
    /// `ep_…`
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub url: Option<String>,
    /// Whether events make deliveries for it.
    #[serde(default)]
    pub enabled: bool,
    /// In the answer that made it, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The settings as written, and what else the server tells.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A subscription that pushes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushSubscription {
    /// `sub_…`
    pub id: String,
    pub name: String,
    /// `None`: it goes to another connection.
    #[serde(default)]
    pub endpoint_id: Option<String>,
    #[serde(default)]
    pub event_type: String,
    #[serde(default)]
    pub enabled: bool,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What came of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PublishedEvent {
    /// `evt_…`
    pub event_id: String,
    #[serde(default)]
    pub deliveries_created: u64,
    /// It had been published before under its id, and nothing was stored.
    #[serde(default)]
    pub repeated: bool,
}

/// What became of a batch of events; `results` are in the order of the lines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventBatch {
    pub accepted: u64,
    pub refused: u64,
    pub results: Vec<Value>,
}

impl Client {
    /// By id, in pages.
    pub async fn endpoints(&self, page: &PageQuery) -> Result<Page<Endpoint>, ClientError> {
        self.transport.get(&self.under_project(&format!("/endpoints{}", query(&page.pairs())))).await
    }

    pub async fn endpoint(&self, id: &str) -> Result<Endpoint, ClientError> {
        self.transport.get(&self.under_endpoint(id, "")).await
    }

    /// `settings` as in the API, such as `url` and `preset`. The answer has the secret.
    pub async fn create_endpoint(&self, settings: &Map<String, Value>) -> Result<Endpoint, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/endpoints"), settings).await
    }

    /// Replaces all settings; the secret stays.
    pub async fn replace_endpoint(&self, id: &str, settings: &Map<String, Value>) -> Result<Endpoint, ClientError> {
        self.transport.json(Method::PUT, &self.under_endpoint(id, ""), settings).await
    }

    /// Changes the settings given and leaves the others; `null` takes a setting back to its default.
    pub async fn change_endpoint(&self, id: &str, settings: &Map<String, Value>) -> Result<Endpoint, ClientError> {
        self.transport.json(Method::PATCH, &self.under_endpoint(id, ""), settings).await
    }

    /// Refused while anything is in its queue or DLQ, unless `forced`: then those end as discarded, in the log.
    pub async fn delete_endpoint(&self, id: &str, forced: bool) -> Result<(), ClientError> {
        let path = self.under_endpoint(id, if forced { "?force=true" } else { "" });
        self.transport.bare(Method::DELETE, &path).await
    }

    /// Sends one event that is tried once; `event` may have `type` and `data`.
    pub async fn test_endpoint(&self, id: &str, event: &Map<String, Value>) -> Result<Value, ClientError> {
        self.transport.json(Method::POST, &self.under_endpoint(id, "/test"), event).await
    }

    /// Asks for a challenge back.
    pub async fn verify_endpoint(&self, id: &str) -> Result<Value, ClientError> {
        self.transport.act(Method::POST, &self.under_endpoint(id, "/verify")).await
    }

    pub async fn enable_endpoint(&self, id: &str) -> Result<Endpoint, ClientError> {
        self.transport.act(Method::POST, &self.under_endpoint(id, "/enable")).await
    }

    pub async fn disable_endpoint(&self, id: &str) -> Result<Endpoint, ClientError> {
        self.transport.act(Method::POST, &self.under_endpoint(id, "/disable")).await
    }

    /// A new secret, which is in the answer; `wish` may have `secret`, `signatureScheme` and `overlapSeconds`.
    pub async fn rotate_endpoint_secret(&self, id: &str, wish: &Map<String, Value>) -> Result<Endpoint, ClientError> {
        self.transport.json(Method::POST, &self.under_endpoint(id, "/rotate-secret"), wish).await
    }

    /// Since when it fails, and what would switch it off.
    pub async fn endpoint_health(&self, id: &str) -> Result<Map<String, Value>, ClientError> {
        self.transport.get(&self.under_endpoint(id, "/health")).await
    }

    /// By id, in pages; of one endpoint or of all.
    pub async fn push_subscriptions(
        &self,
        endpoint: Option<&str>,
        page: &PageQuery,
    ) -> Result<Page<PushSubscription>, ClientError> {
        let mut pairs = page.pairs();
        pairs.extend(endpoint.map(|id| ("endpointId", id.to_owned())));
        self.transport.get(&self.under_project(&format!("/subscriptions{}", query(&pairs)))).await
    }

    pub async fn push_subscription(&self, id: &str) -> Result<PushSubscription, ClientError> {
        self.transport.get(&self.under_subscription(id)).await
    }

    /// `settings` as in the API, such as `endpointId` and `eventType`.
    pub async fn create_push_subscription(
        &self,
        settings: &Map<String, Value>,
    ) -> Result<PushSubscription, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/subscriptions"), settings).await
    }

    pub async fn replace_push_subscription(
        &self,
        id: &str,
        settings: &Map<String, Value>,
    ) -> Result<PushSubscription, ClientError> {
        self.transport.json(Method::PUT, &self.under_subscription(id), settings).await
    }

    pub async fn change_push_subscription(
        &self,
        id: &str,
        settings: &Map<String, Value>,
    ) -> Result<PushSubscription, ClientError> {
        self.transport.json(Method::PATCH, &self.under_subscription(id), settings).await
    }

    pub async fn delete_push_subscription(&self, id: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.under_subscription(id)).await
    }

    /// Stored with its deliveries when this returns. `event` has `type` and `data`, and may have an `id` of your own.
    pub async fn publish_event(
        &self,
        event: &Map<String, Value>,
        cid: Option<&str>,
    ) -> Result<PublishedEvent, ClientError> {
        let headers = cid.map(|cid| ("x-postrider-cid", cid.to_owned())).into_iter().collect();
        let bytes = Bytes::from(Value::Object(event.clone()).to_string());
        let content = Content { kind: "application/json", bytes, headers };
        self.transport.content(Method::POST, &self.under_project("/events"), content).await
    }

    /// One event a line. A bad line is refused by its number, and the others are stored.
    pub async fn publish_events(&self, lines: impl Into<Bytes>) -> Result<EventBatch, ClientError> {
        let content = Content { kind: "application/x-ndjson", bytes: lines.into(), headers: Vec::new() };
        self.transport.content(Method::POST, &self.under_project("/events/batch"), content).await
    }

    fn under_endpoint(&self, id: &str, rest: &str) -> String {
        self.under_project(&format!("/endpoints/{}{rest}", segment(id)))
    }

    fn under_subscription(&self, id: &str) -> String {
        self.under_project(&format!("/subscriptions/{}", segment(id)))
    }
}
