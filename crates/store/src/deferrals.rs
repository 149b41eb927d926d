//! What holds deliveries up: what the owner of a queue says of all that is due there, and who waits for whom (R04, R15).
//!
//! It must not know why anything is held up.

use async_trait::async_trait;
use postrider_core::deferral::Deferral;
use postrider_core::id::{DeliveryId, QueueId};

use crate::StoreError;
use crate::records::QueueLease;

#[async_trait]
pub trait Deferrals: Send + Sync {
    /// What holds up everything that is due in this queue, for others to see; `None`: nothing does any more. It ends with the lease.
    async fn note_deferral(&self, lease: QueueLease, deferral: Option<Deferral>) -> Result<(), StoreError>;

    /// What the living owners of these queues have said.
    async fn deferrals(&self, queues: Vec<QueueId>) -> Result<Vec<(QueueId, Deferral)>, StoreError>;

    /// Of these, each that waits behind another one, in an ordered queue or in a line, with the foremost one, for which all of them wait.
    async fn waits_behind(&self, ids: Vec<DeliveryId>) -> Result<Vec<(DeliveryId, DeliveryId)>, StoreError>;
}
