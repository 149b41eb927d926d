//! What a job goes through: queue by queue, in each the oldest first, in bounded pieces (Z23, D27). It must not change anything.

use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use super::columns::Param;
use super::failures::Outcome;
use super::filter::Conditions;
use super::key::{Id as _, Key};
use super::listing::BAD_CURSOR;
use super::lookups;
use super::rows::Cells;
use super::streams::{self, Bounds, Order, Place, Stream};
use super::work::Work;
use crate::{Counted, DeliveryFilter, Job, JobItem, JobItems, JobScope, StoreError};

/// Queues that one piece looks into.
const QUEUES_AT_ONCE: u32 = 256;
/// Rows of one stream that one piece looks at.
const SCANNED_ROWS_MAX: usize = 4096;
/// Rows that one piece counts, of each stream.
const COUNTED_ROWS_MAX: usize = 50_000;

/// A place in a queue; with no place, behind the whole queue.
struct Cursor {
    queue: Key,
    place: Option<Place>,
}

impl Cursor {
    fn write(&self) -> String {
        let queue = self.queue.number();
        match self.place {
            Some(place) => format!("{queue:032x}.{}", place.write()),
            None => format!("{queue:032x}"),
        }
    }

    fn read(text: &str) -> Result<Self, StoreError> {
        let (queue, place) = match text.split_once('.') {
            Some((queue, place)) => (queue, Some(Place::read(place)?)),
            None => (text, None),
        };
        if queue.len() != 32 {
            return Err(BAD_CURSOR);
        }
        let queue = u128::from_str_radix(queue, 16).map_err(|_| BAD_CURSOR)?;
        Ok(Cursor { queue: Key::of(queue), place })
    }
}

pub(super) async fn items(work: &Work, job: &Job, items_max: u32) -> Outcome<JobItems> {
    match &job.scope {
        JobScope::Ids { .. } => named(work, job, items_max).await,
        JobScope::Filter(filter) => found(work, job, filter, items_max as usize).await,
    }
}

async fn named(work: &Work, job: &Job, items_max: u32) -> Outcome<JobItems> {
    let from: i64 = job.cursor.as_deref().map_or(Ok(0), str::parse).map_err(|_| BAD_CURSOR)?;
    let sql = "SELECT delivery_id FROM job_item WHERE job_id = $1 AND number >= $2 ORDER BY number LIMIT $3";
    let params: [Param<'_>; 3] = [&job.id.key(), &from, &i64::from(items_max)];
    let ids = work.all(sql, &params, |row| Ok(DeliveryId::from_u128(Cells::of(row).id()?))).await?;
    let mut items = Vec::with_capacity(ids.len());
    for id in ids {
        let delivery = lookups::delivery(work, id).await?.filter(|found| found.project_id == job.project_id);
        items.push(JobItem { id, delivery: delivery.map(Box::new) });
    }
    let next = from.saturating_add(i64::try_from(items.len()).unwrap_or(i64::MAX));
    let JobScope::Ids { requested } = job.scope else { return Err(BAD_CURSOR.into()) };
    let ended = u64::try_from(next).is_ok_and(|next| next >= requested);
    Ok(JobItems { items, cursor: Some(next.to_string()), ended })
}

async fn found(work: &Work, job: &Job, filter: &DeliveryFilter, items_max: usize) -> Outcome<JobItems> {
    let conditions = Conditions::of(filter);
    let mut items = Vec::new();
    let mut at = job.cursor.as_deref().map(Cursor::read).transpose()?;
    let queues = queues(work, filter, at.as_ref()).await?;
    let was_last = (queues.len() as u64) < u64::from(QUEUES_AT_ONCE);
    for queue in queues {
        let mut bounds = Bounds::of(filter).until(job.created_at);
        if let Some(Cursor { queue: known, place: Some(place) }) = at
            && known == queue
        {
            bounds.after = bounds.after.max(place);
        }
        let room = items_max - items.len();
        let (rows, place) = oldest(work, (filter, queue, job.created_at), &conditions, bounds, room).await?;
        items.extend(rows.into_iter().map(|row| JobItem { id: row.id, delivery: Some(Box::new(row)) }));
        let is_over = place.is_none();
        at = Some(Cursor { queue, place });
        if !is_over || items.len() >= items_max {
            return Ok(JobItems { items, cursor: at.map(|at| at.write()), ended: false });
        }
    }
    Ok(JobItems { items, cursor: at.map(|at| at.write()), ended: was_last })
}

/// The oldest of one queue, and where to go on in it; `None`: nothing is left there.
async fn oldest(
    work: &Work,
    (filter, queue, as_of): (&DeliveryFilter, Key, Timestamp),
    conditions: &Conditions,
    mut bounds: Bounds,
    rows_max: usize,
) -> Outcome<(Vec<postrider_core::delivery::Delivery>, Option<Place>)> {
    let mut found = Vec::new();
    let mut horizon: Option<Place> = None;
    for stream in streams::of_one_queue(filter, queue) {
        let limits = (rows_max + 1, SCANNED_ROWS_MAX);
        let scan = stream.there_at(as_of).scan(work, conditions, bounds, Order::OldestFirst, limits).await?;
        horizon = [horizon, scan.stopped_at].into_iter().flatten().min();
        found.extend(scan.rows);
        found.sort_by_key(Place::of);
        found.truncate(rows_max + 1);
        if found.len() > rows_max
            && let Some(last) = found.last()
        {
            let Place(time, id) = Place::of(last);
            bounds.before = bounds.before.min(Place(time, id.saturating_add(1)));
        }
    }
    if let Some(horizon) = horizon {
        found.retain(|delivery| Place::of(delivery) <= horizon);
    }
    let has_more = found.len() > rows_max;
    found.truncate(rows_max);
    let place = if has_more { found.last().map(Place::of) } else { horizon };
    Ok((found, place))
}

/// Those that are left, deleted ones included, since the log still speaks of them.
async fn queues(work: &Work, filter: &DeliveryFilter, at: Option<&Cursor>) -> Outcome<Vec<Key>> {
    let project = filter.project_id.map(|id| id.key());
    let (from, comparison) = match at {
        None => (Key::ZERO, ">="),
        Some(Cursor { queue, place: Some(_) }) => (*queue, ">="),
        Some(Cursor { queue, place: None }) => (*queue, ">"),
    };
    let (scope, only) = match filter.connection_id {
        Some(one) => ("AND id = $4", one.key()),
        None => ("AND $4::uuid IS NOT NULL", Key::ZERO),
    };
    let sql = format!(
        "SELECT id FROM queue WHERE project_id = coalesce($1, project_id) AND id {comparison} $2 {scope} ORDER BY id LIMIT $3"
    );
    work.all(&sql, &[&project, &from, &i64::from(QUEUES_AT_ONCE), &only], |row| Cells::of(row).take()).await
}

/// Counts what is left of one queue or of several empty ones.
pub(super) async fn count(
    work: &Work,
    filter: &DeliveryFilter,
    as_of: Option<Timestamp>,
    cursor: Option<&str>,
) -> Outcome<Counted> {
    let conditions = Conditions::of(filter);
    let mut at = cursor.map(Cursor::read).transpose()?;
    let mut count = 0;
    let queues = queues(work, filter, at.as_ref()).await?;
    let was_last = (queues.len() as u64) < u64::from(QUEUES_AT_ONCE);
    for queue in queues {
        let mut bounds = Bounds::of(filter);
        if let Some(time) = as_of {
            bounds = bounds.until(time);
        }
        if let Some(Cursor { queue: known, place: Some(place) }) = at
            && known == queue
        {
            bounds.after = bounds.after.max(place);
        }
        let there = |stream: Stream| match as_of {
            Some(time) => stream.there_at(time),
            None => stream,
        };
        let streams: Vec<Stream> = streams::of_one_queue(filter, queue).into_iter().map(there).collect();
        let mut stop = None;
        for stream in &streams {
            let place = stream.stop_behind(work, bounds, Order::OldestFirst, COUNTED_ROWS_MAX).await?;
            stop = [stop, place].into_iter().flatten().min();
        }
        if let Some(Place(time, id)) = stop {
            bounds.before = bounds.before.min(Place(time, id.saturating_add(1)));
        }
        for stream in &streams {
            count += stream.count(work, &conditions, bounds).await?;
        }
        at = Some(Cursor { queue, place: stop });
        // One queue with much in it is a piece of its own.
        if stop.is_some() {
            return Ok(Counted { count, cursor: at.map(|at| at.write()) });
        }
    }
    Ok(Counted { count, cursor: at.filter(|_| !was_last).map(|at| at.write()) })
}
