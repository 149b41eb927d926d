//! The way back to a database that went away: who comes too early is refused at once, so that a server is not dialled by every request, nor by
//! all its processes at the same moment. It must not know what for anybody connects.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The pause after the first connection that failed; twice as long after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Open while connections succeed. After one that failed it is shut for a while, longer each time.
pub(super) struct Gate {
    is_shut: AtomicBool,
    failed_in_a_row: AtomicU32,
    /// What went wrong last, for those who are refused.
    why: Mutex<String>,
    /// A number of this process's own, so that processes come back one after the other.
    seed: u32,
}

impl Gate {
    pub fn new(name: &str) -> Self {
        let seed = name.bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(byte)));
        Gate { is_shut: AtomicBool::new(false), failed_in_a_row: AtomicU32::new(0), why: Mutex::default(), seed }
    }

    /// `Err`: it is too early to try again; why the last try failed.
    pub fn pass(&self) -> Result<(), String> {
        if !self.is_shut.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(self.why.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// A connection came about.
    pub fn connected(&self) {
        if self.failed_in_a_row.load(Ordering::Relaxed) > 0 {
            self.failed_in_a_row.store(0, Ordering::Relaxed);
            self.is_shut.store(false, Ordering::Release);
        }
    }

    /// None came about. Several that fail together count once.
    pub fn failed(self: &Arc<Self>, why: String) {
        *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
        if self.is_shut.swap(true, Ordering::AcqRel) {
            return;
        }
        let failed_before = self.failed_in_a_row.fetch_add(1, Ordering::Relaxed);
        let (gate, pause) = (Arc::clone(self), pause(self.seed, failed_before));
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            gate.is_shut.store(false, Ordering::Release);
        });
    }
}

/// Between a half and one and a half of the back-off, as this process's number and the try say.
fn pause(seed: u32, failed_before: u32) -> Duration {
    let whole = FIRST_PAUSE.saturating_mul(1 << failed_before.min(10)).min(LONGEST_PAUSE);
    let share = seed.wrapping_add(failed_before).wrapping_mul(2_654_435_761) >> 22;
    whole / 2 + whole * share / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_grows_to_its_bound_and_differs_between_processes() {
        let pauses: Vec<Duration> = (0..40).map(|failed| pause(7, failed)).collect();
        assert!(pauses[0] >= FIRST_PAUSE / 2 && pauses[0] <= FIRST_PAUSE * 3 / 2, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= LONGEST_PAUSE * 3 / 2), "{pauses:?}");
        assert!(pauses[10..].iter().all(|pause| *pause >= LONGEST_PAUSE / 2), "{pauses:?}");
        let mut others: Vec<Duration> = (0..20).map(|seed| pause(seed, 10)).collect();
        others.sort_unstable();
        others.dedup();
        assert!(others.len() > 15, "twenty processes come back at {others:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_comes_too_early_is_refused_and_told_why() {
        let gate = Arc::new(Gate::new("one"));
        assert_eq!(gate.pass(), Ok(()));
        gate.failed("refused".to_owned());
        gate.failed("refused again".to_owned());
        assert_eq!(gate.pass(), Err("refused again".to_owned()));
        tokio::time::sleep(FIRST_PAUSE * 2).await;
        assert_eq!(gate.pass(), Ok(()), "somebody tries");
        gate.failed("still away".to_owned());
        tokio::time::sleep(FIRST_PAUSE / 2).await;
        assert_eq!(gate.pass(), Err("still away".to_owned()), "longer than the first time");
        gate.connected();
        assert_eq!(gate.pass(), Ok(()));
    }
}
