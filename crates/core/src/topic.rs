//! Names of topics and event types, and the patterns that select them (P02, D40: an event is a message on the topic of its type).
//!
//! It must not know which topics exist nor who subscribes.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Names and patterns may be this many characters long.
pub const TOPIC_CHARS_MAX: usize = 200;

/// A topic's name, which is also an event's type: segments of `A-Z a-z 0-9 _ -` with dots between, as in `order.line.added`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicName(String);

/// What a subscription selects: a name in which `*` stands for exactly one segment and `**` for any number of them, also none.
/// So `*` alone selects the names of one segment, `**` alone every name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TopicPattern(String);

/// Why a text is neither a topic's name nor a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopicError {
    #[error("it is empty")]
    Empty,
    #[error("it has {chars} characters: at most {TOPIC_CHARS_MAX} are allowed")]
    TooLong { chars: usize },
    #[error("`{text}` has an empty segment: dots stand between segments, one at a time")]
    EmptySegment { text: String },
    #[error("`{text}` contains {found:?}: letters, digits, `_`, `-` and dots are allowed")]
    BadCharacter { text: String, found: char },
    #[error("the segment `{segment}` mixes `*` with other characters: write `*` or `**` as a whole segment")]
    MixedWildcard { segment: String },
}

impl TopicName {
    pub fn new(text: impl Into<String>) -> Result<Self, TopicError> {
        let text = text.into();
        check(&text, |segment| check_literal(&text, segment))?;
        Ok(TopicName(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TopicPattern {
    pub fn new(text: impl Into<String>) -> Result<Self, TopicError> {
        let text = text.into();
        check(&text, |segment| match segment {
            "*" | "**" => Ok(()),
            _ if segment.contains('*') => Err(TopicError::MixedWildcard { segment: segment.to_owned() }),
            _ => check_literal(&text, segment),
        })?;
        Ok(TopicPattern(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the pattern selects the name. Letters match in the case in which they are written.
    ///
    /// Looks at no more pairs of segments than the two have, whatever the pattern.
    pub fn matches(&self, name: &TopicName) -> bool {
        let pattern: Vec<&str> = self.0.split('.').collect();
        let name: Vec<&str> = name.0.split('.').collect();
        let (mut at_pattern, mut at_name) = (0, 0);
        // Where to go on when what follows the last `**` does not fit: after that `**`, one segment of the name further.
        let mut fallback: Option<(usize, usize)> = None;
        while at_name < name.len() {
            match pattern.get(at_pattern) {
                Some(&"**") => {
                    fallback = Some((at_pattern + 1, at_name));
                    at_pattern += 1;
                }
                Some(segment) if *segment == "*" || *segment == name[at_name] => {
                    at_pattern += 1;
                    at_name += 1;
                }
                _ => {
                    let Some((after, taken)) = fallback else { return false };
                    fallback = Some((after, taken + 1));
                    (at_pattern, at_name) = (after, taken + 1);
                }
            }
        }
        pattern[at_pattern..].iter().all(|segment| *segment == "**")
    }
}

fn check(text: &str, check_segment: impl Fn(&str) -> Result<(), TopicError>) -> Result<(), TopicError> {
    if text.is_empty() {
        return Err(TopicError::Empty);
    }
    let chars = text.chars().count();
    if chars > TOPIC_CHARS_MAX {
        return Err(TopicError::TooLong { chars });
    }
    text.split('.').try_for_each(|segment| {
        if segment.is_empty() {
            return Err(TopicError::EmptySegment { text: text.to_owned() });
        }
        check_segment(segment)
    })
}

fn check_literal(text: &str, segment: &str) -> Result<(), TopicError> {
    match segment.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))) {
        Some(found) => Err(TopicError::BadCharacter { text: text.to_owned(), found }),
        None => Ok(()),
    }
}

macro_rules! written_as_text {
    ($type:ident) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $type {
            type Err = TopicError;
            fn from_str(text: &str) -> Result<Self, TopicError> {
                $type::new(text)
            }
        }

        impl TryFrom<String> for $type {
            type Error = TopicError;
            fn try_from(text: String) -> Result<Self, TopicError> {
                $type::new(text)
            }
        }

        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.0
            }
        }
    };
}

written_as_text!(TopicName);
written_as_text!(TopicPattern);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, name: &str) -> bool {
        TopicPattern::new(pattern).unwrap().matches(&TopicName::new(name).unwrap())
    }

    #[test]
    fn p02_patterns_select_names() {
        let cases = [
            ("order.created", "order.created", true),
            ("order.created", "order.Created", false),
            ("order.created", "order.created.late", false),
            ("order.created", "order", false),
            ("order.*", "order.created", true),
            ("order.*", "order", false),
            ("order.*", "order.line.added", false),
            ("*.created", "order.created", true),
            ("*", "ping", true),
            ("*", "order.created", false),
            ("*.*", "order.created", true),
            ("**", "ping", true),
            ("**", "order.line.added", true),
            ("order.**", "order", true),
            ("order.**", "order.line.added", true),
            ("order.**", "orders.line", false),
            ("**.added", "order.line.added", true),
            ("**.added", "added", true),
            ("order.**.added", "order.added", true),
            ("order.**.added", "order.line.item.added", true),
            ("order.**.added", "order.line.added.late", false),
            ("**.b.**.b", "a.b.c", false),
            ("**.b.**.b", "a.b.c.b", true),
            ("**.*", "ping", true),
            ("**.**", "ping", true),
            ("*.**.*", "ping", false),
            ("*.**.*", "a.b", true),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern, name), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn p02_names_that_are_none_are_refused() {
        assert_eq!(TopicName::new(""), Err(TopicError::Empty));
        assert!(TopicName::new("a".repeat(200)).is_ok());
        assert_eq!(TopicName::new("a".repeat(201)), Err(TopicError::TooLong { chars: 201 }));
        for text in [".", "..", ".a", "a.", "a..b"] {
            assert_eq!(TopicName::new(text), Err(TopicError::EmptySegment { text: text.to_owned() }));
        }
        for (text, found) in [("a b", ' '), ("a/b", '/'), ("ä", 'ä'), ("a.*", '*'), ("a\n", '\n'), ("#", '#')] {
            assert_eq!(TopicName::new(text), Err(TopicError::BadCharacter { text: text.to_owned(), found }));
        }
        assert_eq!(TopicName::new("Order_2.line-1").unwrap().to_string(), "Order_2.line-1");
    }

    #[test]
    fn p02_patterns_that_are_none_are_refused() {
        for segment in ["ord*", "***", "*-"] {
            let refused = TopicPattern::new(format!("a.{segment}.b"));
            assert_eq!(refused, Err(TopicError::MixedWildcard { segment: segment.to_owned() }));
        }
        assert_eq!(TopicPattern::new(""), Err(TopicError::Empty));
        assert_eq!(TopicPattern::new("a..*"), Err(TopicError::EmptySegment { text: "a..*".to_owned() }));
        assert!(matches!(TopicPattern::new("a.?"), Err(TopicError::BadCharacter { found: '?', .. })));
        assert!(serde_json::from_str::<TopicPattern>("\"a.ord*\"").is_err());
        assert_eq!(serde_json::from_str::<TopicPattern>("\"a.**\"").unwrap().as_str(), "a.**");
    }

    #[test]
    fn p02_a_hostile_pattern_is_matched_quickly() {
        let pattern = format!("{}.b", ["**.a"; 39].join("."));
        assert!(!matches(&pattern, &["a"; 100].join(".")));
    }

    /// Straight from the definition, with every way of taking segments tried.
    fn by_definition(pattern: &[&str], name: &[&str]) -> bool {
        match pattern.split_first() {
            None => name.is_empty(),
            Some((&"**", rest)) => (0..=name.len()).any(|taken| by_definition(rest, &name[taken..])),
            Some((segment, rest)) => name
                .split_first()
                .is_some_and(|(first, others)| (*segment == "*" || segment == first) && by_definition(rest, others)),
        }
    }

    proptest! {
        #[test]
        fn p02_matching_is_as_defined(
            pattern in prop::collection::vec(prop::sample::select(vec!["a", "b", "*", "**"]), 1..7),
            name in prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..8),
        ) {
            prop_assert_eq!(matches(&pattern.join("."), &name.join(".")), by_definition(&pattern, &name));
        }

        #[test]
        fn p02_any_text_is_taken_or_refused(text: String) {
            let name = TopicName::new(text.clone());
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            let dots_fit = text.split('.').all(|segment| !segment.is_empty());
            prop_assert_eq!(name.is_ok(), dots_fit && text.len() <= 200 && text.chars().all(allowed));
            let _ = TopicPattern::new(text);
        }

        #[test]
        fn p02_every_name_is_selected_by_itself_and_by_all(text in "[A-Za-z0-9_-]{1,8}(\\.[A-Za-z0-9_-]{1,8}){0,4}") {
            prop_assert!(matches(&text, &text));
            prop_assert!(matches("**", &text));
            prop_assert_eq!(matches("*", &text), !text.contains('.'));
        }
    }
}
