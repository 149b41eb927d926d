//! The sources as they are now, with their secrets ready, in memory: what comes in is held against them, and none of it asks the store first.
//!
//! What was not let in is counted here and nowhere else: of it nothing is stored (R12). It must not know how a webhook is verified.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use postrider_core::Timestamp;
use postrider_core::id::{ProjectId, SourceId};
use postrider_store::SourceRow;
use postrider_wire::verify::VerificationKey;
use subtle::ConstantTimeEq as _;

/// Rejections that are shown, of one source.
const SHOWN_MAX: usize = 20;
/// Bytes of a rejection's detail, which names headers of whoever sent it.
const DETAIL_CHARS_MAX: usize = 200;

/// A source's row, and what became of its secrets.
pub struct OpenSource {
    pub row: SourceRow,
    /// Why not, in words for an operator. `Ok(None)`: it verifies nothing.
    pub(crate) key: Result<Option<Arc<VerificationKey>>, String>,
    /// Verifies too, for as long as the row says.
    pub(crate) former: Option<Arc<VerificationKey>>,
}

impl OpenSource {
    /// Why its secret cannot be read; everything is refused until it is set anew or the server's own key is back.
    pub fn unreadable(&self) -> Option<&str> {
        self.key.as_ref().err().map(String::as_str)
    }

    /// Those in force.
    pub(crate) fn keys_at(&self, now: Timestamp) -> Result<Vec<&VerificationKey>, String> {
        let mut keys: Vec<&VerificationKey> = self.key.as_ref().map_err(Clone::clone)?.as_deref().into_iter().collect();
        let until = self.row.keys.former_sealed.as_ref().map(|(_, until)| *until);
        if until.is_some_and(|until| now < until) {
            keys.extend(self.former.as_deref());
        }
        Ok(keys)
    }
}

impl std::fmt::Debug for OpenSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenSource").field("source", &self.row.source.id).finish_non_exhaustive()
    }
}

/// What came of what came in, since this process started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceFigures {
    pub accepted: u64,
    pub duplicates: u64,
    pub handshakes: u64,
    /// By the word for why.
    pub rejected: BTreeMap<&'static str, u64>,
    pub last_accepted_at: Option<Timestamp>,
    /// The newest first.
    pub last_rejections: VecDeque<Rejection>,
}

/// One that was not let in. Nothing of it is kept but this.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub at: Timestamp,
    pub reason: &'static str,
    pub detail: String,
    pub address: Option<IpAddr>,
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Accepted,
    Duplicate,
    Handshake,
    Rejected(Rejection),
}

#[derive(Default)]
pub(crate) struct Sources {
    known: RwLock<Known>,
    figures: Mutex<BTreeMap<SourceId, Counted>>,
    /// Requests to addresses that there are not; there is no source to count them at.
    strangers: Mutex<u64>,
}

#[derive(Default)]
struct Known {
    by_id: BTreeMap<SourceId, Arc<OpenSource>>,
    /// By the first bytes of a token's hash, which tell nothing of it; the whole is compared in constant time.
    by_token: BTreeMap<[u8; 8], Vec<Arc<OpenSource>>>,
}

#[derive(Default)]
struct Counted {
    figures: SourceFigures,
    /// The second that is counted, and what came in it.
    this_second: (i64, u32),
}

impl Sources {
    /// Of all projects.
    pub fn all(&self) -> Vec<Arc<OpenSource>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.by_id.values().cloned().collect()
    }

    pub fn of(&self, project: ProjectId) -> Vec<Arc<OpenSource>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.by_id.values().filter(|known| known.row.source.project_id == project).cloned().collect()
    }

    pub fn get(&self, id: SourceId) -> Option<Arc<OpenSource>> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).by_id.get(&id).cloned()
    }

    /// The source that a token of this hash opens now.
    pub fn opened_by(&self, hash: &[u8; 32], now: Timestamp) -> Option<Arc<OpenSource>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let candidates = known.by_token.get(&first_bytes(hash)).map_or(&[][..], Vec::as_slice);
        let mut opened = None;
        for candidate in candidates {
            let keys = &candidate.row.keys;
            let former = keys.former_token.filter(|(_, until)| now < *until).map(|(hash, _)| hash);
            let fits = [Some(keys.token_hash), former].into_iter().flatten().any(|known| known.ct_eq(hash).into());
            if fits {
                opened = Some(Arc::clone(candidate));
            }
        }
        opened
    }

    pub fn put(&self, source: Arc<OpenSource>) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.remove(source.row.source.id);
        known.put(source);
    }

    pub fn replace_all(&self, all: Vec<Arc<OpenSource>>) {
        let mut anew = Known::default();
        all.into_iter().for_each(|source| anew.put(source));
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = anew;
    }

    pub fn remove(&self, id: SourceId) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        self.figures.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Counts one against a limit of so many a second; `false`: that is one too many.
    pub fn has_room(&self, id: SourceId, per_second: u32, now: Timestamp) -> bool {
        let mut figures = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = figures.entry(id).or_default();
        let second = now.as_millis().div_euclid(1000);
        if counted.this_second.0 != second {
            counted.this_second = (second, 0);
        }
        counted.this_second.1 = counted.this_second.1.saturating_add(1);
        counted.this_second.1 <= per_second
    }

    pub fn count(&self, id: SourceId, outcome: Outcome, now: Timestamp) {
        let mut all = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        let figures = &mut all.entry(id).or_default().figures;
        match outcome {
            Outcome::Accepted => {
                figures.accepted += 1;
                figures.last_accepted_at = Some(now);
            }
            Outcome::Duplicate => figures.duplicates += 1,
            Outcome::Handshake => figures.handshakes += 1,
            Outcome::Rejected(mut rejection) => {
                *figures.rejected.entry(rejection.reason).or_default() += 1;
                rejection.detail = rejection.detail.chars().take(DETAIL_CHARS_MAX).collect();
                figures.last_rejections.push_front(rejection);
                figures.last_rejections.truncate(SHOWN_MAX);
            }
        }
    }

    pub fn count_stranger(&self) {
        *self.strangers.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub fn figures(&self, id: SourceId) -> SourceFigures {
        let all = self.figures.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&id).map(|counted| counted.figures.clone()).unwrap_or_default()
    }

    /// All together, by the word for what came of them.
    pub fn totals(&self) -> BTreeMap<&'static str, u64> {
        let strangers = *self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut totals =
            BTreeMap::from([("accepted", 0), ("duplicate", 0), ("handshake", 0), ("unknown_address", strangers)]);
        for counted in self.figures.lock().unwrap_or_else(PoisonError::into_inner).values() {
            let figures = &counted.figures;
            let words =
                [("accepted", figures.accepted), ("duplicate", figures.duplicates), ("handshake", figures.handshakes)];
            for (word, count) in words.into_iter().chain(figures.rejected.iter().map(|(word, count)| (*word, *count))) {
                *totals.entry(word).or_default() += count;
            }
        }
        totals
    }
}

impl Known {
    fn put(&mut self, source: Arc<OpenSource>) {
        let keys = &source.row.keys;
        let hashes = [Some(keys.token_hash), keys.former_token.map(|(hash, _)| hash)];
        for hash in hashes.into_iter().flatten() {
            self.by_token.entry(first_bytes(&hash)).or_default().push(Arc::clone(&source));
        }
        self.by_id.insert(source.row.source.id, source);
    }

    fn remove(&mut self, id: SourceId) {
        let Some(old) = self.by_id.remove(&id) else { return };
        let hashes = [Some(old.row.keys.token_hash), old.row.keys.former_token.map(|(hash, _)| hash)];
        for hash in hashes.into_iter().flatten() {
            if let Some(candidates) = self.by_token.get_mut(&first_bytes(&hash)) {
                candidates.retain(|known| known.row.source.id != id);
            }
        }
    }
}

fn first_bytes(hash: &[u8; 32]) -> [u8; 8] {
    hash.first_chunk().copied().unwrap_or_default()
}
