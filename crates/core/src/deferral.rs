//! What stops a request before it is made: a deferral, which uses no attempt and moves no ladder (R04, R15).
//!
//! It must not know how anybody waits, nor where what is said here is shown.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::id::DeliveryId;

/// Why a delivery that is due has not been sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeferredBy {
    /// Its endpoint has failed so often in a row that it is left alone for a while.
    Breaker,
    /// As many attempts of its project are under way as may be.
    ProjectConcurrency,
    /// As many attempts at its endpoint are under way as may be.
    EndpointConcurrency,
    ProjectRateLimit,
    EndpointRateLimit,
    /// It waits for an earlier one.
    Ordering,
}

impl DeferredBy {
    pub const ALL: [DeferredBy; 6] = [
        DeferredBy::Breaker,
        DeferredBy::ProjectConcurrency,
        DeferredBy::EndpointConcurrency,
        DeferredBy::ProjectRateLimit,
        DeferredBy::EndpointRateLimit,
        DeferredBy::Ordering,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            DeferredBy::Breaker => "breaker",
            DeferredBy::ProjectConcurrency => "project_concurrency",
            DeferredBy::EndpointConcurrency => "endpoint_concurrency",
            DeferredBy::ProjectRateLimit => "project_rate_limit",
            DeferredBy::EndpointRateLimit => "endpoint_rate_limit",
            DeferredBy::Ordering => "ordering",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        DeferredBy::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// What holds up everything that is due in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferral {
    pub by: DeferredBy,
    /// When the next request may go; `None`: once something else has ended.
    pub until: Option<Timestamp>,
}

/// What holds up one delivery, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deferred {
    pub by: DeferredBy,
    pub until: Option<Timestamp>,
    /// The one that it waits for, with `DeferredBy::Ordering`.
    pub behind: Option<DeliveryId>,
}

/// How many of the free slots that several share one may take who holds `held` already: less than would be free then, so that with one who
/// never gives any back there is always room for the others.
pub fn fair_share(held: u32, free: u32, wanted: u32) -> u32 {
    let mut taken = 0;
    while taken < wanted && held + taken < free - taken {
        taken += 1;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn r04_every_reason_reads_back() {
        for by in DeferredBy::ALL {
            assert_eq!(DeferredBy::parse(by.as_str()), Some(by));
            assert_eq!(serde_json::to_value(by).unwrap(), by.as_str());
        }
    }

    #[test]
    fn r04_one_alone_takes_half_and_leaves_half() {
        assert_eq!(fair_share(0, 20, 50), 10);
        assert_eq!(fair_share(10, 10, 50), 0);
        assert_eq!((fair_share(0, 1, 5), fair_share(1, 1, 5), fair_share(0, 0, 5)), (1, 0, 0));
        assert_eq!(fair_share(0, 20, 3), 3);
    }

    proptest! {
        /// However many take their share one after another, who holds nothing finds a slot as long as the takers are fewer than the slots
        /// allow: with n who hold on to theirs, 2^n slots are enough for one more.
        #[test]
        fn r04_who_holds_nothing_finds_room(slots in 1_u32..1000, hogs in 0_u32..12) {
            let mut free = slots;
            for _ in 0..hogs {
                free -= fair_share(0, free, u32::MAX);
            }
            if slots >= 1 << hogs {
                prop_assert!(fair_share(0, free, 1) == 1, "{slots} slots, {hogs} who hold on");
            }
        }
    }
}
