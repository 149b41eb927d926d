//! What may go, goes in bounded steps. Never what waits, nor a dead letter, nor what a subscription is still owed (D41).
//!
//! Several servers may prune at once: what another one has in hand is left to it. Of the log whole days go (`partitions`): here what their
//! rows refer to is given back. What is in no day's partition goes row by row.

use std::collections::BTreeMap;

use postrider_core::Timestamp;
use postrider_core::id::QueueId;

use super::columns::Param;
use super::failures::Outcome;
use super::key::Key;
use super::partitions::{self, DAY};
use super::queues::Left;
use super::rows::Cells;
use super::work::Work;
use super::{bodies, queues};
use crate::{Pruned, StoreError};

pub(super) async fn prune(work: &Work, log_before: Timestamp, now: Timestamp, rows_max: u32) -> Outcome<Pruned> {
    let mut pruned = Pruned::default();
    let mut bodies_used = Vec::new();
    give_back(work, rows_max, &mut pruned, &mut bodies_used).await?;
    if pruned.deliveries == 0 {
        // Whoever keeps less than a day does not wait for it to end.
        let keeps_days = now.as_millis() - log_before.as_millis() >= DAY;
        let tables: &[&str] = if keeps_days { &NO_DAYS } else { &["delivery_log"] };
        prune_log(work, tables, log_before, rows_max, &mut pruned, &mut bodies_used).await?;
    }
    prune_topics(work, now, rows_max, &mut pruned, &mut bodies_used).await?;
    pruned.bodies = bodies::drop_uses(work, bodies_used).await?;
    let rows_max = i64::from(rows_max);
    let keys = "DELETE FROM idempotency WHERE key_hash IN \
         (SELECT key_hash FROM idempotency WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    pruned.idempotency_keys = work.execute(keys, &[&now.as_millis(), &rows_max]).await?;
    let answers = "DELETE FROM keyed_answer WHERE key_hash IN \
         (SELECT key_hash FROM keyed_answer WHERE ends_at <= $1 ORDER BY ends_at LIMIT $2 FOR UPDATE SKIP LOCKED)";
    pruned.idempotency_keys += work.execute(answers, &[&now.as_millis(), &rows_max]).await?;
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

/// Of a day that has left the log: the attempts and bodies of its next rows, and their counts. When there are none, its table is dropped.
async fn give_back(work: &Work, rows_max: u32, pruned: &mut Pruned, bodies_used: &mut Vec<Key>) -> Outcome<()> {
    let leaving = "SELECT name, up_to FROM log_leaving ORDER BY name LIMIT 1 FOR UPDATE SKIP LOCKED";
    let read = |row: &tokio_postgres::Row| {
        let mut at = Cells::of(row);
        Ok((at.take::<String>()?, at.take::<Key>()?))
    };
    let Some((name, up_to)) = work.first(leaving, &[], read).await? else { return Ok(()) };
    if !partitions::is_day(&name) {
        return Err(StoreError::Corrupt(format!("`{name}` is no day of the log")).into());
    }
    let sql =
        format!("SELECT id, connection_id, body_id, original_body_id FROM {name} WHERE id > $1 ORDER BY id LIMIT $2");
    let ended = ended(work, &sql, &[&up_to, &i64::from(rows_max)], pruned, bodies_used).await?;
    match ended.last() {
        Some(last) => work.execute("UPDATE log_leaving SET up_to = $2 WHERE name = $1", &[&name, last]).await?,
        None => {
            work.execute(&format!("DROP TABLE {name}"), &[]).await?;
            work.execute("DELETE FROM log_leaving WHERE name = $1", &[&name]).await?
        }
    };
    Ok(())
}

/// What is in no day's partition.
const NO_DAYS: [&str; 2] = ["delivery_log_before", "delivery_log_rest"];

pub(super) fn old_log_sql(table: &str) -> String {
    format!(
        "SELECT id, connection_id, body_id, original_body_id FROM {table} WHERE ended_at < $1 \
         ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED"
    )
}

async fn prune_log(
    work: &Work,
    tables: &[&str],
    log_before: Timestamp,
    rows_max: u32,
    pruned: &mut Pruned,
    bodies_used: &mut Vec<Key>,
) -> Outcome<()> {
    for table in tables {
        let params: [Param<'_>; 2] = [&log_before.as_millis(), &i64::from(rows_max)];
        let ended = ended(work, &old_log_sql(table), &params, pruned, bodies_used).await?;
        if !ended.is_empty() {
            work.execute(&format!("DELETE FROM {table} WHERE id = ANY($1)"), &[&ended]).await?;
            return Ok(());
        }
    }
    Ok(())
}

/// What the rows of this statement refer to goes or is counted, but for the rows themselves.
async fn ended(
    work: &Work,
    sql: &str,
    params: &[Param<'_>],
    pruned: &mut Pruned,
    bodies_used: &mut Vec<Key>,
) -> Outcome<Vec<Key>> {
    let mut left: BTreeMap<QueueId, Left> = BTreeMap::new();
    let ended: Vec<Key> = work
        .all(sql, params, |row| {
            let mut at = Cells::of(row);
            let id: Key = at.take()?;
            left.entry(QueueId::from_u128(at.id()?)).or_default().pruned += 1;
            bodies_used.push(at.take()?);
            bodies_used.extend(at.take::<Option<Key>>()?);
            Ok(id)
        })
        .await?;
    if !ended.is_empty() {
        pruned.attempts += work.execute("DELETE FROM attempt WHERE delivery_id = ANY($1)", &[&ended]).await?;
        queues::count_left(work, &left).await?;
        pruned.deliveries += ended.len() as u64;
    }
    Ok(ended)
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
