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
    /// Later than every time that occurs; used as "never due". 9999-12-30T22:00:00Z, the last full second that can be shown and read back
    /// in every offset.
    pub const FAR_FUTURE: Timestamp = Timestamp(253_402_207_200_000);
    /// 0000-01-01T00:00:00Z: RFC 3339 has no year before it.
    const FAR_PAST: Timestamp = Timestamp(-62_167_219_200_000);

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

    /// Reads RFC 3339 (section 5.6, a space in place of the `T` allowed), with any offset and up to nine decimals, rounded down to the
    /// millisecond. A leap second is the second before it. `None` when the text is not a time, or one before the year 0 or after
    /// [`Timestamp::FAR_FUTURE`].
    pub fn parse_rfc3339(text: &str) -> Option<Self> {
        // jiff reads much more than RFC 3339: other calendars' annotations, times without minutes, signed years.
        if !has_rfc3339_shape(text.as_bytes()) {
            return None;
        }
        let nanos = text.parse::<jiff::Timestamp>().ok()?.as_nanosecond();
        let read = Timestamp(i64::try_from(nanos.div_euclid(1_000_000)).ok()?);
        (Self::FAR_PAST..=Self::FAR_FUTURE).contains(&read).then_some(read)
    }
}

/// Digits and signs where RFC 3339 has them; whether the numbers make a time is left to the calendar.
fn has_rfc3339_shape(text: &[u8]) -> bool {
    const START: &[u8] = b"0000-00-00T00:00:00";
    const DECIMALS_MAX: usize = 9;
    let fits = |pattern: &[u8], text: &[u8]| {
        pattern.len() == text.len()
            && pattern.iter().zip(text).all(|(pattern, byte)| match pattern {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't' | b' '),
                other => other == byte,
            })
    };
    let Some((start, rest)) = text.split_at_checked(START.len()) else { return false };
    let zone = match rest.strip_prefix(b".") {
        None => rest,
        Some(fraction) => {
            let decimals = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if !(1..=DECIMALS_MAX).contains(&decimals) {
                return false;
            }
            &fraction[decimals..]
        }
    };
    // The calendar knows offsets of a day and more; RFC 3339 (section 5.6) has hours to 23 and minutes to 59.
    let is_offset =
        (fits(b"+00:00", zone) || fits(b"-00:00", zone)) && zone[1..3] <= b"23"[..] && zone[4..] <= b"59"[..];
    fits(START, start) && (matches!(zone, b"Z" | b"z") || is_offset)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let clamped = self.0.clamp(Self::FAR_PAST.0, Self::FAR_FUTURE.0);
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

    #[test]
    fn every_time_is_shown_as_one_that_reads_back() {
        for shown in ["0000-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "9999-12-30T22:00:00.000Z"] {
            assert_eq!(Timestamp::parse_rfc3339(shown).map(|time| time.to_string()).as_deref(), Some(shown));
        }
        for beyond in [i64::MAX, Timestamp::FAR_FUTURE.as_millis()] {
            assert_eq!(Timestamp::from_millis(beyond).to_string(), "9999-12-30T22:00:00.000Z");
        }
        assert_eq!(Timestamp::from_millis(i64::MIN).to_string(), "0000-01-01T00:00:00.000Z");
        let stored = serde_json::to_string(&Timestamp::FAR_FUTURE).unwrap();
        assert_eq!(serde_json::from_str::<Timestamp>(&stored).unwrap(), Timestamp::FAR_FUTURE);
    }

    #[test]
    fn only_rfc3339_is_read() {
        let read = |text| Timestamp::parse_rfc3339(text).map(Timestamp::as_millis);
        for text in ["2026-03-12t12:05:34z", "2026-03-12 12:05:34Z", "2026-03-12T12:05:34-00:00"] {
            assert_eq!(read(text), Some(1_773_317_134_000), "{text}");
        }
        assert_eq!(read("1969-12-31T23:59:59.9999Z"), Some(-1), "rounded down, not towards 1970");
        assert_eq!(read("2016-12-31T23:59:60Z"), read("2016-12-31T23:59:59Z"));
        for text in [
            "2026-03-12T12:05Z",
            "20260312T120534Z",
            "+002026-03-12T12:05:34Z",
            "2026-03-12T12:05:34",
            "2026-03-12T12:05:34+02",
            "2026-03-12T12:05:34+0200",
            "2026-03-12T12:05:34,5Z",
            "2026-03-12T12:05:34.Z",
            "2026-03-12T12:05:34Z[UTC]",
            "2026-02-29T12:05:34Z",
            "9999-12-31T23:59:59Z",
            " 2026-03-12T12:05:34Z",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
