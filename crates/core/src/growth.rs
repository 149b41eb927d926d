//! How much a count has grown over a window that slides with the time, in bounded memory (P09).

use std::collections::VecDeque;

use crate::{Timestamp, Wait};

/// At most so many values are kept of one window.
const KEPT_MAX: u64 = 20;

/// What a count was, from the beginning of the window on.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    seen: VecDeque<(Timestamp, u64)>,
}

impl Growth {
    /// Takes the count of now, and says how much more it is than it was when the window began. Until the first value is as old as the window,
    /// that one counts. The window is exact to a twentieth.
    pub fn step(&mut self, now: Timestamp, count: u64, window: Wait) -> u64 {
        let apart = Wait::from_millis(window.as_millis() / KEPT_MAX);
        if self.seen.back().is_none_or(|(at, _)| now.since(*at) >= apart) {
            self.seen.push_back((now, count));
        }
        while self.seen.get(1).is_some_and(|(at, _)| now.since(*at) >= window) {
            self.seen.pop_front();
        }
        self.seen.front().map_or(0, |(_, then)| count.saturating_sub(*then))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Wait = Wait::from_secs(600);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    #[test]
    fn p09_what_grows_steadily_has_grown_steadily_at_every_look() {
        let mut growth = Growth::default();
        for second in 0..7200_i64 {
            let grown = growth.step(at(second), second.unsigned_abs() / 4, WINDOW);
            assert!(second < 600 || (150..=158).contains(&grown), "{grown} after {second} s");
            assert!(growth.seen.len() <= 22, "{}", growth.seen.len());
        }
        // It stops: nothing has grown once the window has passed.
        let last = (7200..7840_i64).map(|second| growth.step(at(second), 1799, WINDOW)).last();
        assert_eq!(last, Some(0));
    }

    #[test]
    fn p09_a_burst_over_the_end_of_ten_minutes_is_one() {
        let mut growth = Growth::default();
        let grown = (0..=20).map(|minute| {
            growth.step(at(minute * 60), u64::from(minute > 9) * 60 + u64::from(minute > 11) * 60, WINDOW)
        });
        assert_eq!(grown.max(), Some(120));
    }

    proptest! {
        #[test]
        fn p09_it_is_never_less_than_came_in_the_window_nor_more_than_came_at_all(steps in prop::collection::vec((0_i64..400, 0_u64..50), 1..200)) {
            let (mut growth, mut now, mut count) = (Growth::default(), 0, 0);
            let mut all = Vec::new();
            for (seconds, more) in steps {
                now += seconds;
                count += more;
                all.push((now, count));
                let grown = growth.step(at(now), count, WINDOW);
                let then = all.iter().rfind(|(then, _)| now - then >= 600).unwrap_or(&all[0]).1;
                prop_assert!(grown >= count - then && grown <= count - all[0].1, "{grown}");
            }
        }
    }
}
