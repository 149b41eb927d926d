//! Sources of incoming webhooks, and what they brought: stored once, with its forwards, or known as what came before (R12).
//!
//! Changes by a person go through `AuditLog::change`. It must not know what a signature is; what makes two webhooks the same comes in as hashes.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::{EventId, SourceId};
use postrider_core::source::Source;

use crate::StoreError;
use crate::audit::AuditEntry;
use crate::events::NewEvent;
use crate::records::{Enqueued, NewDelivery, Settled, Settlement};

#[async_trait]
pub trait Sources: Send + Sync {
    /// All sources of all projects, in the order of their ids, for an engine that starts.
    async fn all_sources(&self) -> Result<Vec<SourceRow>, StoreError>;

    /// Other sealed secrets, if `version` is still the stored one, which stays: they are the same secrets.
    async fn reseal_source(&self, id: SourceId, keys: &SourceKeys, version: u32) -> Result<(), StoreError>;

    /// Stores what came in as `publish_event` does, and what makes a second one the same: all or nothing. `NotFound` when the source is
    /// gone meanwhile.
    async fn receive(&self, arrival: Arrival) -> Result<Received, StoreError>;

    /// Settles a delivery by hand and stores the new one that takes its place, both or neither; the new one may name the same body. The
    /// entry is written with them.
    async fn renew_forward(
        &self,
        settlement: Settlement,
        new: NewDelivery,
        entry: AuditEntry,
    ) -> Result<Renewed, StoreError>;

    /// Removes at most `rows_max` receipts that ended at or before `now`; how many went.
    async fn prune_receipts(&self, now: Timestamp, rows_max: u32) -> Result<u64, StoreError>;
}

#[derive(Clone, Debug, PartialEq)]
pub struct SourceRow {
    pub source: Source,
    pub keys: SourceKeys,
}

/// What opens a source: hashes of tokens, never a token, and secrets as the vault sealed them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceKeys {
    pub token_hash: [u8; 32],
    /// The token before the last rotation, for as long as it still opens.
    pub former_token: Option<([u8; 32], Timestamp)>,
    /// `None`: the source verifies nothing.
    pub sealed: Option<String>,
    pub former_sealed: Option<(String, Timestamp)>,
}

/// A webhook on its way in.
#[derive(Clone, Debug)]
pub struct Arrival {
    pub source_id: SourceId,
    pub event: NewEvent,
    /// By the provider's own id.
    pub by_id: Option<Receipt>,
    /// By what was signed.
    pub by_signature: Option<Receipt>,
}

/// What is remembered of a webhook, and until when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub hash: [u8; 32],
    pub ends_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// One answer for each delivery, in order.
    Stored(Vec<Enqueued>),
    /// The id came before, with this event. Looked at first: a provider's own resend is no attack.
    SameId(EventId),
    /// What was signed came before, with this event.
    SameSignature(EventId),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    Stored(Enqueued),
    /// The settlement was not applied, and nothing is stored.
    Not(Settled),
}
