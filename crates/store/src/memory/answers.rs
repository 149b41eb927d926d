//! Idempotency keys of requests that act, with their answers (D15). It must not know what was asked.

use async_trait::async_trait;
use postrider_core::Timestamp;

use super::MemoryStore;
use super::rows::AnswerKey;
use crate::{Claimed, Idempotency, KeptAnswer, KeyedAnswers, StoreError};

#[async_trait]
impl KeyedAnswers for MemoryStore {
    async fn claim_answer(&self, key: Idempotency, now: Timestamp) -> Result<Claimed, StoreError> {
        let mut data = self.open()?;
        if let Some(known) = data.answer_keys.get(&key.key_hash).filter(|known| known.ends_at > now) {
            return Ok(match &known.answer {
                _ if known.request_hash != key.request_hash => Claimed::KeyReused,
                Some(answer) => Claimed::Answered(answer.clone()),
                None => Claimed::Unanswered,
            });
        }
        let claim = AnswerKey { request_hash: key.request_hash, ends_at: key.ends_at, answer: None };
        data.answer_keys.insert(key.key_hash, claim);
        Ok(Claimed::First)
    }

    async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) -> Result<(), StoreError> {
        let mut data = self.open()?;
        match answer {
            None => drop(data.answer_keys.remove(&key_hash)),
            Some(answer) => {
                if let Some(known) = data.answer_keys.get_mut(&key_hash) {
                    known.answer = Some(answer);
                }
            }
        }
        Ok(())
    }
}
