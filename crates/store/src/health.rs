//! How webhook endpoints do: what attempts say of them, written with the attempts, and how the server switches them off (V03, V04).
//!
//! A store must not know when an endpoint is to be switched off; that comes in as a value, with the epoch in which it was decided.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::endpoint::SwitchedOff;
use postrider_core::health::EndpointHealth;
use postrider_core::id::ConnectionId;

use crate::StoreError;
use crate::audit::AuditEntry;
use crate::endpoints::EndpointRow;

/// What an attempt makes of its endpoint. Written with the attempt if the endpoint is on and still in this epoch; else it is passed over, and
/// the attempt is written all the same (D29).
#[derive(Clone, Debug, PartialEq)]
pub struct HealthWrite {
    pub epoch: u32,
    pub health: EndpointHealth,
    /// It is switched off with this: the epoch rises, and its owner is to be told.
    pub off: Option<Box<OffWrite>>,
}

/// A switching-off with its entry in the audit log.
#[derive(Clone, Debug, PartialEq)]
pub struct OffWrite {
    pub off: SwitchedOff,
    pub entry: AuditEntry,
}

#[async_trait]
pub trait EndpointHealths: Send + Sync {
    /// Those that have been failing since their last success, on or off, in the order of their ids behind `after`.
    async fn failing_endpoints(
        &self,
        after: Option<ConnectionId>,
        rows_max: u32,
    ) -> Result<Vec<EndpointRow>, StoreError>;

    /// Switches an endpoint off that stands as `was` says: the same epoch, and failing since the same time. `false`, and nothing written,
    /// when it does not any more.
    async fn switch_off_endpoint(&self, was: &EndpointRow, off: OffWrite) -> Result<bool, StoreError>;

    /// Those that were switched off and whose owner is to be told at `now`.
    async fn untold_endpoints(&self, now: Timestamp, rows_max: u32) -> Result<Vec<EndpointRow>, StoreError>;

    /// Takes over telling the owner until `until`; `false` when somebody else was faster, or nobody is to be told any more.
    async fn take_telling(&self, was: &EndpointRow, until: Timestamp) -> Result<bool, StoreError>;

    /// The owner has been told of what happened in this epoch, or cannot be.
    async fn end_telling(&self, id: ConnectionId, epoch: u32) -> Result<(), StoreError>;
}

/// The writes of one batch less those that a later one of the same endpoint and epoch makes needless.
pub(crate) fn without_needless<'a>(writes: &[(ConnectionId, &'a HealthWrite)]) -> Vec<(ConnectionId, &'a HealthWrite)> {
    let mut kept: Vec<(ConnectionId, &HealthWrite)> = Vec::with_capacity(writes.len());
    for (id, write) in writes {
        let same = kept.iter_mut().rev().find(|(known, _)| known == id);
        match same {
            Some((_, before)) if before.epoch == write.epoch && before.off.is_none() => *before = write,
            _ => kept.push((*id, write)),
        }
    }
    kept
}
