//! How often a measured value fell into which range: one atomic addition for each, read without stopping anybody.
//!
//! It must not know what is measured.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of values up to each bound, and of those above the last.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

/// As it stood when it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramFigures {
    pub bounds: &'static [u64],
    /// For each bound how many values were at most that, and behind them how many there were at all.
    pub cumulative: Vec<u64>,
    pub sum: u64,
}

impl Histogram {
    /// `bounds` rise.
    pub fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Histogram { bounds, counts, sum: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: u64) {
        let index = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[index].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn read(&self) -> HistogramFigures {
        let mut so_far = 0;
        let cumulative = self.counts.iter().map(|count| {
            so_far += count.load(Ordering::Relaxed);
            so_far
        });
        HistogramFigures {
            bounds: self.bounds,
            cumulative: cumulative.collect(),
            sum: self.sum.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_counts_for_its_bound_and_all_above() {
        let histogram = Histogram::new(&[1, 10, 100]);
        for value in [0, 1, 2, 10, 11, 1000] {
            histogram.observe(value);
        }
        let read = histogram.read();
        assert_eq!((read.cumulative, read.sum), (vec![2, 4, 5, 6], 1024));
    }
}
