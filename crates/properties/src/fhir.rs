//! Answers of FHIR servers: whatever comes is read within bounds, ids and types are those of the standard, and nothing is made up.

use postrider_core::fhir::{FhirAnswer, outline};
use postrider_core::message::HeaderList;
use postrider_wire::codec::fhir::{answer, bundle, location};
use serde_json::Value;

/// The input is four lines (content type, location, tag, and nothing in particular), and then the body.
pub fn holds(data: &[u8]) {
    let mut lines = data.splitn(4, |byte| *byte == b'\n').map(|line| String::from_utf8_lossy(line).into_owned());
    let mut headers = HeaderList::default();
    for name in ["content-type", "location", "etag"] {
        let value = lines.next().unwrap_or_default();
        // A value with a control character is no header.
        let _ = headers.push(name.to_owned(), value);
    }
    let body = data.splitn(4, |byte| *byte == b'\n').nth(3).unwrap_or_default();
    let read = answer::read(&headers, body, false);
    holds_together(&read, &headers, body);
    assert_eq!(answer::read(&headers, body, false), read, "the same says the same");
    for content_type in ["application/fhir+json", "application/fhir+xml"] {
        let mut alone = HeaderList::default();
        assert!(alone.push("content-type".to_owned(), content_type.to_owned()).is_ok());
        holds_together(&answer::read(&alone, body, true), &alone, body);
    }
    let told = outline(body);
    if let Ok(Value::Object(whole)) = serde_json::from_slice::<Value>(body) {
        let text = |name: &str| whole.get(name).and_then(Value::as_str).map(str::to_owned);
        // A key that comes twice has no one meaning, and the outline is empty.
        if told.resource_type.is_some() {
            assert_eq!(told.resource_type, text("resourceType"));
        }
    }
    let conditional = bundle::conditional(body);
    assert!(conditional.windows(2).all(|two| two[0] < two[1]) && !conditional.contains(&0));
    if let Some((first, second)) = bundle::repeated(body) {
        assert!(first < second && first > 0);
    }
}

fn holds_together(answer: &FhirAnswer, headers: &HeaderList, body: &[u8]) {
    let is_type = |text: &String| text.starts_with(|c: char| c.is_ascii_uppercase()) && text.len() <= 64;
    let is_id = |text: &String| {
        (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.')
    };
    assert!(answer.resource_type.as_ref().is_none_or(is_type));
    let entries = answer.entries.iter().flat_map(|entry| [&entry.id, &entry.version_id]);
    for id in [&answer.id, &answer.version_id].into_iter().chain(entries).flatten() {
        assert!(is_id(id), "{id}");
        let is_said = headers.iter().any(|(_, value)| value.contains(id.as_str()));
        // In JSON a letter may be written as its number.
        assert!(
            is_said || body.contains(&b'\\') || body.contains(&b'&') || within(body, id.as_bytes()),
            "{id} was made up"
        );
    }
    assert!(answer.issues.len() <= answer::ISSUES_MAX);
    let issues = answer.issues.iter().chain(answer.entries.iter().flat_map(|entry| &entry.issues));
    for issue in issues {
        let texts = [&issue.severity, &issue.code, &issue.diagnostics, &issue.details];
        for text in texts.into_iter().chain(&issue.expression) {
            assert!(text.chars().count() <= answer::TEXT_CHARS_MAX + 1 && !text.chars().any(char::is_control));
        }
    }
    assert!(answer.next.as_ref().is_none_or(|link| !link.chars().any(char::is_control)));
    assert!(!answer.not_modified && answer.conditional.is_empty(), "only the sender knows these");
    if let Some(named) = headers.get("location").and_then(location::read) {
        assert!(is_id(&named.id) && is_type(&named.resource_type));
    }
}

fn within(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}
