//! Answers to the challenge by which an endpoint is verified (R14).

use postrider_core::Timestamp;
use postrider_core::challenge::Challenge;

/// What stands for the challenge in an input, which cannot know it.
const PLACEHOLDER: &str = "CHALLENGE";

/// The input is what an endpoint answers.
pub fn holds(data: &[u8]) {
    let challenge = Challenge::new([7, 11]);
    let question = challenge.question(Timestamp::from_millis(0));
    let token = token(&question);
    assert!(!challenge.is_answered_by(question.replace(&token, "whc_").as_bytes()), "the question without it");
    let Ok(text) = std::str::from_utf8(data) else {
        // Whatever it is, it is neither the challenge nor JSON.
        assert!(!challenge.is_answered_by(data));
        return;
    };
    let answer = crate::unescaped(text).replace(PLACEHOLDER, &token);
    let is_answered = challenge.is_answered_by(answer.as_bytes());
    if !answer.contains(&token) && !answer.contains('\\') {
        assert!(!is_answered, "{answer:?} has nothing of it");
    }
    let bare = answer.trim_matches([' ', '\t', '\r', '\n', '\x0c']) == token;
    assert!(is_answered || !bare, "{answer:?} is the challenge itself");
    if is_answered && !bare {
        let is_object = answer.trim_start().starts_with('{') && answer.trim_end().ends_with('}');
        let names_it = answer.contains("challenge") || answer.contains('\\');
        assert!(is_object && names_it, "{answer:?} is no object that has it");
    }
    // Beside it an endpoint may say what it likes, before and after, but under its name.
    let said = serde_json::Value::from(answer.as_str());
    let more = format!(r#"{{"said": {said}, "challenge": "{token}", "again": {said}}}"#);
    assert!(challenge.is_answered_by(more.as_bytes()), "{more}");
    let elsewhere = format!(r#"{{"said": {{"challenge": "{token}"}}, "list": ["{token}", {said}]}}"#);
    assert!(!challenge.is_answered_by(elsewhere.as_bytes()), "{elsewhere}");
}

fn token(question: &str) -> String {
    let (_, rest) = question.split_once("whc_").expect("the question has it");
    format!("whc_{}", rest.split('"').next().unwrap_or_default())
}
