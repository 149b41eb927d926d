//! Callers who wait in one process while the owner of their queue is another one: what that owner tells them goes through the store (D11).
//!
//! A row is made with the request, and says by being there that somebody waits. It must not know what a reply means.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::delivery::Position;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::outcome::OutcomeState;
use postrider_core::{Answer, Failure};

use crate::StoreError;

/// What a caller is told, but for what every request knows of itself. What the answer's body says is not kept: it is read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReply {
    pub state: OutcomeState,
    pub error: Option<String>,
    pub failure: Option<Failure>,
    pub answer: Option<Answer>,
}

/// A reply written with the settlement that it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyWrite {
    pub reply: CallReply,
    /// Unread, it goes then.
    pub ends_at: Timestamp,
    /// The request leaves the queue for its caller alone. If that caller has left, the settlement is `Stale` and nothing of it is written.
    pub must_be_read: bool,
}

/// How a caller stands, as far as the store knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// Its turn has not come.
    Waiting,
    /// The owner makes the attempt.
    Begun,
    Answered(Box<CallReply>),
    /// It is not to wait any longer, or does not: its request keeps its place.
    Gone,
}

/// Whether a caller who asks goes on waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    Waits,
    /// It leaves, unless its turn has come: the answer is then `Begun`.
    LeavesBeforeItsTurn,
    Leaves,
}

#[async_trait]
pub trait Replies: Send + Sync {
    /// Those of these deliveries for whose first attempt somebody waits in another process.
    async fn awaited(&self, ids: Vec<DeliveryId>) -> Result<Vec<DeliveryId>, StoreError>;

    /// The owner makes the attempt now. `false`: the caller has left.
    async fn begin_awaited(&self, id: DeliveryId) -> Result<bool, StoreError>;

    /// Nobody who waits in this queue behind this position is to wait any longer (D10). `None`: nobody at all. Answered ones stay.
    async fn dismiss_awaited(&self, queue_id: QueueId, behind: Option<Position>) -> Result<u64, StoreError>;

    /// How a caller stands. An answer that is given out is gone from the store.
    async fn take_reply(&self, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError>;
}
