//! Incoming webhooks: sources, destinations, forwards and Failed Forwards (R12).

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::page::query;
use super::{Client, ClientError, Delivery, DeliveryQuery, Page, PageQuery, segment};

/// A source as the server shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// `src_…`
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub provider: String,
    /// What comes in becomes a message of this topic.
    #[serde(default)]
    pub topic: String,
    #[serde(default)]
    pub enabled: bool,
    /// Of these only in the answer that made them, and never again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The settings as written, and what else the server tells, such as `figures`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Where the webhooks of a source are forwarded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// `dst_…`
    pub id: String,
    pub source_id: String,
    pub name: String,
    #[serde(default)]
    pub url: Option<String>,
    /// `None`: it goes to another connection.
    #[serde(default)]
    pub endpoint_id: Option<String>,
    #[serde(default)]
    pub enabled: bool,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A webhook on its way to one destination: a delivery, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Forward {
    #[serde(default)]
    pub delivery_id: String,
    #[serde(default)]
    pub incoming_event_id: Option<String>,
    #[serde(default)]
    pub source_id: Option<String>,
    #[serde(default)]
    pub source_name: Option<String>,
    #[serde(default)]
    pub destination_id: Option<String>,
    #[serde(default)]
    pub destination_url: Option<String>,
    /// Its `id` is the forward's own (`fwd_…`).
    #[serde(flatten)]
    pub delivery: Delivery,
}

/// One that was given up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedForward {
    /// `fwd_…`
    pub forward_id: String,
    #[serde(default)]
    pub source_name: Option<String>,
    #[serde(default)]
    pub destination_url: Option<String>,
    #[serde(default)]
    pub attempt_count: u32,
    #[serde(default)]
    pub last_error: Option<String>,
    #[serde(default)]
    pub failure: Option<String>,
    #[serde(default)]
    pub failed_at: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// Which failed forwards are retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForwardsWanted {
    /// At most 1000.
    Ids(Vec<String>),
    /// At most 1000 at once, the oldest first; `more` of the query takes `source` and `destination`.
    Filter(Box<DeliveryQuery>),
}

/// What became of a bulk retry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RetriedForwards {
    pub retried: u64,
    pub requested: u64,
    /// Which new forward took which one's place.
    #[serde(default)]
    pub forwards: Vec<Value>,
    #[serde(default)]
    pub refused: Vec<Value>,
    /// The filter lets others through too.
    #[serde(default)]
    pub has_more: bool,
}

/// What a replay came to, or would.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayedIncoming {
    pub events: u64,
    pub forwards: u64,
    /// Where the range goes on.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

impl Client {
    /// By id, in pages.
    pub async fn sources(&self, page: &PageQuery) -> Result<Page<Source>, ClientError> {
        self.transport.get(&self.under_project(&format!("/sources{}", query(&page.pairs())))).await
    }

    pub async fn source(&self, id: &str) -> Result<Source, ClientError> {
        self.transport.get(&self.under_source(id, "")).await
    }

    /// `settings` as in the API: `name`, `provider`, `secret` and the others. The answer has the address, and a secret that was made.
    pub async fn create_source(&self, settings: &Map<String, Value>) -> Result<Source, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/sources"), settings).await
    }

    /// Replaces all settings; provider, topic, address and secret stay.
    pub async fn replace_source(&self, id: &str, settings: &Map<String, Value>) -> Result<Source, ClientError> {
        self.transport.json(Method::PUT, &self.under_source(id, ""), settings).await
    }

    /// Changes the settings given and leaves the others; `null` takes a setting back to its default.
    pub async fn change_source(&self, id: &str, settings: &Map<String, Value>) -> Result<Source, ClientError> {
        self.transport.json(Method::PATCH, &self.under_source(id, ""), settings).await
    }

    /// Whoever still sends to it is answered 404. Its destinations stay, as subscriptions to its topic.
    pub async fn delete_source(&self, id: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.under_source(id, "")).await
    }

    /// Makes a new address, which is in the answer; `wish` may have `overlapSeconds`.
    pub async fn rotate_source_token(&self, id: &str, wish: &Map<String, Value>) -> Result<Source, ClientError> {
        self.transport.json(Method::POST, &self.under_source(id, "/rotate-token"), wish).await
    }

    /// Another secret, which is in the answer when the server made it; `wish` may have `secret` and `overlapSeconds`.
    pub async fn rotate_source_secret(&self, id: &str, wish: &Map<String, Value>) -> Result<Source, ClientError> {
        self.transport.json(Method::POST, &self.under_source(id, "/rotate-secret"), wish).await
    }

    /// Forwards again what came in: `order` has `eventIds`, or `from`, `before` or both, and may have `destinationId`, `limit`, `cursor`,
    /// `dry_run`.
    pub async fn replay_incoming(&self, id: &str, order: &Map<String, Value>) -> Result<ReplayedIncoming, ClientError> {
        self.transport.json(Method::POST, &self.under_source(id, "/replay"), order).await
    }

    /// By id, in pages; of one source or of all.
    pub async fn destinations(&self, source: Option<&str>, page: &PageQuery) -> Result<Page<Destination>, ClientError> {
        let mut pairs = page.pairs();
        pairs.extend(source.map(|id| ("sourceId", id.to_owned())));
        self.transport.get(&self.under_project(&format!("/destinations{}", query(&pairs)))).await
    }

    pub async fn destination(&self, id: &str) -> Result<Destination, ClientError> {
        self.transport.get(&self.under_destination(id)).await
    }

    /// `settings` as in the API: `sourceId`, and `url`, `endpointId` or `connection`.
    pub async fn create_destination(&self, settings: &Map<String, Value>) -> Result<Destination, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/destinations"), settings).await
    }

    /// Changes the settings given and leaves the others.
    pub async fn change_destination(
        &self,
        id: &str,
        settings: &Map<String, Value>,
    ) -> Result<Destination, ClientError> {
        self.transport.json(Method::PATCH, &self.under_destination(id), settings).await
    }

    /// Forwards that are there already go on; its endpoint stays.
    pub async fn delete_destination(&self, id: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.under_destination(id)).await
    }

    /// Newest first. `more` of the query takes `source` and `destination`.
    pub async fn forwards(&self, asked: &DeliveryQuery) -> Result<Page<Forward>, ClientError> {
        self.transport.get(&self.under_project(&format!("/forwards{}", asked.text()))).await
    }

    pub async fn incoming_forward(&self, id: &str) -> Result<Forward, ClientError> {
        self.transport.get(&self.under_project(&format!("/forwards/{}", segment(id)))).await
    }

    /// What was given up, newest first. `statuses` of the query are not asked.
    pub async fn failed_forwards(&self, asked: &DeliveryQuery) -> Result<Page<FailedForward>, ClientError> {
        let asked = DeliveryQuery { statuses: Vec::new(), ..asked.clone() };
        self.transport.get(&self.under_project(&format!("/incoming-dlq{}", asked.text()))).await
    }

    /// A new forward to the same destination, from attempt 1.
    pub async fn retry_forward(&self, id: &str) -> Result<Forward, ClientError> {
        self.transport.act(Method::POST, &self.under_project(&format!("/incoming-dlq/{}/retry", segment(id)))).await
    }

    /// Each as a new forward.
    pub async fn retry_forwards(&self, which: &ForwardsWanted) -> Result<RetriedForwards, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/incoming-dlq/retry"), &wanted(which, false)).await
    }

    /// How many that would be. Nothing is changed.
    pub async fn count_forwards(&self, which: &ForwardsWanted) -> Result<Map<String, Value>, ClientError> {
        self.transport.json(Method::POST, &self.under_project("/incoming-dlq/retry"), &wanted(which, true)).await
    }

    fn under_source(&self, id: &str, rest: &str) -> String {
        self.under_project(&format!("/sources/{}{rest}", segment(id)))
    }

    fn under_destination(&self, id: &str) -> String {
        self.under_project(&format!("/destinations/{}", segment(id)))
    }
}

fn wanted(which: &ForwardsWanted, dry_run: bool) -> Value {
    let mut object = match which {
        ForwardsWanted::Ids(ids) => json!({"forwardIds": ids}),
        ForwardsWanted::Filter(asked) => json!({"filter": super::jobs::filter(asked)}),
    };
    if dry_run {
        object["dry_run"] = true.into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r12_a_bulk_retry_says_which() {
        let ids = ForwardsWanted::Ids(vec!["fwd_1".to_owned()]);
        assert_eq!(wanted(&ids, true), json!({"forwardIds": ["fwd_1"], "dry_run": true}));
        let more = vec![("source".to_owned(), "src_1".to_owned())];
        let filter = DeliveryQuery { failure: Some("timeout".to_owned()), more, ..DeliveryQuery::default() };
        let which = ForwardsWanted::Filter(Box::new(filter));
        assert_eq!(wanted(&which, false), json!({"filter": {"error": "timeout", "source": "src_1"}}));
    }
}
