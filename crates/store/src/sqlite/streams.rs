//! Streams: the parts of the tables that an index holds by time of arrival, read in bounded pieces, forwards or backwards.
//!
//! It must not know what a list or a job makes of them.

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Status};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

use super::filter::{Conditions, FIRST_FREE};
use super::rows::{hot_columns, key, log_columns, read_all, read_delivery};
pub(super) use crate::place::{Bounds, Order, Place};
use crate::{DeliveryFilter, StoreError};

/// One part of a table that an index holds in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    table: &'static str,
    /// The column of the scope and its value.
    scope: (&'static str, Value),
    /// What the index has: all of these rows stand in it next to each other.
    part: String,
    /// What is asked of them besides, ` AND …`.
    extra: String,
    /// `extra` may leave out many of them.
    scans: bool,
    bounds: Bounds,
}

/// What a piece of a stream held.
pub(super) struct Scan {
    pub rows: Vec<Delivery>,
    /// The last place that was looked at, when the piece ended before the stream did.
    pub stopped_at: Option<Place>,
}

impl Stream {
    fn source(&self) -> String {
        format!(
            "FROM {} WHERE {} = ?1 AND {} AND (created_at, id) < (?2, ?3) AND (created_at, id) > (?4, ?5)",
            self.table, self.scope.0, self.part
        )
    }

    pub fn rows_sql(&self, conditions: &Conditions, order: Order) -> String {
        let columns = if self.table == "delivery" { hot_columns() } else { log_columns() };
        format!("SELECT {columns} {}{}{} {} LIMIT ?6", self.source(), self.extra, conditions.sql, order.sql())
    }

    /// The place of the row with this number, without a look at the rows themselves.
    pub fn place_sql(&self, order: Order) -> String {
        format!("SELECT created_at, id {} {} LIMIT 1 OFFSET ?6", self.source(), order.sql())
    }

    pub fn count_sql(&self, conditions: &Conditions) -> String {
        format!("SELECT count(*) {} AND ?6 IS NULL{}{}", self.source(), self.extra, conditions.sql)
    }

    fn values(&self, bounds: Bounds, number: Option<usize>, conditions: Option<&Conditions>) -> Vec<Value> {
        let bounds = bounds.within(self.bounds);
        let mut values = vec![
            self.scope.1.clone(),
            Value::Integer(bounds.before.0),
            Value::Blob(key(bounds.before.1).to_vec()),
            Value::Integer(bounds.after.0),
            Value::Blob(key(bounds.after.1).to_vec()),
        ];
        debug_assert_eq!(values.len() + 1, FIRST_FREE - 1, "?6 is the number");
        if let Some(number) = number {
            values.push(Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)));
        }
        if let Some(conditions) = conditions {
            if number.is_none() {
                values.push(Value::Null);
            }
            values.extend(conditions.values.iter().cloned());
        }
        values
    }

    /// Where a look at so many rows ends; `None`: there are fewer.
    pub fn stop_behind(
        &self,
        connection: &Connection,
        bounds: Bounds,
        order: Order,
        rows: usize,
    ) -> Result<Option<Place>, StoreError> {
        let mut statement = connection.prepare_cached(&self.place_sql(order))?;
        let values = self.values(bounds, Some(rows.saturating_sub(1)), None);
        let mut read = statement.query(params_from_iter(values))?;
        let Some(row) = read.next()? else { return Ok(None) };
        Ok(Some(Place(row.get(0)?, super::rows::id_of(row.get(1)?))))
    }

    /// The next rows, at most `rows_max`; of a filter that an index does not answer at most `scanned_max` are looked at.
    pub fn scan(
        &self,
        connection: &Connection,
        conditions: &Conditions,
        bounds: Bounds,
        order: Order,
        (rows_max, scanned_max): (usize, usize),
    ) -> Result<Scan, StoreError> {
        let scans = self.scans || !conditions.is_empty();
        let stop = if scans { self.stop_behind(connection, bounds, order, scanned_max)? } else { None };
        let mut bounds = bounds;
        match (stop, order) {
            (Some(Place(time, id)), Order::NewestFirst) => {
                bounds.after = bounds.after.max(Place(time, id.saturating_sub(1)))
            }
            (Some(Place(time, id)), Order::OldestFirst) => {
                bounds.before = bounds.before.min(Place(time, id.saturating_add(1)))
            }
            (None, _) => {}
        }
        let mut statement = connection.prepare_cached(&self.rows_sql(conditions, order))?;
        let mut read = statement.query(params_from_iter(self.values(bounds, Some(rows_max), Some(conditions))))?;
        let mut rows = Vec::new();
        while let Some(row) = read.next()? {
            rows.push(read_delivery(row)?);
        }
        // A full piece goes on behind its last row anyway.
        let stopped_at = stop.filter(|_| rows.len() < rows_max);
        Ok(Scan { rows, stopped_at })
    }

    pub fn count(&self, connection: &Connection, conditions: &Conditions, bounds: Bounds) -> Result<u64, StoreError> {
        let mut statement = connection.prepare_cached(&self.count_sql(conditions))?;
        let count =
            statement.query_row(params_from_iter(self.values(bounds, None, Some(conditions))), |row| row.get(0))?;
        super::rows::unsigned(count)
    }

    /// Of those in the stream, only what has been there since this time or longer; for jobs (Z23).
    pub fn there_at(mut self, time: Timestamp) -> Self {
        let column = match (self.table, self.part.as_str()) {
            ("delivery_log", _) => "ended_at".to_owned(),
            (_, DEAD) => "dead_at".to_owned(),
            (_, WAITING | CLAIMED) => "age_from".to_owned(),
            // A row that is found by its name may be anywhere.
            _ => "CASE WHEN position IS NULL THEN dead_at ELSE age_from END".to_owned(),
        };
        self.extra.push_str(&format!(" AND {column} <= {}", time.as_millis()));
        self.scans = true;
        self
    }
}

const WAITING: &str = "position IS NOT NULL";
const CLAIMED: &str = "status = 'PROCESSING'";
const DEAD: &str = "status = 'DLQ'";

/// The streams that together hold what the filter lets through.
pub(super) fn of_filter(connection: &Connection, filter: &DeliveryFilter) -> Result<Vec<Stream>, StoreError> {
    if let Some(special) = of_name(filter) {
        return Ok(special);
    }
    let (hot, log) = scopes(connection, filter)?;
    let mut streams = by_cid(filter);
    for queue in hot {
        streams.extend(of_queue(filter, queue));
    }
    for scope in log {
        streams.extend(of_log(filter, scope));
    }
    Ok(streams)
}

/// Those of one queue, its part of the log included.
pub(super) fn of_one_queue(filter: &DeliveryFilter, queue: [u8; 16]) -> Vec<Stream> {
    let id = postrider_core::id::ConnectionId::from_u128(super::rows::id_of(queue));
    let filter = &DeliveryFilter { connection_id: Some(id), ..filter.clone() };
    if let Some(special) = of_name(filter) {
        return special;
    }
    let mut streams = by_cid(filter);
    streams.extend(of_queue(filter, queue));
    streams.extend(of_log(filter, ("connection_id", queue)));
    streams
}

/// What has a name of its own is looked for in both tables, so project, connection and status are asked of each row.
fn everywhere(filter: &DeliveryFilter, column: &'static str, value: &Value, part: &str) -> Vec<Stream> {
    let mut extra = String::new();
    let mut is = |column: &str, id: Option<u128>| {
        if let Some(id) = id {
            // The plus keeps it from being answered by another index.
            extra.push_str(&format!(" AND +{column} = x'{id:032x}'"));
        }
    };
    is("project_id", filter.project_id.map(|id| id.as_u128()));
    is("connection_id", filter.connection_id.map(|id| id.as_u128()));
    if !filter.statuses.is_empty() {
        let words: Vec<String> = filter.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
        extra.push_str(&format!(" AND +status IN ({})", words.join(", ")));
    }
    let stream = |table| Stream {
        table,
        scope: (column, value.clone()),
        part: part.to_owned(),
        extra: extra.clone(),
        scans: true,
        bounds: Bounds::EVERYTHING,
    };
    ["delivery", "delivery_log"].map(stream).into()
}

/// An id names its row.
fn of_name(filter: &DeliveryFilter) -> Option<Vec<Stream>> {
    let id = Value::Blob(key(filter.id?.as_u128()).to_vec());
    Some(everywhere(filter, "id", &id, "1"))
}

/// Correlation ids that callers gave have an index of their own. Those that we gave say when they were given, and need none.
fn by_cid(filter: &DeliveryFilter) -> Vec<Stream> {
    let Some(cid) = &filter.cid else { return Vec::new() };
    everywhere(filter, "cid", &Value::Text(cid.clone()), "cid_given = 1")
}

/// Where a search by correlation id looks besides: at the very time that it names, or nowhere.
fn cid_bounds(filter: &DeliveryFilter) -> Option<Bounds> {
    let Some(cid) = &filter.cid else { return Some(Bounds::EVERYTHING) };
    let made_at = postrider_core::id::Cid::from_stored(cid).made_at()?.as_millis();
    Some(Bounds { after: Place(made_at.saturating_sub(1), u128::MAX), before: Place(made_at.saturating_add(1), 0) })
}

fn not_given(filter: &DeliveryFilter) -> &'static str {
    if filter.cid.is_some() { " AND cid_given IS NULL" } else { "" }
}

fn of_queue(filter: &DeliveryFilter, queue: [u8; 16]) -> Vec<Stream> {
    let wants = |status: Status| filter.statuses.is_empty() || filter.statuses.contains(&status);
    let Some(bounds) = cid_bounds(filter) else { return Vec::new() };
    let waiting = match (wants(Status::Pending), wants(Status::Processing)) {
        (true, true) => Some((WAITING, "")),
        (true, false) => Some((WAITING, " AND status = 'PENDING'")),
        (false, true) => Some((CLAIMED, "")),
        (false, false) => None,
    };
    let dead = wants(Status::Dlq).then_some((DEAD, ""));
    let stream = |(part, extra): (&str, &str)| Stream {
        table: "delivery",
        scope: ("connection_id", Value::Blob(queue.to_vec())),
        part: part.to_owned(),
        extra: format!("{extra}{}", not_given(filter)),
        scans: false,
        bounds,
    };
    waiting.into_iter().chain(dead).map(stream).collect()
}

fn of_log(filter: &DeliveryFilter, (column, scope): (&'static str, [u8; 16])) -> Vec<Stream> {
    let wants = |status: &Status| filter.statuses.is_empty() || filter.statuses.contains(status);
    let Some(bounds) = cid_bounds(filter) else { return Vec::new() };
    let statuses = Status::ALL.into_iter().filter(|status| status.is_terminal() && wants(status));
    let stream = |status: Status| Stream {
        table: "delivery_log",
        scope: (column, Value::Blob(scope.to_vec())),
        part: format!("status = '{}'", status.as_str()),
        extra: not_given(filter).to_owned(),
        scans: false,
        bounds,
    };
    statuses.map(stream).collect()
}

type Scopes = (Vec<[u8; 16]>, Vec<(&'static str, [u8; 16])>);

/// Queues with something in them, and the scopes of the log.
fn scopes(connection: &Connection, filter: &DeliveryFilter) -> Result<Scopes, StoreError> {
    let id = |row: &rusqlite::Row<'_>| Ok(row.get::<_, [u8; 16]>(0)?);
    if let Some(one) = filter.connection_id {
        let one = key(one.as_u128());
        let project = filter.project_id.map(|id| key(id.as_u128()));
        let known = "SELECT id FROM queue WHERE id = ?1 AND project_id = coalesce(?2, project_id)";
        let known = read_all(connection, known, &[&one, &project], id)?;
        return Ok((known.clone(), known.into_iter().map(|one| ("connection_id", one)).collect()));
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
