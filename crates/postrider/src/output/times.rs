//! Times for people: UTC in tables, the local time beside it where one thing is shown in full.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `2026-03-12 12:05:34` in UTC. What is no time is shown as it came.
pub fn utc(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(time) => time.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => text.to_owned(),
    }
}

/// `2026-03-12 12:05:34.250 UTC (13:05:34 +01:00)`.
pub fn local_beside(text: &str) -> String {
    beside(text, TimeZone::system())
}

fn beside(text: &str, zone: TimeZone) -> String {
    let Ok(time) = text.parse::<Timestamp>() else { return text.to_owned() };
    let utc = time.to_zoned(TimeZone::UTC);
    let local = time.to_zoned(zone);
    let shown = utc.strftime("%Y-%m-%d %H:%M:%S%.3f UTC").to_string();
    if local.offset() == utc.offset() {
        return shown;
    }
    // The day only where it is another one.
    let format = if local.date() == utc.date() { "%H:%M:%S %:z" } else { "%Y-%m-%d %H:%M:%S %:z" };
    format!("{shown} ({})", local.strftime(format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_the_local_one_beside() {
        let east = TimeZone::fixed(jiff::tz::offset(2));
        assert_eq!(utc("2026-03-12T13:05:34.250+01:00"), "2026-03-12 12:05:34");
        assert_eq!(beside("2026-03-12T12:05:34.250Z", east.clone()), "2026-03-12 12:05:34.250 UTC (14:05:34 +02:00)");
        assert_eq!(beside("2026-03-12T23:00:00Z", east), "2026-03-12 23:00:00.000 UTC (2026-03-13 01:00:00 +02:00)");
        assert_eq!(beside("2026-03-12T12:05:34Z", TimeZone::UTC), "2026-03-12 12:05:34.000 UTC");
        assert_eq!(utc("soon"), "soon");
    }
}
