//! Jobs and their steps. A step is one transaction with its progress (law 2), and all of it holds or none of it is written.
//!
//! It must not know what an act means.

use postrider_core::Timestamp;
use postrider_core::id::{DeliveryId, JobId, ProjectId, QueueId};
use postrider_core::job::{JobState, SkipReason};
use rusqlite::types::Value;
use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::configuration::require_project;
use super::listing::{BAD_CURSOR, cut, rows_of};
use super::rows::{Columns, from_json, id_of, json, key, read_all, read_one, signed, unsigned};
use super::streams::Place;
use super::work::{Work, change_rows, write_rows};
use super::{audit, commands, settle};
use crate::{CommandAnswer, Job, JobScope, JobStep, JobStepped, NewJob, Page, PageRequest, Settlement, StoreError};

/// `jobs_active_max`: the limit that a refusal names.
const ACTIVE_MAX: &str = "jobs_active_max";

const JOB: &str = "id, project_id, act, filter, requested, who, created_at, state, version, matched, done, skipped, outstanding, \
     cursor, walked, changed_at, ended_at";

fn read_job(row: &Row<'_>) -> Result<Job, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = JobId::from_u128(at.id()?);
    let project_id = ProjectId::from_u128(at.id()?);
    let act = from_json(at.text()?, "a job's act")?;
    let filter: Option<String> = at.take()?;
    let requested = unsigned(at.take()?)?;
    let scope = match filter {
        Some(text) => JobScope::Filter(from_json(&text, "a job's filter")?),
        None => JobScope::Ids { requested },
    };
    Ok(Job {
        id,
        project_id,
        act,
        scope,
        who: at.take()?,
        created_at: Timestamp::from_millis(at.take()?),
        state: at.word(JobState::parse)?,
        version: at.take()?,
        matched: at.take::<Option<i64>>()?.map(unsigned).transpose()?,
        done: unsigned(at.take()?)?,
        skipped: from_json(at.text()?, "a job's counts")?,
        outstanding: unsigned(at.take()?)?,
        cursor: at.take()?,
        walked: at.take()?,
        changed_at: Timestamp::from_millis(at.take()?),
        ended_at: at.time()?,
    })
}

fn find(work: &Work, id: JobId) -> Result<Option<Job>, StoreError> {
    work.first(&format!("SELECT {JOB} FROM job WHERE id = ?1"), &[&key(id.as_u128())], read_job)
}

fn write(work: &Work, job: &Job) -> Result<(), StoreError> {
    work.execute(
        "UPDATE job SET state = ?2, version = ?3, matched = ?4, done = ?5, skipped = ?6, outstanding = ?7, cursor = ?8, walked = ?9, \
         changed_at = ?10, ended_at = ?11 WHERE id = ?1",
        &[
            &key(job.id.as_u128()),
            &job.state.as_str(),
            &job.version,
            &job.matched.map(signed),
            &signed(job.done),
            &json(&job.skipped)?,
            &signed(job.outstanding),
            &job.cursor,
            &job.walked,
            &job.changed_at.as_millis(),
            &job.ended_at.map(Timestamp::as_millis),
        ],
    )?;
    Ok(())
}

pub(super) fn create(work: &Work, new: &NewJob, active_max: u32) -> Result<(), StoreError> {
    require_project(work, new.project_id)?;
    let project = key(new.project_id.as_u128());
    let active: Option<u32> =
        work.first("SELECT count(*) FROM job WHERE project_id = ?1 AND ended_at IS NULL", &[&project], |row| {
            Ok(row.get(0)?)
        })?;
    if active.is_some_and(|active| active >= active_max) {
        return Err(StoreError::Full { limit: ACTIVE_MAX });
    }
    if find(work, new.id)?.is_some() {
        return Err(StoreError::Conflict(format!("there is a job {} already", new.id)));
    }
    let job = Job::begun(new);
    let (filter, requested) = match &job.scope {
        JobScope::Ids { requested } => (None, *requested),
        JobScope::Filter(filter) => (Some(json(filter)?), 0),
    };
    let values: [&dyn ToSql; 17] = [
        &key(job.id.as_u128()),
        &project,
        &json(&job.act)?,
        &filter,
        &signed(requested),
        &job.who,
        &job.created_at.as_millis(),
        &job.state.as_str(),
        &job.version,
        &job.matched.map(signed),
        &0,
        &json(&job.skipped)?,
        &0,
        &job.cursor,
        &job.walked,
        &job.changed_at.as_millis(),
        &None::<i64>,
    ];
    work.execute(&format!("INSERT INTO job ({JOB}) VALUES {}", super::work::places(1, values.len())), &values)?;
    let numbered: Vec<(i64, DeliveryId)> = (0..).zip(new.ids.iter().copied()).collect();
    let before = "INSERT INTO job_item (job_id, number, delivery_id) VALUES ";
    write_rows(work, (before, 3, ""), &numbered, |to, (number, id)| {
        to.push(key(new.id.as_u128()))?;
        to.push(*number)?;
        to.push(key(id.as_u128()))
    })
}

pub(super) fn step(work: &Work, step: &JobStep) -> Result<JobStepped, StoreError> {
    let job = find(work, step.job_id)?.ok_or(StoreError::NotFound { what: "job" })?;
    if job.version != step.version || job.state != JobState::Running {
        return Ok(JobStepped::Superseded);
    }
    let settlements: Vec<&Settlement> = step.settlements.iter().collect();
    let (mut raced, full) = settle::not_holding(work, &settlements)?;
    for command in &step.commands {
        if !commands::has_taker(work, command, step.now)? {
            raced.push(command.delivery_id);
        }
    }
    if !raced.is_empty() {
        return Ok(JobStepped::Raced(raced));
    }
    if !full.is_empty() {
        return Ok(JobStepped::NoRoom(full));
    }
    settle::settle(work, &settlements)?;
    step.commands.iter().try_for_each(|command| commands::insert(work, command))?;
    let job = job.stepped(step);
    write(work, &job)?;
    job.end_entry(step).map_or(Ok(()), |entry| audit::insert(work, &entry))?;
    Ok(JobStepped::Written(Box::new(job)))
}

pub(super) fn set_state(
    work: &Work,
    id: JobId,
    version: u32,
    state: JobState,
    now: Timestamp,
) -> Result<Job, StoreError> {
    let mut job = find(work, id)?.ok_or(StoreError::NotFound { what: "job" })?;
    if job.version != version {
        return Err(StoreError::Conflict("the job has changed".to_owned()));
    }
    job.version = job.version.saturating_add(1);
    job.state = state;
    job.changed_at = now;
    job.ended_at = state.has_ended().then_some(now);
    write(work, &job)?;
    Ok(job)
}

/// An owner has answered a command of this job.
pub(super) fn answered(work: &Work, id: JobId, answer: CommandAnswer) -> Result<(), StoreError> {
    let Some(mut job) = find(work, id)? else { return Ok(()) };
    job.answered(skip_reason(answer));
    write(work, &job)
}

/// `None`: it was done.
pub(crate) const fn skip_reason(answer: CommandAnswer) -> Option<SkipReason> {
    match answer {
        CommandAnswer::Applied => None,
        CommandAnswer::AlreadyDelivered => Some(SkipReason::AlreadyDelivered),
        CommandAnswer::NotWaiting => Some(SkipReason::WrongStatus),
    }
}

pub(super) fn prune(work: &Work, ended_before: Timestamp, rows_max: u32) -> Result<u64, StoreError> {
    let gone = work.all(
        "SELECT id FROM job WHERE ended_at < ?1 ORDER BY ended_at LIMIT ?2",
        &[&ended_before.as_millis(), &rows_max],
        |row| Ok(row.get::<_, [u8; 16]>(0)?),
    )?;
    for table in ["job_item WHERE job_id", "command WHERE job_id", "job WHERE id"] {
        change_rows(work, &format!("DELETE FROM {table} IN "), &gone)?;
    }
    Ok(gone.len() as u64)
}

pub(super) fn one(connection: &Connection, id: JobId) -> Result<Option<Job>, StoreError> {
    read_one(connection, &format!("SELECT {JOB} FROM job WHERE id = ?1"), &[&key(id.as_u128())], read_job)
}

pub(super) fn page_sql() -> String {
    format!(
        "SELECT {JOB} FROM job WHERE project_id = ?1 AND (created_at, id) < (?2, ?3) ORDER BY created_at DESC, id DESC LIMIT ?4"
    )
}

pub(super) fn page(
    connection: &Connection,
    project_id: ProjectId,
    page: &PageRequest,
) -> Result<Page<Job>, StoreError> {
    let rows = rows_of(page);
    let before = match page.cursor.as_deref() {
        Some(cursor) => cursor.strip_prefix("j.").map(Place::read).ok_or(BAD_CURSOR)??,
        None => Place::NEWEST,
    };
    let room = i64::try_from(rows + 1).unwrap_or(i64::MAX);
    let values = [
        Value::Blob(key(project_id.as_u128()).to_vec()),
        Value::Integer(before.0),
        Value::Blob(key(before.1).to_vec()),
        Value::Integer(room),
    ];
    let mut statement = connection.prepare_cached(&page_sql())?;
    let mut read = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = read.next()? {
        found.push(read_job(row)?);
    }
    Ok(cut(found, rows, |job| format!("j.{}", Place(job.created_at.as_millis(), job.id.as_u128()).write())))
}

pub(super) fn running(connection: &Connection) -> Result<Vec<Job>, StoreError> {
    let sql = format!("SELECT {JOB} FROM job WHERE ended_at IS NULL AND state = 'RUNNING' ORDER BY created_at, id");
    read_all(connection, &sql, &[], read_job)
}

pub(super) fn queues(connection: &Connection, id: JobId) -> Result<Vec<QueueId>, StoreError> {
    let sql = "SELECT DISTINCT queue_id FROM command WHERE job_id = ?1 ORDER BY queue_id";
    read_all(connection, sql, &[&key(id.as_u128())], |row| Ok(QueueId::from_u128(id_of(row.get(0)?))))
}
