//! The keys that are known, in memory: every request is checked here and none asks the store (P07).
//!
//! A change of this process holds at once; one that another server made is seen within `RELOAD_EVERY`. Of a key there is only its hash, and
//! hashes are compared in constant time. It must not know what a route needs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use postrider_core::Timestamp;
use postrider_core::access::ScopeSet;
use postrider_core::id::{KeyId, ProjectId};
use postrider_store::{ApiKey, KeyHash, Store, StoreError};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::actor::Actor;

/// `keys_reload_every`: a key that another server has revoked works here for this long at most.
pub(crate) const RELOAD_EVERY: Duration = Duration::from_secs(5);
/// `refusals_max`: kinds of refused uses that are counted apart between two writings; what is more is counted together.
const REFUSALS_MAX: usize = 256;
/// Time between two notes of the last use.
const USED_STEP_MS: i64 = 60_000;
/// How much later than the stored time a use must be to be written.
const USED_WRITE_MS: i64 = 5 * 60_000;

/// What a valid key stands for.
#[derive(Debug)]
pub struct KeyHolder {
    pub key: ApiKey,
    /// With its project's id, what a path may call its project.
    project_name: Option<String>,
    last_used_ms: AtomicI64,
    /// The last use that is on disk.
    written_used_ms: AtomicI64,
}

impl KeyHolder {
    pub fn scopes(&self) -> ScopeSet {
        self.key.scopes
    }

    /// Whether the key holds in the project of this name or id. A key of the installation holds in every one.
    pub fn is_of(&self, name_or_id: &str) -> bool {
        match self.key.project_id {
            None => true,
            Some(id) => {
                self.project_name.as_deref() == Some(name_or_id)
                    || name_or_id.parse::<ProjectId>().is_ok_and(|given| given == id)
            }
        }
    }

    /// A key of this process alone, which is nowhere but here.
    pub(crate) fn of_process(id: KeyId, name: &str, scopes: ScopeSet, key: &[u8], now: Timestamp) -> KeyHolder {
        let key = ApiKey {
            id,
            project_id: None,
            name: name.to_owned(),
            scopes,
            hash: hash_of(key),
            hint: String::new(),
            former: None,
            version: 1,
            created_at: now,
            rotated_at: None,
            expires_at: None,
            last_used_at: None,
        };
        let (last_used_ms, written_used_ms) = (AtomicI64::new(0), AtomicI64::new(0));
        KeyHolder { key, project_name: None, last_used_ms, written_used_ms }
    }

    pub(crate) fn is_opened_by(&self, presented: &[u8]) -> bool {
        self.key.hash.0.ct_eq(&hash_of(presented).0).into()
    }

    pub fn actor(&self, address: Option<IpAddr>) -> Actor {
        Actor { id: self.key.id.to_string(), name: self.key.name.clone(), address }
    }

    pub fn last_used_at(&self) -> Option<Timestamp> {
        Some(self.last_used_ms.load(Ordering::Relaxed)).filter(|ms| *ms > 0).map(Timestamp::from_millis)
    }
}

/// Why a key was not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyRefused {
    /// No such key, or it has expired.
    Unknown,
    ForeignProject,
    ScopeTooSmall,
    /// A wrong name or password in the dashboard.
    LogIn,
}

impl KeyRefused {
    pub(crate) const fn action(self) -> &'static str {
        match self {
            KeyRefused::Unknown => "key.refused",
            KeyRefused::ForeignProject => "key.refused.foreign_project",
            KeyRefused::ScopeTooSmall => "key.refused.scope",
            KeyRefused::LogIn => "user.log_in.refused",
        }
    }
}

/// Refused uses of one kind, by one actor, from one address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RefusedUse {
    pub why: KeyRefused,
    pub project_id: Option<ProjectId>,
    pub actor_id: String,
    pub actor_name: String,
    pub address: Option<IpAddr>,
}

#[derive(Default)]
pub(crate) struct KeyBook {
    book: RwLock<Book>,
    refused: Mutex<BTreeMap<RefusedUse, u64>>,
}

#[derive(Default)]
struct Book {
    by_id: BTreeMap<KeyId, Arc<KeyHolder>>,
    /// By the first bytes of the hash, which tell nothing of the key; the whole hash is compared in constant time.
    by_hash: BTreeMap<[u8; 8], Vec<Entrance>>,
    /// Raised by every change, so that a reload that began before one does not undo it.
    changes: u64,
}

#[derive(Clone)]
struct Entrance {
    hash: KeyHash,
    works_until: Option<Timestamp>,
    holder: Arc<KeyHolder>,
}

pub(crate) fn hash_of(key: &[u8]) -> KeyHash {
    KeyHash(Sha256::digest(key).into())
}

fn first_bytes(hash: KeyHash) -> [u8; 8] {
    hash.0.first_chunk().copied().unwrap_or_default()
}

impl KeyBook {
    /// All keys anew, as the store has them.
    pub async fn load(&self, store: &dyn Store) -> Result<(), StoreError> {
        let changes = self.book.read().unwrap_or_else(PoisonError::into_inner).changes;
        let keys = store.api_keys().await?;
        // Names of projects never change, so they are asked for only when a key of an unknown one has come.
        let mut names = self.project_names();
        if keys.iter().any(|key| key.project_id.is_some_and(|id| !names.contains_key(&id))) {
            names = store.projects().await?.into_iter().map(|project| (project.id, project.name)).collect();
        }
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        if book.changes != changes {
            return Ok(());
        }
        let former = std::mem::take(&mut *book);
        for key in keys {
            let project_name = key.project_id.and_then(|id| names.get(&id).cloned());
            book.put(key, project_name, &former.by_id);
        }
        book.changes = former.changes;
        Ok(())
    }

    fn project_names(&self) -> BTreeMap<ProjectId, String> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let named =
            book.by_id.values().filter_map(|holder| Some((holder.key.project_id?, holder.project_name.clone()?)));
        named.collect()
    }

    /// What this key stands for, if it is one that works now.
    pub fn holder(&self, presented: &[u8], now: Timestamp) -> Option<Arc<KeyHolder>> {
        let hash = hash_of(presented);
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let found = book.by_hash.get(&first_bytes(hash))?.iter().find(|known| known.hash.0.ct_eq(&hash.0).into())?;
        if found.works_until.is_some_and(|end| end <= now) {
            return None;
        }
        let holder = Arc::clone(&found.holder);
        drop(book);
        let now_ms = now.as_millis();
        if now_ms - holder.last_used_ms.load(Ordering::Relaxed) >= USED_STEP_MS {
            holder.last_used_ms.fetch_max(now_ms, Ordering::Relaxed);
        }
        Some(holder)
    }

    pub fn put(&self, key: ApiKey, project_name: Option<String>) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        let former = book.remove(key.id).map(|holder| (key.id, holder)).into_iter().collect();
        book.put(key, project_name, &former);
        book.changes += 1;
    }

    pub fn remove(&self, id: KeyId) {
        let mut book = self.book.write().unwrap_or_else(PoisonError::into_inner);
        book.remove(id);
        book.changes += 1;
    }

    pub fn get(&self, id: KeyId) -> Option<Arc<KeyHolder>> {
        self.book.read().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }

    /// In the order of their ids, which is that of their making.
    pub fn of_project(&self, project_id: Option<ProjectId>) -> Vec<Arc<KeyHolder>> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        book.by_id.values().filter(|holder| holder.key.project_id == project_id).cloned().collect()
    }

    /// Keys whose last use is worth writing, with its time.
    pub fn unwritten_uses(&self) -> Vec<(KeyId, Timestamp)> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let uses = book.by_id.values().filter_map(|holder| {
            let used = holder.last_used_at()?;
            let written_ms = holder.written_used_ms.load(Ordering::Relaxed);
            (used.as_millis() - written_ms >= USED_WRITE_MS).then_some((holder.key.id, used))
        });
        uses.collect()
    }

    /// They are on disk now.
    pub fn uses_written(&self, uses: &[(KeyId, Timestamp)]) {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        for (id, at) in uses {
            if let Some(holder) = book.by_id.get(id) {
                holder.written_used_ms.fetch_max(at.as_millis(), Ordering::Relaxed);
            }
        }
    }

    pub fn note_refused(&self, refused: RefusedUse) {
        let mut counts = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = if counts.len() < REFUSALS_MAX || counts.contains_key(&refused) {
            refused
        } else {
            RefusedUse {
                project_id: None,
                actor_id: "several".to_owned(),
                actor_name: "several".to_owned(),
                address: None,
                ..refused
            }
        };
        *counts.entry(refused).or_default() += 1;
    }

    pub fn take_refused(&self) -> BTreeMap<RefusedUse, u64> {
        std::mem::take(&mut *self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Book {
    fn put(&mut self, key: ApiKey, project_name: Option<String>, former: &BTreeMap<KeyId, Arc<KeyHolder>>) {
        let known = |ms: fn(&KeyHolder) -> &AtomicI64| {
            former.get(&key.id).map_or(0, |holder| ms(holder).load(Ordering::Relaxed))
        };
        let stored = key.last_used_at.map_or(0, Timestamp::as_millis);
        let written = stored.max(known(|holder| &holder.written_used_ms));
        let used = written.max(known(|holder| &holder.last_used_ms));
        let (last_used_ms, written_used_ms) = (AtomicI64::new(used), AtomicI64::new(written));
        let holder = Arc::new(KeyHolder { key, project_name, last_used_ms, written_used_ms });
        let ends = holder.key.expires_at;
        let mut entrances = vec![(holder.key.hash, ends)];
        // The key before a rotation ends with the overlap, and never later than the key itself.
        entrances.extend(holder.key.former.map(|former| {
            let end = ends.map_or(former.works_until, |end| end.min(former.works_until));
            (former.hash, Some(end))
        }));
        for (hash, works_until) in entrances {
            let entrance = Entrance { hash, works_until, holder: Arc::clone(&holder) };
            self.by_hash.entry(first_bytes(hash)).or_default().push(entrance);
        }
        self.by_id.insert(holder.key.id, holder);
    }

    fn remove(&mut self, id: KeyId) -> Option<Arc<KeyHolder>> {
        let holder = self.by_id.remove(&id)?;
        let hashes = [Some(holder.key.hash), holder.key.former.map(|former| former.hash)];
        for first in hashes.into_iter().flatten().map(first_bytes) {
            if let Some(entrances) = self.by_hash.get_mut(&first) {
                entrances.retain(|entrance| entrance.holder.key.id != id);
                if entrances.is_empty() {
                    self.by_hash.remove(&first);
                }
            }
        }
        Some(holder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::access::Scope;
    use postrider_store::FormerKey;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(1_000_000_000_000 + ms)
    }

    fn key(text: &str) -> ApiKey {
        ApiKey {
            id: KeyId::from_u128(1),
            project_id: Some(ProjectId::from_u128(5)),
            name: "ci".to_owned(),
            scopes: ScopeSet::of(&[Scope::Read]),
            hash: hash_of(text.as_bytes()),
            hint: String::new(),
            former: None,
            version: 1,
            created_at: at(0),
            rotated_at: None,
            expires_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn p07_only_a_key_that_works_now_has_a_holder() {
        let book = KeyBook::default();
        book.put(ApiKey { expires_at: Some(at(100)), ..key("one") }, Some("default".to_owned()));
        let holder = book.holder(b"one", at(0)).unwrap();
        assert!(holder.is_of("default") && holder.is_of(&ProjectId::from_u128(5).to_string()));
        assert!(!holder.is_of("other") && !holder.is_of(&ProjectId::from_u128(6).to_string()) && !holder.is_of(""));
        for wrong in [&b""[..], b"on", b"one ", b"ONE"] {
            assert!(book.holder(wrong, at(0)).is_none());
        }
        assert!(book.holder(b"one", at(99)).is_some());
        assert!(book.holder(b"one", at(100)).is_none());
        book.remove(KeyId::from_u128(1));
        assert!(book.holder(b"one", at(0)).is_none());
    }

    #[test]
    fn p07_after_a_rotation_both_keys_work_until_the_overlap_ends() {
        let book = KeyBook::default();
        book.put(key("one"), None);
        let former = Some(FormerKey { hash: hash_of(b"one"), works_until: at(50) });
        book.put(ApiKey { former, version: 2, ..key("two") }, None);
        assert!(book.holder(b"one", at(49)).is_some() && book.holder(b"two", at(49)).is_some());
        assert!(book.holder(b"one", at(50)).is_none() && book.holder(b"two", at(50)).is_some());
    }

    #[test]
    fn the_last_use_is_written_seldom() {
        let book = KeyBook::default();
        book.put(key("one"), None);
        assert!(book.unwritten_uses().is_empty());
        book.holder(b"one", at(1));
        book.holder(b"one", at(2));
        let uses = book.unwritten_uses();
        assert_eq!(uses, [(KeyId::from_u128(1), at(1))]);
        book.uses_written(&uses);
        book.holder(b"one", at(120_000));
        assert!(book.unwritten_uses().is_empty(), "two minutes later is not worth a write");
        book.holder(b"one", at(600_000));
        assert_eq!(book.unwritten_uses(), [(KeyId::from_u128(1), at(600_000))]);
    }

    #[test]
    fn p07_refused_uses_are_counted_within_a_bound() {
        let book = KeyBook::default();
        let refused = |n: u32| RefusedUse {
            why: KeyRefused::Unknown,
            project_id: None,
            actor_id: "unknown".to_owned(),
            actor_name: "unknown".to_owned(),
            address: Some(IpAddr::V4(n.into())),
        };
        for n in 0..10_000 {
            book.note_refused(refused(n));
            book.note_refused(refused(0));
        }
        let counts = book.take_refused();
        assert_eq!(counts.len(), REFUSALS_MAX + 1);
        assert_eq!(counts.values().sum::<u64>(), 20_000);
        assert_eq!(counts[&refused(0)], 10_001);
        assert!(book.take_refused().is_empty());
    }
}
