//! When a log says that a remote system fails, and when that it answers again: once each, with counts, however many attempts there are.
//!
//! A remote that comes and goes is told of at most once in a quiet time, and what is not told then is counted for the next line. It must
//! not know what a line looks like.

use crate::{Failure, Timestamp, Wait};

/// `remote_quiet_time`: after a line that says "failing", the next such line of the same remote comes no sooner.
pub const QUIET: Wait = Wait::from_secs(60);

/// What an attempt says about the remote system, whatever it says about the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Well,
    Failing,
    /// Nothing: the attempt did not get as far, or was refused for what was in it.
    None,
}

impl Sign {
    /// `failure` is `None` for a delivery.
    pub const fn of(failure: Option<Failure>, status: Option<u16>) -> Sign {
        match (failure, status) {
            (None, _) => Sign::Well,
            (Some(Failure::Status), Some(500..=599)) => Sign::Failing,
            (Some(Failure::Timeout | Failure::Unreachable | Failure::NoAck), _) => Sign::Failing,
            _ => Sign::None,
        }
    }
}

/// A line to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    Failing,
    Back {
        /// Since the line before.
        failures: u64,
        lasted: Wait,
    },
}

/// What is known of one remote system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remote {
    /// Of failures not yet told of by a `Back`, the first.
    failing_since: Option<Timestamp>,
    failures: u64,
    /// The log's last word was `Failing`.
    is_told: bool,
    told_at: Option<Timestamp>,
}

impl Remote {
    /// The line that this attempt gives cause to.
    pub fn attempted(&mut self, sign: Sign, now: Timestamp) -> Option<News> {
        match sign {
            Sign::None => None,
            Sign::Failing => {
                self.failures += 1;
                self.failing_since.get_or_insert(now);
                let quiet = self.told_at.is_some_and(|told| now < told + QUIET);
                if self.is_told || quiet {
                    return None;
                }
                (self.is_told, self.told_at) = (true, Some(now));
                Some(News::Failing)
            }
            Sign::Well if self.is_told => {
                let lasted = self.failing_since.map_or(Wait::ZERO, |since| now.since(since));
                let failures = self.failures;
                *self = Remote { told_at: self.told_at, ..Remote::default() };
                Some(News::Back { failures, lasted })
            }
            Sign::Well => None,
        }
    }

    /// Nothing about it is worth keeping: it is well, and the quiet time is over.
    pub fn is_forgettable(&self, now: Timestamp) -> bool {
        !self.is_told && self.told_at.is_none_or(|told| now >= told + QUIET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(s: u64) -> Timestamp {
        Timestamp::from_millis(0) + Wait::from_secs(s)
    }

    #[test]
    fn p06_a_remote_that_goes_down_and_comes_back_is_two_lines() {
        let mut remote = Remote::default();
        assert_eq!(remote.attempted(Sign::Well, at(0)), None);
        assert_eq!(remote.attempted(Sign::Failing, at(1)), Some(News::Failing));
        for s in 2..1000 {
            assert_eq!(remote.attempted(Sign::Failing, at(s)), None);
            assert_eq!(remote.attempted(Sign::None, at(s)), None);
        }
        let back = News::Back { failures: 999, lasted: Wait::from_secs(999) };
        assert_eq!(remote.attempted(Sign::Well, at(1000)), Some(back));
        assert_eq!(remote.attempted(Sign::Well, at(1001)), None);
        assert!(remote.is_forgettable(at(1001)));
    }

    #[test]
    fn what_says_nothing_about_the_remote_is_no_sign() {
        assert_eq!(Sign::of(None, Some(200)), Sign::Well);
        assert_eq!(Sign::of(Some(Failure::Status), Some(503)), Sign::Failing);
        assert_eq!(Sign::of(Some(Failure::Status), Some(404)), Sign::None);
        assert_eq!(Sign::of(Some(Failure::Unreachable), None), Sign::Failing);
        assert_eq!(Sign::of(Some(Failure::SecretUnreadable), None), Sign::None);
    }

    proptest! {
        #[test]
        fn p06_lines_alternate_and_no_failure_is_lost_however_it_flaps(
            steps in prop::collection::vec((0_u64..30, any::<bool>()), 0..200)
        ) {
            let (mut remote, mut now, mut lines) = (Remote::default(), 0, Vec::new());
            let (mut failed, mut counted) = (0, 0);
            for (pause, fails) in steps {
                now += pause;
                failed += u64::from(fails);
                let sign = if fails { Sign::Failing } else { Sign::Well };
                lines.extend(remote.attempted(sign, at(now)).map(|news| (now, news)));
            }
            for pair in lines.windows(2) {
                let is_failing = |news: &News| *news == News::Failing;
                prop_assert!(is_failing(&pair[0].1) != is_failing(&pair[1].1), "{lines:?}");
            }
            let told: Vec<u64> = lines.iter().filter(|(_, news)| *news == News::Failing).map(|(at, _)| *at).collect();
            prop_assert!(told.windows(2).all(|pair| pair[1] - pair[0] >= 60), "{lines:?}");
            for (_, news) in &lines {
                if let News::Back { failures, .. } = news {
                    counted += failures;
                }
            }
            prop_assert_eq!(counted + remote.failures, failed);
        }
    }
}
