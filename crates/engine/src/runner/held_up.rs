//! What holds a queue up, as its runner finds it from look to look: kept in memory for every look, written once for those that last (R04).
//!
//! It must not know what is held up.

use postrider_core::deferral::{Deferral, DeferredBy};
use postrider_core::{Timestamp, Wait};

/// What is over sooner is not worth a write.
const WRITTEN_AFTER: Wait = Wait::from_secs(1);

#[derive(Default)]
pub(super) struct HeldUp {
    now: Option<Deferral>,
    /// Since when by the same reason.
    since: Timestamp,
    /// What others see in the store.
    written: Option<DeferredBy>,
    /// A write failed: not before this.
    rest_until: Timestamp,
}

impl HeldUp {
    pub fn find(&mut self, deferral: Option<Deferral>, now: Timestamp) {
        if self.now.map(|known| known.by) != deferral.map(|found| found.by) {
            self.since = now;
        }
        self.now = deferral;
    }

    /// What is to be written now, if anything.
    pub fn to_write(&self, now: Timestamp) -> Option<Option<Deferral>> {
        let lasts = now >= self.since + WRITTEN_AFTER && now >= self.rest_until;
        (self.now.map(|known| known.by) != self.written && lasts).then_some(self.now)
    }

    /// When something may be to be written if nothing changes before.
    pub fn write_at(&self) -> Option<Timestamp> {
        let differs = self.now.map(|known| known.by) != self.written;
        differs.then(|| (self.since + WRITTEN_AFTER).max(self.rest_until))
    }

    pub fn wrote(&mut self, deferral: Option<Deferral>) {
        self.written = deferral.map(|known| known.by);
    }

    pub fn not_written(&mut self, now: Timestamp) {
        self.rest_until = now + WRITTEN_AFTER;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    fn by(by: DeferredBy, until: i64) -> Option<Deferral> {
        Some(Deferral { by, until: Some(at(until)) })
    }

    #[test]
    fn r04_a_deferral_that_lasts_is_written_once() {
        let mut held_up = HeldUp::default();
        let mut writes = 0;
        for ms in (0..60_000).step_by(100) {
            held_up.find(by(DeferredBy::EndpointRateLimit, ms + 100), at(ms));
            if let Some(deferral) = held_up.to_write(at(ms)) {
                held_up.wrote(deferral);
                writes += 1;
                assert!(ms >= 1000, "not worth it before");
            }
        }
        assert_eq!(writes, 1);
        held_up.find(None, at(60_000));
        assert_eq!((held_up.to_write(at(60_500)), held_up.write_at()), (None, Some(at(61_000))));
        assert_eq!(held_up.to_write(at(61_000)), Some(None));
    }

    #[test]
    fn r04_what_is_soon_over_or_cannot_be_written_costs_nothing() {
        let mut held_up = HeldUp::default();
        held_up.find(by(DeferredBy::Breaker, 500), at(0));
        held_up.find(None, at(500));
        assert_eq!((held_up.to_write(at(5000)), held_up.write_at()), (None, None));
        held_up.find(by(DeferredBy::Breaker, 90_000), at(6000));
        assert!(held_up.to_write(at(7000)).is_some());
        held_up.not_written(at(7000));
        assert_eq!((held_up.to_write(at(7500)), held_up.write_at()), (None, Some(at(8000))));
    }
}
