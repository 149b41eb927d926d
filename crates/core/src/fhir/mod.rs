//! What is said over HL7 FHIR: what a call names, how it becomes a request of HTTP, and what an answer says about the outcome (Z33).
//!
//! This module must not know how anything is sent.

mod answer;
mod call;
mod link;
mod outline;

pub use answer::{Entry, FhirAnswer, Issue};
pub use call::{FhirCall, FhirRequest, OPERATIONS};
pub use link::below;
pub use outline::{Outline, outline};

use crate::message::RequestHead;

/// A resource's own name, such as `Patient`.
pub fn is_type(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && text.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// The id of a resource or of one of its versions (FHIR R4, data type `id`).
pub fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text != "."
        && text != ".."
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
}

/// Whether a request only reads, so that it never queues (Z12): by its method, or a search whose params are in the body.
pub fn only_reads(head: &RequestHead) -> bool {
    let path = head.path.split('?').next().unwrap_or_default();
    let is_search = head.method.as_str() == "POST" && path.rsplit('/').next() == Some("_search");
    head.method.only_reads() || is_search
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn z12_f24_a_search_by_post_reads_and_an_operation_by_post_may_not() {
        for (method, path, reads) in [
            ("GET", "/Patient/1", true),
            ("HEAD", "/Patient/1", true),
            ("GET", "/Patient/1/$everything", true),
            ("POST", "/Patient/_search", true),
            ("POST", "/_search", true),
            ("POST", "/Patient/_search?_format=json", true),
            ("POST", "/Patient", false),
            ("POST", "/Patient?x=_search", false),
            ("POST", "/Patient/_search/x", false),
            ("POST", "/Patient/$validate", false),
            ("POST", "", false),
            ("PUT", "/Patient/_search", false),
            ("DELETE", "/Patient/1", false),
        ] {
            let head = RequestHead { method: method.parse().unwrap(), path: path.to_owned(), ..RequestHead::default() };
            assert_eq!(only_reads(&head), reads, "{method} {path}");
        }
    }

    #[test]
    fn types_and_ids_are_those_of_the_standard() {
        assert!(is_type("Patient") && !is_type("patient") && !is_type("Patient/1") && !is_type(""));
        assert!(is_id("a-1.b") && !is_id("..") && !is_id("a/b") && !is_id("") && !is_id(&"a".repeat(65)));
    }
}
