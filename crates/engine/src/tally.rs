//! What has happened since the start, in numbers that only rise: one atomic addition each, on the hottest path too.
//!
//! It must not know who reads them, nor of any single connection.

use std::sync::atomic::{AtomicU64, Ordering};

use postrider_core::Failure;
use postrider_core::outcome::{Outcome, OutcomeState};

/// Counted in this process since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Requests that were stored and are to be delivered; direct calls are not stored.
    pub accepted: u64,
    /// Decisions written about stored requests.
    pub settled: u64,
    pub requests: RequestFigures,
    /// Attempts made, by what came of them: `delivered`, or the failure's code. Every code is there, so that a series never begins late.
    pub attempts: Vec<(&'static str, u64)>,
}

/// Requests answered, by the flag of the result object that was set (Z30). A request that we refused ourselves is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFigures {
    pub is_ok: u64,
    pub is_in_queue: u64,
    pub is_in_dlq: u64,
    pub not_delivered: u64,
}

#[derive(Default)]
pub(crate) struct Tally {
    accepted: AtomicU64,
    settled: AtomicU64,
    requests: [AtomicU64; 4],
    delivered: AtomicU64,
    failed: [AtomicU64; Failure::ALL.len()],
}

impl Tally {
    pub fn accepted(&self) {
        one_more(&self.accepted);
    }

    pub fn settled(&self) {
        one_more(&self.settled);
    }

    pub fn answered(&self, outcome: &Outcome) {
        let index = match outcome.state {
            OutcomeState::IsOk => 0,
            OutcomeState::IsInQueue => 1,
            OutcomeState::IsInDlq => 2,
            OutcomeState::NotDelivered => 3,
        };
        one_more(&self.requests[index]);
    }

    /// `None`: delivered.
    pub fn attempted(&self, failure: Option<Failure>) {
        let counter = failure.and_then(|failure| self.failed.get(place(failure))).unwrap_or(&self.delivered);
        one_more(counter);
    }

    pub fn read(&self) -> Figures {
        let [is_ok, is_in_queue, is_in_dlq, not_delivered] = [0, 1, 2, 3].map(|index| value(&self.requests[index]));
        let failed =
            Failure::ALL.into_iter().zip(&self.failed).map(|(failure, count)| (failure.as_str(), value(count)));
        Figures {
            accepted: value(&self.accepted),
            settled: value(&self.settled),
            requests: RequestFigures { is_ok, is_in_queue, is_in_dlq, not_delivered },
            attempts: std::iter::once(("delivered", value(&self.delivered))).chain(failed).collect(),
        }
    }
}

/// Codes are listed in the order of their declaration.
const fn place(failure: Failure) -> usize {
    failure as usize
}

fn one_more(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn value(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_of_an_attempt_has_its_own_place() {
        let tally = Tally::default();
        tally.attempted(None);
        for (index, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(place(failure), index, "{failure}");
            for _ in 0..index + 2 {
                tally.attempted(Some(failure));
            }
        }
        let read = tally.read().attempts;
        assert_eq!(read[0], ("delivered", 1));
        for (index, failure) in Failure::ALL.into_iter().enumerate() {
            assert_eq!(read[index + 1], (failure.as_str(), index as u64 + 2));
        }
    }
}
