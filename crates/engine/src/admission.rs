//! What the endpoints of one project may begin and have under way together, as far as this process delivers for them (R04, D45).
//!
//! Several servers and workers share a project's limits evenly, each by the number of those that live; none asks another. It must not know
//! which deliveries wait, nor what an endpoint's own limits are.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use postrider_core::deferral::{Deferral, DeferredBy, fair_share};
use postrider_core::id::{ProjectId, QueueId};
use postrider_core::rate::TokenBucket;
use postrider_core::{Timestamp, Wait, spread};
use postrider_store::ProjectSettings;

use crate::runner::{Inbox, ToRunner};

/// What is promised and not used so long after its time is forgotten.
const PROMISE_KEPT: Wait = Wait::from_secs(1);

#[derive(Default)]
pub(crate) struct Admission(Mutex<BTreeMap<ProjectId, Arc<ProjectGate>>>);

/// One project's part.
#[derive(Default)]
pub(crate) struct ProjectGate(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    rate: Option<TokenBucket>,
    concurrency: Option<u32>,
    under_way: u32,
    /// Queues that found no slot, in the order in which they asked.
    waiting: VecDeque<(QueueId, Inbox)>,
}

/// Tokens that one queue was promised.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promise {
    at: Timestamp,
    count: u32,
}

/// Who asks.
pub(crate) struct Asker<'a> {
    pub queue_id: QueueId,
    pub inbox: &'a Inbox,
    /// Slots of the project that it holds already.
    pub held: u32,
    /// It waits for its turn; else it is told no and comes back by itself.
    pub is_patient: bool,
}

impl Admission {
    pub fn gate(&self, project: ProjectId) -> Arc<ProjectGate> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(gates.entry(project).or_default())
    }
}

impl ProjectGate {
    /// The limits as they are now, of which `workers` have their parts.
    pub fn set_limits(&self, settings: &ProjectSettings, workers: u32) {
        let part = |limit: u32| spread::part_of(limit, workers);
        let mut inner = self.lock();
        inner.concurrency = settings.concurrency.map(part);
        match (settings.rate_limit_per_second.map(part).and_then(NonZeroU32::new), &mut inner.rate) {
            (None, rate) => *rate = None,
            (Some(per_second), Some(bucket)) => bucket.set_rate(per_second),
            (Some(per_second), rate) => *rate = Some(TokenBucket::new(per_second)),
        }
    }

    /// Up to `wanted` slots; 0: who is patient is woken when one is free.
    pub fn take_slots(&self, asker: &Asker<'_>, wanted: u32) -> u32 {
        let mut inner = self.lock();
        let Some(limit) = inner.concurrency else {
            inner.under_way += wanted;
            return wanted;
        };
        let free = limit.saturating_sub(inner.under_way);
        let is_next = inner.waiting.front().is_none_or(|(id, _)| *id == asker.queue_id);
        let taken = if is_next || asker.is_patient { fair_share(asker.held, free, wanted) } else { 0 };
        inner.under_way += taken;
        if taken > 0 {
            inner.waiting.retain(|(id, _)| *id != asker.queue_id);
        } else if asker.is_patient && !inner.waiting.iter().any(|(id, _)| *id == asker.queue_id) {
            inner.waiting.push_back((asker.queue_id, asker.inbox.clone()));
        }
        taken
    }

    pub fn give_back_slots(&self, count: u32) {
        if count == 0 {
            return;
        }
        let next = {
            let mut inner = self.lock();
            inner.under_way = inner.under_way.saturating_sub(count);
            let free = inner.concurrency.map_or(u32::MAX, |limit| limit.saturating_sub(inner.under_way));
            let woken = inner.waiting.len().min(free.min(count) as usize);
            inner.waiting.drain(..woken).collect::<Vec<_>>()
        };
        for (_, inbox) in next {
            // A runner that has ended wants none.
            let _ = inbox.send(ToRunner::Wake);
        }
    }

    /// Tokens for up to `wanted` attempts now.
    ///
    /// # Errors
    /// When to come again; who is patient has tokens then, whatever others do.
    pub fn take_tokens(
        &self,
        promised: &mut Option<Promise>,
        wanted: u32,
        is_patient: bool,
        now: Timestamp,
    ) -> Result<u32, Deferral> {
        let deferred = |until| Deferral { by: DeferredBy::ProjectRateLimit, until: Some(until) };
        let mut inner = self.lock();
        let Some(bucket) = &mut inner.rate else {
            *promised = None;
            return Ok(wanted);
        };
        match *promised {
            Some(promise) if now < promise.at => return Err(deferred(promise.at)),
            Some(promise) if now < promise.at + PROMISE_KEPT => {
                *promised = None;
                bucket.give_back(promise.count.saturating_sub(wanted));
                return Ok(promise.count.min(wanted));
            }
            _ => *promised = None,
        }
        match bucket.take(wanted, now) {
            0 if is_patient => {
                let (at, count) = bucket.promise(wanted, now);
                *promised = Some(Promise { at, count });
                Err(deferred(at))
            }
            0 => Err(deferred(now)),
            taken => Ok(taken),
        }
    }

    pub fn give_back_tokens(&self, count: u32) {
        if let Some(bucket) = &mut self.lock().rate {
            bucket.give_back(count);
        }
    }

    pub fn break_promise(&self, promised: Option<Promise>) {
        self.give_back_tokens(promised.map_or(0, |promise| promise.count));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
