//! The `Retry-After` header (RFC 9110, section 10.2.3): what it says, and what the rules make of it (Z04, R08).

use postrider_core::retry_after::{RetryAfter, RetryAfterRule, honoured};
use postrider_core::{Timestamp, Wait};

use crate::model::calendar::{Moment, digits};

/// 2026-03-12T12:05:34.730Z
const NOW_MS: i64 = 1_773_317_134_730;
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The input is the header's value.
pub fn holds(data: &[u8]) {
    let Some(text) = crate::text_of(data) else { return };
    let now = Timestamp::from_millis(NOW_MS);
    let read = RetryAfter::parse(text);
    let expected = says(text.trim_matches([' ', '\t']));
    assert_eq!(read, expected, "{text:?}");
    let asked_ms = read.map(|said| match said {
        RetryAfter::Seconds(seconds) => seconds.saturating_mul(1000),
        RetryAfter::Date(date) => u64::try_from(date.as_millis() - NOW_MS).unwrap_or(0),
    });
    assert_eq!(read.map(|said| said.wait_from(now).as_millis()), asked_ms);
    let own = Wait::from_secs(60);
    for status in [200, 408, 428, 429, 430, 500, 503, 504] {
        let asked = |rule| honoured(rule, status, Some(text), now);
        assert_eq!(asked(RetryAfterRule::Ignored), None);
        let replaced = asked_ms.filter(|_| status == 429).map(Wait::from_millis);
        assert_eq!(asked(RetryAfterRule::Replaces), replaced, "{text:?} on {status}");
        for max_s in [0, 1, 90, 21_600] {
            let rule = RetryAfterRule::LaterOnly { max: Wait::from_secs(max_s) };
            let wait = rule.wait_with(own, asked(rule));
            let later_ms = asked_ms.filter(|_| matches!(status, 429 | 503)).map_or(0, |asked| asked.min(max_s * 1000));
            assert_eq!(wait.as_millis(), later_ms.max(60_000), "{text:?} on {status} under {max_s} s");
        }
    }
}

/// Digits are seconds; anything else is one of the three forms of a date, or nothing.
pub(crate) fn says(text: &str) -> Option<RetryAfter> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let add = |sum: u64, byte: u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
        return Some(RetryAfter::Seconds(text.bytes().fold(0, add)));
    }
    let seconds = fixed_date(text).or_else(|| dashed_date(text)).or_else(|| c_date(text))?;
    // Dates before 1970 are none to a server of today.
    (0..253_402_300_800).contains(&seconds).then(|| RetryAfter::Date(Timestamp::from_millis(seconds * 1000)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn fixed_date(text: &str) -> Option<i64> {
    let [weekday, day, month, year, time, "GMT"] = words(text)? else { return None };
    let weekday = DAYS.iter().position(|name| weekday.strip_suffix(',') == Some(&name[..3]))?;
    moment(digits(year, 4)?, month, digits(day, 2)?, time, weekday)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`; years under 70 are those of this century.
fn dashed_date(text: &str) -> Option<i64> {
    let [weekday, date, time, "GMT"] = words(text)? else { return None };
    let weekday = DAYS.iter().position(|name| weekday.strip_suffix(',') == Some(name))?;
    let [day, month, year] = date.split('-').collect::<Vec<_>>().try_into().ok()?;
    let year = digits(year, 2)?;
    moment(if year < 70 { 2000 + year } else { 1900 + year }, month, digits(day, 2)?, time, weekday)
}

/// `Sun Nov  6 08:49:37 1994`
fn c_date(text: &str) -> Option<i64> {
    if text.len() != 24 || !text.is_ascii() {
        return None;
    }
    let spaces = [3, 7, 10, 19].iter().all(|at| text.as_bytes()[*at] == b' ');
    let weekday = DAYS.iter().position(|name| text[..3] == name[..3])?;
    let day = text[8..10].strip_prefix(' ').map_or_else(|| digits(&text[8..10], 2), |day| digits(day, 1))?;
    moment(digits(&text[20..], 4)?, &text[4..7], day, &text[11..19], weekday).filter(|_| spaces)
}

fn words<const N: usize>(text: &str) -> Option<[&str; N]> {
    text.split(' ').collect::<Vec<_>>().try_into().ok()
}

fn moment(year: i64, month: &str, day: i64, time: &str, weekday: usize) -> Option<i64> {
    let month = MONTHS.iter().position(|name| *name == month)?;
    let [hour, minute, second] = time.split(':').collect::<Vec<_>>().try_into().ok()?;
    let moment = Moment {
        year,
        month: i64::try_from(month).ok()? + 1,
        day,
        hour: digits(hour, 2)?,
        minute: digits(minute, 2)?,
        second: digits(second, 2)?,
    };
    let seconds = moment.seconds()?;
    (moment.weekday() == weekday).then_some(seconds)
}
