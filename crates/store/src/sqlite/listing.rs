//! Pages of deliveries, every one along an index, however many rows there are. It must not change anything.
//!
//! A list from the newest to the oldest is merged from streams, one for each part of the tables that an index holds in that order: the
//! waiting and the dead of a queue, and each status of the log.

use postrider_core::connection::Connection as Outgoing;
use postrider_core::delivery::{Delivery, Status};
use postrider_core::id::{ProjectId, QueueId};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::rows::{CONNECTION, hot_columns, key, log_columns, read_all, read_connection, read_delivery, read_one};
use crate::{DeliveryFilter, PAGE_ROWS_MAX, Page, PageRequest, StoreError};

pub(super) const BAD_CURSOR: StoreError = StoreError::NotFound { what: "page" };

pub(super) fn rows_of(page: &PageRequest) -> usize {
    page.limit.clamp(1, PAGE_ROWS_MAX) as usize
}

/// Cuts a page from items of which one more than fits was read.
pub(super) fn cut<T>(mut items: Vec<T>, rows: usize, cursor: impl Fn(&T) -> String) -> Page<T> {
    let has_more = items.len() > rows;
    items.truncate(rows);
    let next_cursor = items.last().filter(|_| has_more).map(cursor);
    Page { items, next_cursor }
}

/// A place in a list from the newest to the oldest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place(i64, u128);

impl Place {
    const NEWEST: Place = Place(i64::MAX, u128::MAX);
    const OLDEST: Place = Place(i64::MIN, 0);

    fn of(delivery: &Delivery) -> Self {
        Place(delivery.created_at.as_millis(), delivery.id.as_u128())
    }

    fn write(self) -> String {
        format!("{}.{:032x}", self.0, self.1)
    }

    fn read(text: &str) -> Result<Self, StoreError> {
        let (time, id) = text.split_once('.').ok_or(BAD_CURSOR)?;
        let id = if id.len() == 32 {
            u128::from_str_radix(id, 16).map_err(|_| BAD_CURSOR)?
        } else {
            return Err(BAD_CURSOR);
        };
        Ok(Place(time.parse().map_err(|_| BAD_CURSOR)?, id))
    }
}

/// One part of a table that an index holds from the newest to the oldest.
pub(super) struct Stream {
    table: &'static str,
    /// The column of the scope and its value.
    scope: (&'static str, [u8; 16]),
    part: String,
}

impl Stream {
    pub fn sql(&self, filter: &DeliveryFilter) -> String {
        let columns = if self.table == "delivery" { hot_columns() } else { log_columns() };
        let mut sql = format!(
            "SELECT {columns} FROM {} WHERE {} = ?1 AND {} AND (created_at, id) < (?2, ?3) AND (created_at, id) > (?4, ?5)",
            self.table, self.scope.0, self.part
        );
        if let Some(failure) = filter.failure {
            sql.push_str(&format!(" AND failure = '{}'", failure.as_str()));
        }
        if filter.project_id.is_some() && self.scope.0 != "project_id" {
            sql.push_str(" AND project_id = ?7");
        }
        sql.push_str(" ORDER BY created_at DESC, id DESC LIMIT ?6");
        sql
    }
}

pub(super) fn deliveries(
    connection: &Connection,
    filter: &DeliveryFilter,
    page: &PageRequest,
) -> Result<Page<Delivery>, StoreError> {
    let rows = rows_of(page);
    let mut before = page.cursor.as_deref().map_or(Ok(Place::NEWEST), Place::read)?;
    if let Some(end) = filter.created_before {
        before = before.min(Place(end.as_millis(), 0));
    }
    let mut after =
        filter.created_from.map_or(Place::OLDEST, |from| Place(from.as_millis().saturating_sub(1), u128::MAX));
    let mut found: Vec<Delivery> = Vec::new();
    for stream in streams(connection, filter)? {
        found.extend(read_stream(connection, &stream, filter, (before, after), rows + 1)?);
        found.sort_by_key(|delivery| std::cmp::Reverse(Place::of(delivery)));
        found.truncate(rows + 1);
        // Nothing older than the last row of a full page is of interest any more.
        if found.len() > rows
            && let Some(last) = found.last()
        {
            after = after.max(Place::of(last));
        }
    }
    Ok(cut(found, rows, |delivery| Place::of(delivery).write()))
}

fn read_stream(
    connection: &Connection,
    stream: &Stream,
    filter: &DeliveryFilter,
    (before, after): (Place, Place),
    rows: usize,
) -> Result<Vec<Delivery>, StoreError> {
    let sql = stream.sql(filter);
    let mut values = vec![
        Value::Blob(stream.scope.1.to_vec()),
        Value::Integer(before.0),
        Value::Blob(key(before.1).to_vec()),
        Value::Integer(after.0),
        Value::Blob(key(after.1).to_vec()),
        Value::Integer(i64::try_from(rows).unwrap_or(i64::MAX)),
    ];
    if let Some(project_id) = filter.project_id.filter(|_| stream.scope.0 != "project_id") {
        values.push(Value::Blob(key(project_id.as_u128()).to_vec()));
    }
    let mut statement = connection.prepare_cached(&sql)?;
    let mut found = Vec::new();
    let mut read = statement.query(params_from_iter(values))?;
    while let Some(row) = read.next()? {
        found.push(read_delivery(row)?);
    }
    Ok(found)
}

/// The streams that together hold what the filter lets through.
pub(super) fn streams(connection: &Connection, filter: &DeliveryFilter) -> Result<Vec<Stream>, StoreError> {
    let wants = |status: Status| filter.statuses.is_empty() || filter.statuses.contains(&status);
    let (hot, log) = scopes(connection, filter)?;
    let mut streams = Vec::new();
    for queue in hot {
        let scope = ("connection_id", queue);
        let waiting = match (wants(Status::Pending), wants(Status::Processing)) {
            (true, true) => Some("position IS NOT NULL"),
            (true, false) => Some("position IS NOT NULL AND status = 'PENDING'"),
            (false, true) => Some("status = 'PROCESSING'"),
            (false, false) => None,
        };
        if let Some(part) = waiting {
            streams.push(Stream { table: "delivery", scope, part: part.to_owned() });
        }
        if wants(Status::Dlq) {
            streams.push(Stream { table: "delivery", scope, part: "status = 'DLQ'".to_owned() });
        }
    }
    for scope in log {
        for status in Status::ALL.into_iter().filter(|status| status.is_terminal() && wants(*status)) {
            streams.push(Stream { table: "delivery_log", scope, part: format!("status = '{}'", status.as_str()) });
        }
    }
    Ok(streams)
}

type Scopes = (Vec<[u8; 16]>, Vec<(&'static str, [u8; 16])>);

/// Queues with something in them, and the scopes of the log.
fn scopes(connection: &Connection, filter: &DeliveryFilter) -> Result<Scopes, StoreError> {
    let id = |row: &rusqlite::Row<'_>| Ok(row.get::<_, [u8; 16]>(0)?);
    if let Some(one) = filter.connection_id {
        let one = key(one.as_u128());
        return Ok((vec![one], vec![("connection_id", one)]));
    }
    if let Some(project) = filter.project_id {
        let project = key(project.as_u128());
        let busy = "SELECT id FROM queue WHERE project_id = ?1 AND (waiting > 0 OR dead > 0) ORDER BY id";
        return Ok((read_all(connection, busy, &[&project], id)?, vec![("project_id", project)]));
    }
    let busy = read_all(connection, "SELECT id FROM queue WHERE waiting > 0 OR dead > 0 ORDER BY id", &[], id)?;
    let projects = read_all(connection, "SELECT DISTINCT project_id FROM queue", &[], id)?;
    Ok((busy, projects.into_iter().map(|project| ("project_id", project)).collect()))
}

pub(super) fn line_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE connection_id = ?1 AND position > ?2 ORDER BY position LIMIT ?3",
        hot_columns()
    )
}

pub(super) fn due_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE connection_id = ?1 AND (attempts > 0) = ?2 AND (due_at, id) > (?3, ?4) AND by_due = 1 \
         AND position IS NOT NULL ORDER BY due_at, id LIMIT ?5",
        hot_columns()
    )
}

/// In the order in which the queue will deliver: by position, or as `claim` takes them.
pub(super) fn queue(connection: &Connection, id: QueueId, page: &PageRequest) -> Result<Page<Delivery>, StoreError> {
    let rows = rows_of(page);
    let queue_key = key(id.as_u128());
    let ordered =
        read_one(connection, "SELECT ordered FROM queue WHERE id = ?1 AND deleted = 0", &[&queue_key], |row| {
            Ok(row.get::<_, bool>(0)?)
        })?
        .ok_or(StoreError::NotFound { what: "queue" })?;
    let room = |found: usize| i64::try_from(rows + 1 - found).unwrap_or(i64::MAX);
    if ordered {
        let behind = match &page.cursor {
            Some(cursor) => cursor.strip_prefix("p.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
            None => i64::MIN,
        };
        let found = read_all(connection, &line_sql(), &[&queue_key, &behind, &room(0)], read_delivery)?;
        return Ok(cut(found, rows, |delivery| format!("p.{}", delivery.position.map_or(0, |position| position.0))));
    }
    let (tried_from, due_from, id_from) = page.cursor.as_deref().map_or(Ok((false, i64::MIN, 0)), read_due)?;
    let mut found = Vec::new();
    for tried in [false, true].into_iter().filter(|tried| *tried >= tried_from) {
        let (due, id) = if tried == tried_from { (due_from, id_from) } else { (i64::MIN, 0) };
        let room = room(found.len());
        found.extend(read_all(connection, &due_sql(), &[&queue_key, &tried, &due, &key(id), &room], read_delivery)?);
    }
    Ok(cut(found, rows, |delivery| {
        let tried = u8::from(delivery.progress.attempts > 0);
        format!("d.{tried}.{}", Place(delivery.progress.due_at.as_millis(), delivery.id.as_u128()).write())
    }))
}

fn read_due(text: &str) -> Result<(bool, i64, u128), StoreError> {
    let rest = text.strip_prefix("d.").ok_or(BAD_CURSOR)?;
    let (tried, place) = rest.split_once('.').ok_or(BAD_CURSOR)?;
    let Place(due, id) = Place::read(place)?;
    match tried {
        "0" => Ok((false, due, id)),
        "1" => Ok((true, due, id)),
        _ => Err(BAD_CURSOR),
    }
}

/// By name, then kind.
pub(super) fn connections(
    connection: &Connection,
    project_id: ProjectId,
    page: &PageRequest,
) -> Result<Page<Outgoing>, StoreError> {
    let rows = rows_of(page);
    let (name, kind) = match &page.cursor {
        Some(cursor) => serde_json::from_str::<(String, String)>(cursor).map_err(|_| BAD_CURSOR)?,
        None => (String::new(), String::new()),
    };
    let sql = format!(
        "SELECT {CONNECTION} FROM connection WHERE project_id = ?1 AND (name, kind) > (?2, ?3) ORDER BY name, kind LIMIT ?4"
    );
    let room = i64::try_from(rows + 1).unwrap_or(i64::MAX);
    let found = read_all(connection, &sql, &[&key(project_id.as_u128()), &name, &kind, &room], read_connection)?;
    Ok(cut(found, rows, |one| serde_json::json!([one.name, one.kind().as_str()]).to_string()))
}
