//! Pages of deliveries, every one along an index, however many rows there are. It must not change anything.
//!
//! A list from the newest to the oldest is merged from streams, one for each part of the tables that an index holds in that order: the
//! waiting and the dead of a queue, and each status of the log.

use std::collections::BTreeSet;

use postrider_core::connection::Connection;
use postrider_core::delivery::Delivery;
use postrider_core::id::{DeliveryId, ProjectId, QueueId};

use super::columns::Param;
use super::failures::Outcome;
use super::filter::Conditions;
use super::key::{Id as _, Key};
use super::rows::{CONNECTION, Cells, hot_columns, read_connection, read_delivery};
use super::streams::{self, Bounds, Order, Place};
use super::work::Work;
use crate::{DeliveryFilter, PAGE_ROWS_MAX, Page, PageRequest, StoreError};

pub(super) use crate::place::BAD_CURSOR;

/// Rows that one page looks at when its filter looks at more than an index holds, over all streams.
const SCANNED_ROWS_MAX: usize = 20_000;
/// Of each stream at least so many, so that every page gets on.
const SCANNED_ROWS_MIN: usize = 100;

pub(super) fn rows_of(page: &PageRequest) -> usize {
    page.limit.clamp(1, PAGE_ROWS_MAX) as usize
}

/// One more than fits, as a parameter.
pub(super) fn room_of(page: &PageRequest) -> i64 {
    i64::from(page.limit.clamp(1, PAGE_ROWS_MAX)) + 1
}

/// Cuts a page from items of which one more than fits was read.
pub(super) fn cut<T>(mut items: Vec<T>, rows: usize, cursor: impl Fn(&T) -> String) -> Page<T> {
    let has_more = items.len() > rows;
    items.truncate(rows);
    let next_cursor = items.last().filter(|_| has_more).map(cursor);
    Page { items, next_cursor }
}

pub(super) async fn deliveries(work: &Work, filter: &DeliveryFilter, page: &PageRequest) -> Outcome<Page<Delivery>> {
    let rows = rows_of(page);
    let conditions = Conditions::of(filter);
    let mut bounds = Bounds::of(filter);
    if let Some(cursor) = &page.cursor {
        bounds.before = bounds.before.min(Place::read(cursor)?);
    }
    let streams = streams::of_filter(work, filter).await?;
    let scanned_max = (SCANNED_ROWS_MAX / streams.len().max(1)).max(SCANNED_ROWS_MIN);
    let mut found: Vec<Delivery> = Vec::new();
    // Where the first stream stopped that was not read to its end: nothing older may be shown before that has been looked at.
    let mut horizon = None;
    for stream in streams {
        let scan = stream.scan(work, &conditions, bounds, Order::NewestFirst, (rows + 1, scanned_max)).await?;
        horizon = horizon.max(scan.stopped_at);
        found.extend(scan.rows);
        found.sort_by_key(|delivery| std::cmp::Reverse(Place::of(delivery)));
        found.truncate(rows + 1);
        // Nothing older than the last row of a full page is of interest any more.
        if found.len() > rows
            && let Some(last) = found.last()
        {
            bounds.after = bounds.after.max(Place::of(last));
        }
    }
    if let Some(horizon) = horizon {
        found.retain(|delivery| Place::of(delivery) >= horizon);
    }
    let mut page = cut(found, rows, |delivery| Place::of(delivery).write());
    page.next_cursor = page.next_cursor.or_else(|| horizon.map(Place::write));
    Ok(page)
}

pub(super) fn line_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE connection_id = $1 AND position > $2 AND position IS NOT NULL AND NOT by_due ORDER BY position LIMIT $3",
        hot_columns()
    )
}

pub(super) fn due_sql() -> String {
    format!(
        "SELECT {} FROM delivery WHERE connection_id = $1 AND tried = $2 AND (due_at, id) > ($3, $4) AND by_due \
         AND position IS NOT NULL ORDER BY due_at, id LIMIT $5",
        hot_columns()
    )
}

/// In the order in which the queue will deliver: by position, or as `claim` takes them.
pub(super) async fn queue(work: &Work, id: QueueId, page: &PageRequest) -> Outcome<Page<Delivery>> {
    let rows = rows_of(page);
    let key = id.key();
    let ordered = "SELECT ordered FROM queue_entry WHERE id = $1 AND NOT deleted";
    let ordered: Option<bool> = work.first(ordered, &[&key], |row| Cells::of(row).take()).await?;
    let ordered = ordered.ok_or(StoreError::NotFound { what: "queue" })?;
    let room = |found: usize| i64::try_from(rows + 1 - found).unwrap_or(i64::MAX);
    if ordered {
        let behind = match &page.cursor {
            Some(cursor) => cursor.strip_prefix("p.").and_then(|text| text.parse::<i64>().ok()).ok_or(BAD_CURSOR)?,
            None => i64::MIN,
        };
        let found = work.all(&line_sql(), &[&key, &behind, &room(0)], read_delivery).await?;
        return Ok(cut(found, rows, |delivery| format!("p.{}", delivery.position.map_or(0, |position| position.0))));
    }
    // What waits behind others of its line goes last.
    let held_behind = page.cursor.as_deref().and_then(|cursor| cursor.strip_prefix("h."));
    let held_behind = held_behind.map(|text| text.parse::<i64>().map_err(|_| BAD_CURSOR)).transpose()?;
    let due_cursor = page.cursor.as_deref().filter(|_| held_behind.is_none());
    let (tried_from, due_from, id_from) = due_cursor.map_or(Ok((false, i64::MIN, 0)), read_due)?;
    let mut found = Vec::new();
    for tried in [false, true].into_iter().filter(|tried| held_behind.is_none() && *tried >= tried_from) {
        let (due, id) = if tried == tried_from { (due_from, id_from) } else { (i64::MIN, 0) };
        let params: [Param<'_>; 5] = [&key, &tried, &due, &Key::of(id), &room(found.len())];
        found.extend(work.all(&due_sql(), &params, read_delivery).await?);
    }
    let due = found.len();
    if due <= rows {
        let behind = held_behind.unwrap_or(i64::MIN);
        found.extend(work.all(&line_sql(), &[&key, &behind, &room(due)], read_delivery).await?);
    }
    let held: BTreeSet<DeliveryId> = found[due..].iter().map(|delivery| delivery.id).collect();
    Ok(cut(found, rows, |delivery| {
        if held.contains(&delivery.id) {
            return format!("h.{}", delivery.position.map_or(0, |position| position.0));
        }
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
pub(super) async fn connections(work: &Work, project_id: ProjectId, page: &PageRequest) -> Outcome<Page<Connection>> {
    let rows = rows_of(page);
    let (name, kind) = match &page.cursor {
        Some(cursor) => serde_json::from_str::<(String, String)>(cursor).map_err(|_| BAD_CURSOR)?,
        None => (String::new(), String::new()),
    };
    let sql = format!(
        "SELECT {CONNECTION} FROM connection WHERE project_id = $1 AND (name, kind) > ($2, $3) ORDER BY name, kind LIMIT $4"
    );
    let found = work.all(&sql, &[&project_id.key(), &name, &kind, &room_of(page)], read_connection).await?;
    Ok(cut(found, rows, |one| serde_json::json!([one.name, one.kind().as_str()]).to_string()))
}
