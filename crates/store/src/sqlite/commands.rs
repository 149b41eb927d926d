//! Operators' commands to the owner of a queue, and its answers (D06). It must not know how a command is carried out.

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::id::{CommandId, DeliveryId, JobId, QueueId};
use rusqlite::{Connection, Row};

use super::ownership::has_living_owner;
use super::rows::{Columns, id_of, key, read_all};
use super::window::check_lease;
use super::work::Work;
use super::{jobs, queues};
use crate::{Command, CommandAct, CommandAnswer, QueueLease, StoreError};

const fn act_word(act: &CommandAct) -> &'static str {
    match act {
        CommandAct::Edit { .. } => "edit",
        CommandAct::Discard => "discard",
        CommandAct::SetAside => "set_aside",
        CommandAct::AttemptNow => "attempt_now",
    }
}

const fn answer_word(answer: CommandAnswer) -> &'static str {
    match answer {
        CommandAnswer::Applied => "applied",
        CommandAnswer::AlreadyDelivered => "already_delivered",
        CommandAnswer::NotWaiting => "not_waiting",
    }
}

fn answer_of(word: &str) -> Option<CommandAnswer> {
    [CommandAnswer::Applied, CommandAnswer::AlreadyDelivered, CommandAnswer::NotWaiting]
        .into_iter()
        .find(|answer| answer_word(*answer) == word)
}

/// `false` when nobody holds the queue: then the change is made by version.
pub(super) fn submit(work: &Work, command: &Command, now: Timestamp) -> Result<bool, StoreError> {
    let has_taker = has_taker(work, command, now)?;
    if has_taker {
        insert(work, command)?;
    }
    Ok(has_taker)
}

/// Whether the delivery waits in a queue with a living owner. A dead owner loses the queue here and now.
pub(super) fn has_taker(work: &Work, command: &Command, now: Timestamp) -> Result<bool, StoreError> {
    let waits = work.first(
        "SELECT 1 FROM delivery WHERE id = ?1 AND connection_id = ?2 AND position IS NOT NULL",
        &[&key(command.delivery_id.as_u128()), &key(command.queue_id.as_u128())],
        |_| Ok(()),
    )?;
    let Some(queue) = queues::find(work, command.queue_id)?.filter(|_| waits.is_some()) else { return Ok(false) };
    if has_living_owner(work, &queue, now)? {
        return Ok(true);
    }
    if queue.owner.is_some() {
        // The dead owner's lease ends with this, and a change by version may follow.
        queues::change(work, queue.id, |queue| queue.owner = None);
    }
    Ok(false)
}

pub(super) fn insert(work: &Work, command: &Command) -> Result<(), StoreError> {
    let body = match &command.act {
        CommandAct::Edit { body } => Some(&body[..]),
        _ => None,
    };
    work.execute(
        "INSERT INTO command (id, queue_id, delivery_id, act, body, issued_at, job_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        &[
            &key(command.id.as_u128()),
            &key(command.queue_id.as_u128()),
            &key(command.delivery_id.as_u128()),
            &act_word(&command.act),
            &body,
            &command.issued_at.as_millis(),
            &command.job_id.map(|id| key(id.as_u128())),
        ],
    )?;
    Ok(())
}

pub(super) fn open(connection: &Connection, lease: &QueueLease) -> Result<Vec<Command>, StoreError> {
    check_lease(connection, lease)?;
    read_all(
        connection,
        "SELECT id, queue_id, delivery_id, act, body, issued_at, job_id FROM command WHERE queue_id = ?1 AND answer IS NULL \
         ORDER BY issued_at, id",
        &[&key(lease.queue_id.as_u128())],
        read_command,
    )
}

fn read_command(row: &Row<'_>) -> Result<Command, StoreError> {
    let mut at = Columns { row, next: 0 };
    let id = CommandId::from_u128(at.id()?);
    let queue_id = QueueId::from_u128(at.id()?);
    let delivery_id = DeliveryId::from_u128(at.id()?);
    let act: String = at.take()?;
    let body: Option<Vec<u8>> = at.take()?;
    let act = match (act.as_str(), body) {
        ("edit", Some(body)) => CommandAct::Edit { body: Bytes::from(body) },
        ("discard", _) => CommandAct::Discard,
        ("set_aside", _) => CommandAct::SetAside,
        ("attempt_now", _) => CommandAct::AttemptNow,
        (other, _) => return Err(StoreError::Corrupt(format!("the command `{other}`"))),
    };
    let issued_at = Timestamp::from_millis(at.take()?);
    let job_id = at.optional_id()?.map(JobId::from_u128);
    Ok(Command { id, queue_id, delivery_id, act, issued_at, job_id })
}

pub(super) fn answer(work: &Work, lease: &QueueLease, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
    queues::held(work, lease)?;
    let known = work.first(
        "SELECT 1 FROM command WHERE id = ?1 AND queue_id = ?2",
        &[&key(id.as_u128()), &key(lease.queue_id.as_u128())],
        |_| Ok(()),
    )?;
    known.ok_or(StoreError::NotFound { what: "command" })?;
    write_answer(work, id, answer)
}

/// A command that is gone needs no answer; the first answer stays. One of a job is counted there and goes.
pub(super) fn write_answer(work: &Work, id: CommandId, answer: CommandAnswer) -> Result<(), StoreError> {
    let job = work.first(
        "DELETE FROM command WHERE id = ?1 AND job_id IS NOT NULL RETURNING job_id",
        &[&key(id.as_u128())],
        |row| Ok(JobId::from_u128(id_of(row.get(0)?))),
    )?;
    if let Some(job) = job {
        return jobs::answered(work, job, answer);
    }
    work.execute(
        "UPDATE command SET answer = ?2 WHERE id = ?1 AND answer IS NULL",
        &[&key(id.as_u128()), &answer_word(answer)],
    )?;
    Ok(())
}

/// The queue is gone, and with it whoever could have answered.
pub(super) fn answer_all_of_queue(work: &Work, queue_id: QueueId) -> Result<(), StoreError> {
    let open = work.all(
        "SELECT id FROM command WHERE queue_id = ?1 AND answer IS NULL",
        &[&key(queue_id.as_u128())],
        |row| Ok(CommandId::from_u128(id_of(row.get(0)?))),
    )?;
    open.into_iter().try_for_each(|id| write_answer(work, id, CommandAnswer::NotWaiting))
}

pub(super) fn take_answer(work: &Work, id: CommandId) -> Result<Option<CommandAnswer>, StoreError> {
    work.first(
        "DELETE FROM command WHERE id = ?1 AND answer IS NOT NULL RETURNING answer",
        &[&key(id.as_u128())],
        |row| Columns { row, next: 0 }.word(answer_of),
    )
}
