//! Decisions, written whole (law 2): first all of a batch are judged, then those that hold are applied, so an error leaves no trace.
//! It must not know why a decision was made.

use std::collections::BTreeMap;

use postrider_core::delivery::Status;
use postrider_core::id::DeliveryId;

use super::events::Asked;
use super::rows::{Data, Row};
use crate::StoreError;
use crate::records::*;

/// What earlier settlements of the same batch will have made of a delivery.
#[derive(Clone, Copy)]
struct Foreseen {
    version: u32,
    status: Status,
    recorded: u32,
}

enum Judged {
    Applies,
    Not(Settled),
}

impl Data {
    pub(super) fn settle(&mut self, batch: Vec<Settlement>) -> Result<Vec<Settled>, StoreError> {
        let (mut foreseen, mut asked) = (BTreeMap::new(), Asked::new());
        let mut judged = Vec::with_capacity(batch.len());
        for settlement in &batch {
            judged.push(self.judge(settlement, &mut foreseen, &mut asked)?);
        }
        let answers = batch.into_iter().zip(judged).map(|(settlement, judged)| match judged {
            Judged::Applies => self.apply(settlement),
            Judged::Not(settled) => settled,
        });
        Ok(answers.collect())
    }

    /// Those of these that would not be applied, and those whose forward would find no room; nothing is written.
    pub(super) fn not_holding(&self, batch: &[Settlement]) -> Result<(Vec<DeliveryId>, Vec<DeliveryId>), StoreError> {
        let (mut foreseen, mut asked) = (BTreeMap::new(), Asked::new());
        let (mut raced, mut full) = (Vec::new(), Vec::new());
        for settlement in batch {
            match self.judge(settlement, &mut foreseen, &mut asked)? {
                Judged::Applies => {}
                Judged::Not(Settled::Full { .. }) => full.push(settlement.delivery_id),
                Judged::Not(_) => raced.push(settlement.delivery_id),
            }
        }
        Ok((raced, full))
    }

    fn judge(
        &self,
        settlement: &Settlement,
        foreseen: &mut BTreeMap<DeliveryId, Foreseen>,
        asked: &mut Asked,
    ) -> Result<Judged, StoreError> {
        let Some(row) = self.rows.get(&settlement.delivery_id) else { return Ok(Judged::Not(Settled::Gone)) };
        let Some(queue) = self.queues.get(&settlement.queue_id) else { return Ok(Judged::Not(Settled::Gone)) };
        if row.delivery.connection_id != settlement.queue_id {
            return Ok(Judged::Not(Settled::Gone));
        }
        let delivery = &row.delivery;
        let now = foreseen.entry(delivery.id).or_insert(Foreseen {
            version: delivery.version,
            status: delivery.progress.status,
            recorded: row.recorded,
        });
        let holds = match settlement.guard {
            Guard::Lease(lease) => {
                lease.queue_id == settlement.queue_id && self.is_current(lease) && now.status.is_waiting()
            }
            Guard::Version(version) => version == now.version && !(now.status.is_waiting() && queue.owner.is_some()),
        };
        if !holds {
            return Ok(Judged::Not(Settled::Stale));
        }
        if let Some(forward) = &settlement.forward {
            if self.topic_by_name(delivery.project_id, &forward.message.topic).is_none() {
                return Ok(Judged::Not(Settled::NoTopic));
            }
            if let Some(limit) = self.broken_by(&forward.deliveries, asked) {
                return Ok(Judged::Not(Settled::Full { limit }));
            }
        }
        check_progress(settlement, now.recorded)?;
        now.version += 1;
        now.status = settlement.progress.status;
        now.recorded += u32::from(settlement.attempt.is_some());
        Ok(Judged::Applies)
    }

    fn apply(&mut self, settlement: Settlement) -> Settled {
        let Some(mut row) = self.leave(settlement.delivery_id) else { return Settled::Gone };
        self.place(&mut row, &settlement);
        if let Some(attempt) = settlement.attempt {
            row.recorded = attempt.number;
            self.attempts.insert((row.delivery.id, attempt.number), attempt);
        }
        if let Some(body) = settlement.edited_body {
            self.edit(&mut row, body);
        }
        let pushed = settlement.forward.map(|forward| {
            self.forward(&row.delivery, forward.message);
            forward.deliveries
        });
        if let Some((id, answer)) = settlement.answers {
            self.note_answer(id, answer);
        }
        if let Some(write) = settlement.health {
            self.write_health(settlement.queue_id, *write);
        }
        row.delivery.progress = settlement.progress;
        row.delivery.version += 1;
        let settled = Settled::Applied { version: row.delivery.version, position: row.delivery.position };
        self.enter(row);
        // Judged already: there is room for all.
        let _ = pushed.map(|deliveries| self.enqueue(deliveries));
        settled
    }

    /// Gives the row its place: none outside the queue, a new one at the tail for what comes back or is sent there.
    fn place(&mut self, row: &mut Row, settlement: &Settlement) {
        let status = settlement.progress.status;
        let Some(queue) = self.queues.get_mut(&settlement.queue_id) else { return };
        row.claimed_under = (status == Status::Processing).then_some(FencingToken(queue.token));
        row.delivery.position = match row.delivery.position {
            _ if !status.is_waiting() => None,
            Some(position) if settlement.placement == Placement::Keep => Some(position),
            _ => Some(queue.take_position()),
        };
    }

    /// The body that was accepted stays as the original (D06, Z23); one from an earlier edit goes.
    fn edit(&mut self, row: &mut Row, body: NewBody) {
        let former = std::mem::replace(&mut row.delivery.body_id, body.id);
        row.delivery.body_bytes = body.bytes.len() as u64;
        self.use_body(body);
        if row.delivery.original_body_id.is_none() {
            row.delivery.original_body_id = Some(former);
        } else {
            self.drop_body(former);
        }
    }
}

fn check_progress(settlement: &Settlement, recorded: u32) -> Result<(), StoreError> {
    let progress = &settlement.progress;
    let id = settlement.delivery_id;
    let now_recorded = recorded + u32::from(settlement.attempt.is_some());
    if settlement.attempt.as_ref().is_some_and(|attempt| attempt.number != now_recorded) {
        return Err(StoreError::Corrupt(format!("the next attempt of {id} has number {}", recorded + 1)));
    }
    if progress.attempts < now_recorded {
        return Err(StoreError::Corrupt(format!(
            "{id} has {now_recorded} attempts on record, not {}",
            progress.attempts
        )));
    }
    if progress.status == Status::Dlq && progress.dead_at.is_none() {
        return Err(StoreError::Corrupt(format!("{id} has no time of arrival in the DLQ")));
    }
    if progress.status.is_terminal() && progress.ended_at.is_none() {
        return Err(StoreError::Corrupt(format!("{id} has no time of its end")));
    }
    Ok(())
}
