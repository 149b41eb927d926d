//! How many bytes of request bodies may be under way at once, so that callers who stall hold no more memory than this together (law 5).
//!
//! It must not know whose they are.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// `bodies_bytes_max`: shared by all requests of a server.
#[derive(Clone, Debug)]
pub struct Budget {
    taken: Arc<AtomicU64>,
    bytes_max: u64,
}

/// What one request holds of it, given back when it ends.
#[derive(Debug)]
pub struct Share {
    budget: Budget,
    bytes: u64,
}

impl Budget {
    pub fn new(bytes_max: u64) -> Self {
        Budget { taken: Arc::default(), bytes_max }
    }

    /// Nothing as yet.
    pub fn share(&self) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }
}

impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        self.bytes_max == other.bytes_max
    }
}

impl Eq for Budget {}

impl Share {
    /// So many bytes more; `false`: there is no room for them now.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let before = self.budget.taken.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.budget.bytes_max;
        if fits {
            self.bytes += bytes;
        } else {
            self.budget.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_ends_makes_room() {
        let budget = Budget::new(10);
        let (mut one, mut two) = (budget.share(), budget.share());
        assert!(one.grow(6) && !two.grow(5) && two.grow(4) && !one.grow(1));
        drop(one);
        assert!(two.grow(6) && !two.grow(1));
    }
}
