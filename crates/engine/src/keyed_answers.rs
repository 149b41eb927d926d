//! Idempotency keys of requests that act, and their answers (D15). It must not know what was asked, nor how answers look.

use postrider_core::log;
use postrider_store::{Claimed, Idempotency, KeptAnswer};

use crate::engine::Engine;
use crate::entry;
use crate::refusal::Refusal;

impl Engine {
    /// Takes a key for a request, durably, before anything is done about it.
    ///
    /// # Errors
    /// `Conflict` when the key was another request's; the store's own.
    pub async fn claim_answer(&self, key: Idempotency) -> Result<Claimed, Refusal> {
        match self.shared.store.claim_answer(key, self.shared.now()).await? {
            Claimed::KeyReused => Err(entry::key_reused()),
            claimed => Ok(claimed),
        }
    }

    /// The answer for repeats; `None` gives the key back. A store that cannot take it leaves the claim, and repeats are told that the outcome is
    /// not known.
    pub async fn keep_answer(&self, key_hash: [u8; 32], answer: Option<KeptAnswer>) {
        if let Err(error) = self.shared.store.keep_answer(key_hash, answer).await {
            tracing::warn!(event = log::ANSWER_NOT_KEPT, %error, "an answer could not be kept for repeats");
        }
    }
}
