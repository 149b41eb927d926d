//! Postrider from Rust: a client of a server, or a whole Postrider in the process, behind the same trait.
//!
//! [`Courier`] is what an application does. [`Client`] does it over HTTP or HTTPS; [`Postrider`] does it either way:
//!
//! ```
//! use postrider::{Call, ClientError, Courier, Postrider};
//!
//! /// It does not know where the Postrider is.
//! async fn bill(courier: &dyn Courier) -> Result<String, ClientError> {
//!     let result = courier.send("Billing API", &Call::post("{\"amount\": 12}")).await?;
//!     // A delivery that failed is a result, never an error (Z30).
//!     Ok(if result.is_ok { "delivered".to_owned() } else { format!("waits as {:?}", result.msg_id) })
//! }
//!
//! # async fn remote() -> String {
//! #     use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! #     let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
//! #     let address = format!("http://{}", listener.local_addr().unwrap());
//! #     tokio::spawn(async move {
//! #         while let Ok((mut stream, _)) = listener.accept().await {
//! #             tokio::spawn(async move {
//! #                 let mut bytes = [0; 4096];
//! #                 while stream.read(&mut bytes).await.is_ok_and(|read| read > 0) {
//! #                     let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").await;
//! #                 }
//! #             });
//! #         }
//! #     });
//! #     address
//! # }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # let data = dir.path().join("data");
//! # let host = remote().await;
//! // In this process, on a directory of its own; `Postrider::connect("https://…", "the key")` is a server instead.
//! let postrider = Postrider::open(&data).await?;
//! let settings = serde_json::json!({"type": "rest", "name": "Billing API", "host": host, "url_path": "/invoices", "use_queue": true});
//! postrider.create_connection(settings.as_object().unwrap()).await?;
//! assert_eq!(bill(&postrider).await?, "delivered");
//! // Stored when this returns, delivered later.
//! let stored = postrider.publish("Billing API", &Call::post("{\"amount\": 13}")).await?;
//! assert!(stored.is_in_queue);
//! postrider.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Topics are there as well:
//!
//! ```
//! # use postrider::{Courier, Postrider};
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let postrider = Postrider::open(dir.path().join("data")).await?;
//! postrider.create_topic("orders", "what was ordered", None).await?;
//! postrider.create_subscription("orders", "reader").await?;
//! postrider.publish_to_topic("orders", &[], &"{}".into()).await?;
//! let pulled = postrider.pull("orders", "reader", 10).await?;
//! let ids: Vec<String> = pulled.data.iter().map(|message| message.id.clone()).collect();
//! postrider.acknowledge("orders", "reader", &ids).await?;
//! assert!(postrider.pull("orders", "reader", 10).await?.data.is_empty());
//! // Somebody else has the directory.
//! assert!(Postrider::open(dir.path().join("data")).await.is_err());
//! postrider.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! A channel takes requests in at once and runs a [`Service`] for each, from a durable queue. In the process it is code:
//!
//! ```
//! use std::sync::Arc;
//!
//! use postrider::{Call, Client, Courier, Postrider, Service, ServiceError, ServiceRequest, ServiceResponse, async_trait};
//!
//! struct OrderIntake(Client);
//!
//! #[async_trait]
//! impl Service for OrderIntake {
//!     async fn handle(&self, request: ServiceRequest) -> Result<ServiceResponse, ServiceError> {
//!         // Runs from the queue, once per request, retried if it fails.
//!         self.0.publish("Fulfilment", &Call::post(request.body)).await?;
//!         Ok(ServiceResponse::default())
//!     }
//!
//!     fn has_queue_response(&self) -> bool {
//!         true
//!     }
//!
//!     async fn queue_response(&self, request: ServiceRequest) -> Result<ServiceResponse, ServiceError> {
//!         // Runs as the request is accepted; what it returns is the caller's response.
//!         let order: serde_json::Value = serde_json::from_slice(&request.body)?;
//!         let told = serde_json::json!({"accepted": true, "order_id": order["order_id"], "msg_id": request.msg_id});
//!         Ok(ServiceResponse::of("application/json", told.to_string()))
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! let postrider = Postrider::open(dir.path().join("data")).await?;
//! let settings = serde_json::json!({"type": "rest", "name": "Fulfilment", "host": "http://127.0.0.1:9", "url_path": "/", "use_queue": true});
//! postrider.create_connection(settings.as_object().unwrap()).await?;
//! let settings = serde_json::json!({"type": "rest", "name": "Orders", "url_path": "/orders", "service": "orders", "use_queue": true});
//! postrider.client().create_channel(settings.as_object().unwrap()).await?;
//! postrider.provide("orders", Arc::new(OrderIntake(postrider.client().clone())));
//!
//! let request = http::Request::post("/orders").body("{\"order_id\": 5}".into())?;
//! let told: serde_json::Value = serde_json::from_slice(postrider.receive(request).await?.body())?;
//! assert_eq!(told["order_id"], 5);
//! // On disk before it was acknowledged, and run since or soon.
//! let stored = postrider.delivery(told["msg_id"].as_str().unwrap()).await?;
//! assert_eq!(stored.more["service"], "orders");
//! postrider.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! An error is a [`ClientError`]: the address or the directory cannot be used, nobody answers, the server refused (with every field that is wrong), or
//! something else answers.
#![forbid(unsafe_code)]

mod client;
mod courier;
mod in_process;
#[doc(hidden)]
pub mod key_file;

pub use async_trait::async_trait;
pub use courier::Courier;
pub use in_process::Postrider;
pub use postrider_engine::{Service, ServiceError, ServiceRequest, ServiceResponse};

pub use client::{
    Alert, ApiKey, Attempt, AuditActor, AuditEntry, AuditQuery, BatchResult, Call, Client, ClientError, Configured,
    Connection, ConnectionState, DeadLetter, Delivery, DeliveryQuery, Destination, Endpoint, EventBatch, FailedForward,
    FhirFields, FieldProblem, Forward, ForwardsWanted, Health, ImportOptions, Imported, ImportedKey, ImportedObject,
    Job, JobAct, JobTarget, LineResult, Matching, Page, PageQuery, PlannedAttempt, Problem, Project, PublishedEvent,
    Pulled, PushSubscription, Reached, ReplayedIncoming, Response, RetriedForwards, Schedule, SecurityDefinition,
    SecurityState, SendResult, Source, StageTook, Subscription, Topic, TopicMessage, User, UserChange, Whose,
};
