//! Streams: the parts of the tables that an index holds by time of arrival, read in bounded pieces, forwards or backwards.
//!
//! It must not know what a list or a job makes of them.

use postrider_core::Timestamp;
use postrider_core::delivery::{Delivery, Status};

use super::columns::Param;
use super::failures::Outcome;
use super::filter::{Conditions, FIRST_FREE};
use super::key::{Id as _, Key};
use super::rows::{Cells, hot_columns, log_columns, read_delivery, unsigned};
use super::value::Value;
use super::work::Work;
use crate::DeliveryFilter;
pub(super) use crate::place::{Bounds, Order, Place};

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
            "FROM {} WHERE {} = $1 AND {} AND (created_at, id) < ($2, $3) AND (created_at, id) > ($4, $5)",
            self.table, self.scope.0, self.part
        )
    }

    pub fn rows_sql(&self, conditions: &Conditions, order: Order) -> String {
        let columns = if self.table == "delivery" { hot_columns() } else { log_columns() };
        format!("SELECT {columns} {}{}{} {} LIMIT $6", self.source(), self.extra, conditions.sql, order.sql())
    }

    /// The place of the row with this number, without a look at the rows themselves.
    pub fn place_sql(&self, order: Order) -> String {
        format!("SELECT created_at, id {} {} LIMIT 1 OFFSET $6", self.source(), order.sql())
    }

    pub fn count_sql(&self, conditions: &Conditions) -> String {
        format!("SELECT count(*) {} AND $6::bigint IS NULL{}{}", self.source(), self.extra, conditions.sql)
    }

    fn values(&self, bounds: Bounds, number: Option<usize>, conditions: Option<&Conditions>) -> Vec<Value> {
        let bounds = bounds.within(self.bounds);
        let mut values = vec![
            self.scope.1.clone(),
            Value::Int(bounds.before.0),
            Value::Key(Key::of(bounds.before.1)),
            Value::Int(bounds.after.0),
            Value::Key(Key::of(bounds.after.1)),
        ];
        debug_assert_eq!(values.len() + 1, FIRST_FREE - 1, "$6 is the number");
        if let Some(number) = number {
            values.push(Value::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        }
        if let Some(conditions) = conditions {
            if number.is_none() {
                values.push(Value::NoInt);
            }
            values.extend(conditions.values.iter().cloned());
        }
        values
    }

    /// Where a look at so many rows ends; `None`: there are fewer.
    pub async fn stop_behind(&self, work: &Work, bounds: Bounds, order: Order, rows: usize) -> Outcome<Option<Place>> {
        let values = self.values(bounds, Some(rows.saturating_sub(1)), None);
        work.first(&self.place_sql(order), &params(&values), |row| {
            let mut at = Cells::of(row);
            Ok(Place(at.take()?, at.id()?))
        })
        .await
    }

    /// The next rows, at most `rows_max`; of a filter that an index does not answer at most `scanned_max` are looked at.
    pub async fn scan(
        &self,
        work: &Work,
        conditions: &Conditions,
        bounds: Bounds,
        order: Order,
        (rows_max, scanned_max): (usize, usize),
    ) -> Outcome<Scan> {
        let scans = self.scans || !conditions.is_empty();
        let stop = if scans { self.stop_behind(work, bounds, order, scanned_max).await? } else { None };
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
        let values = self.values(bounds, Some(rows_max), Some(conditions));
        let rows = work.all(&self.rows_sql(conditions, order), &params(&values), read_delivery).await?;
        // A full piece goes on behind its last row anyway.
        let stopped_at = stop.filter(|_| rows.len() < rows_max);
        Ok(Scan { rows, stopped_at })
    }

    pub async fn count(&self, work: &Work, conditions: &Conditions, bounds: Bounds) -> Outcome<u64> {
        let values = self.values(bounds, None, Some(conditions));
        let sql = self.count_sql(conditions);
        let count = work.first(&sql, &params(&values), |row| unsigned(Cells::of(row).take()?)).await?;
        Ok(count.unwrap_or_default())
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

fn params(values: &[Value]) -> Vec<Param<'_>> {
    values.iter().map(Value::param).collect()
}

const WAITING: &str = "position IS NOT NULL";
const CLAIMED: &str = "status = 'PROCESSING'";
const DEAD: &str = "status = 'DLQ'";

/// The streams that together hold what the filter lets through.
pub(super) async fn of_filter(work: &Work, filter: &DeliveryFilter) -> Outcome<Vec<Stream>> {
    if let Some(special) = of_name(filter) {
        return Ok(special);
    }
    let (hot, log) = scopes(work, filter).await?;
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
pub(super) fn of_one_queue(filter: &DeliveryFilter, queue: Key) -> Vec<Stream> {
    let id = postrider_core::id::ConnectionId::from_u128(queue.number());
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
            extra.push_str(&format!(" AND {column} = '{id:032x}'::uuid"));
        }
    };
    is("project_id", filter.project_id.map(|id| id.as_u128()));
    is("connection_id", filter.connection_id.map(|id| id.as_u128()));
    if !filter.statuses.is_empty() {
        let words: Vec<String> = filter.statuses.iter().map(|status| format!("'{}'", status.as_str())).collect();
        extra.push_str(&format!(" AND status IN ({})", words.join(", ")));
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
    let id = Value::Key(filter.id?.key());
    Some(everywhere(filter, "id", &id, "true"))
}

/// Correlation ids that callers gave have an index of their own. Those that we gave say when they were given, and need none.
fn by_cid(filter: &DeliveryFilter) -> Vec<Stream> {
    let Some(cid) = &filter.cid else { return Vec::new() };
    everywhere(filter, "cid", &Value::Text(super::columns::storable(cid.into()).into_owned()), "cid_given")
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

fn of_queue(filter: &DeliveryFilter, queue: Key) -> Vec<Stream> {
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
        scope: ("connection_id", Value::Key(queue)),
        part: part.to_owned(),
        extra: format!("{extra}{}", not_given(filter)),
        scans: false,
        bounds,
    };
    waiting.into_iter().chain(dead).map(stream).collect()
}

fn of_log(filter: &DeliveryFilter, (column, scope): (&'static str, Key)) -> Vec<Stream> {
    let wants = |status: &Status| filter.statuses.is_empty() || filter.statuses.contains(status);
    let Some(bounds) = cid_bounds(filter) else { return Vec::new() };
    let statuses = Status::ALL.into_iter().filter(|status| status.is_terminal() && wants(status));
    let stream = |status: Status| Stream {
        table: "delivery_log",
        scope: (column, Value::Key(scope)),
        part: format!("status = '{}'", status.as_str()),
        extra: not_given(filter).to_owned(),
        scans: false,
        bounds,
    };
    statuses.map(stream).collect()
}

type Scopes = (Vec<Key>, Vec<(&'static str, Key)>);

/// Queues with something in them, and the scopes of the log.
async fn scopes(work: &Work, filter: &DeliveryFilter) -> Outcome<Scopes> {
    const BUSY: &str = "SELECT q.id FROM queue AS q JOIN queue_entry AS e ON e.id = q.id JOIN queue_exit AS x ON x.id = q.id \
         WHERE (e.entered > x.left_count OR x.dead > 0)";
    let id = |row: &tokio_postgres::Row| Cells::of(row).take::<Key>();
    if let Some(one) = filter.connection_id {
        let known = "SELECT id FROM queue WHERE id = $1 AND project_id = coalesce($2, project_id)";
        let known = work.all(known, &[&one.key(), &filter.project_id.map(|id| id.key())], id).await?;
        return Ok((known.clone(), known.into_iter().map(|one| ("connection_id", one)).collect()));
    }
    if let Some(project) = filter.project_id {
        let busy = format!("{BUSY} AND q.project_id = $1 ORDER BY q.id");
        let busy = work.all(&busy, &[&project.key()], id).await?;
        return Ok((busy, vec![("project_id", project.key())]));
    }
    let busy = work.all(&format!("{BUSY} ORDER BY q.id"), &[], id).await?;
    let projects = work.all("SELECT DISTINCT project_id FROM queue", &[], id).await?;
    Ok((busy, projects.into_iter().map(|project| ("project_id", project)).collect()))
}
