//! Who works on a store, and how the queues are spread over them. It must not know what a fair spreading is.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::id::WorkerId;

use crate::StoreError;

/// The workers whose leases have not ended, with what they have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workforce {
    /// By id.
    pub workers: Vec<(WorkerId, u64)>,
    /// Queues in which something waits and that have no living owner.
    pub free: u64,
}

#[async_trait]
pub trait Spreading: Send + Sync {
    /// `None` for a store that one process has for itself: all of it is that process's.
    async fn workforce(&self, _now: Timestamp) -> Result<Option<Workforce>, StoreError> {
        Ok(None)
    }
}
