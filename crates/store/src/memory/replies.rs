//! Callers who wait in another process than their queue's owner. It must not know what they are told.

use async_trait::async_trait;
use postrider_core::Timestamp;
use postrider_core::delivery::Position;
use postrider_core::id::{DeliveryId, QueueId};

use super::MemoryStore;
use super::rows::Data;
use crate::records::Settlement;
use crate::replies::ReplyWrite;
use crate::{Awaited, CallReply, Patience, Replies, StoreError};

pub(super) struct ReplyRow {
    pub queue_id: QueueId,
    pub position: Position,
    pub begun: bool,
    pub ends_at: Timestamp,
    pub reply: Option<CallReply>,
}

#[async_trait]
impl Replies for MemoryStore {
    async fn awaited(&self, ids: Vec<DeliveryId>) -> Result<Vec<DeliveryId>, StoreError> {
        let data = self.open()?;
        Ok(ids.into_iter().filter(|id| data.replies.get(id).is_some_and(|row| row.reply.is_none())).collect())
    }

    async fn begin_awaited(&self, id: DeliveryId) -> Result<bool, StoreError> {
        let mut data = self.open()?;
        let Some(row) = data.replies.get_mut(&id).filter(|row| row.reply.is_none()) else { return Ok(false) };
        row.begun = true;
        Ok(true)
    }

    async fn dismiss_awaited(&self, queue_id: QueueId, behind: Option<Position>) -> Result<u64, StoreError> {
        let mut data = self.open()?;
        let before = data.replies.len();
        data.replies.retain(|_, row| {
            row.queue_id != queue_id || row.reply.is_some() || behind.is_some_and(|behind| row.position <= behind)
        });
        Ok((before - data.replies.len()) as u64)
    }

    async fn take_reply(&self, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError> {
        let mut data = self.open()?;
        let Some(row) = data.replies.get_mut(&id) else { return Ok(Awaited::Gone) };
        let begun = row.begun;
        if let Some(reply) = row.reply.take() {
            data.replies.remove(&id);
            return Ok(Awaited::Answered(Box::new(reply)));
        }
        match patience {
            Patience::LeavesBeforeItsTurn | Patience::Waits if begun => Ok(Awaited::Begun),
            Patience::Waits => Ok(Awaited::Waiting),
            Patience::LeavesBeforeItsTurn | Patience::Leaves => {
                data.replies.remove(&id);
                Ok(Awaited::Gone)
            }
        }
    }
}

impl Data {
    /// Whether the settlement may be written, as far as its caller goes.
    pub(super) fn has_its_caller(&self, settlement: &Settlement) -> bool {
        let must = settlement.reply.as_ref().is_some_and(|write| write.must_be_read);
        !must || self.replies.get(&settlement.delivery_id).is_some_and(|row| row.reply.is_none())
    }

    pub(super) fn write_reply(&mut self, id: DeliveryId, write: ReplyWrite) {
        if let Some(row) = self.replies.get_mut(&id).filter(|row| row.reply.is_none()) {
            row.ends_at = write.ends_at;
            row.reply = Some(as_kept(write.reply));
        }
    }
}

/// As the other stores give it back.
fn as_kept(mut reply: CallReply) -> CallReply {
    if let Some(answer) = &mut reply.answer {
        answer.said = None;
    }
    reply
}
