//! What flowed in the last hour, day and week, in buckets of a fixed number: a history that cannot grow.
//!
//! `now` is an argument; what is late goes into the newest bucket. It must not know what is counted in it, nor who asks.

use crate::{Timestamp, Wait};

/// How far back somebody looks. Each has buckets of its own width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRange {
    Hour,
    Day,
    Week,
}

impl FlowRange {
    pub const ALL: [FlowRange; 3] = [FlowRange::Hour, FlowRange::Day, FlowRange::Week];
    /// For refusals.
    pub const ALLOWED: &'static str = "one of hour, day, week";

    pub const fn as_str(self) -> &'static str {
        match self {
            FlowRange::Hour => "hour",
            FlowRange::Day => "day",
            FlowRange::Week => "week",
        }
    }

    pub fn parse(text: &str) -> Option<FlowRange> {
        FlowRange::ALL.into_iter().find(|range| range.as_str() == text)
    }

    /// The width of a bucket.
    pub const fn step(self) -> Wait {
        match self {
            FlowRange::Hour => Wait::from_secs(60),
            FlowRange::Day => Wait::from_secs(600),
            FlowRange::Week => Wait::from_secs(3600),
        }
    }

    pub const fn buckets(self) -> usize {
        match self {
            FlowRange::Hour => 60,
            FlowRange::Day => 144,
            FlowRange::Week => 168,
        }
    }
}

/// One range of buckets, the oldest of which is given up for the newest.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    range: FlowRange,
    /// By their number modulo how many there are.
    buckets: Vec<T>,
    /// The number of the newest bucket, in steps since 1970; `None` before the first.
    newest: Option<i64>,
}

impl<T: Clone + Default> Ring<T> {
    pub fn new(range: FlowRange) -> Self {
        Ring { range, buckets: vec![T::default(); range.buckets()], newest: None }
    }

    /// The bucket of this time; of the newest, when the clock went back.
    pub fn at(&mut self, now: Timestamp) -> &mut T {
        let wanted = number(self.range, now);
        let newest = self.newest.map_or(wanted, |newest| newest.max(wanted));
        let len = self.buckets.len() as i64;
        let first_new = self.newest.map_or(newest - len, |known| known.max(newest - len)) + 1;
        for fresh in first_new..=newest {
            self.buckets[place(fresh, len)] = T::default();
        }
        self.newest = Some(newest);
        &mut self.buckets[place(newest, len)]
    }

    /// Every bucket up to now, oldest first, each with the time at which it begins; those in which nothing happened are empty.
    pub fn read(&self, now: Timestamp) -> Vec<(Timestamp, T)> {
        let len = self.buckets.len() as i64;
        let last = number(self.range, now);
        let step = self.range.step().as_millis() as i64;
        let kept = |wanted: i64| self.newest.is_some_and(|newest| wanted <= newest && wanted > newest - len);
        (last - len + 1..=last)
            .map(|wanted| {
                let bucket = if kept(wanted) { self.buckets[place(wanted, len)].clone() } else { T::default() };
                (Timestamp::from_millis(wanted * step), bucket)
            })
            .collect()
    }

    /// Whether nothing has happened within the range.
    pub fn is_quiet(&self, now: Timestamp) -> bool {
        self.newest.is_none_or(|newest| newest + (self.buckets.len() as i64) <= number(self.range, now))
    }
}

fn number(range: FlowRange, at: Timestamp) -> i64 {
    at.as_millis().div_euclid(range.step().as_millis() as i64)
}

fn place(number: i64, len: i64) -> usize {
    number.rem_euclid(len) as usize
}

/// The value below which this part of the observations lies, as far as buckets tell: the upper bound of its bucket, with what lies within spread
/// evenly. `None` without observations. What is over the last bound counts as that bound.
pub fn quantile(bounds: &[u64], counts: &[u32], part: f64) -> Option<u64> {
    let all: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    if all == 0 {
        return None;
    }
    let wanted = part * all as f64;
    let mut below = 0.0;
    for (index, count) in counts.iter().enumerate() {
        let here = f64::from(*count);
        if here > 0.0 && below + here >= wanted {
            let low = if index == 0 { 0 } else { bounds[(index - 1).min(bounds.len() - 1)] };
            let high = bounds[index.min(bounds.len() - 1)];
            let within = ((wanted - below) / here).clamp(0.0, 1.0);
            return Some(low + ((high.saturating_sub(low)) as f64 * within).round() as u64);
        }
        below += here;
    }
    bounds.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(1_773_000_000_000 / 60_000 * 60_000 + minutes * 60_000 + 30_000)
    }

    fn shown(ring: &Ring<u32>, now: i64) -> Vec<u32> {
        ring.read(at(now)).into_iter().map(|(_, count)| count).collect()
    }

    #[test]
    fn p05_a_bucket_is_kept_for_its_range_and_no_longer() {
        let mut ring = Ring::<u32>::new(FlowRange::Hour);
        assert!(ring.is_quiet(at(0)));
        *ring.at(at(0)) += 1;
        *ring.at(at(0)) += 1;
        *ring.at(at(2)) += 5;
        assert_eq!(shown(&ring, 2)[57..], [2, 0, 5]);
        assert_eq!(shown(&ring, 59)[0..3], [2, 0, 5]);
        assert_eq!(shown(&ring, 60)[0..2], [0, 5]);
        assert_eq!(shown(&ring, 62), [0; 60]);
        assert!(ring.is_quiet(at(62)) && !ring.is_quiet(at(61)));
        *ring.at(at(1000)) += 7;
        assert_eq!((shown(&ring, 1000)[59], shown(&ring, 1000)[..59].iter().sum::<u32>()), (7, 0));
    }

    #[test]
    fn p05_a_clock_that_goes_back_takes_nothing_away() {
        let mut ring = Ring::<u32>::new(FlowRange::Hour);
        *ring.at(at(10)) += 1;
        *ring.at(at(3)) += 1;
        assert_eq!(shown(&ring, 10)[59], 2);
    }

    #[test]
    fn p05_quantiles_lie_within_their_buckets() {
        let bounds = [10, 20, 40];
        assert_eq!(quantile(&bounds, &[0, 0, 0, 0], 0.5), None);
        assert_eq!(quantile(&bounds, &[10, 0, 0, 0], 0.5), Some(5));
        assert_eq!(quantile(&bounds, &[5, 5, 0, 0], 0.99), Some(20));
        assert_eq!(quantile(&bounds, &[0, 0, 0, 3], 0.5), Some(40));
        assert_eq!(quantile(&bounds, &[50, 0, 50, 0], 0.75), Some(30));
    }
}
