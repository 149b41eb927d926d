//! Times as RFC 3339 has them (section 5.6): what is read, what is refused, and what is shown.

use postrider_core::Timestamp;

use crate::model::calendar::{Moment, digits};

/// What can be shown: years 0 to 9999, but for the last hours of the latter.
const SHOWN_MS: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_200_000;

/// The input is a time as text; its first eight bytes serve as a number of milliseconds too.
pub fn holds(data: &[u8]) {
    if let Some(bytes) = data.first_chunk::<8>() {
        shown_reads_back(i64::from_le_bytes(*bytes));
        shown_reads_back(i64::from_le_bytes(*bytes) >> 16);
    }
    let Some(text) = crate::text_of(data) else { return };
    let read = Timestamp::parse_rfc3339(text).map(Timestamp::as_millis);
    let expected = read_by_hand(text);
    assert_eq!(read, expected.filter(|millis| SHOWN_MS.contains(millis)), "{text:?}");
    if let Some(millis) = read {
        shown_reads_back(millis);
    }
}

fn shown_reads_back(millis: i64) {
    let clamped = millis.clamp(*SHOWN_MS.start(), *SHOWN_MS.end());
    let shown = Timestamp::from_millis(millis).to_string();
    let at = Moment::at(clamped.div_euclid(1000));
    let expected = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year,
        at.month,
        at.day,
        at.hour,
        at.minute,
        at.second,
        clamped.rem_euclid(1000)
    );
    assert_eq!(shown, expected, "{millis}");
    assert_eq!(Timestamp::parse_rfc3339(&shown), Some(Timestamp::from_millis(clamped)), "{shown}");
}

/// Milliseconds, rounded down. At most nine decimals; a leap second is the second before it, since our clock has none.
fn read_by_hand(text: &str) -> Option<i64> {
    let date = text.get(..10)?;
    let (separator, time, rest) = (text.get(10..11)?, text.get(11..19)?, text.get(19..)?);
    if !["T", "t", " "].contains(&separator) {
        return None;
    }
    let [year, month, day] = parts(date, '-')?;
    let [hour, minute, second] = parts(time, ':')?;
    let moment = Moment {
        year: digits(year, 4)?,
        month: digits(month, 2)?,
        day: digits(day, 2)?,
        hour: digits(hour, 2)?,
        minute: digits(minute, 2)?,
        second: digits(second, 2).map(|second| if second == 60 { 59 } else { second })?,
    };
    let (fraction, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
    let nanos = match fraction.strip_prefix('.') {
        None if fraction.is_empty() => 0,
        Some(decimals) if decimals.len() <= 9 && !decimals.is_empty() => digits(&format!("{decimals:0<9}"), 9)?,
        _ => return None,
    };
    let offset_s = match zone.split_at(1) {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), offset) => {
            let (hours, minutes) = offset.split_once(':')?;
            let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if sign == "+" { 1 } else { -1 }
        }
        _ => return None,
    };
    Some((moment.seconds()? - offset_s) * 1000 + nanos / 1_000_000)
}

fn parts(text: &str, between: char) -> Option<[&str; 3]> {
    text.split(between).collect::<Vec<_>>().try_into().ok()
}
