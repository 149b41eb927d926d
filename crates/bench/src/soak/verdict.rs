//! The checks at the end, from samples and accounts alone. It must not know how they were taken.

use serde::Serialize;

use super::ends::Account;
use super::sample::{Sample, mib};

/// Growth of resident memory over the last two thirds; over 40 minutes at 1,000 a second that is less than 4 bytes a message.
pub const MEMORY_GROWTH_MIB_MAX: f64 = 8.0;
pub const FILES_GROWTH_MAX: f64 = 4.0;
pub const FILES_MAX: f64 = 1000.0;
pub const THREADS_GROWTH_MAX: f64 = 2.0;
pub const WAL_MIB_MAX: f64 = 128.0;
/// The largest database of the last third against that of the second one.
pub const DATABASE_GROWTH_MAX: f64 = 0.05;
/// Of the messages that the rate asks for.
pub const ACCEPTED_SHARE_MIN: f64 = 0.99;
/// Under this a run shows no trend.
pub const STEADY_MINUTES_MIN: u64 = 15;

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// What the value may be at most; at least where `at_least`.
    pub bound: f64,
    pub at_least: bool,
    /// Why it was not judged.
    pub not_judged: Option<String>,
    pub passed: bool,
}

impl Check {
    fn at_most(name: &'static str, value: f64, unit: &'static str, bound: f64) -> Check {
        Check { name, value, unit, bound, at_least: false, not_judged: None, passed: value <= bound }
    }

    fn at_least(name: &'static str, value: f64, unit: &'static str, bound: f64) -> Check {
        Check { at_least: true, passed: value >= bound, ..Check::at_most(name, value, unit, bound) }
    }

    /// Shown, and not judged for this reason, if there is one.
    fn unless(self, why: Option<&str>) -> Check {
        match why {
            None => self,
            Some(why) => Check { not_judged: Some(why.to_owned()), passed: true, ..self },
        }
    }

    pub fn line(&self) -> String {
        let verdict = match (&self.not_judged, self.passed) {
            (Some(why), _) => format!("not judged: {why}"),
            (None, true) => "passed".to_owned(),
            (None, false) => "FAILED".to_owned(),
        };
        let than = if self.at_least { "at least" } else { "at most" };
        format!("{}: {:.2} {} ({than} {}): {verdict}", self.name, self.value, self.unit, self.bound)
    }
}

pub struct Run<'r> {
    pub minutes: u64,
    pub rate: u64,
    pub retention_s: u64,
    /// Those taken under load.
    pub samples: &'r [Sample],
    pub accounts: &'r [Account],
    /// After the last message the queues came to rest within their time.
    pub came_to_rest: bool,
    /// The server stopped by itself when it was asked to.
    pub stopped: bool,
}

pub fn checks(run: &Run<'_>) -> Vec<Check> {
    let third = run.samples.len() / 3;
    let (second, last) = (&run.samples[third..2 * third], &run.samples[2 * third..]);
    let growth = |read: fn(&Sample) -> f64| mean(last, read) - mean(second, read);
    let memory = |sample: &Sample| sample.resident_kib as f64 / 1024.0;
    let files = |sample: &Sample| sample.open_files as f64;
    let database = |sample: &Sample| mib(sample.database_bytes);
    let short = (run.minutes < STEADY_MINUTES_MIN || third < 2).then_some("the run is too short");
    // Retention works once a minute, and needs a minute or two to settle.
    let not_begun = (run.minutes * 20 < run.retention_s + 120).then_some("retention had not begun by the second third");
    let largest = |samples: &[Sample], read: fn(&Sample) -> f64| samples.iter().map(read).fold(0.0, f64::max);
    let all = run.samples;
    let sum = |read: fn(&Account) -> u64| run.accounts.iter().map(read).sum::<u64>() as f64;
    let open = sum(|account| account.waiting) + sum(|account| account.dead);
    vec![
        Check::at_most("memory, last third less second third", growth(memory), "MiB", MEMORY_GROWTH_MIB_MAX)
            .unless(short),
        Check::at_most("memory, slope over both", slope(&all[third..], memory), "MiB", MEMORY_GROWTH_MIB_MAX)
            .unless(short),
        Check::at_most("open files, last third less second third", growth(files), "", FILES_GROWTH_MAX).unless(short),
        Check::at_most("open files, most", largest(all, files), "", FILES_MAX),
        Check::at_most(
            "threads, last third less second third",
            growth(|one| one.threads as f64),
            "",
            THREADS_GROWTH_MAX,
        )
        .unless(short),
        Check::at_most("WAL, longest", largest(all, |one| mib(one.wal_bytes)), "MiB", WAL_MIB_MAX),
        Check::at_most(
            "database, growth of its largest size from the second third to the last",
            largest(last, database) / largest(second, database).max(1.0) - 1.0,
            "of it",
            DATABASE_GROWTH_MAX,
        )
        .unless(short.or(not_begun)),
        Check::at_most(
            "samples in which retention was late",
            all.iter().filter(|sample| sample.retention_is_late).count() as f64,
            "",
            0.0,
        ),
        Check::at_least(
            "accepted, of what the rate asks for",
            sum(|account| account.accepted) / (run.minutes * 60 * run.rate) as f64,
            "of it",
            ACCEPTED_SHARE_MIN,
        ),
        Check::at_most("accepted and not accounted for", sum(|account| account.lost), "messages", 0.0),
        Check::at_most("still open after the queues had their time", open, "messages", 0.0),
        Check::at_least("came to rest", f64::from(u8::from(run.came_to_rest)), "", 1.0),
        Check::at_least("stopped when asked to", f64::from(u8::from(run.stopped)), "", 1.0),
    ]
}

fn mean(samples: &[Sample], read: fn(&Sample) -> f64) -> f64 {
    samples.iter().map(read).sum::<f64>() / samples.len().max(1) as f64
}

/// Growth over the whole span by the line of least squares.
fn slope(samples: &[Sample], read: fn(&Sample) -> f64) -> f64 {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return 0.0 };
    let (at, value) = (mean(samples, |sample| sample.at_s), mean(samples, read));
    let over = |other: &dyn Fn(&Sample) -> f64| -> f64 {
        samples.iter().map(|sample| (sample.at_s - at) * other(sample)).sum()
    };
    let spread = over(&|sample| sample.at_s - at);
    if spread == 0.0 { 0.0 } else { over(&|sample| read(sample) - value) / spread * (last.at_s - first.at_s) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(change: impl Fn(usize, &mut Sample)) -> Vec<Sample> {
        let one = |index: usize| {
            let mut sample = Sample {
                at_s: index as f64 * 10.0,
                resident_kib: 60 << 10,
                open_files: 300,
                threads: 9,
                wal_bytes: 64 << 20,
                database_bytes: 1 << 30,
                ..Sample::default()
            };
            change(index, &mut sample);
            sample
        };
        (0..360).map(one).collect()
    }

    fn failed(samples: &[Sample], lost: u64, waiting: u64) -> Vec<&'static str> {
        let accepted = 3_600_000;
        let accounts = [Account { accepted, taken: accepted - lost - waiting, lost, waiting, ..Account::default() }];
        let (came_to_rest, stopped) = (true, true);
        let run =
            Run { minutes: 60, rate: 1000, retention_s: 300, samples, accounts: &accounts, came_to_rest, stopped };
        checks(&run).into_iter().filter(|check| !check.passed).map(|check| check.name).collect()
    }

    #[test]
    fn a_flat_run_passes_whatever_its_beginning_was() {
        let run = samples(|index, sample| {
            if index < 100 {
                sample.resident_kib = 20 << 10;
                sample.database_bytes = index as u64 * (10 << 20);
            }
        });
        assert_eq!(failed(&run, 0, 0), [""; 0]);
    }

    #[test]
    fn each_leak_is_seen() {
        let of = |change: fn(usize, &mut Sample)| failed(&samples(change), 0, 0);
        let memory = of(|index, sample| sample.resident_kib += 50 * index as u64);
        assert_eq!(memory, ["memory, slope over both"], "12 MiB in 40 minutes");
        assert_eq!(of(|index, sample| sample.resident_kib += 100 * index as u64).len(), 2);
        let files = of(|index, sample| sample.open_files += index as u64 / 20);
        assert_eq!(files, ["open files, last third less second third"]);
        assert_eq!(of(|index, sample| sample.threads += index as u64 / 30), ["threads, last third less second third"]);
        assert_eq!(of(|index, sample| sample.wal_bytes <<= u32::from(index == 5) * 3), ["WAL, longest"]);
        assert_eq!(of(|index, sample| sample.database_bytes += index as u64 * (1 << 20)).len(), 1);
        assert_eq!(of(|index, sample| sample.retention_is_late = index == 200).len(), 1);
    }

    #[test]
    fn what_is_lost_or_left_fails() {
        assert_eq!(failed(&samples(|_, _| {}), 1, 0), ["accepted and not accounted for"]);
        assert_eq!(failed(&samples(|_, _| {}), 0, 1), ["still open after the queues had their time"]);
    }

    #[test]
    fn the_slope_is_that_of_a_line() {
        let run = samples(|index, sample| sample.open_files = 2 * index as u64);
        assert!((slope(&run, |sample| sample.open_files as f64) - 718.0).abs() < 1e-6);
    }
}
