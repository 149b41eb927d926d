//! Callers who wait in another process than their queue's owner. It must not know what they are told.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use postrider_core::delivery::Position;
use postrider_core::id::{DeliveryId, QueueId};
use postrider_core::outcome::OutcomeState;
use postrider_core::{Answer, Failure};
use rusqlite::Row;

use super::SqliteStore;
use super::rows::{Columns, from_json, id_of, json, key, read_one};
use super::work::{Work, read_rows, write_rows};
use crate::{Awaited, CallReply, Patience, Replies, ReplyWrite, Settlement, StoreError};

#[async_trait]
impl Replies for SqliteStore {
    async fn awaited(&self, ids: Vec<DeliveryId>) -> Result<Vec<DeliveryId>, StoreError> {
        self.read(move |connection| {
            let mut found = Vec::new();
            for id in ids {
                let sql = "SELECT 1 FROM reply WHERE delivery_id = ?1 AND state IS NULL";
                if read_one(connection, sql, &[&key(id.as_u128())], |_| Ok(()))?.is_some() {
                    found.push(id);
                }
            }
            Ok(found)
        })
        .await
    }

    async fn begin_awaited(&self, id: DeliveryId) -> Result<bool, StoreError> {
        self.write(move |work| {
            let sql = "UPDATE reply SET begun = 1 WHERE delivery_id = ?1 AND state IS NULL";
            Ok(work.execute(sql, &[&key(id.as_u128())])? > 0)
        })
        .await
    }

    async fn dismiss_awaited(&self, queue_id: QueueId, behind: Option<Position>) -> Result<u64, StoreError> {
        self.write(move |work| {
            let behind = behind.map_or(i64::MIN, |position| position.0);
            let sql = "DELETE FROM reply WHERE queue_id = ?1 AND position > ?2 AND state IS NULL";
            Ok(work.execute(sql, &[&key(queue_id.as_u128()), &behind])? as u64)
        })
        .await
    }

    async fn take_reply(&self, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError> {
        self.write(move |work| take(work, id, patience)).await
    }
}

fn take(work: &Work, id: DeliveryId, patience: Patience) -> Result<Awaited, StoreError> {
    let sql =
        "SELECT begun, state, error, failure, headers, status, body, incomplete FROM reply WHERE delivery_id = ?1";
    let Some((begun, reply)) = work.first(sql, &[&key(id.as_u128())], read)? else { return Ok(Awaited::Gone) };
    let answer = match (reply, patience) {
        (Some(reply), _) => Awaited::Answered(Box::new(reply)),
        (None, Patience::Waits | Patience::LeavesBeforeItsTurn) if begun => return Ok(Awaited::Begun),
        (None, Patience::Waits) => return Ok(Awaited::Waiting),
        (None, Patience::LeavesBeforeItsTurn | Patience::Leaves) => Awaited::Gone,
    };
    work.execute("DELETE FROM reply WHERE delivery_id = ?1", &[&key(id.as_u128())])?;
    Ok(answer)
}

/// Whether the attempt has begun, and what the caller is told once that is known.
fn read(row: &Row<'_>) -> Result<(bool, Option<CallReply>), StoreError> {
    let mut at = Columns { row, next: 0 };
    let begun = at.take()?;
    let Some(state) = at.optional_word(OutcomeState::parse)? else { return Ok((begun, None)) };
    let (error, failure) = (at.take()?, at.optional_word(Failure::parse)?);
    let headers: Option<String> = at.take()?;
    let answer = match headers {
        Some(headers) => Some(Answer {
            headers: from_json(&headers, "a reply's headers")?,
            status: at.take()?,
            said: None,
            body: Bytes::from(at.take::<Vec<u8>>()?),
            incomplete: at.take()?,
        }),
        None => None,
    };
    Ok((begun, Some(CallReply { state, error, failure, answer })))
}

/// The rows of those whose callers wait, in the transaction that stores them.
pub(super) fn await_all(work: &Work, awaited: &[(DeliveryId, QueueId, i64, i64)]) -> Result<(), StoreError> {
    let before = "INSERT INTO reply (delivery_id, queue_id, position, ends_at) VALUES ";
    write_rows(work, (before, 4, ""), awaited, |to, (id, queue_id, position, ends_at)| {
        to.push(key(id.as_u128()))?;
        to.push(key(queue_id.as_u128()))?;
        to.push(*position)?;
        to.push(*ends_at)
    })
}

/// Of these settlements, those whose callers still wait; nothing is read where none has a reply.
pub(super) fn callers_of(work: &Work, run: &[&Settlement]) -> Result<BTreeSet<DeliveryId>, StoreError> {
    let keys: Vec<[u8; 16]> =
        run.iter().filter(|one| one.reply.is_some()).map(|one| key(one.delivery_id.as_u128())).collect();
    let mut found = BTreeSet::new();
    read_rows(work, ("SELECT delivery_id FROM reply WHERE state IS NULL AND delivery_id IN ", ""), &keys, |row| {
        found.insert(DeliveryId::from_u128(id_of(row.get(0)?)));
        Ok(())
    })?;
    Ok(found)
}

pub(super) fn write(work: &Work, id: DeliveryId, write: &ReplyWrite) -> Result<(), StoreError> {
    let CallReply { state, error, failure, answer } = &write.reply;
    let headers = answer.as_ref().map(|answer| json(&answer.headers)).transpose()?;
    work.execute(
        "UPDATE reply SET ends_at = ?2, state = ?3, error = ?4, failure = ?5, status = ?6, headers = ?7, body = ?8, incomplete = ?9 \
         WHERE delivery_id = ?1 AND state IS NULL",
        &[
            &key(id.as_u128()),
            &write.ends_at.as_millis(),
            &state.as_str(),
            error,
            &failure.map(Failure::as_str),
            &answer.as_ref().and_then(|answer| answer.status),
            &headers,
            &answer.as_ref().map(|answer| answer.body.as_ref()),
            &answer.as_ref().map(|answer| answer.incomplete),
        ],
    )?;
    Ok(())
}
