//! Answers of SOAP services: whatever comes is read to its end within bounds, a document type is never taken, and what was cut says so.

use postrider_core::soap::SoapAnswer;
use postrider_wire::codec::soap::{answer, wsdl};
use serde_json::Value;

/// The input is a line with the content type, and then the body. The body is read as a WSDL too.
pub fn holds(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let content_type = String::from_utf8_lossy(&data[..at]).into_owned();
    let body = data.get(at + 1..).unwrap_or_default();
    for content_type in ["text/xml", content_type.as_str()] {
        let whole = answer::read(Some(content_type), body, false);
        holds_together(&whole, body);
        assert_eq!(answer::read(Some(content_type), body, false), whole, "the same says the same");
        // A prefix is never taken for a whole envelope unless nothing but space is missing.
        let half = &body[..body.len() / 2];
        let cut = answer::read(Some(content_type), half, true);
        holds_together(&cut, half);
        assert!(cut.remark.is_none() || cut.remark.as_deref().is_some_and(|remark| remark.ends_with("it was cut")));
    }
    if let Some(text) = crate::text_of(body)
        && let Ok(ports) = wsdl::read(text, &[])
    {
        assert!(!ports.is_empty() && !has_document_type(text));
        for operation in ports.iter().flat_map(|port| &port.operations) {
            assert!(operation.name.len() + operation.action.len() <= text.len());
        }
    }
}

fn holds_together(answer: &SoapAnswer, body: &[u8]) {
    if let Some(text) = crate::text_of(body)
        && has_document_type(text)
    {
        assert!(answer.remark.is_some() && answer.data.is_null() && answer.fault.is_none(), "{text}");
    }
    if answer.fault.is_some() {
        assert!(answer.data.is_null() && answer.element.as_deref() == Some("Fault"));
    }
    assert!(answer.element.is_some() || answer.data.is_null());
    // No entity, inclusion or repetition makes much of little.
    assert!(
        texts(&answer.data) + texts(&answer.header) <= 3 * body.len() + 64,
        "{} of {}",
        texts(&answer.data),
        body.len()
    );
    // A list for each level at most.
    assert!(depth(&answer.data) <= 2 * 101);
}

/// At the beginning, where it would be one; further on it may stand in a comment or a text.
fn has_document_type(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = match text.strip_prefix("<?xml ").and_then(|rest| rest.split_once("?>")) {
        Some((declaration, rest)) if !declaration.contains("encoding") => rest,
        _ => text,
    };
    text.trim_start_matches([' ', '\t', '\r', '\n']).starts_with("<!DOCTYPE ")
}

fn texts(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(entries) => entries.iter().map(texts).sum(),
        Value::Object(members) => members.values().map(texts).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(entries) => 1 + entries.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
