//! The Rust client of a Postrider server.
//!
//! ```no_run
//! # async fn example() -> Result<(), postrider::ClientError> {
//! let client = postrider::Client::new("http://127.0.0.1:8080", "the key")?;
//! let result = client.send("Billing API", &postrider::Call::post("{\"amount\": 12}")).await?;
//! if result.is_ok {
//!     println!("delivered");
//! } else if result.is_in_queue {
//!     println!("queued under {}", result.msg_id.unwrap_or_default());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The client knows the HTTP API and nothing of stores, engines or policies. A delivery that failed is a result, never an error
//! (Z30); an error means that the server refused the request or could not be reached.
#![forbid(unsafe_code)]

mod client;

pub use client::{
    Alert, ApiKey, Attempt, AuditActor, AuditEntry, AuditQuery, BatchResult, Call, Client, ClientError, Connection,
    ConnectionState, DeadLetter, Delivery, DeliveryQuery, FieldProblem, ImportOptions, Imported, ImportedKey,
    ImportedObject, Job, JobAct, JobTarget, LineResult, Matching, Page, PageQuery, PlannedAttempt, Problem, Project,
    Pulled, Response, Schedule, SecurityDefinition, SecurityState, SendResult, Subscription, Topic, TopicMessage,
    Whose,
};
