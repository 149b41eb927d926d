//! Points in time and lengths of time, in whole milliseconds.
//!
//! This module must not know where "now" comes from: every function of the core takes it as an argument.

use std::fmt;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A point in time, in milliseconds since 1970-01-01T00:00:00Z. Shown and read as RFC 3339 in UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// A length of time in milliseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wait(u64);

impl Timestamp {
    /// Later than every time that occurs; used as "never due".
    pub const FAR_FUTURE: Timestamp = Timestamp(253_402_300_799_000);

    pub const fn from_millis(millis: i64) -> Self {
        Timestamp(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Timestamp) -> Wait {
        Wait(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads RFC 3339, with any offset. `None` when the text is not a time.
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Timestamp(t.as_millisecond()))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clamped = self.0.clamp(-62_135_596_800_000, Self::FAR_FUTURE.0);
        match jiff::Timestamp::from_millisecond(clamped) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{} ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Timestamp::parse_rfc3339(&text)
            .ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not an RFC 3339 time")))
    }
}

impl Wait {
    pub const ZERO: Wait = Wait(0);

    pub const fn from_millis(millis: u64) -> Self {
        Wait(millis)
    }

    pub const fn from_secs(secs: u64) -> Self {
        Wait(secs.saturating_mul(1000))
    }

    pub const fn as_millis(self) -> u64 {
        self.0
    }

    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    pub fn as_duration(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub fn saturating_sub(self, other: Wait) -> Wait {
        Wait(self.0.saturating_sub(other.0))
    }
}

impl From<std::time::Duration> for Wait {
    fn from(duration: std::time::Duration) -> Self {
        Wait(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }
}

/// Seconds with up to three decimals: `2 s`, `0.25 s`.
impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.as_secs_f64())
    }
}

impl Add<Wait> for Timestamp {
    type Output = Timestamp;
    fn add(self, wait: Wait) -> Timestamp {
        Timestamp(self.0.saturating_add(i64::try_from(wait.0).unwrap_or(i64::MAX)))
    }
}

impl Sub<Wait> for Timestamp {
    type Output = Timestamp;
    fn sub(self, wait: Wait) -> Timestamp {
        Timestamp(self.0.saturating_sub(i64::try_from(wait.0).unwrap_or(i64::MAX)))
    }
}

impl Add for Wait {
    type Output = Wait;
    fn add(self, other: Wait) -> Wait {
        Wait(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_and_reads_rfc3339_in_utc() {
        let t = Timestamp::from_millis(1_773_317_134_730);
        assert_eq!(t.to_string(), "2026-03-12T12:05:34.730Z");
        assert_eq!(Timestamp::parse_rfc3339("2026-03-12T12:05:34.730Z"), Some(t));
        assert_eq!(Timestamp::parse_rfc3339("2026-03-12T14:05:34.730+02:00"), Some(t));
        assert_eq!(Timestamp::parse_rfc3339("yesterday"), None);
    }
}
