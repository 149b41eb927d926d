//! Idempotency keys of requests that act, with their answers (D15). It must not know what was asked.

use async_trait::async_trait;
use postrider_core::Timestamp;

use super::SqliteStore;
use super::work::Work;
use crate::{Claimed, Idempotency, KeptAnswer, KeyedAnswers, StoreError};

#[async_trait]
impl KeyedAnswers for SqliteStore {
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError> {
        self.write(move |work| {
            if let Some(known) = known(work, &key, now)? {
                return Ok(known);
            }
            // However little space is left: what makes room is asked with a key too, and what takes room is refused where it would be stored.
            work.execute(
                "INSERT OR REPLACE INTO keyed_answer (key_hash, request_hash, ends_at) VALUES (?1, ?2, ?3)",
                &[&key.key_hash, &key.request_hash, &key.ends_at.as_millis()],
            )?;
            Ok(Claimed::First)
        })
        .await
    }

    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError> {
        self.write(move |work| {
            match &answer {
                None => work.execute("DELETE FROM keyed_answer WHERE key_hash = ?1", &[&key_hash])?,
                Some(answer) => work.execute(
                    "UPDATE keyed_answer SET status = ?2, location = ?3, body = ?4 WHERE key_hash = ?1",
                    &[&key_hash, &answer.status, &answer.location, &answer.body],
                )?,
            };
            Ok(())
        })
        .await
    }
}

/// What a key that has not ended says of this request.
fn known(work: &Work, key: &Idempotency, now: Timestamp) -> Result<Option<Claimed>, StoreError> {
    work.first(
        "SELECT request_hash, status, location, body FROM keyed_answer WHERE key_hash = ?1 AND ends_at > ?2",
        &[&key.key_hash, &now.as_millis()],
        |row| {
            if row.get::<_, [u8; 32]>(0)? != key.request_hash {
                return Ok(Claimed::KeyReused);
            }
            Ok(match row.get::<_, Option<u16>>(1)? {
                None => Claimed::Unanswered,
                Some(status) => Claimed::Answered(KeptAnswer { status, location: row.get(2)?, body: row.get(3)? }),
            })
        },
    )
}
