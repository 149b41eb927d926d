//! Positions for what comes back into a queue or moves to its tail (D02). It must not know why it does.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use postrider_core::id::QueueId;

use super::columns::Columns;
use super::failures::Outcome;
use super::key::Id as _;
use super::rows::Cells;
use super::work::Work;
use crate::StoreError;

/// Positions given by a run, and what came back into queues. The entries are locked.
#[derive(Default)]
pub(super) struct Positions {
    queues: BTreeMap<QueueId, Given>,
}

struct Given {
    next: i64,
    entered: i64,
    entered_bytes: i64,
}

impl Positions {
    pub async fn next(&mut self, work: &Work, id: QueueId) -> Outcome<i64> {
        let given = match self.queues.entry(id) {
            Entry::Occupied(given) => given.into_mut(),
            Entry::Vacant(place) => {
                let sql = "SELECT next_position FROM queue_entry WHERE id = $1 FOR UPDATE";
                let next = work.first(sql, &[&id.key()], |row| Cells::of(row).take()).await?;
                let next = next.ok_or_else(|| StoreError::Corrupt(format!("{id} has no queue")))?;
                place.insert(Given { next, entered: 0, entered_bytes: 0 })
            }
        };
        given.next += 1;
        Ok(given.next - 1)
    }

    pub fn entered(&mut self, id: QueueId, bytes: i64) {
        if let Some(given) = self.queues.get_mut(&id) {
            given.entered += 1;
            given.entered_bytes += bytes;
        }
    }

    pub async fn count_in(&self, work: &Work) -> Outcome<()> {
        let rows = Columns::of(&self.queues, |to, (id, given)| {
            to.key(*id);
            to.int(given.next);
            to.int(given.entered);
            to.int(given.entered_bytes);
        });
        let sql = format!(
            "UPDATE queue_entry AS e SET next_position = n.next, entered = e.entered + n.entered, \
             entered_bytes = e.entered_bytes + n.bytes FROM {} AS n (id, next, entered, bytes) WHERE e.id = n.id",
            rows.unnest(1)
        );
        work.write_rows(&sql, &rows).await?;
        Ok(())
    }
}
