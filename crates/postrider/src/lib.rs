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
//! An error is a [`ClientError`]: the address or the directory cannot be used, nobody answers, the server refused (with every field that is wrong), or
//! something else answers.
#![forbid(unsafe_code)]

mod client;
mod courier;
mod in_process;
#[doc(hidden)]
pub mod key_file;

pub use courier::Courier;
pub use in_process::Postrider;

pub use client::{
    Alert, ApiKey, Attempt, AuditActor, AuditEntry, AuditQuery, BatchResult, Call, Client, ClientError, Connection,
    ConnectionState, DeadLetter, Delivery, DeliveryQuery, FhirFields, FieldProblem, Health, ImportOptions, Imported,
    ImportedKey, ImportedObject, Job, JobAct, JobTarget, LineResult, Matching, Page, PageQuery, PlannedAttempt,
    Problem, Project, Pulled, Reached, Response, Schedule, SecurityDefinition, SecurityState, SendResult, StageTook,
    Subscription, Topic, TopicMessage, User, UserChange, Whose,
};
