//! Topics: create, publish, pull with acknowledgment.

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::call::{insert_body, pairs_json};
use super::page::query;
use super::{Client, ClientError, Page, PageQuery, segment};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topic {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// A message of a topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TopicMessage {
    pub id: String,
    #[serde(default)]
    pub cid: Option<String>,
    #[serde(default)]
    pub published_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Subscription {
    pub name: String,
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// What a subscription was given; each message comes again until it is acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pulled {
    pub data: Vec<TopicMessage>,
}

impl Client {
    pub async fn topics(&self, page: &PageQuery) -> Result<Page<Topic>, ClientError> {
        self.transport.get(&self.under_project(&format!("/topics{}", query(&page.pairs())))).await
    }

    /// Messages are kept for `retention_seconds`, subscribers or not; the server's default (7 days) when `None`.
    pub async fn create_topic(
        &self,
        name: &str,
        description: &str,
        retention_seconds: Option<u64>,
    ) -> Result<Topic, ClientError> {
        let mut body = json!({"name": name, "description": description});
        if let Some(seconds) = retention_seconds {
            body["retention_seconds"] = seconds.into();
        }
        self.transport.json(Method::POST, &self.under_project("/topics"), &body).await
    }

    pub async fn delete_topic(&self, name: &str) -> Result<(), ClientError> {
        self.transport.bare(Method::DELETE, &self.under_topic(name, "")).await
    }

    /// Answers with the message's id, once it is stored.
    pub async fn publish_to_topic(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: &Bytes,
    ) -> Result<Value, ClientError> {
        let mut json = Map::new();
        if !headers.is_empty() {
            json.insert("headers".into(), pairs_json(headers));
        }
        insert_body(&mut json, body);
        self.transport.json(Method::POST, &self.under_topic(name, "/publish"), &json).await
    }

    /// What is on the topic, newest first; taking nothing.
    pub async fn topic_messages(&self, name: &str, page: &PageQuery) -> Result<Page<TopicMessage>, ClientError> {
        self.transport.get(&self.under_topic(name, &format!("/messages{}", query(&page.pairs())))).await
    }

    /// A subscription that pulls: each message published from now on is given out until it is acknowledged.
    pub async fn create_subscription(&self, topic: &str, name: &str) -> Result<Subscription, ClientError> {
        self.transport.json(Method::POST, &self.under_topic(topic, "/subscriptions"), &json!({"name": name})).await
    }

    /// All subscriptions of a topic.
    pub async fn subscriptions(&self, topic: &str) -> Result<Vec<Subscription>, ClientError> {
        let found: Page<Subscription> = self.transport.get(&self.under_topic(topic, "/subscriptions")).await?;
        Ok(found.data)
    }

    /// At most `messages_max` messages, oldest first.
    pub async fn pull(&self, topic: &str, subscription: &str, messages_max: u32) -> Result<Pulled, ClientError> {
        let path = self.under_topic(topic, &format!("/subscriptions/{}/pull", segment(subscription)));
        self.transport.json(Method::POST, &path, &json!({"max": messages_max})).await
    }

    /// Answers with how many of them were still unacknowledged.
    pub async fn acknowledge(&self, topic: &str, subscription: &str, ids: &[String]) -> Result<Value, ClientError> {
        let path = self.under_topic(topic, &format!("/subscriptions/{}/ack", segment(subscription)));
        self.transport.json(Method::POST, &path, &json!({"ids": ids})).await
    }

    fn under_topic(&self, name: &str, rest: &str) -> String {
        self.under_project(&format!("/topics/{}{rest}", segment(name)))
    }
}
