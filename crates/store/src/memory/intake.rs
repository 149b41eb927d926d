//! New deliveries and finished direct calls. It must not know how they are delivered.

use std::collections::BTreeSet;

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Position, Status};
use postrider_core::id::DeliveryId;

use super::replies::ReplyRow;
use super::rows::{Data, Key, Row};
use crate::StoreError;
use crate::records::*;
use crate::unclaimed::unclaimed;

impl Data {
    pub(super) fn enqueue(&mut self, batch: Vec<NewDelivery>) -> Result<Vec<Enqueued>, StoreError> {
        self.refuse_known_ids(batch.iter().map(|new| new.id))?;
        if batch.iter().any(|new| !new.progress.status.is_waiting()) {
            return Err(StoreError::Conflict("a new delivery is PENDING or PROCESSING".to_owned()));
        }
        Ok(batch.into_iter().map(|new| self.enqueue_one(new)).collect())
    }

    fn enqueue_one(&mut self, new: NewDelivery) -> Enqueued {
        let Some(queue) = self.queues.get(&new.connection_id) else { return Enqueued::NoConnection };
        let repeat = new.idempotency.as_ref().and_then(|asked| self.repeat_of(asked, new.created_at));
        if let Some(answer) = repeat {
            return answer;
        }
        let ahead = queue.waiting();
        if let Some(limit) = self.limits.broken_by(ahead, queue.waiting_bytes, new.body.bytes.len() as u64) {
            return Enqueued::Full { limit };
        }
        let claim = new.claimed_under.filter(|lease| {
            !new.ordered
                && !in_line(&new)
                && lease.queue_id == new.connection_id
                && self.is_current(*lease)
                && is_begun(&new)
        });
        let Some(queue) = self.queues.get_mut(&new.connection_id) else { return Enqueued::NoConnection };
        let position = queue.take_position();
        let held_under = queue.owner.map(|_| FencingToken(queue.token));
        if let Some(asked) = &new.idempotency {
            self.keep_key(asked, new.id);
        }
        if let Some(ends_at) = new.awaited_until {
            let row = ReplyRow { queue_id: new.connection_id, position, begun: false, ends_at, reply: None };
            self.replies.insert(new.id, row);
        }
        self.use_body(new.body.clone());
        self.ledger.entry(new.connection_id).or_default().accepted += 1;
        let mut delivery = delivery_of(new, Some(position));
        if claim.is_none() && delivery.progress.status == Status::Processing {
            delivery.progress = unclaimed(delivery.progress);
        }
        self.enter(Row { delivery, claimed_under: claim.map(|lease| lease.token), recorded: 0 });
        Enqueued::Stored { position, ahead, claimed: claim.is_some(), held_under }
    }

    pub(super) fn record_calls(&mut self, batch: Vec<CallRecord>) -> Result<(), StoreError> {
        self.refuse_known_ids(batch.iter().map(|call| call.delivery.id))?;
        for call in &batch {
            check_call(call)?;
        }
        for CallRecord { delivery: new, attempts } in batch {
            if let Some(asked) = &new.idempotency
                && self.repeat_of(asked, new.created_at).is_none()
            {
                self.keep_key(asked, new.id);
            }
            self.use_body(new.body.clone());
            self.ledger.entry(new.connection_id).or_default().accepted += 1;
            let recorded = attempts.len() as u32;
            self.attempts.extend(attempts.into_iter().map(|attempt| ((new.id, attempt.number), attempt)));
            self.enter(Row { delivery: delivery_of(new, None), claimed_under: None, recorded });
        }
        Ok(())
    }

    fn refuse_known_ids(&self, ids: impl Iterator<Item = DeliveryId>) -> Result<(), StoreError> {
        let mut seen = BTreeSet::new();
        for id in ids {
            if self.rows.contains_key(&id) || !seen.insert(id) {
                return Err(StoreError::Conflict(format!("there is a delivery {id} already")));
            }
        }
        Ok(())
    }

    /// What the request's idempotency key says, if it is in use (D15).
    pub(super) fn repeat_of(&self, asked: &Idempotency, now: Timestamp) -> Option<Enqueued> {
        let known = self.keys.get(&asked.key_hash).filter(|known| known.ends_at > now)?;
        if known.request_hash == asked.request_hash {
            Some(Enqueued::Repeated(known.delivery_id))
        } else {
            Some(Enqueued::KeyReused)
        }
    }

    pub(super) fn keep_key(&mut self, asked: &Idempotency, delivery_id: DeliveryId) {
        let key = Key { request_hash: asked.request_hash, ends_at: asked.ends_at, delivery_id };
        self.keys.insert(asked.key_hash, key);
    }
}

/// What waits its turn is claimed by its owner alone.
fn in_line(new: &NewDelivery) -> bool {
    new.event.as_ref().is_some_and(|event| event.line.is_some())
}

fn is_begun(new: &NewDelivery) -> bool {
    new.progress.status == Status::Processing
}

fn check_call(call: &CallRecord) -> Result<(), StoreError> {
    let progress = &call.delivery.progress;
    let numbered = (1..).zip(&call.attempts).all(|(number, attempt)| attempt.number == number);
    if !numbered || progress.attempts as usize != call.attempts.len() {
        return Err(StoreError::Corrupt(format!("the attempts of {} are not numbered without gaps", call.delivery.id)));
    }
    if !progress.status.is_terminal() || progress.ended_at.is_none() {
        return Err(StoreError::Corrupt(format!("the call {} has not ended", call.delivery.id)));
    }
    Ok(())
}

fn delivery_of(new: NewDelivery, position: Option<Position>) -> Delivery {
    Delivery {
        id: new.id,
        project_id: new.project_id,
        connection_id: new.connection_id,
        cid: new.cid,
        origin: new.origin,
        created_at: new.created_at,
        head: new.head,
        body_id: new.body.id,
        body_bytes: new.body.bytes.len() as u64,
        original_body_id: None,
        event: new.event,
        ladder: new.ladder,
        position,
        version: 1,
        progress: new.progress,
    }
}
