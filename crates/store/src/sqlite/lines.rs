//! Lines within a queue without order: of each only the foremost may go, and the next one once that has left (R15).
//!
//! It must not know how a line got its number.

use std::collections::BTreeSet;

use postrider_core::id::QueueId;

use super::queues;
use super::rows::key;
use super::work::Work;
use crate::StoreError;

/// Lines in which something came, left or got another place.
pub(super) type Touched = BTreeSet<(QueueId, i64)>;

pub(super) const RELEASE_SQL: &str = "UPDATE delivery SET by_due = 1 WHERE by_due = 0 AND no = (SELECT no FROM delivery \
     WHERE connection_id = ?1 AND line = ?2 AND position IS NOT NULL ORDER BY position LIMIT 1)";

/// Lets the foremost of each go when its time has come. Whoever comes in, or comes back, does so held back.
pub(super) fn release(work: &Work, touched: &Touched) -> Result<(), StoreError> {
    for (queue_id, line) in touched {
        if queues::find(work, *queue_id)?.is_some_and(|queue| !queue.ordered) {
            work.execute(RELEASE_SQL, &[&key(queue_id.as_u128()), line])?;
        }
    }
    Ok(())
}

/// The same of all lines of a queue whose order was given up.
pub(super) fn release_all(work: &Work, queue_id: QueueId) -> Result<(), StoreError> {
    let sql = "UPDATE delivery SET by_due = 1 WHERE by_due = 0 AND no IN (SELECT no FROM (SELECT no, min(position) FROM delivery \
         WHERE connection_id = ?1 AND line IS NOT NULL AND position IS NOT NULL GROUP BY line))";
    work.execute(sql, &[&key(queue_id.as_u128())])?;
    Ok(())
}

/// It waits for its turn from now on.
pub(super) fn hold_back(work: &Work, no: i64) -> Result<(), StoreError> {
    work.execute("UPDATE delivery SET by_due = 0 WHERE no = ?1", &[&no])?;
    Ok(())
}
