//! The wire: how bytes leave for remote systems and come back.
//!
//! It must not know of queues, retries or stores: one call of `Sender::send` is one attempt, and a `Reply` comes back whatever happens.
#![forbid(unsafe_code)]

pub mod auth;
mod certificate;
pub mod codec;
pub mod egress;
pub mod guard;
pub mod mail;
pub mod otlp;
pub mod receive;
pub mod resolve;
pub mod send;
pub mod signature;
pub mod tls;
pub mod verify;

pub use auth::Credentials;
pub use egress::Egress;
pub use guard::Guard;
pub use send::http::{HttpOptions, HttpSender};
pub use send::many::Senders;
pub use send::mllp::MllpSender;
pub use send::reach::{Reach, ReachMethod};
pub use send::{Outgoing, Sender, ServiceRun, Stamp, WebhookAttempt, check, check_target, said};
