//! Operators' commands to the owner of a queue, and its answers (D06). It must not know how a command is carried out.

use std::collections::BTreeSet;

use bytes::Bytes;
use postrider_core::Timestamp;
use postrider_core::id::{CommandId, DeliveryId, JobId, QueueId};
use tokio_postgres::Row;

use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::queues::{self, Lock, Queue};
use super::rows::Cells;
use super::window::check_lease;
use super::work::Work;
use super::{audit, jobs, ownership};
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
pub(super) async fn submit(work: &Work, command: &Command, now: Timestamp) -> Outcome<bool> {
    let ids = BTreeSet::from([command.queue_id]);
    queues::lock_entries(work, &ids).await?;
    let queues = queues::lock(work, &ids, Lock::Alone).await?;
    let has_taker = has_taker(work, command, queues.get(&command.queue_id), now).await?;
    if has_taker {
        insert(work, command).await?;
    }
    Ok(has_taker)
}

/// Whether the delivery waits in a queue with a living owner. A dead owner loses the queue here and now; its rows are locked.
pub(super) async fn has_taker(work: &Work, command: &Command, queue: Option<&Queue>, now: Timestamp) -> Outcome<bool> {
    let waits = "SELECT 1 FROM delivery WHERE id = $1 AND connection_id = $2 AND position IS NOT NULL";
    if !work.exists(waits, &[&command.delivery_id.key(), &command.queue_id.key()]).await? {
        return Ok(false);
    }
    let Some(owner) = queue.and_then(|queue| queue.owner) else { return Ok(false) };
    if !ownership::living(work, &BTreeSet::from([owner]), now).await?.is_empty() {
        work.tell_of_queue(command.queue_id, Some(owner));
        return Ok(true);
    }
    // The dead owner's lease ends with this, and a change by version may follow.
    ownership::drop_dead_owner(work, command.queue_id).await?;
    Ok(false)
}

pub(super) async fn insert(work: &Work, command: &Command) -> Outcome<()> {
    let body = match &command.act {
        CommandAct::Edit { body } => Some(&body[..]),
        _ => None,
    };
    work.execute(
        "INSERT INTO command (id, queue_id, delivery_id, act, body, issued_at, job_id) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[
            &command.id.key(),
            &command.queue_id.key(),
            &command.delivery_id.key(),
            &act_word(&command.act),
            &body,
            &command.issued_at.as_millis(),
            &command.job_id.map(|id| id.key()),
        ],
    )
    .await?;
    Ok(())
}

pub(super) const OPEN_SQL: &str = "SELECT id, queue_id, delivery_id, act, body, issued_at, job_id FROM command \
     WHERE queue_id = $1 AND answer IS NULL ORDER BY issued_at, id";

pub(super) async fn open(work: &Work, lease: &QueueLease) -> Outcome<Vec<Command>> {
    check_lease(work, lease).await?;
    work.all(OPEN_SQL, &[&lease.queue_id.key()], read_command).await
}

fn read_command(row: &Row) -> Result<Command, StoreError> {
    let mut at = Cells::of(row);
    let id = CommandId::from_u128(at.id()?);
    let queue_id = QueueId::from_u128(at.id()?);
    let delivery_id = DeliveryId::from_u128(at.id()?);
    let act = at.text()?;
    let body: Option<&[u8]> = at.take()?;
    let act = match (act, body) {
        ("edit", Some(body)) => CommandAct::Edit { body: Bytes::copy_from_slice(body) },
        ("discard", _) => CommandAct::Discard,
        ("set_aside", _) => CommandAct::SetAside,
        ("attempt_now", _) => CommandAct::AttemptNow,
        (other, _) => return Err(StoreError::Corrupt(format!("the command `{other}`"))),
    };
    let issued_at = at.time()?;
    let job_id = at.optional_id()?.map(JobId::from_u128);
    Ok(Command { id, queue_id, delivery_id, act, issued_at, job_id })
}

pub(super) async fn answer(work: &Work, lease: &QueueLease, id: CommandId, answer: CommandAnswer) -> Outcome<()> {
    queues::held(work, lease, Lock::Share).await?;
    let known = "SELECT 1 FROM command WHERE id = $1 AND queue_id = $2";
    if !work.exists(known, &[&id.key(), &lease.queue_id.key()]).await? {
        return Err(StoreError::NotFound { what: "command" }.into());
    }
    write_answer(work, id, answer).await
}

/// A command that is gone needs no answer; the first answer stays. One of a job is counted there and goes.
pub(super) async fn write_answer(work: &Work, id: CommandId, answer: CommandAnswer) -> Outcome<()> {
    let gone = "DELETE FROM command WHERE id = $1 AND job_id IS NOT NULL RETURNING job_id";
    let jobs = work.changed(gone, &[&id.key()], |row| Ok(JobId::from_u128(Cells::of(row).id()?))).await?;
    if let Some(job) = jobs.first() {
        return jobs::answered(work, *job, answer).await;
    }
    let sql = "UPDATE command SET answer = $2 WHERE id = $1 AND answer IS NULL";
    let changed = work.execute(sql, &[&id.key(), &answer_word(answer)]).await?;
    if changed > 0 { audit::end_command(work, id, answer).await } else { Ok(()) }
}

/// The queue is gone, and with it whoever could have answered.
pub(super) async fn answer_all_of_queue(work: &Work, queue_id: QueueId) -> Outcome<()> {
    let sql = "SELECT id FROM command WHERE queue_id = $1 AND answer IS NULL";
    let open: Vec<Key> = work.all(sql, &[&queue_id.key()], |row| Cells::of(row).take()).await?;
    for id in open {
        write_answer(work, CommandId::from_u128(id.number()), CommandAnswer::NotWaiting).await?;
    }
    Ok(())
}

pub(super) async fn take_answer(work: &Work, id: CommandId) -> Outcome<Option<CommandAnswer>> {
    let sql = "DELETE FROM command WHERE id = $1 AND answer IS NOT NULL RETURNING answer";
    let taken = work.changed(sql, &[&id.key()], |row| Cells::of(row).word(answer_of)).await?;
    Ok(taken.first().copied())
}
