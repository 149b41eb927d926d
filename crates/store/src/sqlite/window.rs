//! The owner's window: what it loads or claims of its queue. It must not know what becomes of it.

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Position};
use rusqlite::{Connection, Row};

use super::queues;
use super::rows::{POSITION_COLUMN, hot_columns, key, read_all, read_delivery, read_one};
use super::work::{Binder, Work, in_chunks, places};
use crate::{Loaded, QueueLease, StoreError, WindowLimit};

/// Columns of `delivery` with its body and number behind.
fn with_body() -> String {
    let columns: Vec<String> = hot_columns().split(", ").map(|column| format!("d.{}", column.trim())).collect();
    format!("{}, b.bytes, d.no", columns.join(", "))
}

fn read_loaded(row: &Row<'_>) -> Result<(Loaded, i64), StoreError> {
    let delivery = read_delivery(row)?;
    let body = row.get_ref(POSITION_COLUMN + 1)?.as_blob().map_err(|error| StoreError::Corrupt(error.to_string()))?;
    Ok((Loaded { delivery, body: Bytes::copy_from_slice(body) }, row.get(POSITION_COLUMN + 2)?))
}

/// Takes rows until the window is full; the first one fits always.
struct Filling {
    limit: WindowLimit,
    bytes: u64,
    found: Vec<(Loaded, i64)>,
}

impl Filling {
    fn new(limit: WindowLimit) -> Self {
        Filling { limit, bytes: 0, found: Vec::new() }
    }

    fn room(&self) -> i64 {
        i64::from(self.limit.deliveries_max).saturating_sub(i64::try_from(self.found.len()).unwrap_or(i64::MAX)).max(0)
    }

    /// `false` when it is full.
    fn add(&mut self, row: &Row<'_>) -> Result<bool, StoreError> {
        let (loaded, no) = read_loaded(row)?;
        let bytes = self.bytes.saturating_add(loaded.body.len() as u64);
        if !self.found.is_empty() && bytes > self.limit.bytes_max {
            return Ok(false);
        }
        self.bytes = bytes;
        self.found.push((loaded, no));
        Ok(true)
    }
}

/// Whether the lease still holds, as the reader sees it.
pub(super) fn check_lease(connection: &Connection, lease: &QueueLease) -> Result<(), StoreError> {
    read_one(
        connection,
        "SELECT 1 FROM queue WHERE id = ?1 AND owner = ?2 AND token = ?3",
        &[&key(lease.queue_id.as_u128()), &key(lease.worker_id.as_u128()), &lease.token.0],
        |_| Ok(()),
    )?
    .ok_or(StoreError::LeaseLost)
}

pub(super) fn load_sql() -> String {
    format!(
        "SELECT {} FROM delivery AS d CROSS JOIN body AS b ON b.id = d.body_id \
         WHERE d.connection_id = ?1 AND d.position > ?2 AND d.by_due = 0 ORDER BY d.position LIMIT ?3",
        with_body()
    )
}

pub(super) fn load(
    connection: &Connection,
    lease: &QueueLease,
    after: Option<Position>,
    limit: WindowLimit,
) -> Result<Vec<Loaded>, StoreError> {
    check_lease(connection, lease)?;
    let mut filling = Filling::new(limit);
    let mut statement = connection.prepare_cached(&load_sql())?;
    let behind = after.map_or(i64::MIN, |position| position.0);
    let mut rows =
        statement.query(rusqlite::params![key(lease.queue_id.as_u128()), behind, i64::from(limit.deliveries_max)])?;
    while let Some(row) = rows.next()? {
        if !filling.add(row)? {
            break;
        }
    }
    Ok(filling.found.into_iter().map(|(loaded, _)| loaded).collect())
}

pub(super) fn claim_sql() -> String {
    format!(
        "SELECT {} FROM delivery AS d CROSS JOIN body AS b ON b.id = d.body_id WHERE d.connection_id = ?1 \
         AND (d.attempts > 0) = ?2 AND d.due_at <= ?3 AND d.by_due = 1 AND d.position IS NOT NULL AND d.status = 'PENDING' \
         ORDER BY d.due_at, d.id LIMIT ?4",
        with_body()
    )
}

pub(super) fn claim(
    work: &Work,
    lease: &QueueLease,
    now: Timestamp,
    limit: WindowLimit,
) -> Result<Vec<Loaded>, StoreError> {
    queues::held(work, lease)?;
    let mut filling = Filling::new(limit);
    let sql = claim_sql();
    'window: for tried_before in [false, true] {
        if filling.room() == 0 {
            break;
        }
        let mut statement = work.prepare(&sql)?;
        let mut rows = statement.query(rusqlite::params![
            key(lease.queue_id.as_u128()),
            tried_before,
            now.as_millis(),
            filling.room()
        ])?;
        while let Some(row) = rows.next()? {
            if !filling.add(row)? {
                break 'window;
            }
        }
    }
    let numbers: Vec<i64> = filling.found.iter().map(|(_, no)| *no).collect();
    mark_begun(work, lease, now, &numbers)?;
    Ok(filling
        .found
        .into_iter()
        .map(|(mut loaded, _)| {
            loaded.delivery.progress = loaded.delivery.progress.begun(now);
            loaded.delivery.version += 1;
            loaded
        })
        .collect())
}

/// The same change as `Progress::begun`, written for all at once.
fn mark_begun(work: &Work, lease: &QueueLease, now: Timestamp, numbers: &[i64]) -> Result<(), StoreError> {
    in_chunks(numbers, |chunk| {
        let mut statement = work.prepare(&format!(
            "UPDATE delivery SET status = 'PROCESSING', attempts = attempts + 1, round_attempts = round_attempts + 1, \
             last_attempt_at = ?, claim_token = ?, version = version + 1 WHERE no IN {}",
            places(1, chunk.len())
        ))?;
        let mut binder = Binder { statement: &mut statement, next: 1 };
        binder.push(now.as_millis())?;
        binder.push(lease.token.0)?;
        for no in chunk {
            binder.push(*no)?;
        }
        statement.raw_execute()?;
        Ok(())
    })
}

pub(super) const NEXT_DUE_SQL: &str = "SELECT due_at FROM delivery WHERE connection_id = ?1 AND (attempts > 0) = ?2 \
     AND by_due = 1 AND position IS NOT NULL AND status = 'PENDING' ORDER BY due_at LIMIT 1";

pub(super) fn next_due(connection: &Connection, lease: &QueueLease) -> Result<Option<Timestamp>, StoreError> {
    check_lease(connection, lease)?;
    let mut earliest = None;
    for tried_before in [false, true] {
        let due = read_one(connection, NEXT_DUE_SQL, &[&key(lease.queue_id.as_u128()), &tried_before], |row| {
            Ok(Timestamp::from_millis(row.get(0)?))
        })?;
        earliest = [earliest, due].into_iter().flatten().min();
    }
    Ok(earliest)
}

pub(super) fn claimed_by_former_owner(
    connection: &Connection,
    lease: &QueueLease,
    rows_max: u32,
) -> Result<Vec<Delivery>, StoreError> {
    check_lease(connection, lease)?;
    let sql = format!(
        "SELECT {} FROM delivery WHERE connection_id = ?1 AND status = 'PROCESSING' AND coalesce(claim_token, 0) < ?2 \
         ORDER BY position LIMIT ?3",
        hot_columns()
    );
    read_all(connection, &sql, &[&key(lease.queue_id.as_u128()), &lease.token.0, &rows_max], read_delivery)
}
