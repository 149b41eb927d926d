//! What may go, goes in bounded steps. Never what waits, nor a dead letter, nor what a subscription is still owed (D41).

use postrider_core::Timestamp;
use postrider_core::id::QueueId;

use super::work::{Work, change_rows};
use super::{bodies, queues};
use crate::{Pruned, StoreError};

pub(super) fn prune(work: &Work, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Result<Pruned, StoreError> {
    let mut pruned = Pruned::default();
    let mut bodies_used = Vec::new();
    prune_log(work, log_before, rows_max, &mut pruned, &mut bodies_used)?;
    prune_topics(work, now, rows_max, &mut pruned, &mut bodies_used)?;
    pruned.bodies = bodies::drop_uses(work, &bodies_used)?;
    pruned.idempotency_keys = work.execute(
        "DELETE FROM idempotency WHERE key_hash IN (SELECT key_hash FROM idempotency WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2)",
        &[&now.as_millis(), &rows_max],
    )? as u64;
    pruned.idempotency_keys += work.execute(
        "DELETE FROM keyed_answer WHERE key_hash IN (SELECT key_hash FROM keyed_answer WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2)",
        &[&now.as_millis(), &rows_max],
    )? as u64;
    work.execute(
        "DELETE FROM reply WHERE delivery_id IN (SELECT delivery_id FROM reply WHERE ends_at <= ?1 ORDER BY ends_at LIMIT ?2)",
        &[&now.as_millis(), &rows_max],
    )?;
    // Answers that nobody came for, and commands to owners that never were; a job's go with their job.
    work.execute(
        "DELETE FROM command WHERE id IN (SELECT id FROM command WHERE issued_at < ?1 AND job_id IS NULL ORDER BY issued_at LIMIT ?2)",
        &[&log_before.as_millis(), &rows_max],
    )?;
    work.execute("DELETE FROM command_audit WHERE command_id NOT IN (SELECT id FROM command)", &[])?;
    Ok(pruned)
}

struct Ended {
    no: i64,
    id: [u8; 16],
    queue_id: QueueId,
}

fn prune_log(
    work: &Work,
    log_before: Timestamp,
    rows_max: u32,
    pruned: &mut Pruned,
    bodies_used: &mut Vec<[u8; 16]>,
) -> Result<(), StoreError> {
    let ended = work.all(
        "SELECT no, id, connection_id, body_id, original_body_id FROM delivery_log WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2",
        &[&log_before.as_millis(), &rows_max],
        |row| {
            bodies_used.push(row.get(3)?);
            bodies_used.extend(row.get::<_, Option<[u8; 16]>>(4)?);
            let queue_id = QueueId::from_u128(super::rows::id_of(row.get(2)?));
            Ok(Ended { no: row.get(0)?, id: row.get(1)?, queue_id })
        },
    )?;
    let ids: Vec<[u8; 16]> = ended.iter().map(|one| one.id).collect();
    let numbers: Vec<i64> = ended.iter().map(|one| one.no).collect();
    let before = work.connection.total_changes();
    change_rows(work, "DELETE FROM attempt WHERE delivery_id IN ", &ids)?;
    pruned.attempts = work.connection.total_changes() - before;
    change_rows(work, "DELETE FROM delivery_log WHERE no IN ", &numbers)?;
    for one in &ended {
        queues::find(work, one.queue_id)?;
        queues::change(work, one.queue_id, |queue| queue.pruned += 1);
    }
    pruned.deliveries = ended.len() as u64;
    Ok(())
}

fn prune_topics(
    work: &Work,
    now: Timestamp,
    rows_max: u32,
    pruned: &mut Pruned,
    bodies_used: &mut Vec<[u8; 16]>,
) -> Result<(), StoreError> {
    let topics: Vec<([u8; 16], i64)> =
        work.all("SELECT id, retention_ms FROM topic", &[], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut room = rows_max;
    for (topic, retention_ms) in topics {
        if room == 0 {
            break;
        }
        let old = work.all(
            "SELECT sequence, body_id FROM topic_message WHERE topic_id = ?1 AND owing = 0 AND published_at <= ?2 \
             ORDER BY published_at LIMIT ?3",
            &[&topic, &now.as_millis().saturating_sub(retention_ms), &room],
            |row| {
                bodies_used.push(row.get(1)?);
                Ok(row.get::<_, i64>(0)?)
            },
        )?;
        change_rows(work, "DELETE FROM topic_message WHERE sequence IN ", &old)?;
        room = room.saturating_sub(u32::try_from(old.len()).unwrap_or(u32::MAX));
        pruned.topic_messages += old.len() as u64;
    }
    Ok(())
}
