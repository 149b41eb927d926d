//! So many in any so long a time: what people may ask for by hand (V09).
//!
//! Unlike a bucket of tokens it never lets twice as many through within one window. It must not know clocks, nor what is asked for.

use std::collections::VecDeque;

use crate::Wait;

/// How many, and within which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance {
    pub most: usize,
    pub within: Wait,
}

/// Tests, verifications and resends of one project together (V09).
pub const BY_HAND: Allowance = Allowance { most: 10, within: Wait::from_secs(60) };

/// What has been taken lately; at most `most` times are kept. Times are since a beginning that all who take have in common.
#[derive(Clone, Debug, Default)]
pub struct Quota {
    taken_at: VecDeque<Wait>,
}

impl Quota {
    /// As it was kept: milliseconds, the oldest first. Times that a clock which has been put back since could never reach are left out.
    pub fn kept(taken_at: impl IntoIterator<Item = u64>, allowance: Allowance, now: Wait) -> Self {
        let taken_at = taken_at.into_iter().map(Wait::from_millis);
        Quota { taken_at: taken_at.filter(|at| *at <= now + allowance.within).collect() }
    }

    pub fn as_millis(&self) -> Vec<u64> {
        self.taken_at.iter().map(|at| at.as_millis()).collect()
    }

    /// Takes one at `now`.
    ///
    /// # Errors
    /// How long it is until one can be taken.
    pub fn take(&mut self, allowance: Allowance, now: Wait) -> Result<(), Wait> {
        self.forget(allowance, now);
        match self.taken_at.front() {
            Some(oldest) if self.taken_at.len() >= allowance.most => {
                Err((*oldest + allowance.within).saturating_sub(now))
            }
            None if allowance.most == 0 => Err(allowance.within),
            _ => {
                self.taken_at.push_back(now);
                Ok(())
            }
        }
    }

    fn forget(&mut self, allowance: Allowance, now: Wait) {
        while self.taken_at.front().is_some_and(|oldest| *oldest + allowance.within <= now) {
            self.taken_at.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // proves: V09
    #[test]
    fn v09_ten_a_minute_then_the_time_until_the_next() {
        let mut quota = Quota::default();
        for second in 0..10 {
            assert_eq!(quota.take(BY_HAND, Wait::from_secs(second)), Ok(()));
        }
        assert_eq!(quota.take(BY_HAND, Wait::from_secs(15)), Err(Wait::from_secs(45)));
        assert_eq!(quota.take(BY_HAND, Wait::from_millis(59_999)), Err(Wait::from_millis(1)));
        assert_eq!(quota.take(BY_HAND, Wait::from_secs(60)), Ok(()), "the first is a minute old");
        assert_eq!(quota.take(BY_HAND, Wait::from_secs(60)), Err(Wait::from_secs(1)), "the second is not");
    }

    #[test]
    fn v09_what_was_kept_counts_and_a_clock_that_was_put_back_locks_nobody_out() {
        let mut quota = Quota::default();
        for second in 100..110 {
            quota.take(BY_HAND, Wait::from_secs(second)).unwrap();
        }
        let kept = |now: u64| Quota::kept(quota.as_millis(), BY_HAND, Wait::from_secs(now));
        assert_eq!(kept(111).take(BY_HAND, Wait::from_secs(111)), Err(Wait::from_secs(49)));
        assert_eq!(
            kept(99).take(BY_HAND, Wait::from_secs(99)),
            Err(Wait::from_secs(61)),
            "another server's clock is behind"
        );
        assert_eq!(kept(10).take(BY_HAND, Wait::from_secs(10)), Ok(()));
    }

    proptest! {
        #[test]
        fn v09_no_window_holds_more_and_who_waits_as_told_gets_one(
            most in 1usize..6, steps in prop::collection::vec(0u64..40, 1..100),
        ) {
            let allowance = Allowance { most, within: Wait::from_millis(100) };
            let mut quota = Quota::default();
            let mut now = Wait::ZERO;
            let mut taken: Vec<Wait> = Vec::new();
            for step in steps {
                now = now + Wait::from_millis(step);
                match quota.take(allowance, now) {
                    Ok(()) => taken.push(now),
                    Err(wait) => {
                        prop_assert!(wait > Wait::ZERO && wait <= allowance.within);
                        prop_assert_eq!(quota.clone().take(allowance, now + wait), Ok(()));
                        let too_soon = (now + wait).saturating_sub(Wait::from_millis(1));
                        prop_assert!(quota.clone().take(allowance, too_soon.max(now)).is_err());
                    }
                }
                prop_assert!(quota.taken_at.len() <= most);
            }
            for window in taken.windows(most + 1) {
                prop_assert!(window[most].saturating_sub(window[0]) >= allowance.within);
            }
        }
    }
}
