//! Jobs and their steps. A step is one transaction with its progress (law 2), and all of it holds or none of it is written.
//!
//! It must not know what an act means.

use std::collections::BTreeSet;

use postrider_core::Timestamp;
use postrider_core::id::{JobId, ProjectId, QueueId};
use postrider_core::job::{JobState, SkipReason};
use tokio_postgres::Row;

use super::columns::Columns;
use super::configuration::require_project;
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::listing::{BAD_CURSOR, cut, room_of, rows_of};
use super::queues::{self, Lock};
use super::rows::{Cells, from_json, json, signed};
use super::streams::Place;
use super::work::Work;
use super::{audit, commands, settle};
use crate::{CommandAnswer, Job, JobScope, JobStep, JobStepped, NewJob, Page, PageRequest, Settlement, StoreError};

/// `jobs_active_max`: the limit that a refusal names.
const ACTIVE_MAX: &str = "jobs_active_max";

const JOB: &str = "id, project_id, act, filter, requested, who, created_at, state, version, matched, done, skipped, outstanding, \
     cursor, walked, changed_at, ended_at";

fn read_job(row: &Row) -> Result<Job, StoreError> {
    let mut at = Cells::of(row);
    let id = JobId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let act = from_json(at.text()?, "a job's act")?;
    let filter: Option<&str> = at.take()?;
    let requested = at.count()?;
    let scope = match filter {
        Some(text) => JobScope::Filter(from_json(text, "a job's filter")?),
        None => JobScope::Ids { requested },
    };
    Ok(Job {
        id,
        project_id,
        act,
        scope,
        who: at.take()?,
        created_at: at.time()?,
        state: at.word(JobState::parse)?,
        version: at.number()?,
        matched: at.optional_number()?,
        done: at.count()?,
        skipped: from_json(at.text()?, "a job's counts")?,
        outstanding: at.count()?,
        cursor: at.take()?,
        walked: at.take()?,
        changed_at: at.time()?,
        ended_at: at.optional_time()?,
    })
}

/// Locked to the end of the transaction.
async fn find(work: &Work, id: JobId) -> Outcome<Option<Job>> {
    work.first(&format!("SELECT {JOB} FROM job WHERE id = $1 FOR UPDATE"), &[&id.key()], read_job).await
}

async fn write(work: &Work, job: &Job) -> Outcome<()> {
    work.execute(
        "UPDATE job SET state = $2, version = $3, matched = $4, done = $5, skipped = $6, outstanding = $7, cursor = $8, walked = $9, \
         changed_at = $10, ended_at = $11 WHERE id = $1",
        &[
            &job.id.key(),
            &job.state.as_str(),
            &i64::from(job.version),
            &job.matched.map(signed),
            &signed(job.done),
            &json(&job.skipped)?,
            &signed(job.outstanding),
            &job.cursor,
            &job.walked,
            &job.changed_at.as_millis(),
            &job.ended_at.map(Timestamp::as_millis),
        ],
    )
    .await?;
    Ok(())
}

pub(super) async fn create(work: &Work, new: &NewJob, active_max: u32) -> Outcome<()> {
    // Two that are created at once are counted one after the other.
    require_project(work, new.project_id, "FOR UPDATE").await?;
    let project = new.project_id.key();
    let active = "SELECT count(*) FROM job WHERE project_id = $1 AND ended_at IS NULL";
    let active: Option<i64> = work.first(active, &[&project], |row| Cells::of(row).take()).await?;
    if active.is_some_and(|active| active >= i64::from(active_max)) {
        return Err(StoreError::Full { limit: ACTIVE_MAX }.into());
    }
    if find(work, new.id).await?.is_some() {
        return Err(StoreError::Conflict(format!("there is a job {} already", new.id)).into());
    }
    let job = Job::begun(new);
    let (filter, requested) = match &job.scope {
        JobScope::Ids { requested } => (None, *requested),
        JobScope::Filter(filter) => (Some(json(filter)?), 0),
    };
    let sql = format!(
        "INSERT INTO job ({JOB}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, $11, 0, NULL, $12, $13, NULL)"
    );
    work.execute(
        &sql,
        &[
            &job.id.key(),
            &project,
            &json(&job.act)?,
            &filter,
            &signed(requested),
            &job.who,
            &job.created_at.as_millis(),
            &job.state.as_str(),
            &i64::from(job.version),
            &job.matched.map(signed),
            &json(&job.skipped)?,
            &job.walked,
            &job.changed_at.as_millis(),
        ],
    )
    .await?;
    let rows = Columns::of((0_i64..).zip(&new.ids), |to, (number, id)| {
        to.key(new.id);
        to.int(number);
        to.key(*id);
    });
    let sql = format!("INSERT INTO job_item (job_id, number, delivery_id) SELECT * FROM {}", rows.unnest(1));
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

pub(super) async fn step(work: &Work, step: &JobStep) -> Outcome<JobStepped> {
    let settlements: Vec<&Settlement> = step.settlements.iter().collect();
    // Queues before the job's row, as where an owner answers a command of it.
    let asked = step.commands.iter().map(|command| command.queue_id);
    let ids: BTreeSet<QueueId> = settlements.iter().map(|one| one.queue_id).chain(asked).collect();
    queues::lock_entries(work, &settle::forwarded_to(&settlements).chain(ids.iter().copied()).collect()).await?;
    let queues = queues::lock(work, &ids, Lock::Alone).await?;
    let job = find(work, step.job_id).await?.ok_or(StoreError::NotFound { what: "job" })?;
    if job.version != step.version || job.state != JobState::Running {
        return Ok(JobStepped::Superseded);
    }
    let (mut raced, full) = settle::not_holding(work, &settlements).await?;
    for command in &step.commands {
        if !commands::has_taker(work, command, queues.get(&command.queue_id), step.now).await? {
            raced.push(command.delivery_id);
        }
    }
    if !raced.is_empty() {
        return Ok(JobStepped::Raced(raced));
    }
    if !full.is_empty() {
        return Ok(JobStepped::NoRoom(full));
    }
    settle::settle(work, &settlements).await?;
    for command in &step.commands {
        commands::insert(work, command).await?;
    }
    let job = job.stepped(step);
    write(work, &job).await?;
    if let Some(entry) = job.end_entry(step) {
        audit::insert(work, &entry).await?;
    }
    Ok(JobStepped::Written(Box::new(job)))
}

pub(super) async fn set_state(work: &Work, id: JobId, version: u32, state: JobState, now: Timestamp) -> Outcome<Job> {
    let mut job = find(work, id).await?.ok_or(StoreError::NotFound { what: "job" })?;
    if job.version != version {
        return Err(StoreError::Conflict("the job has changed".to_owned()).into());
    }
    job.version = job.version.saturating_add(1);
    job.state = state;
    job.changed_at = now;
    job.ended_at = state.has_ended().then_some(now);
    write(work, &job).await?;
    Ok(job)
}

/// An owner has answered a command of this job.
pub(super) async fn answered(work: &Work, id: JobId, answer: CommandAnswer) -> Outcome<()> {
    let Some(mut job) = find(work, id).await? else { return Ok(()) };
    job.answered(skip_reason(answer));
    write(work, &job).await
}

/// `None`: it was done.
const fn skip_reason(answer: CommandAnswer) -> Option<SkipReason> {
    match answer {
        CommandAnswer::Applied => None,
        CommandAnswer::AlreadyDelivered => Some(SkipReason::AlreadyDelivered),
        CommandAnswer::NotWaiting => Some(SkipReason::WrongStatus),
    }
}

pub(super) async fn prune(work: &Work, ended_before: Timestamp, rows_max: u32) -> Outcome<u64> {
    let sql = "SELECT id FROM job WHERE ended_at < $1 ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED";
    let params: [super::columns::Param<'_>; 2] = [&ended_before.as_millis(), &i64::from(rows_max)];
    let gone: Vec<Key> = work.all(sql, &params, |row| Cells::of(row).take()).await?;
    for table in ["job_item WHERE job_id", "command WHERE job_id", "job WHERE id"] {
        work.execute(&format!("DELETE FROM {table} = ANY($1)"), &[&gone]).await?;
    }
    Ok(gone.len() as u64)
}

pub(super) async fn one(work: &Work, id: JobId) -> Outcome<Option<Job>> {
    work.first(&format!("SELECT {JOB} FROM job WHERE id = $1"), &[&id.key()], read_job).await
}

pub(super) fn page_sql() -> String {
    format!(
        "SELECT {JOB} FROM job WHERE project_id = $1 AND (created_at, id) < ($2, $3) ORDER BY created_at DESC, id DESC LIMIT $4"
    )
}

pub(super) async fn page(work: &Work, project_id: ProjectId, page: &PageRequest) -> Outcome<Page<Job>> {
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("j.").map(Place::read).ok_or(BAD_CURSOR)??,
        None => Place::NEWEST,
    };
    let params: [super::columns::Param<'_>; 4] = [&project_id.key(), &before.0, &Key::of(before.1), &room_of(page)];
    let found = work.all(&page_sql(), &params, read_job).await?;
    let cursor = |job: &Job| format!("j.{}", Place(job.created_at.as_millis(), job.id.as_u128()).write());
    Ok(cut(found, rows_of(page), cursor))
}

pub(super) async fn running(work: &Work) -> Outcome<Vec<Job>> {
    let sql = format!("SELECT {JOB} FROM job WHERE ended_at IS NULL AND state = 'RUNNING' ORDER BY created_at, id");
    work.all(&sql, &[], read_job).await
}

pub(super) async fn queues(work: &Work, id: JobId) -> Outcome<Vec<QueueId>> {
    let sql = "SELECT DISTINCT queue_id FROM command WHERE job_id = $1 ORDER BY queue_id";
    work.all(sql, &[&id.key()], |row| Ok(QueueId::from_u128(Cells::of(row).id()?))).await
}
