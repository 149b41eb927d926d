//! What an application does with Postrider, whether that is a server or runs in the same process.
//!
//! Code that takes a `Courier` does not know which of them it has; a test may hand in one of its own. It must not know how either works.

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::client::{
    Attempt, Call, Client, ClientError, Connection, DeadLetter, Delivery, DeliveryQuery, Page, PageQuery, Pulled,
    SendResult, Subscription, Topic,
};
use crate::in_process::Postrider;

/// Every error is a `ClientError`: the server refused, cannot be reached, or is none.
#[async_trait]
pub trait Courier: Send + Sync {
    /// By name, in pages.
    async fn connections(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError>;
    /// By its name; `rest:NAME` where a name alone is ambiguous.
    async fn connection(&self, name: &str) -> Result<Connection, ClientError>;
    /// `settings` are the YAML keys with `name` and `type`. A refusal names each field that is wrong.
    async fn create_connection(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError>;
    /// From now on calls are stored and nothing is sent.
    async fn pause_connection(&self, name: &str) -> Result<Connection, ClientError>;
    /// Its queue goes on.
    async fn resume_connection(&self, name: &str) -> Result<Connection, ClientError>;
    /// Attempts it now, and tells what became of it; a delivery that failed is a result and no error (Z30).
    async fn send(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError>;
    /// Stored on disk when this returns, delivered later.
    async fn publish(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError>;
    /// Newest first, in pages.
    async fn deliveries(&self, asked: &DeliveryQuery) -> Result<Page<Delivery>, ClientError>;
    /// By its id, which is the `msg_id` of a result.
    async fn delivery(&self, id: &str) -> Result<Delivery, ClientError>;
    /// Every attempt of one delivery, oldest first.
    async fn attempts(&self, id: &str) -> Result<Page<Attempt>, ClientError>;
    /// What could not be delivered, newest first.
    async fn dead_letters(&self, asked: &DeliveryQuery) -> Result<Page<DeadLetter>, ClientError>;
    /// A dead letter goes back to its queue.
    async fn retry(&self, id: &str) -> Result<Delivery, ClientError>;
    /// It is not delivered any more.
    async fn discard(&self, id: &str) -> Result<Delivery, ClientError>;
    /// By name, in pages.
    async fn topics(&self, page: &PageQuery) -> Result<Page<Topic>, ClientError>;
    /// Messages are kept for `retention_seconds`, 7 days when `None`.
    async fn create_topic(
        &self,
        name: &str,
        description: &str,
        retention_seconds: Option<u64>,
    ) -> Result<Topic, ClientError>;
    /// Answers with the message's id, once it is stored.
    async fn publish_to_topic(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: &Bytes,
    ) -> Result<Value, ClientError>;
    /// Each message published from now on is given out until it is acknowledged.
    async fn create_subscription(&self, topic: &str, name: &str) -> Result<Subscription, ClientError>;
    /// At most so many messages, oldest first.
    async fn pull(&self, topic: &str, subscription: &str, messages_max: u32) -> Result<Pulled, ClientError>;
    /// They do not come again.
    async fn acknowledge(&self, topic: &str, subscription: &str, ids: &[String]) -> Result<Value, ClientError>;
}

#[async_trait]
impl Courier for Client {
    async fn connections(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        Client::connections(self, page).await
    }
    async fn connection(&self, name: &str) -> Result<Connection, ClientError> {
        Client::connection(self, name).await
    }
    async fn create_connection(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError> {
        Client::create_connection(self, settings).await
    }
    async fn pause_connection(&self, name: &str) -> Result<Connection, ClientError> {
        Client::pause_connection(self, name).await
    }
    async fn resume_connection(&self, name: &str) -> Result<Connection, ClientError> {
        Client::resume_connection(self, name).await
    }
    async fn send(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        Client::send(self, connection, call).await
    }
    async fn publish(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        Client::publish(self, connection, call).await
    }
    async fn deliveries(&self, asked: &DeliveryQuery) -> Result<Page<Delivery>, ClientError> {
        Client::deliveries(self, asked).await
    }
    async fn delivery(&self, id: &str) -> Result<Delivery, ClientError> {
        Client::delivery(self, id).await
    }
    async fn attempts(&self, id: &str) -> Result<Page<Attempt>, ClientError> {
        Client::attempts(self, id).await
    }
    async fn dead_letters(&self, asked: &DeliveryQuery) -> Result<Page<DeadLetter>, ClientError> {
        Client::dead_letters(self, asked).await
    }
    async fn retry(&self, id: &str) -> Result<Delivery, ClientError> {
        Client::retry(self, id).await
    }
    async fn discard(&self, id: &str) -> Result<Delivery, ClientError> {
        Client::discard(self, id).await
    }
    async fn topics(&self, page: &PageQuery) -> Result<Page<Topic>, ClientError> {
        Client::topics(self, page).await
    }
    async fn create_topic(
        &self,
        name: &str,
        description: &str,
        retention_seconds: Option<u64>,
    ) -> Result<Topic, ClientError> {
        Client::create_topic(self, name, description, retention_seconds).await
    }
    async fn publish_to_topic(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: &Bytes,
    ) -> Result<Value, ClientError> {
        Client::publish_to_topic(self, name, headers, body).await
    }
    async fn create_subscription(&self, topic: &str, name: &str) -> Result<Subscription, ClientError> {
        Client::create_subscription(self, topic, name).await
    }
    async fn pull(&self, topic: &str, subscription: &str, messages_max: u32) -> Result<Pulled, ClientError> {
        Client::pull(self, topic, subscription, messages_max).await
    }
    async fn acknowledge(&self, topic: &str, subscription: &str, ids: &[String]) -> Result<Value, ClientError> {
        Client::acknowledge(self, topic, subscription, ids).await
    }
}

#[async_trait]
impl Courier for Postrider {
    async fn connections(&self, page: &PageQuery) -> Result<Page<Connection>, ClientError> {
        self.client().connections(page).await
    }
    async fn connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.client().connection(name).await
    }
    async fn create_connection(&self, settings: &Map<String, Value>) -> Result<Connection, ClientError> {
        self.client().create_connection(settings).await
    }
    async fn pause_connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.client().pause_connection(name).await
    }
    async fn resume_connection(&self, name: &str) -> Result<Connection, ClientError> {
        self.client().resume_connection(name).await
    }
    async fn send(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        self.client().send(connection, call).await
    }
    async fn publish(&self, connection: &str, call: &Call) -> Result<SendResult, ClientError> {
        self.client().publish(connection, call).await
    }
    async fn deliveries(&self, asked: &DeliveryQuery) -> Result<Page<Delivery>, ClientError> {
        self.client().deliveries(asked).await
    }
    async fn delivery(&self, id: &str) -> Result<Delivery, ClientError> {
        self.client().delivery(id).await
    }
    async fn attempts(&self, id: &str) -> Result<Page<Attempt>, ClientError> {
        self.client().attempts(id).await
    }
    async fn dead_letters(&self, asked: &DeliveryQuery) -> Result<Page<DeadLetter>, ClientError> {
        self.client().dead_letters(asked).await
    }
    async fn retry(&self, id: &str) -> Result<Delivery, ClientError> {
        self.client().retry(id).await
    }
    async fn discard(&self, id: &str) -> Result<Delivery, ClientError> {
        self.client().discard(id).await
    }
    async fn topics(&self, page: &PageQuery) -> Result<Page<Topic>, ClientError> {
        self.client().topics(page).await
    }
    async fn create_topic(
        &self,
        name: &str,
        description: &str,
        retention_seconds: Option<u64>,
    ) -> Result<Topic, ClientError> {
        self.client().create_topic(name, description, retention_seconds).await
    }
    async fn publish_to_topic(
        &self,
        name: &str,
        headers: &[(String, String)],
        body: &Bytes,
    ) -> Result<Value, ClientError> {
        self.client().publish_to_topic(name, headers, body).await
    }
    async fn create_subscription(&self, topic: &str, name: &str) -> Result<Subscription, ClientError> {
        self.client().create_subscription(topic, name).await
    }
    async fn pull(&self, topic: &str, subscription: &str, messages_max: u32) -> Result<Pulled, ClientError> {
        self.client().pull(topic, subscription, messages_max).await
    }
    async fn acknowledge(&self, topic: &str, subscription: &str, ids: &[String]) -> Result<Value, ClientError> {
        self.client().acknowledge(topic, subscription, ids).await
    }
}
