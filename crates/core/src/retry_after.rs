//! The `Retry-After` header: what it says (RFC 9110, section 10.2.3) and where it is honoured (Z04, R08).
//!
//! It must not know the schedule's own wait until it is handed one, nor what is left of a total.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Answer;
use crate::time::{Timestamp, Wait};

/// What a `Retry-After` header says, in either of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    Seconds(u64),
    Date(Timestamp),
}

impl RetryAfter {
    /// Reads digits as seconds (more than fit count as the most that fit) and anything else as an HTTP date in one of its three
    /// forms. `None` for what is neither: an unreadable header is ignored (Z04).
    pub fn parse(text: &str) -> Option<RetryAfter> {
        let text = text.trim_matches([' ', '\t']);
        if text.is_empty() {
            return None;
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return Some(RetryAfter::Seconds(text.parse().unwrap_or(u64::MAX)));
        }
        // The crate trims all kinds of white space, and takes any byte between date and time of the dashed form.
        let is_spaced =
            !text.ends_with(" GMT") || text.as_bytes().iter().rev().nth("00:00:00 GMT".len()) == Some(&b' ');
        if !is_spaced || text.bytes().any(|byte| !matches!(byte, b' '..=b'~')) {
            return None;
        }
        let date = httpdate::parse_http_date(text).ok()?;
        Some(RetryAfter::Date(timestamp(date)?))
    }

    /// How long after `now` the next attempt may be made; zero for a date that has passed.
    pub fn wait_from(&self, now: Timestamp) -> Wait {
        match *self {
            RetryAfter::Seconds(seconds) => Wait::from_secs(seconds),
            RetryAfter::Date(date) => date.since(now),
        }
    }
}

/// Where a delivery policy honours the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfterRule {
    /// Nowhere: rounds of the queue (Z15) and the `patient` preset (D20).
    Ignored,
    /// On 429, in place of the schedule's own wait and past its 8 s cap (Z04).
    Replaces,
    /// On 429 and 503, only ever later than the ladder's own wait, and no longer than `max`; a zero `max` ignores the header (R08).
    LaterOnly {
        #[serde(rename = "max_ms")]
        max: Wait,
    },
}

impl RetryAfterRule {
    /// `WEBHOOK_RETRY_AFTER_MAX_SECONDS` where it is not set: six hours (R08).
    pub const DEFAULT_MAX: Wait = Wait::from_secs(21_600);

    /// The rule for a ladder, which is never parked without limit: a delivery keeps its ladder when its connection goes over to rounds.
    #[must_use]
    pub fn on_a_ladder(self) -> Self {
        match self {
            RetryAfterRule::Replaces => RetryAfterRule::LaterOnly { max: Self::DEFAULT_MAX },
            RetryAfterRule::Ignored | RetryAfterRule::LaterOnly { .. } => self,
        }
    }

    /// The wait to make, given the schedule's own (jittered) wait and what [`honoured`] made of the header.
    pub fn wait_with(self, own: Wait, asked: Option<Wait>) -> Wait {
        match (self, asked) {
            (RetryAfterRule::Ignored, _) | (_, None) => own,
            (RetryAfterRule::Replaces, Some(asked)) => asked,
            (RetryAfterRule::LaterOnly { max }, Some(asked)) => own.max(asked.min(max)),
        }
    }
}

/// The wait that the answer asks for and the rule honours, already clamped; `None` when the schedule's own wait stands.
pub fn honoured(rule: RetryAfterRule, status: u16, header: Option<&str>, now: Timestamp) -> Option<Wait> {
    let longest = match (rule, status) {
        (RetryAfterRule::Replaces, 429) => None,
        (RetryAfterRule::LaterOnly { max }, 429 | 503) if !max.is_zero() => Some(max),
        _ => return None,
    };
    let asked = RetryAfter::parse(header?)?.wait_from(now);
    Some(longest.map_or(asked, |longest| asked.min(longest)))
}

/// The same of a whole answer. A date is held against the server's own clock where it says what time it has: its clock and ours may differ (F20).
pub fn asked_by(rule: RetryAfterRule, answer: &Answer, now: Timestamp) -> Option<Wait> {
    let theirs = answer.headers.get("date").and_then(RetryAfter::parse);
    let now = match theirs {
        Some(RetryAfter::Date(theirs)) => theirs,
        Some(RetryAfter::Seconds(_)) | None => now,
    };
    honoured(rule, answer.status?, answer.headers.get("retry-after"), now)
}

fn timestamp(date: SystemTime) -> Option<Timestamp> {
    let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
    i64::try_from(since_epoch.as_millis()).ok().map(Timestamp::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000); // 1994-11-06T08:49:37Z
    const SIX_HOURS: RetryAfterRule = RetryAfterRule::LaterOnly { max: RetryAfterRule::DEFAULT_MAX };

    #[test]
    fn z04_seconds_and_all_three_forms_of_a_date() {
        let cases = [
            ("0", RetryAfter::Seconds(0)),
            ("120", RetryAfter::Seconds(120)),
            (" 007\t", RetryAfter::Seconds(7)),
            ("18446744073709551616", RetryAfter::Seconds(u64::MAX)),
            ("99999999999999999999999999", RetryAfter::Seconds(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", RetryAfter::Date(NOW)),
            ("Sunday, 06-Nov-94 08:49:37 GMT", RetryAfter::Date(NOW)),
            ("Sun Nov  6 08:49:37 1994", RetryAfter::Date(NOW)),
        ];
        for (text, expected) in cases {
            assert_eq!(RetryAfter::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn z04_f20_a_date_is_held_against_the_clock_of_whoever_wrote_it() {
        let answer = |date: Option<&str>| {
            let mut answer = Answer { status: Some(429), ..Answer::default() };
            let fields = [("Retry-After", Some("Sun, 06 Nov 1994 09:00:30 GMT")), ("Date", date)];
            for (name, value) in fields {
                let value = value.map(|value| answer.headers.push(name.to_owned(), value.to_owned()));
                assert!(value.is_none_or(|pushed| pushed.is_ok()));
            }
            answer
        };
        // Their clock is ten minutes ahead of ours.
        let asked = |date| asked_by(RetryAfterRule::Replaces, &answer(date), NOW);
        assert_eq!(asked(Some("Sun, 06 Nov 1994 09:00:00 GMT")), Some(Wait::from_secs(30)));
        assert_eq!(asked(None), Some(Wait::from_secs(653)));
        for junk in ["soon", "5", ""] {
            assert_eq!(asked(Some(junk)), Some(Wait::from_secs(653)), "{junk}");
        }
    }

    #[test]
    fn z04_an_unreadable_value_is_ignored() {
        let junk = [
            "",
            " ",
            "soon",
            "-1",
            "+5",
            "1.5",
            "5s",
            "1e3",
            "0x10",
            "１２０",
            "5, 6",
            "1994-11-06T08:49:37Z",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94\u{16}08:49:37 GMT",
            "Sunday, 06-Nov-94T08:49:37 GMT",
            "\u{b}Sun, 06 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37 GMT\u{a0}",
        ];
        for text in junk {
            assert_eq!(RetryAfter::parse(text), None, "{text}");
            assert_eq!(honoured(RetryAfterRule::Replaces, 429, Some(text), NOW), None, "{text}");
        }
    }

    #[test]
    fn z04_retry_after_replaces_the_wait_on_429_only() {
        let ask = |status, header| honoured(RetryAfterRule::Replaces, status, header, NOW);
        assert_eq!(ask(429, Some("30")), Some(Wait::from_secs(30)), "past the 8 s cap");
        assert_eq!(ask(429, Some("Sun, 06 Nov 1994 08:50:07 GMT")), Some(Wait::from_secs(30)));
        assert_eq!(ask(429, Some("0")), Some(Wait::ZERO), "at once");
        assert_eq!(ask(429, Some("Sun, 06 Nov 1994 08:49:36 GMT")), Some(Wait::ZERO), "a past date is at once");
        assert_eq!(ask(429, None), None);
        assert_eq!(ask(503, Some("30")), None);
        assert_eq!(ask(500, Some("30")), None);
        let own = Wait::from_secs(4);
        assert_eq!(RetryAfterRule::Replaces.wait_with(own, ask(429, Some("0"))), Wait::ZERO);
        assert_eq!(RetryAfterRule::Replaces.wait_with(own, ask(429, Some("30"))), Wait::from_secs(30));
        assert_eq!(RetryAfterRule::Replaces.wait_with(own, ask(503, Some("30"))), own);
    }

    #[test]
    fn r08_retry_after_is_honoured_on_429_and_503_and_clamped() {
        let ask = |status, header| honoured(SIX_HOURS, status, Some(header), NOW);
        assert_eq!(ask(429, "90"), Some(Wait::from_secs(90)));
        assert_eq!(ask(503, "90"), Some(Wait::from_secs(90)));
        assert_eq!(ask(500, "90"), None, "often left on by a proxy");
        assert_eq!(ask(408, "90"), None);
        assert_eq!(ask(429, "31536000"), Some(Wait::from_secs(21_600)), "a year");
        assert_eq!(ask(503, "Mon, 06 Nov 1995 08:49:37 GMT"), Some(Wait::from_secs(21_600)));
        assert_eq!(
            honoured(RetryAfterRule::LaterOnly { max: Wait::ZERO }, 429, Some("90"), NOW),
            None,
            "0 ignores the header"
        );
    }

    #[test]
    fn r08_only_ever_later_than_the_ladders_own_wait() {
        let own = Wait::from_secs(60);
        let wait = |header| SIX_HOURS.wait_with(own, honoured(SIX_HOURS, 429, Some(header), NOW));
        assert_eq!(wait("90"), Wait::from_secs(90));
        assert_eq!(wait("30"), own);
        assert_eq!(wait("0"), own);
        assert_eq!(wait("soon"), own);
        let longer_than_the_clamp = Wait::from_secs(86_400);
        assert_eq!(SIX_HOURS.wait_with(longer_than_the_clamp, Some(Wait::from_secs(21_600))), longer_than_the_clamp);
    }

    #[test]
    fn z15_rounds_ignore_the_header() {
        assert_eq!(honoured(RetryAfterRule::Ignored, 429, Some("30"), NOW), None);
        assert_eq!(
            RetryAfterRule::Ignored.wait_with(Wait::from_secs(2), Some(Wait::from_secs(30))),
            Wait::from_secs(2)
        );
    }

    #[test]
    fn r08_a_rule_survives_being_stored() {
        let stored = serde_json::to_string(&SIX_HOURS).unwrap();
        assert_eq!(stored, r#"{"later_only":{"max_ms":21600000}}"#);
        assert_eq!(serde_json::from_str::<RetryAfterRule>(&stored).unwrap(), SIX_HOURS);
    }

    proptest! {
        #[test]
        fn z04_any_header_is_read_or_ignored(text: String, now: i64) {
            if let Some(said) = RetryAfter::parse(&text) {
                let _ = said.wait_from(Timestamp::from_millis(now));
            }
        }

        #[test]
        fn z04_anything_near_a_date_is_read_or_ignored(
            text in "(Sun|Mon|Sunday)[, ]{0,2}[0-9]{1,2}[- ](Nov|Feb|Feb)[- ][0-9]{2,4} [0-9]{2}:[0-9]{2}:[0-9]{2} (GMT|UTC)?",
        ) {
            let _ = RetryAfter::parse(&text);
        }

        #[test]
        fn z04_a_date_written_is_the_date_read(seconds in 0u64..253_402_300_800) {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + std::time::Duration::from_secs(seconds));
            let expected = Timestamp::from_millis(i64::try_from(seconds * 1000).unwrap());
            prop_assert_eq!(RetryAfter::parse(&date), Some(RetryAfter::Date(expected)));
        }

        #[test]
        fn r08_never_over_the_clamp_nor_sooner_than_the_ladder(seconds: u64, own_s in 0u64..200_000, max_s in 1u64..100_000) {
            let rule = RetryAfterRule::LaterOnly { max: Wait::from_secs(max_s) };
            let asked = honoured(rule, 503, Some(&seconds.to_string()), NOW);
            let expected_s = own_s.max(seconds.min(max_s));
            prop_assert_eq!(rule.wait_with(Wait::from_secs(own_s), asked), Wait::from_secs(expected_s));
        }
    }
}
