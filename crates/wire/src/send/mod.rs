//! Sending: one trait, one file per kind of connection.

mod answer;
pub(crate) mod cause;
mod check;
pub(crate) mod connect;
mod fhir;
mod forward;
pub mod http;
pub(crate) mod link;
pub mod many;
mod metered;
pub mod mllp;
pub(crate) mod origin;
mod pool;
pub mod reach;
mod request;
mod route;
pub mod service;
mod soap;
mod webhook;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::connection::Connection;
use postrider_core::id::{Cid, ConnectionId, DeliveryId};
use postrider_core::message::RequestHead;
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::trace::TraceContext;
use postrider_core::{NoAnswerKind, Reply, Timestamp, Wait};

pub use check::{check, check_target, said};

use crate::auth::Credentials;

pub use service::ServiceRun;
pub use webhook::WebhookAttempt;

pub(crate) const OUR_USER_AGENT: ::http::HeaderValue =
    ::http::HeaderValue::from_static(concat!("postrider/", env!("CARGO_PKG_VERSION")));

/// One attempt, ready to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    pub connection: Arc<Connection>,
    pub delivery_id: DeliveryId,
    pub cid: Cid,
    /// From 1.
    pub attempt: u32,
    pub head: Arc<RequestHead>,
    pub body: Bytes,
    /// What the connection's security definition says; computed into headers here and recorded nowhere (D32).
    pub credentials: Option<Arc<Credentials>>,
    /// For connections of kind webhook: how to sign, and what the event's headers say.
    pub webhook: Option<Box<WebhookAttempt>>,
    /// For channels and services: where the request is run.
    pub service: Option<Box<ServiceRun>>,
    /// Goes out as `traceparent` and `tracestate`, in place of what the request itself has under these names.
    pub trace: Option<TraceContext>,
    /// Of this attempt alone, where its credentials are made anew each time.
    pub stamp: Option<Stamp>,
    /// From connect to the status line; the body is read until the same deadline (D24).
    pub timeout: Wait,
}

impl Outgoing {
    /// What is dialled: of a run, its service.
    pub(crate) fn at(&self) -> &Arc<Connection> {
        self.service.as_ref().map_or(&self.connection, |run| &run.at)
    }
}

/// What makes one attempt's credentials unlike any other's.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    pub at: Timestamp,
    /// Drawn at random.
    pub nonce: u128,
}

/// Makes attempts. Never fails and never retries: whatever happens is a `Reply`, and each call is at most one request that a remote
/// system may act on.
#[async_trait]
pub trait Sender: Send + Sync {
    async fn send(&self, outgoing: Outgoing) -> Reply;

    /// Whether requests of this connection may go where it says, as far as that can be told now: its name is resolved and all its addresses
    /// are judged, and nothing is dialled (R14). A name that cannot be resolved now may be later, and passes.
    ///
    /// # Errors
    /// In words: why they may not.
    async fn may_reach(&self, connection: &Arc<Connection>) -> Result<(), String>;

    /// Tries whether the remote system can be reached, as an attempt would, and says how far it came. Nobody acts on what is sent.
    ///
    /// A sender that dials nobody reaches nobody.
    async fn reach(&self, _wanted: reach::Reach) -> Reached {
        Reached::not(ReachStage::Resolve, NoAnswerKind::Internal, "this sender dials nobody")
    }

    /// The connection was changed or deleted: sockets and settings kept for it are dropped once idle.
    fn forget(&self, connection: ConnectionId);
}
