//! The verbs for idempotency keys of requests that act on something else than a delivery's way in: making, changing, jobs, acts by hand (D15).
//!
//! A key is claimed, durably, before its request is acted on, and its answer is kept afterwards. It must not know what was asked.

use async_trait::async_trait;
use postrider_core::Timestamp;

use crate::{Idempotency, StoreError};

/// An answer as it was given, for repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The value of `Location`, where there was one.
    pub location: Option<String>,
    /// JSON without secrets; `None` where it was too long to be kept.
    pub body: Option<String>,
}

/// What a key says of a request that carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// It was free, and is now this request's, durably.
    First,
    /// The same request came before and is under way, or was cut off by a crash.
    Unanswered,
    /// The same request came before and was given this answer.
    Answered(KeptAnswer),
    /// The same key with another request.
    KeyReused,
}

#[async_trait]
pub trait KeyedAnswers: Send + Sync {
    /// Takes a key for a request, before anything is done about it. A key that has ended is free. It goes on with little space left, as settling
    /// does: whoever discards to make room may do so with a key (D07).
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError>;

    /// Ends a claim: with the answer for repeats, or with none where the request was refused and changed nothing, so that the key is free again.
    /// A key that is not claimed is left alone.
    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError>;
}
