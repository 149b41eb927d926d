//! Single things and counts, for pages and for the engine. It must not change anything.

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::attempt::Attempt;
use postrider_core::connection::Connection;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{BodyId, ConnectionId, DeliveryId, ProjectId, QueueId, TopicId, WorkerId};
use postrider_core::topic::TopicName;
use tokio_postgres::Row;

use super::columns::Param;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::listing::{BAD_CURSOR, cut, room_of, rows_of};
use super::partitions;
use super::rows::{
    ATTEMPT, CONNECTION, Cells, from_json, hot_columns, log_columns, read_attempt, read_connection, read_delivery,
    unsigned,
};
use super::topics::{MESSAGE, SUBSCRIPTION, TOPIC, read_message, read_subscription, read_topic};
use super::work::Work;
use crate::{
    Counts, DeadLetterFilter, Page, PageRequest, Project, PullSubscription, QueueSummary, StoreError, Topic,
    TopicMessage,
};

pub(super) fn read_project(row: &Row) -> Result<Project, StoreError> {
    let mut at = Cells::of(row);
    let id = ProjectId::from_u128(at.id()?);
    let (name, settings) = (at.take()?, from_json(at.text()?, "a project's settings")?);
    Ok(Project { id, name, settings, created_at: at.time()? })
}

pub(super) async fn project(work: &Work, name_or_id: &str) -> Outcome<Option<Project>> {
    let id = name_or_id.parse::<ProjectId>().ok().map(|id| id.key());
    let sql = "SELECT id, name, settings, created_at FROM project WHERE name = $1 OR id = $2";
    work.first(sql, &[&name_or_id, &id], read_project).await
}

pub(super) async fn projects(work: &Work) -> Outcome<Vec<Project>> {
    work.all("SELECT id, name, settings, created_at FROM project ORDER BY name", &[], read_project).await
}

/// A delivery as a hot row or, failing that, as a log row; in one statement, since it may be on its way from one to the other.
pub(super) fn delivery_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE id = $1 UNION ALL SELECT {} FROM delivery_log WHERE id = $1 LIMIT 1",
        hot_columns(),
        log_columns()
    )
}

pub(super) async fn delivery(work: &Work, id: DeliveryId) -> Outcome<Option<Delivery>> {
    work.first(&delivery_sql(), &[&id.key()], read_delivery).await
}

pub(super) async fn body(work: &Work, id: BodyId) -> Outcome<Option<Bytes>> {
    work.first("SELECT bytes FROM body WHERE id = $1", &[&id.key()], |row| Cells::of(row).body()).await
}

pub(super) const SUMMARY_SQL: &str = "SELECT queue.id, greatest(e.entered - x.left_count, 0), \
     greatest(e.entered_bytes - x.left_bytes, 0), x.dead, (SELECT created_at FROM delivery \
     WHERE connection_id = queue.id AND position IS NOT NULL ORDER BY created_at LIMIT 1), queue.owner \
     FROM queue JOIN queue_entry AS e ON e.id = queue.id JOIN queue_exit AS x ON x.id = queue.id";

fn read_summary(row: &Row) -> Result<QueueSummary, StoreError> {
    let mut at = Cells::of(row);
    Ok(QueueSummary {
        queue_id: QueueId::from_u128(at.id()?),
        waiting: at.count()?,
        waiting_bytes: at.count()?,
        dead: at.count()?,
        oldest_waiting_since: at.optional_time()?,
        owner: at.optional_id()?.map(WorkerId::from_u128),
    })
}

pub(super) async fn queue_summary(work: &Work, id: QueueId) -> Outcome<QueueSummary> {
    let sql = format!("{SUMMARY_SQL} WHERE queue.id = $1 AND NOT queue.deleted");
    let found = work.first(&sql, &[&id.key()], read_summary).await?;
    Ok(found.ok_or(StoreError::NotFound { what: "queue" })?)
}

pub(super) async fn queue_summaries(work: &Work, id: ProjectId) -> Outcome<Vec<QueueSummary>> {
    let sql = format!("{SUMMARY_SQL} WHERE queue.project_id = $1 AND NOT queue.deleted ORDER BY queue.id");
    work.all(&sql, &[&id.key()], read_summary).await
}

/// By counting the rows, so that it can be held against the kept counters. On one snapshot.
pub(super) async fn counts(work: &Work, id: Option<ConnectionId>) -> Outcome<Counts> {
    let id = id.map(|id| id.key());
    // All of them, with the same parameter.
    let (meant, of_queue) = match id {
        Some(_) => ("connection_id = $1", "e.id = $1"),
        None => ("$1::uuid IS NULL", "$1::uuid IS NULL"),
    };
    let sql = format!(
        "SELECT coalesce(sum(e.accepted), 0)::bigint, coalesce(sum(x.pruned), 0)::bigint \
         FROM queue_entry AS e JOIN queue_exit AS x ON x.id = e.id WHERE {of_queue}"
    );
    let sums = work
        .first(&sql, &[&id], |row| {
            let mut at = Cells::of(row);
            Ok((at.count()?, at.count()?))
        })
        .await;
    let (accepted, pruned) = sums?.unwrap_or_default();
    let mut counts = Counts { accepted, pruned, ..Counts::default() };
    // A day that leaves the log is counted until it is counted as pruned.
    let leaving = work.all("SELECT name, up_to FROM log_leaving", &[], |row| {
        let mut at = Cells::of(row);
        Ok((at.take::<String>()?, at.take::<Key>()?))
    });
    let leaving = leaving.await?.into_iter().filter(|(name, _)| partitions::is_day(name));
    let leaving = leaving.map(|(name, up_to)| format!("{name} WHERE id > '{:032x}'::uuid AND", up_to.number()));
    for source in ["delivery WHERE", "delivery_log WHERE"].map(str::to_owned).into_iter().chain(leaving) {
        let sql = format!("SELECT status, count(*) FROM {source} {meant} GROUP BY status");
        let found = work
            .all(&sql, &[&id], |row| {
                let mut at = Cells::of(row);
                Ok((at.word(Status::parse)?, unsigned(at.take()?)?))
            })
            .await;
        for (status, count) in found? {
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
    let aged = if filter.leave_out_aged { " AND coalesce(failure, '') NOT IN ('expired', 'too_old')" } else { "" };
    format!(
        "SELECT {columns} FROM delivery WHERE connection_id = $1 AND status = 'DLQ' AND dead_at <= $2 \
         AND (dead_at, id) > ($3, $4) AND dlq_retries < $5{aged} ORDER BY dead_at, id LIMIT $6"
    )
}

pub(super) async fn dead_letters(
    work: &Work,
    queue_id: QueueId,
    arrived_by: Timestamp,
    filter: DeadLetterFilter,
    after: Option<(Timestamp, DeliveryId)>,
    rows_max: u32,
) -> Outcome<Vec<Delivery>> {
    require_queue(work, queue_id).await?;
    let (time, id) = after.map_or((i64::MIN, Key::ZERO), |(time, id)| (time.as_millis(), id.key()));
    let below = filter.dlq_retries_below.map_or(i64::MAX, i64::from);
    let sql = dead_letter_sql(&hot_columns(), filter);
    let params: [Param<'_>; 6] = [&queue_id.key(), &arrived_by.as_millis(), &time, &id, &below, &i64::from(rows_max)];
    work.all(&sql, &params, read_delivery).await
}

pub(super) async fn oldest_dead_letter(
    work: &Work,
    queue_id: QueueId,
    filter: DeadLetterFilter,
) -> Outcome<Option<Timestamp>> {
    require_queue(work, queue_id).await?;
    let below = filter.dlq_retries_below.map_or(i64::MAX, i64::from);
    let sql = dead_letter_sql("dead_at", filter);
    let params: [Param<'_>; 6] = [&queue_id.key(), &i64::MAX, &i64::MIN, &Key::ZERO, &below, &1_i64];
    work.first(&sql, &params, |row| Cells::of(row).time()).await
}

async fn require_queue(work: &Work, id: QueueId) -> Outcome<()> {
    let sql = "SELECT 1 FROM queue WHERE id = $1 AND NOT deleted";
    if work.exists(sql, &[&id.key()]).await? { Ok(()) } else { Err(StoreError::NotFound { what: "queue" }.into()) }
}

pub(super) async fn topics(work: &Work, project_id: ProjectId, page: &PageRequest) -> Outcome<Page<Topic>> {
    let behind = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("n.").ok_or(BAD_CURSOR)?,
        None => "",
    };
    let sql = format!("SELECT {TOPIC} FROM topic WHERE project_id = $1 AND name > $2 ORDER BY name LIMIT $3");
    let found = work.all(&sql, &[&project_id.key(), &behind, &room_of(page)], read_topic).await?;
    Ok(cut(found, rows_of(page), |topic| format!("n.{}", topic.name)))
}

/// From the newest to the oldest.
pub(super) async fn topic_messages(work: &Work, topic: &Topic, page: &PageRequest) -> Outcome<Page<TopicMessage>> {
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("s.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
        None => i64::MAX,
    };
    let sql = format!(
        "SELECT {MESSAGE} FROM topic_message AS m JOIN body AS b ON b.id = m.body_id \
         WHERE m.topic_id = $1 AND m.sequence < $2 ORDER BY m.sequence DESC LIMIT $3"
    );
    let found = work.all(&sql, &[&topic.id.key(), &before, &room_of(page)], read_message).await?;
    Ok(cut(found, rows_of(page), |message| format!("s.{}", message.sequence)))
}

pub(super) async fn topic(work: &Work, project_id: ProjectId, name: &TopicName) -> Outcome<Option<Topic>> {
    let sql = format!("SELECT {TOPIC} FROM topic WHERE project_id = $1 AND name = $2");
    work.first(&sql, &[&project_id.key(), &name.as_str()], read_topic).await
}

pub(super) async fn subscription(work: &Work, topic: TopicId, name: &str) -> Outcome<Option<PullSubscription>> {
    let sql = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE topic_id = $1 AND name = $2");
    work.first(&sql, &[&topic.key(), &name], read_subscription).await
}

pub(super) async fn subscriptions(work: &Work, topic: TopicId) -> Outcome<Vec<PullSubscription>> {
    let sql = format!("SELECT {SUBSCRIPTION} FROM subscription WHERE topic_id = $1 ORDER BY name");
    work.all(&sql, &[&topic.key()], read_subscription).await
}

pub(super) async fn connection(work: &Work, id: ConnectionId) -> Outcome<Option<Connection>> {
    let sql = format!("SELECT {CONNECTION} FROM connection WHERE id = $1");
    work.first(&sql, &[&id.key()], read_connection).await
}

pub(super) async fn all_connections(work: &Work) -> Outcome<Vec<Connection>> {
    work.all(&format!("SELECT {CONNECTION} FROM connection ORDER BY id"), &[], read_connection).await
}

pub(super) async fn attempts(work: &Work, id: DeliveryId) -> Outcome<Vec<Attempt>> {
    let sql = format!("SELECT {ATTEMPT} FROM attempt WHERE delivery_id = $1 ORDER BY number");
    work.all(&sql, &[&id.key()], read_attempt).await
}

pub(super) async fn value(work: &Work, name: &str) -> Outcome<Option<String>> {
    work.first("SELECT value FROM value WHERE name = $1", &[&name], |row| Cells::of(row).take()).await
}

/// A copy that only reads answers too, and is no place for us.
pub(super) async fn check(work: &Work) -> Outcome<()> {
    let reads_only = work.first("SELECT pg_is_in_recovery()", &[], |row| Cells::of(row).take::<bool>()).await?;
    if reads_only == Some(true) {
        return Err(StoreError::Unavailable("the database is a copy that only reads".to_owned()).into());
    }
    Ok(())
}
