//! The `retryableStatuses` language: which answered statuses earn another attempt (R02, R06).
//!
//! It must not know what happens to a status outside the set, nor that 2xx is a success before the set is asked.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The statuses that the language speaks of.
const STATUSES: RangeInclusive<u16> = 100..=599;
const WORDS: usize = 8;

/// A set of HTTP statuses, 100-599, written as comma-separated terms: `429`, `500-599`, `5xx`, `>=500`, `>500`, `<=408`, `<400`, each
/// excluded with a `!` before it. Exclusions win wherever they are written; a list of exclusions alone means the default set less those.
///
/// Shown and stored as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StatusSet {
    written: String,
    /// One bit a status, from 100 on.
    bits: [u64; WORDS],
}

/// Why a list cannot be read (R06: the API refuses it and names the bad term).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StatusSetError {
    #[error("the list of statuses is empty: write at least one term, such as `5xx`")]
    EmptyList,
    #[error("term {position} of the list of statuses is empty: a comma is too many")]
    EmptyTerm {
        /// Counted from 1.
        position: usize,
    },
    #[error("`{term}` is not a term that matches statuses: {why}")]
    BadTerm {
        /// As it was written, without the spaces around it.
        term: String,
        why: &'static str,
    },
    #[error("the list has {terms} terms: at most {} are allowed", StatusSet::TERMS_MAX)]
    TooManyTerms { terms: usize },
}

impl StatusSet {
    /// A list may have 1 to this many terms.
    pub const TERMS_MAX: usize = 32;
    /// What is retried where nothing else is said (R02).
    pub const DEFAULT: &'static str = "408,429,500-599";
    /// Everything outside 2xx but 410 (the `patient` preset, D20).
    pub const PATIENT: &'static str = "1xx,3xx,4xx,5xx,!410";

    /// The set of the `patient` preset.
    pub fn patient() -> Self {
        Self::PATIENT.parse().expect("the constant is a readable list, as a test shows")
    }

    /// Whether the set covers the status; never for one outside 100-599.
    pub fn contains(&self, status: u16) -> bool {
        STATUSES.contains(&status) && has(&self.bits, status)
    }

    /// The list as it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

impl Default for StatusSet {
    fn default() -> Self {
        Self::DEFAULT.parse().expect("the constant is a readable list, as a test shows")
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<Self, StatusSetError> {
        if text.trim().is_empty() {
            return Err(StatusSetError::EmptyList);
        }
        let terms = text.split(',').count();
        if terms > Self::TERMS_MAX {
            return Err(StatusSetError::TooManyTerms { terms });
        }
        let (mut included, mut excluded) = ([0; WORDS], [0; WORDS]);
        let mut only_exclusions = true;
        for (at, written) in text.split(',').enumerate() {
            let term = written.trim();
            if term.is_empty() {
                return Err(StatusSetError::EmptyTerm { position: at + 1 });
            }
            let bad = |why| StatusSetError::BadTerm { term: term.to_owned(), why };
            match term.strip_prefix('!') {
                Some(rest) => add(&mut excluded, range(rest.trim_start()).map_err(bad)?),
                None => {
                    only_exclusions = false;
                    add(&mut included, range(term).map_err(bad)?);
                }
            }
        }
        if only_exclusions {
            included = StatusSet::default().bits;
        }
        let bits = std::array::from_fn(|word| included[word] & !excluded[word]);
        Ok(StatusSet { written: text.to_owned(), bits })
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl TryFrom<String> for StatusSet {
    type Error = StatusSetError;
    fn try_from(text: String) -> Result<Self, StatusSetError> {
        text.parse()
    }
}

impl From<StatusSet> for String {
    fn from(set: StatusSet) -> String {
        set.written
    }
}

/// The statuses that a term without its `!` matches; an empty range for `<100` and `>599`.
fn range(term: &str) -> Result<RangeInclusive<u16>, &'static str> {
    if let Some(bound) = term.strip_prefix(">=") {
        return Ok(status(bound)?..=*STATUSES.end());
    }
    if let Some(bound) = term.strip_prefix("<=") {
        return Ok(*STATUSES.start()..=status(bound)?);
    }
    if let Some(bound) = term.strip_prefix('>') {
        return Ok(status(bound)? + 1..=*STATUSES.end());
    }
    if let Some(bound) = term.strip_prefix('<') {
        return Ok(*STATUSES.start()..=status(bound)? - 1);
    }
    if let [class, b'x' | b'X', b'x' | b'X'] = *term.as_bytes() {
        let first = match class {
            b'1'..=b'5' => u16::from(class - b'0') * 100,
            _ => return Err("classes are 1xx to 5xx"),
        };
        return Ok(first..=first + 99);
    }
    if let Some((from, to)) = term.split_once('-') {
        let (from, to) = (status(from)?, status(to)?);
        if from > to {
            return Err("a range must ascend");
        }
        return Ok(from..=to);
    }
    let only = status(term)?;
    Ok(only..=only)
}

fn status(text: &str) -> Result<u16, &'static str> {
    const WHY: &str = "a status is a number from 100 to 599";
    if text.len() != 3 || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(WHY);
    }
    text.parse().ok().filter(|status| STATUSES.contains(status)).ok_or(WHY)
}

fn add(bits: &mut [u64; WORDS], statuses: RangeInclusive<u16>) {
    for status in statuses {
        let at = usize::from(status - STATUSES.start());
        bits[at / 64] |= 1 << (at % 64);
    }
}

fn has(bits: &[u64; WORDS], status: u16) -> bool {
    let at = usize::from(status - STATUSES.start());
    bits[at / 64] >> (at % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> StatusSet {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// The set as the ranges that it is made of.
    fn ranges(text: &str) -> Vec<(u16, u16)> {
        let set = set(text);
        let mut ranges: Vec<(u16, u16)> = Vec::new();
        for status in (0..=u16::MAX).filter(|status| set.contains(*status)) {
            match ranges.last_mut() {
                Some((_, end)) if *end + 1 == status => *end = status,
                _ => ranges.push((status, status)),
            }
        }
        ranges
    }

    // proves: R02, R06
    #[test]
    fn r06_the_lists_of_the_seed() {
        let default = vec![(408, 408), (429, 429), (500, 599)];
        assert_eq!(ranges(StatusSet::DEFAULT), default);
        assert_eq!(StatusSet::default(), set("408,429,500-599"));
        assert_eq!(ranges("5xx,!501"), [(500, 500), (502, 599)]);
        assert_eq!(ranges("!501,5xx"), ranges("5xx,!501"), "exclusions win wherever they are written");
        assert_eq!(ranges(">=500,408,429,409"), [(408, 409), (429, 429), (500, 599)]);
        assert_eq!(ranges("408,429"), [(408, 408), (429, 429)]);
    }

    #[test]
    fn r06_every_form_of_term() {
        let cases: [(&str, &[(u16, u16)]); 17] = [
            ("429", &[(429, 429)]),
            ("500-599", &[(500, 599)]),
            ("502-502", &[(502, 502)]),
            ("5xx", &[(500, 599)]),
            ("4XX", &[(400, 499)]),
            ("3xX", &[(300, 399)]),
            ("2xx", &[(200, 299)]),
            ("1xx", &[(100, 199)]),
            (">=500", &[(500, 599)]),
            (">500", &[(501, 599)]),
            ("<=408", &[(100, 408)]),
            ("<400", &[(100, 399)]),
            ("<100", &[]),
            (">599", &[]),
            ("4xx,!400-499", &[]),
            (" 5xx ,  ! 501\t", &[(500, 500), (502, 599)]),
            (">=100,!>=200", &[(100, 199)]),
        ];
        for (text, expected) in cases {
            assert_eq!(ranges(text), expected, "{text}");
        }
    }

    #[test]
    fn r06_exclusions_alone_mean_the_default_less_those() {
        assert_eq!(ranges("!501"), [(408, 408), (429, 429), (500, 500), (502, 599)]);
        assert_eq!(ranges("!5xx,!408"), [(429, 429)]);
        assert_eq!(ranges("!404"), ranges(StatusSet::DEFAULT));
    }

    // proves: V01, V03
    #[test]
    fn v03_the_patient_set_is_every_status_outside_2xx_but_410() {
        let set = StatusSet::patient();
        for status in 100..=599 {
            assert_eq!(set.contains(status), !(200..300).contains(&status) && status != 410, "{status}");
        }
    }

    #[test]
    fn r06_a_bad_term_is_named() {
        let number = "a status is a number from 100 to 599";
        let bad = [
            ("408,42,5xx", "42", number),
            ("600", "600", number),
            ("099", "099", number),
            ("0429", "0429", number),
            ("+29", "+29", number),
            ("５００", "５００", number),
            ("500-", "500-", number),
            ("-599", "-599", number),
            ("500-600", "500-600", number),
            ("500 - 599", "500 - 599", number),
            ("400-450-499", "400-450-499", number),
            (">", ">", number),
            (">=5xx", ">=5xx", number),
            ("=>500", "=>500", number),
            ("<>500", "<>500", number),
            ("!", "!", number),
            ("5xx, !!501", "!!501", number),
            ("408;429", "408;429", number),
            ("all", "all", number),
            ("5x", "5x", number),
            ("6xx", "6xx", "classes are 1xx to 5xx"),
            ("0xx", "0xx", "classes are 1xx to 5xx"),
            ("5xx,! 599-500", "! 599-500", "a range must ascend"),
        ];
        for (text, term, why) in bad {
            let expected = StatusSetError::BadTerm { term: term.to_owned(), why };
            assert_eq!(text.parse::<StatusSet>(), Err(expected), "{text}");
        }
        let shown = "408,42".parse::<StatusSet>().unwrap_err().to_string();
        assert_eq!(shown, "`42` is not a term that matches statuses: a status is a number from 100 to 599");
    }

    #[test]
    fn r06_empty_and_endless_lists_are_refused() {
        let parse = |text: &str| text.parse::<StatusSet>();
        assert_eq!(parse(""), Err(StatusSetError::EmptyList));
        assert_eq!(parse("  "), Err(StatusSetError::EmptyList));
        assert_eq!(parse("5xx,"), Err(StatusSetError::EmptyTerm { position: 2 }));
        assert_eq!(parse(",5xx"), Err(StatusSetError::EmptyTerm { position: 1 }));
        assert_eq!(parse("408,,429"), Err(StatusSetError::EmptyTerm { position: 2 }));
        assert!(parse(&["500"; 32].join(",")).is_ok());
        assert_eq!(parse(&["500"; 33].join(",")), Err(StatusSetError::TooManyTerms { terms: 33 }));
    }

    #[test]
    fn r06_a_set_is_stored_and_shown_as_it_was_written() {
        let written = " >=500, ! 501 ,4Xx";
        assert_eq!(set(written).to_string(), written);
        let stored = serde_json::to_string(&set(written)).unwrap();
        assert_eq!(serde_json::from_str::<StatusSet>(&stored).unwrap(), set(written));
        let error = serde_json::from_str::<StatusSet>("\"5xx,nine\"").unwrap_err().to_string();
        assert!(error.contains("`nine`"), "{error}");
    }

    /// A term and what it means, one truth value a status.
    #[derive(Clone, Debug)]
    struct Term {
        text: String,
        excludes: bool,
        matches: fn(u16, u16, u16) -> bool,
        a: u16,
        b: u16,
    }

    fn any_term() -> impl Strategy<Value = Term> {
        (0usize..7, 100u16..=599, 100u16..=599, any::<bool>(), 0usize..3).prop_map(|(form, a, b, excludes, spaces)| {
            let (a, b) = (a.min(b), a.max(b));
            let (text, matches): (String, fn(u16, u16, u16) -> bool) = match form {
                0 => (a.to_string(), |s, a, _| s == a),
                1 => (format!("{a}-{b}"), |s, a, b| s >= a && s <= b),
                2 => (format!("{}xx", a / 100), |s, a, _| s / 100 == a / 100),
                3 => (format!(">={a}"), |s, a, _| s >= a),
                4 => (format!(">{a}"), |s, a, _| s > a),
                5 => (format!("<={a}"), |s, a, _| s <= a),
                _ => (format!("<{a}"), |s, a, _| s < a),
            };
            let space = " ".repeat(spaces);
            let text = if excludes { format!("{space}!{space}{text}") } else { format!("{space}{text}{space}") };
            Term { text, excludes, matches, a, b }
        })
    }

    proptest! {
        #[test]
        fn r06_a_list_means_what_its_terms_mean_one_by_one(terms in prop::collection::vec(any_term(), 1..=32)) {
            let text = terms.iter().map(|t| t.text.as_str()).collect::<Vec<_>>().join(",");
            let set = set(&text);
            prop_assert_eq!(set.to_string(), text);
            let only_exclusions = terms.iter().all(|t| t.excludes);
            for status in 0..=1000u16 {
                let hit = |excludes: bool| {
                    terms.iter().any(|t| t.excludes == excludes && (t.matches)(status, t.a, t.b))
                };
                let by_default = only_exclusions && (status == 408 || status == 429 || status >= 500);
                let expected = (100..600).contains(&status) && (hit(false) || by_default) && !hit(true);
                prop_assert_eq!(set.contains(status), expected, "{}", status);
            }
        }

        #[test]
        fn r06_any_text_is_read_or_refused(text: String) {
            let _ = text.parse::<StatusSet>();
        }

        #[test]
        fn r06_anything_near_a_list_is_read_or_refused(text in "[0-9x!<>=, -]{0,24}") {
            let _ = text.parse::<StatusSet>();
        }
    }
}
