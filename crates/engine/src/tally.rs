//! What has happened since the start, in numbers that only rise: one atomic addition each, on the hottest path too.
//!
//! It must not know who reads them, nor of any single connection.

use std::sync::atomic::{AtomicU64, Ordering};

use postrider_core::delivery::Status;
use postrider_core::outcome::{Outcome, OutcomeState};
use postrider_core::{Failure, Wait};
use postrider_store::{Histogram, HistogramFigures};

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
    /// Attempts that were not the first of their delivery.
    pub retries: u64,
    /// How long attempts took, in milliseconds.
    pub attempt_millis: HistogramFigures,
    /// How deliveries left the queue, and how direct calls ended; every status is there that ends one.
    pub ended: Vec<(&'static str, u64)>,
    /// Spans that nobody took.
    pub spans_dropped: u64,
}

/// From a neighbour in the same rack to the longest timeout.
const ATTEMPT_MILLIS: &[u64] = &[5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000];

/// Requests answered, by the flag of the result object that was set (Z30). A request that we refused ourselves is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestFigures {
    pub is_ok: u64,
    pub is_in_queue: u64,
    pub is_in_dlq: u64,
    pub not_delivered: u64,
}

pub(crate) struct Tally {
    accepted: AtomicU64,
    settled: AtomicU64,
    requests: [AtomicU64; 4],
    delivered: AtomicU64,
    failed: [AtomicU64; Failure::ALL.len()],
    retries: AtomicU64,
    attempt_millis: Histogram,
    ended: [AtomicU64; Status::ALL.len()],
}

impl Default for Tally {
    fn default() -> Self {
        Tally {
            accepted: AtomicU64::default(),
            settled: AtomicU64::default(),
            requests: Default::default(),
            delivered: AtomicU64::default(),
            failed: Default::default(),
            retries: AtomicU64::default(),
            attempt_millis: Histogram::new(ATTEMPT_MILLIS),
            ended: Default::default(),
        }
    }
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

    /// It has this status from now on; one that still waits has not ended.
    pub fn ended(&self, status: Status) {
        if !status.is_waiting()
            && let Some(counter) = self.ended.get(status as usize)
        {
            one_more(counter);
        }
    }

    /// The attempt of this number, from 1, took so long.
    pub fn took(&self, number: u32, took: Wait) {
        self.attempt_millis.observe(took.as_millis());
        if number > 1 {
            one_more(&self.retries);
        }
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
        let ended = Status::ALL.into_iter().zip(&self.ended).filter(|(status, _)| !status.is_waiting());
        Figures {
            retries: value(&self.retries),
            attempt_millis: self.attempt_millis.read(),
            ended: ended.map(|(status, count)| (status.as_str(), value(count))).collect(),
            spans_dropped: 0,
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
