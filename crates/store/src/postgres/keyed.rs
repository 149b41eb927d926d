//! Idempotency keys (D15). A key is locked before it is looked up, so that two servers that get the same request agree on who was first.
//!
//! It must not know what is stored under a key.

use std::collections::BTreeMap;

use postrider_core::Timestamp;
use postrider_core::id::DeliveryId;

use super::columns::Columns;
use super::failures::Outcome;
use super::rows::Cells;
use super::work::Work;
use crate::{Enqueued, Idempotency, Reserved, StoreError};

type Hash = [u8; 32];

struct Known {
    request_hash: Hash,
    delivery_id: DeliveryId,
    ends_at: Timestamp,
    is_new: bool,
}

/// The keys of one transaction, as they stand in it.
#[derive(Default)]
pub(super) struct Keyed {
    known: BTreeMap<Hash, Known>,
}

impl Keyed {
    /// Locks these keys to the end of the transaction, in their order, and reads what is known of them.
    pub async fn lock(work: &Work, given: impl Iterator<Item = &Idempotency>) -> Outcome<Self> {
        let mut hashes: Vec<Hash> = given.map(|given| given.key_hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        if hashes.is_empty() {
            return Ok(Keyed::default());
        }
        // Two keys with the same beginning wait for each other without need, and that is all.
        let mut locks: Vec<i64> = hashes.iter().map(lock_number).collect();
        locks.sort_unstable();
        work.rows("SELECT pg_advisory_xact_lock(number) FROM unnest($1::bigint[]) AS numbers (number)", &[&locks])
            .await?;
        let keys: Vec<&[u8]> = hashes.iter().map(|hash| &hash[..]).collect();
        let sql = "SELECT key_hash, request_hash, delivery_id, ends_at FROM idempotency WHERE key_hash = ANY($1)";
        let found = work
            .all(sql, &[&keys], |row| {
                let mut at = Cells::of(row);
                let (key, request_hash) = (hash(at.take()?)?, hash(at.take()?)?);
                let delivery_id = DeliveryId::from_u128(at.id()?);
                Ok((key, Known { request_hash, delivery_id, ends_at: at.time()?, is_new: false }))
            })
            .await;
        Ok(Keyed { known: found?.into_iter().collect() })
    }

    /// What a key that has not ended says of this request.
    pub fn repeat_of(&self, given: &Idempotency, now: Timestamp) -> Option<Enqueued> {
        let known = self.known.get(&given.key_hash).filter(|known| known.ends_at > now)?;
        if known.request_hash != given.request_hash {
            return Some(Enqueued::KeyReused);
        }
        Some(Enqueued::Repeated(known.delivery_id))
    }

    pub fn remember(&mut self, given: &Idempotency, delivery_id: DeliveryId) {
        let known = Known { request_hash: given.request_hash, delivery_id, ends_at: given.ends_at, is_new: true };
        self.known.insert(given.key_hash, known);
    }

    pub async fn write(&self, work: &Work) -> Outcome<()> {
        let rows = Columns::of(self.known.iter().filter(|(_, known)| known.is_new), |to, (key, known)| {
            to.bytes(key);
            to.bytes(&known.request_hash);
            to.key(known.delivery_id);
            to.time(known.ends_at);
        });
        let sql = format!(
            "INSERT INTO idempotency (key_hash, request_hash, delivery_id, ends_at) SELECT * FROM {} ON CONFLICT (key_hash) DO UPDATE \
             SET request_hash = excluded.request_hash, delivery_id = excluded.delivery_id, ends_at = excluded.ends_at",
            rows.unnest(1)
        );
        work.write_rows(&sql, &rows).await?;
        Ok(())
    }
}

fn lock_number(hash: &Hash) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    i64::from_be_bytes(first)
}

fn hash(stored: &[u8]) -> Result<Hash, StoreError> {
    stored.try_into().map_err(|_| StoreError::Corrupt("a hash of another length".to_owned()))
}

/// Takes a key for a direct call, before its attempt.
pub(super) async fn reserve(
    work: &Work,
    given: &Idempotency,
    delivery_id: DeliveryId,
    now: Timestamp,
) -> Outcome<Reserved> {
    let mut keys = Keyed::lock(work, std::iter::once(given)).await?;
    match keys.repeat_of(given, now) {
        Some(Enqueued::Repeated(id)) => Ok(Reserved::Repeated(id)),
        Some(_) => Ok(Reserved::KeyReused),
        None => {
            keys.remember(given, delivery_id);
            keys.write(work).await?;
            Ok(Reserved::First)
        }
    }
}
