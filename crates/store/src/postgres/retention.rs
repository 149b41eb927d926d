//! What may go, goes in bounded steps. Never what waits, nor a dead letter, nor what a subscription is still owed (D41).
//!
//! Several servers may prune at once: what another one has in hand is left to it.

use std::collections::BTreeMap;

use postrider_core::Timestamp;
use postrider_core::id::QueueId;

use super::columns::Param;
use super::failures::Outcome;
use super::key::Key;
use super::queues::Left;
use super::rows::Cells;
use super::work::Work;
use super::{bodies, queues};
use crate::Pruned;

pub(super) async fn prune(work: &Work, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Outcome<Pruned> {
    let mut pruned = Pruned::default();
    let mut bodies_used = Vec::new();
    prune_log(work, log_before, rows_max, &mut pruned, &mut bodies_used).await?;
    prune_topics(work, now, rows_max, &mut pruned, &mut bodies_used).await?;
    pruned.bodies = bodies::drop_uses(work, bodies_used).await?;
    let rows_max = i64::from(rows_max);
    let keys = "DELETE FROM idempotency WHERE key_hash IN \
         (SELECT key_hash FROM idempotency WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    pruned.idempotency_keys = work.execute(keys, &[&now.as_millis(), &rows_max]).await?;
    let answers = "DELETE FROM keyed_answer WHERE key_hash IN \
         (SELECT key_hash FROM keyed_answer WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    pruned.idempotency_keys += work.execute(answers, &[&now.as_millis(), &rows_max]).await?;
    let replies = "DELETE FROM reply WHERE delivery_id IN \
         (SELECT delivery_id FROM reply WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    work.execute(replies, &[&now.as_millis(), &rows_max]).await?;
    // Answers that nobody came for, and commands to owners that never were; a job's go with their job.
    let commands = "DELETE FROM command WHERE id IN \
         (SELECT id FROM command WHERE issued_at < $1 AND job_id IS NULL ORDER BY issued_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    work.execute(commands, &[&log_before.as_millis(), &rows_max]).await?;
    let entries = "DELETE FROM command_audit WHERE NOT EXISTS (SELECT 1 FROM command WHERE command.id = command_audit.command_id)";
    work.execute(entries, &[]).await?;
    // Lanes of processes that were killed. One that is only idle makes itself a new row.
    work.execute("DELETE FROM lane WHERE seen_at < now() - interval '30 days'", &[]).await?;
    Ok(pruned)
}

pub(super) const OLD_LOG_SQL: &str = "SELECT id, connection_id, body_id, original_body_id FROM delivery_log WHERE ended_at < $1 \
     ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED";

async fn prune_log(
    work: &Work,
    log_before: Timestamp,
    rows_max: u32,
    pruned: &mut Pruned,
    bodies_used: &mut Vec<Key>,
) -> Outcome<()> {
    let mut left: BTreeMap<QueueId, Left> = BTreeMap::new();
    let params: [Param<'_>; 2] = [&log_before.as_millis(), &i64::from(rows_max)];
    let ended = work
        .all(OLD_LOG_SQL, &params, |row| {
            let mut at = Cells::of(row);
            let id: Key = at.take()?;
            left.entry(QueueId::from_u128(at.id()?)).or_default().pruned += 1;
            bodies_used.push(at.take()?);
            bodies_used.extend(at.take::<Option<Key>>()?);
            Ok(id)
        })
        .await;
    let ended = ended?;
    if ended.is_empty() {
        return Ok(());
    }
    pruned.attempts = work.execute("DELETE FROM attempt WHERE delivery_id = ANY($1)", &[&ended]).await?;
    work.execute("DELETE FROM delivery_log WHERE id = ANY($1)", &[&ended]).await?;
    queues::count_left(work, &left).await?;
    pruned.deliveries = ended.len() as u64;
    Ok(())
}

async fn prune_topics(
    work: &Work,
    now: Timestamp,
    rows_max: u32,
    pruned: &mut Pruned,
    bodies_used: &mut Vec<Key>,
) -> Outcome<()> {
    let topics: Vec<(Key, i64)> = work
        .all("SELECT id, retention_ms FROM topic", &[], |row| {
            let mut at = Cells::of(row);
            Ok((at.take()?, at.take()?))
        })
        .await?;
    let mut room = i64::from(rows_max);
    for (topic, retention_ms) in topics {
        if room == 0 {
            break;
        }
        let sql = "DELETE FROM topic_message WHERE sequence IN \
             (SELECT sequence FROM topic_message WHERE topic_id = $1 AND owing = 0 AND published_at <= $2 \
             ORDER BY published_at LIMIT $3 FOR UPDATE SKIP LOCKED) RETURNING body_id";
        let params: [Param<'_>; 3] = [&topic, &now.as_millis().saturating_sub(retention_ms), &room];
        let old: Vec<Key> = work.changed(sql, &params, |row| Cells::of(row).take()).await?;
        room -= i64::try_from(old.len()).unwrap_or(i64::MAX);
        pruned.topic_messages += old.len() as u64;
        bodies_used.extend(old);
    }
    Ok(())
}
