//! Decisions written: the row, its attempt, counters, the log, a topic, a command's answer, all in one transaction (law 2).
//!
//! It must not know how a decision was reached. What ends leaves `delivery` for `delivery_log` here, and comes back here (D01).

use std::collections::{BTreeMap, BTreeSet};

use postrider_core::attempt::Attempt;
use postrider_core::delivery::{Position, Progress, Status};
use postrider_core::id::{BodyId, DeliveryId, ProjectId, QueueId};
use tokio_postgres::Row;

use super::columns::Columns;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::positions::Positions;
use super::queues::{self, Left, Lock, Queue, Queues};
use super::rows::{CHANGING, Cells, Changing, FIXED, prefixed, push_changing, signed};
use super::work::Work;
use super::{bodies, commands, health, intake, lines, topics};
use crate::{Forward, Guard, HealthWrite, NewDelivery, Placement, Settled, Settlement, StoreError};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Hot,
    Log,
}

/// What a settlement needs to know of the row that it changes.
struct Found {
    table: Table,
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
    id: DeliveryId,
    body_id: BodyId,
    body_bytes: u64,
    original_body_id: Option<BodyId>,
    version: u32,
    recorded: u32,
    progress: &'a Progress,
    position: Option<i64>,
    claim_token: Option<i64>,
}

impl<'a> Next<'a> {
    fn changing(&self) -> Changing<'a> {
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
    hot: Vec<Next<'a>>,
    in_log: Vec<Next<'a>>,
    to_hot: Vec<Next<'a>>,
    attempts: Vec<(DeliveryId, &'a Attempt)>,
    health: Vec<(QueueId, &'a HealthWrite)>,
    left: BTreeMap<QueueId, Left>,
    /// Bodies of edits that were edited again.
    unused: Vec<Key>,
    /// Lines in which something left or came.
    lines: lines::Touched,
    /// Those that wait at the end of their line from now on.
    held_back: Vec<Key>,
    /// Those in which something waits that did not before.
    filled: BTreeSet<QueueId>,
    /// What forwards push. Stored once positions are given.
    pushed: Vec<&'a NewDelivery>,
}

pub(super) async fn settle(work: &Work, batch: &[&Settlement]) -> Outcome<Vec<Settled>> {
    let queues = lock_queues(work, batch).await?;
    let mut answers = Vec::with_capacity(batch.len());
    let mut rest = batch;
    while !rest.is_empty() {
        // A second settlement of one delivery must see the first one, so it begins a new run.
        let mut seen = BTreeSet::new();
        let run = rest.iter().take_while(|one| seen.insert(one.delivery_id)).count();
        let (now, later) = rest.split_at(run);
        settle_run(work, &queues, now, &mut answers).await?;
        rest = later;
    }
    let applied = answers.iter().filter(|answer| matches!(answer, Settled::Applied { .. })).count();
    work.context.counters.settled.fetch_add(applied as u64, std::sync::atomic::Ordering::Relaxed);
    Ok(answers)
}

/// Owners stay owners until the end. What may come into a queue, or move to its tail, needs a position, so those entries are locked first.
async fn lock_queues(work: &Work, batch: &[&Settlement]) -> Outcome<Queues> {
    let needs_position = |one: &&&Settlement| {
        let by_version = matches!(one.guard, Guard::Version(_));
        one.progress.status.is_waiting() && (by_version || one.placement == Placement::Tail)
    };
    let back = batch.iter().filter(needs_position).map(|one| one.queue_id);
    let filled: BTreeSet<QueueId> = back.chain(forwarded_to(batch)).collect();
    queues::lock_entries(work, &filled).await?;
    queues::lock(work, &batch.iter().map(|one| one.queue_id).collect(), Lock::Share).await
}

/// The queues that get something by a forward.
pub(super) fn forwarded_to(batch: &[&Settlement]) -> impl Iterator<Item = QueueId> {
    batch.iter().filter_map(|one| one.forward.as_ref()).flat_map(|to| &to.deliveries).map(|new| new.connection_id)
}

/// Those of these that would not be applied, and those whose forward would find no room; nothing is written. No two of them may be about one
/// delivery.
pub(super) async fn not_holding(work: &Work, batch: &[&Settlement]) -> Outcome<(Vec<DeliveryId>, Vec<DeliveryId>)> {
    let queues = lock_queues(work, batch).await?;
    let found = find_all(work, batch).await?;
    let (mut raced, mut full, mut pushed) = (Vec::new(), Vec::new(), Vec::new());
    for settlement in batch {
        let row = found.get(&settlement.delivery_id);
        let queue = row.and_then(|row| queues.get(&row.queue_id));
        let fits = row.zip(queue).is_some_and(|(row, queue)| check(settlement, row, queue).is_ok());
        let has_topic = match (row, &settlement.forward) {
            (Some(row), Some(forward)) => topics::find(work, row.project_id, &forward.message.topic).await?.is_some(),
            _ => true,
        };
        if !fits || !has_topic {
            raced.push(settlement.delivery_id);
        } else if let Some(forward) = &settlement.forward
            && no_room(work, forward, &mut pushed).await?.is_some()
        {
            full.push(settlement.delivery_id);
        }
    }
    Ok((raced, full))
}

async fn settle_run(work: &Work, queues: &Queues, run: &[&Settlement], answers: &mut Vec<Settled>) -> Outcome<()> {
    let found = find_all(work, run).await?;
    let in_lines = found.values().filter_map(|row| Some((row.queue_id, row.line?))).collect();
    lines::lock(work, &in_lines).await?;
    let mut pending = Pending::default();
    let mut positions = Positions::default();
    for settlement in run {
        let answer = match found.get(&settlement.delivery_id) {
            Some(row) => settle_one(work, queues, settlement, row, &mut pending, &mut positions).await?,
            None => Settled::Gone,
        };
        answers.push(answer);
    }
    positions.count_in(work).await?;
    if !pending.pushed.is_empty() {
        intake::enqueue(work, &pending.pushed).await?;
    }
    move_to_log(work, &pending.to_log).await?;
    update_hot(work, &pending.hot).await?;
    update_log(work, &pending.in_log).await?;
    move_to_hot(work, &pending.to_hot).await?;
    if !pending.held_back.is_empty() {
        work.execute("UPDATE delivery SET by_due = false WHERE id = ANY($1)", &[&pending.held_back]).await?;
    }
    lines::release(work, &pending.lines).await?;
    intake::insert_attempts(work, &pending.attempts).await?;
    queues::want_owners(work, &pending.filled).await?;
    for id in &pending.filled {
        work.tell_of_queue(*id, queues.get(id).and_then(|queue| queue.owner));
    }
    health::write(work, &pending.health).await?;
    queues::count_left(work, &pending.left).await?;
    bodies::drop_uses(work, pending.unused).await?;
    Ok(())
}

/// What is settled under a lease is nobody else's, and needs no lock of its own; all else is locked, in the order of the ids.
async fn find_all(work: &Work, run: &[&Settlement]) -> Outcome<BTreeMap<DeliveryId, Found>> {
    const COLUMNS: &str =
        "id, project_id, connection_id, body_id, body_bytes, original_body_id, version, recorded, status, line";
    let mut found = BTreeMap::new();
    let (leased, open): (Vec<&Settlement>, Vec<&Settlement>) =
        run.iter().partition(|one| matches!(one.guard, Guard::Lease(_)));
    for (part, lock) in [(leased, ""), (open, " ORDER BY id FOR UPDATE")] {
        let mut missing: Vec<Key> = part.iter().map(|one| one.delivery_id.key()).collect();
        for (table, source) in [(Table::Hot, "position FROM delivery"), (Table::Log, "NULL::bigint FROM delivery_log")]
        {
            if missing.is_empty() {
                break;
            }
            let sql = format!("SELECT {COLUMNS}, {source} WHERE id = ANY($1){lock}");
            let rows = work.all(&sql, &[&missing], |row| read_found(row, table)).await?;
            found.extend(rows.into_iter().map(|row| (row.id, row)));
            missing.retain(|id| !found.contains_key(&DeliveryId::from_u128(id.number())));
        }
    }
    Ok(found)
}

fn read_found(row: &Row, table: Table) -> Result<Found, StoreError> {
    let mut at = Cells::of(row);
    Ok(Found {
        table,
        id: DeliveryId::from_u128(at.id()?),
        project_id: ProjectId::from_u128(at.id()?),
        queue_id: QueueId::from_u128(at.id()?),
        body_id: BodyId::from_u128(at.id()?),
        body_bytes: at.count()?,
        original_body_id: at.optional_id()?.map(BodyId::from_u128),
        version: at.number()?,
        recorded: at.number()?,
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

async fn settle_one<'a>(
    work: &Work,
    queues: &Queues,
    settlement: &'a Settlement,
    row: &Found,
    pending: &mut Pending<'a>,
    positions: &mut Positions,
) -> Outcome<Settled> {
    // Its own queue only: another one is not locked.
    let Some(queue) = queues.get(&row.queue_id) else { return Ok(Settled::Gone) };
    if let Err(answer) = check(settlement, row, queue) {
        return Ok(answer);
    }
    let topic = match &settlement.forward {
        Some(forward) => match topics::find(work, row.project_id, &forward.message.topic).await? {
            Some(topic_id) => Some((topic_id, forward)),
            None => return Ok(Settled::NoTopic),
        },
        None => None,
    };
    if let Some((_, forward)) = topic
        && let Some(limit) = no_room(work, forward, &mut pending.pushed).await?
    {
        return Ok(Settled::Full { limit });
    }
    let recorded = check_progress(settlement, row)?;

    let mut next = Next {
        id: row.id,
        body_id: row.body_id,
        body_bytes: row.body_bytes,
        original_body_id: row.original_body_id,
        version: row.version.saturating_add(1),
        recorded,
        progress: &settlement.progress,
        position: None,
        claim_token: (settlement.progress.status == Status::Processing).then_some(queue.token),
    };
    if let Some(body) = &settlement.edited_body {
        bodies::add(work, &[body]).await?;
        match row.original_body_id {
            // The one accepted stays; an edit between it and this one goes.
            Some(_) => pending.unused.push(row.body_id.key()),
            None => next.original_body_id = Some(row.body_id),
        }
        next.body_id = body.id;
        next.body_bytes = body.bytes.len() as u64;
    }
    next.position = place(work, settlement, row, next.body_bytes, pending, positions).await?;
    if let (Some(line), true) = (row.line, next.position != row.position) {
        pending.lines.insert((row.queue_id, line));
        if next.position.is_some() && row.table == Table::Hot {
            pending.held_back.push(row.id.key());
        }
    }
    if let Some((topic_id, forward)) = topic {
        bodies::share(work, next.body_id).await?;
        topics::append(work, topic_id, &forward.message, next.body_id).await?;
    }
    if let Some(attempt) = &settlement.attempt {
        pending.attempts.push((row.id, attempt));
    }
    if let Some(write) = &settlement.health {
        pending.health.push((row.queue_id, write));
    }
    if let Some((id, answer)) = &settlement.answers {
        commands::write_answer(work, *id, *answer).await?;
    }
    let answer = Settled::Applied { version: next.version, position: next.position.map(Position) };
    match (row.table, next.progress.status.is_terminal()) {
        (Table::Hot, true) => pending.to_log.push(next),
        (Table::Hot, false) => pending.hot.push(next),
        (Table::Log, true) => pending.in_log.push(next),
        (Table::Log, false) => pending.to_hot.push(next),
    }
    Ok(answer)
}

/// What keeps a forward from being stored, behind what others push; without a limit in its way it is added to them.
async fn no_room<'a>(
    work: &Work,
    forward: &'a Forward,
    pushed: &mut Vec<&'a NewDelivery>,
) -> Outcome<Option<&'static str>> {
    if forward.deliveries.is_empty() {
        return Ok(None);
    }
    let before = pushed.len();
    pushed.extend(&forward.deliveries);
    let broken = intake::broken_by(work, pushed).await?;
    if broken.is_some() {
        pushed.truncate(before);
    }
    Ok(broken)
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
async fn place(
    work: &Work,
    settlement: &Settlement,
    row: &Found,
    next_bytes: u64,
    pending: &mut Pending<'_>,
    positions: &mut Positions,
) -> Outcome<Option<i64>> {
    let waits_next = settlement.progress.status.is_waiting();
    let left = pending.left.entry(row.queue_id).or_default();
    left.dead += i64::from(settlement.progress.status == Status::Dlq) - i64::from(row.status == Status::Dlq);
    if !waits_next {
        if row.status.is_waiting() {
            left.count += 1;
            left.bytes += signed(row.body_bytes);
        }
        return Ok(None);
    }
    if row.status.is_waiting() {
        // It stays, perhaps with another body.
        left.bytes += signed(row.body_bytes) - signed(next_bytes);
        if let (Placement::Keep, Some(kept)) = (settlement.placement, row.position) {
            return Ok(Some(kept));
        }
        return Ok(Some(positions.next(work, row.queue_id).await?));
    }
    pending.filled.insert(row.queue_id);
    let position = positions.next(work, row.queue_id).await?;
    positions.entered(row.queue_id, signed(next_bytes));
    Ok(Some(position))
}

/// The rows as they will be: the id, what a settlement may change, and whatever `more` adds.
fn rows_of<'a>(rows: &[Next<'a>], more: impl Fn(&mut Columns<'a>, &Next<'a>)) -> Columns<'a> {
    Columns::of(rows, |to, next| {
        to.key(next.id);
        push_changing(to, &next.changing());
        more(to, next);
    })
}

/// `a = n.a, b = n.b` for every column that a settlement may change.
fn assignments() -> String {
    let columns: Vec<String> = CHANGING.split(", ").map(|column| format!("{0} = n.{0}", column.trim())).collect();
    columns.join(", ")
}

pub(super) fn update_hot_sql(rows: &str) -> String {
    format!(
        "UPDATE delivery AS d SET {}, position = n.position, claim_token = n.claim_token \
         FROM {rows} AS n (id, {CHANGING}, position, claim_token) WHERE d.id = n.id",
        assignments()
    )
}

async fn update_hot(work: &Work, changed: &[Next<'_>]) -> Outcome<()> {
    let rows = rows_of(changed, |to, next| {
        to.optional_int(next.position);
        to.optional_int(next.claim_token);
    });
    work.write_rows(&update_hot_sql(&rows.unnest(1)), &rows).await?;
    Ok(())
}

async fn update_log(work: &Work, changed: &[Next<'_>]) -> Outcome<()> {
    let rows = rows_of(changed, |_, _| {});
    let sql = format!(
        "UPDATE delivery_log AS d SET {} FROM {} AS n (id, {CHANGING}) WHERE d.id = n.id",
        assignments(),
        rows.unnest(1)
    );
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

pub(super) fn to_log_sql(rows: &str) -> String {
    let (fixed, changing) = (prefixed("gone.", FIXED), prefixed("n.", CHANGING));
    format!(
        "WITH n (id, {CHANGING}) AS (SELECT * FROM {rows}), \
         gone AS (DELETE FROM delivery USING n WHERE delivery.id = n.id RETURNING {}) \
         INSERT INTO delivery_log ({FIXED}, {CHANGING}) SELECT {fixed}, {changing} FROM gone JOIN n ON n.id = gone.id",
        prefixed("delivery.", FIXED)
    )
}

/// What never changes is moved inside the database; only what the decision says goes in.
async fn move_to_log(work: &Work, ended: &[Next<'_>]) -> Outcome<()> {
    let rows = rows_of(ended, |_, _| {});
    work.write_rows(&to_log_sql(&rows.unnest(1)), &rows).await?;
    Ok(())
}

/// A person brings them back.
async fn move_to_hot(work: &Work, back: &[Next<'_>]) -> Outcome<()> {
    let rows = rows_of(back, |to, next| {
        to.optional_int(next.position);
        to.optional_int(next.claim_token);
    });
    let sql = format!(
        "WITH n (id, {CHANGING}, position, claim_token) AS (SELECT * FROM {}), \
         gone AS (DELETE FROM delivery_log USING n WHERE delivery_log.id = n.id RETURNING {}) \
         INSERT INTO delivery ({FIXED}, {CHANGING}, position, by_due, claim_token) \
         SELECT {}, {}, n.position, NOT e.ordered AND gone.line IS NULL, n.claim_token \
         FROM gone JOIN n ON n.id = gone.id JOIN queue_entry AS e ON e.id = gone.connection_id",
        rows.unnest(1),
        prefixed("delivery_log.", FIXED),
        prefixed("gone.", FIXED),
        prefixed("n.", CHANGING)
    );
    work.write_rows(&sql, &rows).await?;
    Ok(())
}
