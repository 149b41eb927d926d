//! Which deliveries of an endpoint go strictly one after another: those of one line, and the lines beside each other (R15).
//!
//! It must not know how a line is kept, nor what waits in it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A line within one queue, named by a number made of its key: two keys that come to one number share a line, which costs speed, never order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Line(pub i64);

/// Where the key is in what is sent: a JSON pointer (RFC 6901).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderingKey(String);

/// `ordering_key`, at most.
pub const POINTER_BYTES_MAX: usize = 512;

impl OrderingKey {
    /// `None` for a text that is no JSON pointer, points at the whole, or is too long.
    pub fn new(text: &str) -> Option<OrderingKey> {
        let is_escaped = |text: &str| text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
        let fits = text.len() <= POINTER_BYTES_MAX && text.starts_with('/') && is_escaped(text);
        (fits && !text.chars().any(char::is_control)).then(|| OrderingKey(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Line {
    /// Of all that has no key: without one, or with nothing where it points to, order is kept among all of these.
    pub const WITHOUT_KEY: Line = Line(0);

    /// The line of a body under a key.
    pub fn of(key: Option<&OrderingKey>, body: &[u8]) -> Line {
        let Some(key) = key else { return Line::WITHOUT_KEY };
        let Ok(whole) = serde_json::from_slice::<Value>(body) else { return Line::WITHOUT_KEY };
        match whole.pointer(key.as_str()) {
            None | Some(Value::Null) => Line::WITHOUT_KEY,
            // A text and a number that read alike are two keys.
            Some(found) => Line::named(found.to_string().as_bytes()),
        }
    }

    /// FNV-1a over 64 bits: the same on every server and in every version, since it is stored.
    fn named(key: &[u8]) -> Line {
        let hash = key.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        // 0 is taken.
        Line((hash | 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(key: &str, body: &str) -> Line {
        Line::of(Some(&OrderingKey::new(key).unwrap()), body.as_bytes())
    }

    #[test]
    fn r15_what_has_the_same_value_there_is_in_one_line() {
        let body = r#"{"customer": {"id": 7}, "items": [{"sku": "a"}]}"#;
        assert_eq!(line("/customer/id", body), line("/customer/id", r#"{"customer": {"id":7}}"#));
        assert_ne!(line("/customer/id", body), line("/customer/id", r#"{"customer": {"id": 8}}"#));
        assert_ne!(line("/customer/id", body), line("/customer/id", r#"{"customer": {"id": "7"}}"#));
        assert_eq!(line("/items/0/sku", body), line("/sku", r#"{"sku": "a"}"#));
        assert_eq!(line("/a~1b", r#"{"a/b": 1}"#), line("/x", r#"{"x": 1}"#));
    }

    #[test]
    fn r15_what_has_no_key_is_in_one_line_too() {
        for body in ["{}", "[]", "7", "no json", r#"{"k": null}"#] {
            assert_eq!(line("/k", body), Line::WITHOUT_KEY, "{body}");
        }
        assert_eq!(Line::of(None, b"{\"k\": 1}"), Line::WITHOUT_KEY);
        assert_ne!(line("/k", r#"{"k": 0}"#), Line::WITHOUT_KEY);
    }

    #[test]
    fn r15_the_number_of_a_key_never_changes() {
        assert_eq!(line("/k", r#"{"k": "lab-1"}"#).0 as u64, {
            let text = br#""lab-1""#;
            let mut hash: u64 = 14_695_981_039_346_656_037;
            for byte in text {
                hash ^= u64::from(*byte);
                hash = hash.wrapping_mul(1_099_511_628_211);
            }
            hash | 1
        });
    }

    #[test]
    fn r15_what_is_no_pointer_is_refused() {
        for taken in ["/a", "/a/0/b", "/", "/a~0b~1c"] {
            assert!(OrderingKey::new(taken).is_some(), "{taken}");
        }
        for refused in ["", "a", "a/b", "/a~2", "/a~", "/a\nb", &format!("/{}", "x".repeat(512))] {
            assert!(OrderingKey::new(refused).is_none(), "{refused:?}");
        }
    }
}
