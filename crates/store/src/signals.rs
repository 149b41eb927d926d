//! News of what other processes did on the same store, so that nobody has to keep asking. It must not know who acts on it.
//!
//! News may be lost, and says nothing that the store does not say as well: whoever listens looks from time to time all the same (D47).

use async_trait::async_trait;
use postrider_core::id::{DeliveryId, QueueId};

use crate::StoreError;

/// What another process did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Something came into these queues, somebody asked their owner for something, or they have no owner any more.
    Queues(Vec<QueueId>),
    /// Callers of another process wait for replies from the owners of these queues (D11).
    Calls(Vec<QueueId>),
    /// These callers have been answered, or are not to wait any longer (D11).
    Replies(Vec<DeliveryId>),
    /// Projects, connections, security definitions or keys.
    Configuration,
    /// News was lost: anything may have happened.
    Anything,
}

#[async_trait]
pub trait Signals: Send + Sync {
    /// The next news; never any from a store that one process has for itself. For one listener.
    async fn next_signal(&self) -> Signal {
        std::future::pending().await
    }

    /// A number that rises with every change of configuration, for whoever may have missed the news of one.
    async fn configuration_version(&self) -> Result<i64, StoreError> {
        Ok(0)
    }
}
