//! Single things and counts, for pages and for the engine. It must not change anything.

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{BodyId, ConnectionId, DeliveryId, ProjectId, QueueId, WorkerId};
use rusqlite::{Connection, Row};

use super::listing::{BAD_CURSOR, cut, rows_of};
use super::rows::{Columns, from_json, hot_columns, key, log_columns, read_all, read_delivery, read_one, unsigned};
use super::topics::{MESSAGE, TOPIC, read_message, read_topic};
use crate::{Counts, DeadLetterFilter, Page, PageRequest, Project, QueueSummary, StoreError, Topic, TopicMessage};

pub(super) fn read_project(row: &Row<'_>) -> Result<Project, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = ProjectId::from_u128(at.id()?);
    let (name, settings) = (at.take()?, from_json(at.text()?, "a project's settings")?);
    Ok(Project { id, name, settings, created_at: Timestamp::from_millis(at.take()?) })
}

pub(super) fn project(connection: &Connection, name_or_id: &str) -> Result<Option<Project>, StoreError> {
    let id = name_or_id.parse::<ProjectId>().ok().map(|id| key(id.as_u128()));
    read_one(
        connection,
        "SELECT id, name, settings, created_at FROM project WHERE name = ?1 OR id = ?2",
        &[&name_or_id, &id],
        read_project,
    )
}

pub(super) fn projects(connection: &Connection) -> Result<Vec<Project>, StoreError> {
    read_all(connection, "SELECT id, name, settings, created_at FROM project ORDER BY name", &[], read_project)
}

/// A delivery as a hot row or, failing that, as a log row.
pub(super) fn delivery(connection: &Connection, id: DeliveryId) -> Result<Option<Delivery>, StoreError> {
    for (table, columns) in [("delivery", hot_columns()), ("delivery_log", log_columns())] {
        let sql = format!("SELECT {columns} FROM {table} WHERE id = ?1");
        if let Some(found) = read_one(connection, &sql, &[&key(id.as_u128())], read_delivery)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

pub(super) fn body(connection: &Connection, id: BodyId) -> Result<Option<Bytes>, StoreError> {
    read_one(connection, "SELECT bytes FROM body WHERE id = ?1", &[&key(id.as_u128())], |row| {
        Ok(Bytes::from(row.get::<_, Vec<u8>>(0)?))
    })
}

pub(super) const SUMMARY_SQL: &str = "SELECT id, waiting, waiting_bytes, dead, (SELECT created_at FROM delivery \
     WHERE connection_id = queue.id AND position IS NOT NULL ORDER BY created_at LIMIT 1), owner FROM queue";

fn read_summary(row: &Row<'_>) -> Result<QueueSummary, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(QueueSummary {
        queue_id: QueueId::from_u128(at.id()?),
        waiting: unsigned(at.take()?)?,
        waiting_bytes: unsigned(at.take()?)?,
        dead: unsigned(at.take()?)?,
        oldest_waiting_since: at.time()?,
        owner: at.optional_id()?.map(WorkerId::from_u128),
    })
}

pub(super) fn queue_summary(connection: &Connection, id: QueueId) -> Result<QueueSummary, StoreError> {
    let sql = format!("{SUMMARY_SQL} WHERE id = ?1 AND deleted = 0");
    read_one(connection, &sql, &[&key(id.as_u128())], read_summary)?.ok_or(StoreError::NotFound { what: "queue" })
}

pub(super) fn queue_summaries(connection: &Connection, id: ProjectId) -> Result<Vec<QueueSummary>, StoreError> {
    let sql = format!("{SUMMARY_SQL} WHERE project_id = ?1 AND deleted = 0 ORDER BY id");
    read_all(connection, &sql, &[&key(id.as_u128())], read_summary)
}

/// By counting the rows, so that it can be held against the kept counters.
pub(super) fn counts(connection: &Connection, id: Option<ConnectionId>) -> Result<Counts, StoreError> {
    let id = id.map(|id| key(id.as_u128()));
    // `IS NOT NULL` in disguise: all of them, with the same parameter.
    let meant = if id.is_some() { "= ?1" } else { "IS NOT ?1" };
    let sql = format!("SELECT coalesce(sum(accepted), 0), coalesce(sum(pruned), 0) FROM queue WHERE id {meant}");
    let (accepted, pruned) =
        read_one(connection, &sql, &[&id], |row| Ok((unsigned(row.get(0)?)?, unsigned(row.get(1)?)?)))?
            .unwrap_or_default();
    let mut counts = Counts { accepted, pruned, ..Counts::default() };
    let scope = format!("connection_id {meant}");
    let parts = [
        ("delivery", format!("{scope} AND position IS NOT NULL")),
        ("delivery", format!("{scope} AND status = 'DLQ'")),
        ("delivery_log", scope),
    ];
    for (table, part) in parts {
        let sql = format!("SELECT status, count(*) FROM {table} WHERE {part} GROUP BY status");
        let found = read_all(connection, &sql, &[&id], |row| {
            let mut at = Columns { row, next: 0 };
            Ok((at.word(Status::parse)?, unsigned(at.take()?)?))
        })?;
        for (status, count) in found {
            *count_of(&mut counts, status) += count;
        }
    }
    Ok(counts)
}

fn count_of(counts: &mut Counts, status: Status) -> &mut u64 {
    match status {
        Status::Pending => &mut counts.pending,
        Status::Processing => &mut counts.processing,
        Status::Success => &mut counts.success,
        Status::Failed => &mut counts.failed,
        Status::Dlq => &mut counts.dlq,
        Status::Discarded => &mut counts.discarded,
        Status::Forwarded => &mut counts.forwarded,
        Status::Expired => &mut counts.expired,
    }
}

/// What the filter leaves out is skipped within the index, without a look at the rows.
pub(super) fn dead_letter_sql(columns: &str, filter: DeadLetterFilter) -> String {
    let expired = if filter.leave_out_aged { " AND failure IS NOT 'expired' AND failure IS NOT 'too_old'" } else { "" };
    format!(
        "SELECT {columns} FROM delivery WHERE connection_id = ?1 AND status = 'DLQ' AND dead_at <= ?2 \
         AND (dead_at, id) > (?3, ?4) AND dlq_retries < ?5{expired} ORDER BY dead_at, id LIMIT ?6"
    )
}

pub(super) fn dead_letters(
    connection: &Connection,
    queue_id: QueueId,
    arrived_by: Timestamp,
    filter: DeadLetterFilter,
    after: Option<(Timestamp, DeliveryId)>,
    rows_max: u32,
) -> Result<Vec<Delivery>, StoreError> {
    require_queue(connection, queue_id)?;
    let (time, id) = after.map_or((i64::MIN, [0; 16]), |(time, id)| (time.as_millis(), key(id.as_u128())));
    let below = filter.dlq_retries_below.map_or(i64::MAX, i64::from);
    let sql = dead_letter_sql(&hot_columns(), filter);
    let queue_key = key(queue_id.as_u128());
    read_all(connection, &sql, &[&queue_key, &arrived_by.as_millis(), &time, &id, &below, &rows_max], read_delivery)
}

pub(super) fn oldest_dead_letter(
    connection: &Connection,
    queue_id: QueueId,
    filter: DeadLetterFilter,
) -> Result<Option<Timestamp>, StoreError> {
    require_queue(connection, queue_id)?;
    let below = filter.dlq_retries_below.map_or(i64::MAX, i64::from);
    let sql = dead_letter_sql("dead_at", filter);
    let queue_key = key(queue_id.as_u128());
    read_one(connection, &sql, &[&queue_key, &i64::MAX, &i64::MIN, &[0_u8; 16], &below, &1], |row| {
        Ok(Timestamp::from_millis(row.get(0)?))
    })
}

fn require_queue(connection: &Connection, id: QueueId) -> Result<(), StoreError> {
    read_one(connection, "SELECT 1 FROM queue WHERE id = ?1 AND deleted = 0", &[&key(id.as_u128())], |_| Ok(()))?
        .ok_or(StoreError::NotFound { what: "queue" })
}

pub(super) fn topics(
    connection: &Connection,
    project_id: ProjectId,
    page: &PageRequest,
) -> Result<Page<Topic>, StoreError> {
    let rows = rows_of(page);
    let behind = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("n.").ok_or(BAD_CURSOR)?,
        None => "",
    };
    let sql = format!("SELECT {TOPIC} FROM topic WHERE project_id = ?1 AND name > ?2 ORDER BY name LIMIT ?3");
    let room = i64::try_from(rows + 1).unwrap_or(i64::MAX);
    let found = read_all(connection, &sql, &[&key(project_id.as_u128()), &behind, &room], read_topic)?;
    Ok(cut(found, rows, |topic| format!("n.{}", topic.name)))
}

/// From the newest to the oldest.
pub(super) fn topic_messages(
    connection: &Connection,
    topic: &Topic,
    page: &PageRequest,
) -> Result<Page<TopicMessage>, StoreError> {
    let rows = rows_of(page);
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("s.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
        None => i64::MAX,
    };
    let sql = format!(
        "SELECT {MESSAGE} FROM topic_message AS m CROSS JOIN body AS b ON b.id = m.body_id \
         WHERE m.topic_id = ?1 AND m.sequence < ?2 ORDER BY m.sequence DESC LIMIT ?3"
    );
    let room = i64::try_from(rows + 1).unwrap_or(i64::MAX);
    let found = read_all(connection, &sql, &[&key(topic.id.as_u128()), &before, &room], read_message)?;
    Ok(cut(found, rows, |message| format!("s.{}", message.sequence)))
}
