//! Decisions written: the row, its attempt, counters, the log, a topic, a command's answer, all in one transaction (law 2).
//!
//! It must not know how a decision was reached. What ends leaves `delivery` for `delivery_log` here, and comes back here (D01).

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::attempt::Attempt;
use postrider_core::delivery::{Position, Progress, Status};
use postrider_core::id::{BodyId, DeliveryId, ProjectId, QueueId};
use rusqlite::Row;

use super::events::Asked;
use super::queues::{self, Queue};
use super::rows::{CHANGING, CHANGING_COLUMNS, Changing, Columns, FIXED, bind_changing, key, unsigned};
use super::work::{Binder, Work, change_rows, read_rows, write_rows};
use super::{bodies, commands, events, health, intake, lines, topics};
use crate::{Forward, Guard, HealthWrite, Placement, Settled, Settlement, StoreError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Hot,
    Log,
}

/// What a settlement needs to know of the row that it changes.
struct Found {
    table: Table,
    no: i64,
    id: DeliveryId,
    project_id: ProjectId,
    queue_id: QueueId,
    body_id: BodyId,
    body_bytes: u64,
    original_body_id: Option<BodyId>,
    version: u32,
    recorded: u32,
    status: Status,
    /// Among which of its queue order is kept.
    line: Option<i64>,
    position: Option<i64>,
}

/// The row as it will be.
struct Next<'a> {
    no: i64,
    body_id: BodyId,
    body_bytes: u64,
    original_body_id: Option<BodyId>,
    version: u32,
    recorded: u32,
    progress: &'a Progress,
}

impl Next<'_> {
    fn changing(&self) -> Changing<'_> {
        Changing {
            body_id: self.body_id,
            body_bytes: self.body_bytes,
            original_body_id: self.original_body_id,
            version: self.version,
            recorded: self.recorded,
            progress: self.progress,
        }
    }
}

/// What is written together at the end of a run.
#[derive(Default)]
struct Pending<'a> {
    to_log: Vec<Next<'a>>,
    attempts: Vec<(DeliveryId, &'a Attempt)>,
    lines: lines::Touched,
    health: Vec<(QueueId, &'a HealthWrite)>,
}

pub(super) fn settle(work: &Work, batch: &[&Settlement]) -> Result<Vec<Settled>, StoreError> {
    let mut answers = Vec::with_capacity(batch.len());
    let mut rest = batch;
    while !rest.is_empty() {
        // A second settlement of one delivery must see the first one, so it begins a new run.
        let mut seen = BTreeSet::new();
        let run = rest.iter().take_while(|one| seen.insert(one.delivery_id)).count();
        let (now, later) = rest.split_at(run);
        settle_run(work, now, &mut answers)?;
        rest = later;
    }
    Ok(answers)
}

/// Those of these that would not be applied, and those whose forward would find no room; nothing is written. No two of them may be about one
/// delivery.
pub(super) fn not_holding(
    work: &Work,
    batch: &[&Settlement],
) -> Result<(Vec<DeliveryId>, Vec<DeliveryId>), StoreError> {
    let found = find_all(work, batch)?;
    let (mut raced, mut full, mut asked) = (Vec::new(), Vec::new(), Asked::new());
    for settlement in batch {
        let row = found.get(&settlement.delivery_id);
        let queue = row.map(|row| queues::find(work, row.queue_id)).transpose()?.flatten();
        let fits = row.zip(queue).is_some_and(|(row, queue)| check(settlement, row, &queue).is_ok());
        let has_topic = match (row, &settlement.forward) {
            (Some(row), Some(forward)) => topics::find(work, row.project_id, &forward.message.topic)?.is_some(),
            _ => true,
        };
        if !fits || !has_topic {
            raced.push(settlement.delivery_id);
        } else if let Some(forward) = &settlement.forward
            && no_room(work, forward, &mut asked)?.is_some()
        {
            full.push(settlement.delivery_id);
        }
    }
    Ok((raced, full))
}

fn settle_run(work: &Work, run: &[&Settlement], answers: &mut Vec<Settled>) -> Result<(), StoreError> {
    let found = find_all(work, run)?;
    let mut pending = Pending::default();
    for settlement in run {
        let answer = match found.get(&settlement.delivery_id) {
            Some(row) => settle_one(work, settlement, row, &mut pending)?,
            None => Settled::Gone,
        };
        if matches!(answer, Settled::Applied { .. }) {
            work.counters.settled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        answers.push(answer);
    }
    move_to_log(work, &pending.to_log)?;
    lines::release(work, &pending.lines)?;
    intake::insert_attempts(work, &pending.attempts)?;
    health::write(work, &pending.health)
}

fn find_all(work: &Work, run: &[&Settlement]) -> Result<BTreeMap<DeliveryId, Found>, StoreError> {
    const COLUMNS: &str =
        "no, id, project_id, connection_id, body_id, body_bytes, original_body_id, version, recorded, status, line";
    let mut found = BTreeMap::new();
    let mut missing: Vec<[u8; 16]> = run.iter().map(|one| key(one.delivery_id.as_u128())).collect();
    for (table, source) in [(Table::Hot, "position FROM delivery"), (Table::Log, "NULL FROM delivery_log")] {
        let before = format!("SELECT {COLUMNS}, {source} WHERE id IN ");
        read_rows(work, (&before, ""), &missing, |row| {
            let row = read_found(row, table)?;
            found.insert(row.id, row);
            Ok(())
        })?;
        missing.retain(|id| !found.contains_key(&DeliveryId::from_u128(super::rows::id_of(*id))));
    }
    Ok(found)
}

fn read_found(row: &Row<'_>, table: Table) -> Result<Found, StoreError> {
    let mut at = Columns { row, next: 0 };
    Ok(Found {
        table,
        no: at.take()?,
        id: DeliveryId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        queue_id: QueueId::from_u128(at.id()?),
        body_id: BodyId::from_u128(at.id()?),
        body_bytes: unsigned(at.take()?)?,
        original_body_id: at.optional_id()?.map(BodyId::from_u128),
        version: at.take()?,
        recorded: at.take()?,
        status: at.word(Status::parse)?,
        line: at.take()?,
        position: at.take()?,
    })
}

/// Whether the settlement may be written. `Err` holds the answer when not.
fn check(settlement: &Settlement, row: &Found, queue: &Queue) -> Result<(), Settled> {
    if row.queue_id != settlement.queue_id || queue.deleted {
        return Err(Settled::Gone);
    }
    let holds = match settlement.guard {
        Guard::Lease(lease) => lease.queue_id == row.queue_id && queue.is_held_under(&lease) && row.status.is_waiting(),
        // What waits in a leased queue is its owner's alone (D06).
        Guard::Version(version) => row.version == version && !(row.status.is_waiting() && queue.owner.is_some()),
    };
    if holds { Ok(()) } else { Err(Settled::Stale) }
}

fn settle_one<'a>(
    work: &Work,
    settlement: &'a Settlement,
    row: &Found,
    pending: &mut Pending<'a>,
) -> Result<Settled, StoreError> {
    let Some(queue) = queues::find(work, row.queue_id)? else { return Ok(Settled::Gone) };
    if let Err(answer) = check(settlement, row, &queue) {
        return Ok(answer);
    }
    let topic = match &settlement.forward {
        Some(forward) => match topics::find(work, row.project_id, &forward.message.topic)? {
            Some(topic_id) => Some((topic_id, forward)),
            None => return Ok(Settled::NoTopic),
        },
        None => None,
    };
    if let Some((_, forward)) = topic
        && let Some(limit) = no_room(work, forward, &mut Asked::new())?
    {
        return Ok(Settled::Full { limit });
    }
    let recorded = check_progress(settlement, row)?;

    let mut next = Next {
        no: row.no,
        body_id: row.body_id,
        body_bytes: row.body_bytes,
        original_body_id: row.original_body_id,
        version: row.version.saturating_add(1),
        recorded,
        progress: &settlement.progress,
    };
    if let Some(body) = &settlement.edited_body {
        bodies::add(work, &[body])?;
        match row.original_body_id {
            // The one accepted stays; an edit between it and this one goes.
            Some(_) => drop(bodies::drop_uses(work, &[key(row.body_id.as_u128())])?),
            None => next.original_body_id = Some(row.body_id),
        }
        next.body_id = body.id;
        next.body_bytes = body.bytes.len() as u64;
    }
    let position = place(work, settlement, row, &next);
    write_row(work, row, next, position, pending)?;
    if let (Some(line), true) = (row.line, position != row.position) {
        pending.lines.insert((row.queue_id, line));
    }
    if let Some((topic_id, forward)) = topic {
        let body_id = settlement.edited_body.as_ref().map_or(row.body_id, |body| body.id);
        bodies::share(work, body_id)?;
        topics::append(work, topic_id, &forward.message, body_id)?;
        if !forward.deliveries.is_empty() {
            intake::enqueue(work, &forward.deliveries.iter().collect::<Vec<_>>())?;
        }
    }
    if let Some(attempt) = &settlement.attempt {
        pending.attempts.push((row.id, attempt));
    }
    if let Some(write) = &settlement.health {
        pending.health.push((row.queue_id, write));
    }
    if let Some((id, answer)) = &settlement.answers {
        commands::write_answer(work, *id, *answer)?;
    }
    Ok(Settled::Applied { version: row.version.saturating_add(1), position: position.map(Position) })
}

/// What keeps a forward from being stored, before anything of it is written.
fn no_room(work: &Work, forward: &Forward, asked: &mut Asked) -> Result<Option<&'static str>, StoreError> {
    if forward.deliveries.is_empty() {
        return Ok(None);
    }
    match work.space.check() {
        Ok(()) => events::broken_by(work, &forward.deliveries, asked),
        Err(StoreError::Full { limit }) => Ok(Some(limit)),
        Err(error) => Err(error),
    }
}

/// Attempts have no gaps (oracle 4), and no row is without the time that its index needs. The attempts on record from now on.
fn check_progress(settlement: &Settlement, row: &Found) -> Result<u32, StoreError> {
    let progress = &settlement.progress;
    let recorded = row.recorded + u32::from(settlement.attempt.is_some());
    let wrong = |what: String| Err(StoreError::Corrupt(format!("{} {what}", row.id)));
    if settlement.attempt.as_ref().is_some_and(|attempt| attempt.number != recorded) {
        return wrong(format!("has attempt {recorded} next"));
    }
    if progress.attempts < recorded {
        return wrong(format!("has {recorded} attempts on record, not {}", progress.attempts));
    }
    if progress.status == Status::Dlq && progress.dead_at.is_none() {
        return wrong("has no time of arrival in the DLQ".to_owned());
    }
    if progress.status.is_terminal() && progress.ended_at.is_none() {
        return wrong("has no time of its end".to_owned());
    }
    Ok(recorded)
}

/// Counts the delivery out of where it was and into where it goes; gives its position there.
fn place(work: &Work, settlement: &Settlement, row: &Found, next: &Next<'_>) -> Option<i64> {
    let mut position = None;
    queues::change(work, row.queue_id, |queue| {
        if row.status.is_waiting() {
            queue.leaves(row.body_bytes);
        } else if row.status == Status::Dlq {
            queue.dead = queue.dead.saturating_sub(1);
        }
        if next.progress.status.is_waiting() {
            queue.enters(next.body_bytes);
            position = match (settlement.placement, row.position) {
                (Placement::Keep, Some(kept)) => Some(kept),
                _ => Some(queue.take_position()),
            };
        } else if next.progress.status == Status::Dlq {
            queue.dead += 1;
        }
    });
    position
}

fn write_row<'a>(
    work: &Work,
    row: &Found,
    next: Next<'a>,
    position: Option<i64>,
    pending: &mut Pending<'a>,
) -> Result<(), StoreError> {
    let claim_token = match (next.progress.status, queues::find(work, row.queue_id)?) {
        (Status::Processing, Some(queue)) => Some(queue.token),
        _ => None,
    };
    match (row.table, next.progress.status.is_terminal()) {
        (Table::Hot, true) => pending.to_log.push(next),
        (Table::Hot, false) => {
            update_hot(work, &next, position, claim_token)?;
            if row.line.is_some() && position.is_some() && position != row.position {
                lines::hold_back(work, row.no)?;
            }
        }
        (Table::Log, true) => update_log(work, &next)?,
        (Table::Log, false) => move_to_hot(work, row, &next, position, claim_token)?,
    }
    Ok(())
}

/// `a = ?, b = ?` for every column that a settlement may change.
fn assignments() -> String {
    let columns: Vec<String> = CHANGING.split(", ").map(|column| format!("{} = ?", column.trim())).collect();
    columns.join(", ")
}

fn update_hot(work: &Work, next: &Next<'_>, position: Option<i64>, token: Option<i64>) -> Result<(), StoreError> {
    let sql = format!("UPDATE delivery SET {}, position = ?, claim_token = ? WHERE no = ?", assignments());
    let mut statement = work.prepare(&sql)?;
    let mut to = Binder { statement: &mut statement, next: 1 };
    bind_changing(&mut to, &next.changing())?;
    to.push(position)?;
    to.push(token)?;
    to.push(next.no)?;
    statement.raw_execute()?;
    Ok(())
}

fn update_log(work: &Work, next: &Next<'_>) -> Result<(), StoreError> {
    let mut statement = work.prepare(&format!("UPDATE delivery_log SET {} WHERE no = ?", assignments()))?;
    let mut to = Binder { statement: &mut statement, next: 1 };
    bind_changing(&mut to, &next.changing())?;
    to.push(next.no)?;
    statement.raw_execute()?;
    Ok(())
}

/// What stands before and behind the rows of values.
pub(super) fn to_log_sql() -> (String, String) {
    let fixed: Vec<String> = FIXED.split(", ").map(|column| format!("d.{column}")).collect();
    let changing: Vec<String> = CHANGING.split(", ").map(|column| format!("n.{}", column.trim())).collect();
    let before = format!("WITH n (no, {CHANGING}) AS (VALUES ");
    let after = format!(
        ") INSERT INTO delivery_log ({FIXED}, {CHANGING}) SELECT {}, {} FROM n CROSS JOIN delivery AS d ON d.no = n.no",
        fixed.join(", "),
        changing.join(", ")
    );
    (before, after)
}

/// What never changes is copied inside the database; only what the decision says goes in.
fn move_to_log(work: &Work, ended: &[Next<'_>]) -> Result<(), StoreError> {
    let (before, after) = to_log_sql();
    write_rows(work, (&before, CHANGING_COLUMNS + 1, &after), ended, |to, next| {
        to.push(next.no)?;
        bind_changing(to, &next.changing())
    })?;
    let numbers: Vec<i64> = ended.iter().map(|next| next.no).collect();
    change_rows(work, "DELETE FROM delivery WHERE no IN ", &numbers)
}

/// A person brings it back; rare, so one by one.
fn move_to_hot(
    work: &Work,
    row: &Found,
    next: &Next<'_>,
    position: Option<i64>,
    token: Option<i64>,
) -> Result<(), StoreError> {
    let ordered = queues::find(work, row.queue_id)?.is_some_and(|queue| queue.ordered);
    let places = super::work::places(1, CHANGING_COLUMNS);
    let sql = format!(
        "INSERT INTO delivery ({FIXED}, {CHANGING}, position, by_due, claim_token) SELECT {FIXED}, {}, ?, ?, ? \
         FROM delivery_log WHERE no = ?",
        places.trim_start_matches('(').trim_end_matches(')')
    );
    let mut statement = work.prepare(&sql)?;
    let mut to = Binder { statement: &mut statement, next: 1 };
    bind_changing(&mut to, &next.changing())?;
    to.push(position)?;
    to.push(!ordered && row.line.is_none())?;
    to.push(token)?;
    to.push(row.no)?;
    statement.raw_execute()?;
    work.execute("DELETE FROM delivery_log WHERE no = ?1", &[&row.no])?;
    Ok(())
}
