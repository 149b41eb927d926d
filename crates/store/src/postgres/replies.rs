//! Callers who wait in another process than their queue's owner. It must not know what they are told.

use std::collections::BTreeSet;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::delivery::Position;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::outcome::OutcomeState;
use postrider_core::{Answer, Failure};
use tokio_postgres::Row;

use super::PostgresStore;
use super::columns::{Columns, Param, storable};
use super::failures::Outcome;
use super::key::{Id as _, Key};
use super::rows::{Cells, from_json, json};
use super::work::Work;
use crate::{Awaited, CallReply, Patience, Replies, ReplyWrite, Settlement, StoreError};

#[async_trait]
impl Replies for PostgresStore {
    async fn awaited(&self, ids: Vec<DeliveryId>) -> Result<Vec<DeliveryId>, StoreError> {
        self.read(ids, |work, ids| awaited(work, ids).boxed()).await
    }

    async fn begin_awaited(&self, id: DeliveryId) -> Result<bool, StoreError> {
        self.write(id, |work, id| begin(work, *id).boxed()).await
    }

    async fn dismiss_awaited(&self, queue_id: QueueId, behind: Option<Position>) -> Result<u64, StoreError> {
        self.write((queue_id, behind), |work, (id, behind)| dismiss(work, *id, *behind).boxed()).await
    }

    async fn take_reply(&self, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError> {
        self.write((id, patience), |work, (id, patience)| take(work, *id, *patience).boxed()).await
    }
}

pub(super) const AWAITED_SQL: &str = "SELECT delivery_id FROM reply WHERE delivery_id = ANY($1) AND state IS NULL";

async fn awaited(work: &Work, ids: &[DeliveryId]) -> Outcome<Vec<DeliveryId>> {
    let keys: Vec<Key> = ids.iter().map(|id| id.key()).collect();
    work.all(AWAITED_SQL, &[&keys], |row| Ok(DeliveryId::from_u128(Cells::of(row).id()?))).await
}

async fn begin(work: &Work, id: DeliveryId) -> Outcome<bool> {
    let sql = "UPDATE reply SET begun = true WHERE delivery_id = $1 AND state IS NULL";
    Ok(work.execute(sql, &[&id.key()]).await? > 0)
}

pub(super) const DISMISS_SQL: &str =
    "DELETE FROM reply WHERE queue_id = $1 AND position > $2 AND state IS NULL RETURNING delivery_id";

async fn dismiss(work: &Work, queue_id: QueueId, behind: Option<Position>) -> Outcome<u64> {
    let behind = behind.map_or(i64::MIN, |position| position.0);
    let params: [Param<'_>; 2] = [&queue_id.key(), &behind];
    let gone: Vec<u128> = work.changed(DISMISS_SQL, &params, |row| Cells::of(row).id()).await?;
    gone.iter().for_each(|id| work.tell_of_reply(DeliveryId::from_u128(*id)));
    Ok(gone.len() as u64)
}

async fn take(work: &Work, id: DeliveryId, patience: Patience) -> Outcome<Awaited> {
    let sql = "SELECT begun, state, error, failure, headers, status, body, incomplete FROM reply WHERE delivery_id = $1 FOR UPDATE";
    let Some((begun, reply)) = work.first(sql, &[&id.key()], read).await? else { return Ok(Awaited::Gone) };
    let answer = match (reply, patience) {
        (Some(reply), _) => Awaited::Answered(Box::new(reply)),
        (None, Patience::Waits | Patience::LeavesBeforeItsTurn) if begun => return Ok(Awaited::Begun),
        (None, Patience::Waits) => return Ok(Awaited::Waiting),
        (None, Patience::LeavesBeforeItsTurn | Patience::Leaves) => Awaited::Gone,
    };
    work.execute("DELETE FROM reply WHERE delivery_id = $1", &[&id.key()]).await?;
    Ok(answer)
}

/// Whether the attempt has begun, and what the caller is told once that is known.
fn read(row: &Row) -> Result<(bool, Option<CallReply>), StoreError> {
    let mut at = Cells::of(row);
    let begun = at.take()?;
    let Some(state) = at.optional_word(OutcomeState::parse)? else { return Ok((begun, None)) };
    let (error, failure) = (at.take()?, at.optional_word(Failure::parse)?);
    let headers: Option<&str> = at.take()?;
    let answer = match headers {
        Some(headers) => Some(Answer {
            headers: from_json(headers, "a reply's headers")?,
            status: at.optional_number()?,
            said: None,
            body: at.body()?,
            incomplete: at.take()?,
        }),
        None => None,
    };
    Ok((begun, Some(CallReply { state, error, failure, answer })))
}

/// The rows of those whose callers wait, in the transaction that stores them.
pub(super) async fn await_all(work: &Work, awaited: &[(DeliveryId, QueueId, Position, i64)]) -> Outcome<()> {
    let rows = Columns::of(awaited, |to, (id, queue_id, position, ends_at)| {
        to.key(*id);
        to.key(*queue_id);
        to.int(position.0);
        to.int(*ends_at);
    });
    let sql = format!("INSERT INTO reply (delivery_id, queue_id, position, ends_at) SELECT * FROM {}", rows.unnest(1));
    work.write_rows(&sql, &rows).await?;
    Ok(())
}

/// Of these settlements, those whose callers still wait, and will until this is committed; nothing is read where none has a reply.
pub(super) async fn callers_of(work: &Work, run: &[&Settlement]) -> Outcome<BTreeSet<DeliveryId>> {
    let keys: Vec<Key> = run.iter().filter(|one| one.reply.is_some()).map(|one| one.delivery_id.key()).collect();
    if keys.is_empty() {
        return Ok(BTreeSet::new());
    }
    let sql = format!("{AWAITED_SQL} ORDER BY delivery_id FOR UPDATE");
    let found = work.all(&sql, &[&keys], |row| Ok(DeliveryId::from_u128(Cells::of(row).id()?))).await?;
    Ok(found.into_iter().collect())
}

/// Few settlements have one, and each has a body of its own, so each has its own statement.
pub(super) async fn write_all(work: &Work, replies: &[(DeliveryId, &ReplyWrite)]) -> Outcome<()> {
    for (id, write) in replies {
        let CallReply { state, error, failure, answer } = &write.reply;
        let headers = answer.as_ref().map(|answer| json(&answer.headers)).transpose()?;
        let error = error.as_deref().map(|error| storable(error.into()));
        let params: [Param<'_>; 9] = [
            &id.key(),
            &write.ends_at.as_millis(),
            &state.as_str(),
            &error.as_deref(),
            &failure.map(Failure::as_str),
            &answer.as_ref().and_then(|answer| answer.status).map(i64::from),
            &headers,
            &answer.as_ref().map(|answer| answer.body.as_ref()),
            &answer.as_ref().map(|answer| answer.incomplete),
        ];
        let sql = "UPDATE reply SET ends_at = $2, state = $3, error = $4, failure = $5, status = $6, headers = $7, body = $8, \
             incomplete = $9 WHERE delivery_id = $1 AND state IS NULL";
        if work.execute(sql, &params).await? > 0 {
            work.tell_of_reply(*id);
        }
    }
    Ok(())
}
