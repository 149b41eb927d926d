//! Idempotency keys of requests that act, with their answers (D15). It must not know what was asked.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use postrider_core::Timestamp;

use super::PostgresStore;
use super::failures::Outcome;
use super::rows::Cells;
use super::work::Work;
use crate::{Claimed, Idempotency, KeptAnswer, KeyedAnswers, StoreError};

#[async_trait]
impl KeyedAnswers for PostgresStore {
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError> {
        self.write((key, now), |work, (key, now)| claim(work, key, *now).boxed()).await
    }

    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError> {
        self.write((key_hash, answer), |work, (key_hash, answer)| keep(work, key_hash, answer.as_ref()).boxed()).await
    }
}

/// Whoever comes second waits for the first one's row, and finds it.
async fn claim(work: &Work, key: &Idempotency, now: Timestamp) -> Outcome<Claimed> {
    let (key_hash, request_hash) = (&key.key_hash[..], &key.request_hash[..]);
    let taken = "INSERT INTO keyed_answer AS known (key_hash, request_hash, ends_at) VALUES ($1, $2, $3) ON CONFLICT (key_hash) DO UPDATE \
         SET request_hash = excluded.request_hash, ends_at = excluded.ends_at, status = NULL, location = NULL, body = NULL \
         WHERE known.ends_at <= $4";
    if work.execute(taken, &[&key_hash, &request_hash, &key.ends_at.as_millis(), &now.as_millis()]).await? > 0 {
        return Ok(Claimed::First);
    }
    let sql = "SELECT request_hash, status, location, body FROM keyed_answer WHERE key_hash = $1";
    let known = work
        .first(sql, &[&key_hash], |row| {
            let mut at = Cells::of(row);
            if at.take::<&[u8]>()? != request_hash {
                return Ok(Claimed::KeyReused);
            }
            let status: Option<i32> = at.take()?;
            let (location, body) = (at.take()?, at.take()?);
            Ok(match status.map(u16::try_from) {
                None => Claimed::Unanswered,
                Some(Ok(status)) => Claimed::Answered(KeptAnswer { status, location, body }),
                Some(Err(_)) => return Err(StoreError::Corrupt("a status that is none".to_owned())),
            })
        })
        .await?;
    // Given back between the two statements: nobody answers for it, and whoever asks again takes it.
    Ok(known.unwrap_or(Claimed::Unanswered))
}

async fn keep(work: &Work, key_hash: &[u8; 32], answer: Option<&KeptAnswer>) -> Outcome<()> {
    let key_hash = &key_hash[..];
    match answer {
        None => work.execute("DELETE FROM keyed_answer WHERE key_hash = $1", &[&key_hash]).await?,
        Some(answer) => {
            let sql = "UPDATE keyed_answer SET status = $2, location = $3, body = $4 WHERE key_hash = $1";
            let status = i32::from(answer.status);
            work.execute(sql, &[&key_hash, &status, &answer.location, &answer.body]).await?
        }
    };
    Ok(())
}
