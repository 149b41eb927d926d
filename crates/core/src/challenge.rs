//! The challenge by which an endpoint shows that it wants what it is sent: it gives back what it was asked (R14).
//!
//! It must not know how the question is sent.

use serde_json::{Value, json};

use crate::Timestamp;

/// The type that a receiver sees; no event can have it.
pub const CHALLENGE_TYPE: &str = "webhook.verification";

/// What only who received it can know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(String);

impl Challenge {
    pub fn new(random: [u128; 2]) -> Self {
        Challenge(format!("whc_{:032x}{:032x}", random[0], random[1]))
    }

    /// The body of the question.
    pub fn question(&self, at: Timestamp) -> String {
        json!({"type": CHALLENGE_TYPE, "challenge": self.0, "timestamp": at}).to_string()
    }

    /// Whether this body answers it: a JSON object with the same `challenge`, or the challenge alone with white space about it.
    pub fn is_answered_by(&self, body: &[u8]) -> bool {
        if body.trim_ascii() == self.0.as_bytes() {
            return true;
        }
        let Ok(Value::Object(answer)) = serde_json::from_slice(body) else { return false };
        answer.get("challenge").and_then(Value::as_str) == Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // proves: R14
    #[test]
    fn r14_only_the_same_challenge_answers_it() {
        let challenge = Challenge::new([1, u128::MAX]);
        let text = challenge.0.clone();
        assert_eq!(text.len(), 68);
        for answer in [text.clone(), format!(" {text}\r\n"), json!({"challenge": text, "more": [1]}).to_string()] {
            assert!(challenge.is_answered_by(answer.as_bytes()), "{answer}");
        }
        let other = Challenge::new([1, u128::MAX - 1]).0;
        for answer in [
            String::new(),
            "ok".to_owned(),
            other.clone(),
            format!("{text}x"),
            format!("\"{text}\""),
            json!({"challenge": other}).to_string(),
            json!({"challenge": [text]}).to_string(),
            json!([text]).to_string(),
            json!({"data": {"challenge": text}}).to_string(),
        ] {
            assert!(!challenge.is_answered_by(answer.as_bytes()), "{answer}");
        }
        assert!(!challenge.is_answered_by(&[0xff, 0xfe]));
    }

    proptest! {
        #[test]
        fn r14_no_bytes_break_it(random in any::<[u128; 2]>(), answer in prop::collection::vec(any::<u8>(), 0..200)) {
            let challenge = Challenge::new(random);
            prop_assert!(!challenge.is_answered_by(&answer) || answer.trim_ascii() == challenge.0.as_bytes());
            let question = challenge.question(Timestamp::from_millis(5));
            prop_assert!(challenge.is_answered_by(question.as_bytes()), "an echo is an answer");
        }
    }
}
