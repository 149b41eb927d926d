//! FHIR over the HTTP sender: media types and preferences of a request, and what an answer says about the resource.
//!
//! The body goes as it was accepted, whatever is in it (F25). Settings are live, so what is added here is added at every attempt. It must not
//! know of sockets.

use std::sync::Arc;

use postrider_core::connection::{FhirTarget, PartialBatch};
use postrider_core::fhir::{FhirAnswer, only_reads, outline};
use postrider_core::message::{HeaderList, RequestHead};
use postrider_core::{NoAnswerKind, Reply, Said};

use super::Outgoing;
use crate::codec::fhir::{answer, bundle};

const FORM: &str = "application/x-www-form-urlencoded";

/// What an answer that was kept says.
pub(super) fn said(headers: &HeaderList, body: &[u8], is_cut: bool) -> Said {
    Said::Fhir(Box::new(answer::read(headers, body, is_cut)))
}

/// The same attempt as one over HTTP.
pub(super) fn request(outgoing: Outgoing) -> Result<Outgoing, Reply> {
    let Some(target) = outgoing.connection.spec.target.fhir() else {
        let kind = outgoing.connection.kind().as_str();
        let detail = format!("a connection of type `{kind}` does not speak FHIR");
        return Err(Reply::unanswered(NoAnswerKind::Unsendable, detail));
    };
    let head = head(target, &outgoing.head, &outgoing.body);
    let head = head.map_err(|detail| Reply::unanswered(NoAnswerKind::Unsendable, detail))?;
    Ok(Outgoing { head: Arc::new(head), ..outgoing })
}

/// Reads the answer to a request, whatever its status.
pub(super) fn read(reply: Reply, sent: &Outgoing) -> Reply {
    let mut answer = match reply {
        Reply::Answered(answer) => answer,
        none => return none,
    };
    let mut said = answer::read(&answer.headers, &answer.body, answer.incomplete);
    said.not_modified = answer.status == Some(304) && only_reads(&sent.head);
    match answer.status {
        // F22: the server says that a condition failed and seldom whose.
        Some(412) => said.conditional = bundle::conditional(&sent.body),
        Some(200..300) => {
            said.missing = missing(&said, sent);
            said.remark = said.remark.take().or_else(|| remark(&said, sent));
        }
        _ => said.remark = None,
    }
    answer.said = Some(Said::Fhir(Box::new(said)));
    Reply::Answered(answer)
}

/// Each entry of a batch is answered by one entry, in order (FHIR, http.html#transaction-response). What cannot be read, or says nothing of entries at
/// all, stays what its status says (D24).
fn missing(said: &FhirAnswer, sent: &Outgoing) -> usize {
    let is_refusal = said.issues.iter().any(|issue| matches!(&*issue.severity, "fatal" | "error"));
    let speaks_of_entries = said.resource_type.as_deref() == Some("Bundle") || is_refusal;
    if speaks_of_entries { bundle::entries(&sent.body).saturating_sub(said.entries.len()) } else { 0 }
}

/// What is worth a word though it was delivered.
fn remark(said: &FhirAnswer, sent: &Outgoing) -> Option<String> {
    let target = sent.connection.spec.target.fhir()?;
    let refused = said.refused_entries().filter(|_| target.partial == PartialBatch::Delivered);
    refused.or_else(|| {
        let (first, second) = bundle::repeated(&sent.body)?;
        Some(format!("entries {first} and {second} write one resource: a server may have kept only one of them"))
    })
}

fn head(target: &FhirTarget, given: &RequestHead, body: &[u8]) -> Result<RequestHead, String> {
    let mut head = given.clone();
    let mut add = |name: &str, value: String| {
        if given.headers.get(name).is_some() {
            return Ok(());
        }
        head.headers.push(name.to_owned(), value).map_err(|error| error.to_string())
    };
    let is_xml = first(body) == Some(b'<');
    let [own, other] = if is_xml { ["xml", "json"] } else { ["json", "xml"] };
    let version = target.fhir_version.as_ref().map(|version| format!("; fhirVersion={version}")).unwrap_or_default();
    let accept = if is_xml {
        format!("application/fhir+{own}{version}, application/fhir+{other}{version};q=0.8")
    } else {
        format!("application/fhir+json{version}, application/json;q=0.9, application/fhir+{other}{version};q=0.5")
    };
    add("Accept", accept)?;
    if !body.is_empty() {
        add("Content-Type", content_type(given, body, &version))?;
    }
    let writes = matches!(given.method.as_str(), "POST" | "PUT" | "PATCH") && !only_reads(given);
    if let Some(prefer) = target.prefer.filter(|_| writes) {
        add("Prefer", format!("return={prefer}"))?;
    }
    Ok(head)
}

/// F21: UTF-8 is said, as the standard wants it.
fn content_type(head: &RequestHead, body: &[u8], version: &str) -> String {
    let is_patch = head.method.as_str() == "PATCH";
    match first(body) {
        _ if head.method.as_str() == "POST" && only_reads(head) => FORM.to_owned(),
        Some(b'[') if is_patch => "application/json-patch+json".to_owned(),
        // A patch in FHIRPath is a resource; any other object is merged (RFC 7396).
        Some(b'{') if is_patch && outline(body).resource_type.as_deref() != Some("Parameters") => {
            "application/merge-patch+json".to_owned()
        }
        Some(b'<') if is_patch && body.trim_ascii_start().starts_with(b"<diff") => {
            "application/xml-patch+xml".to_owned()
        }
        Some(b'<') => format!("application/fhir+xml; charset=utf-8{version}"),
        _ => format!("application/fhir+json; charset=utf-8{version}"),
    }
}

fn first(body: &[u8]) -> Option<u8> {
    body.iter().copied().find(|byte| !byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;
    use postrider_core::connection::{ConnectionKind, ConnectionSpec};
    use serde_json::json;

    fn target(more: serde_json::Value) -> FhirTarget {
        let mut written = json!({"address": "https://fhir.example.org/r4"});
        written.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let spec = ConnectionSpec::parse(ConnectionKind::Fhir, written.as_object().unwrap()).unwrap();
        spec.target.fhir().unwrap().clone()
    }

    fn headers(more: serde_json::Value, method: &str, path: &str, body: &str) -> HeaderList {
        let given = RequestHead { method: method.parse().unwrap(), path: path.to_owned(), ..RequestHead::default() };
        head(&target(more), &given, body.as_bytes()).unwrap().headers
    }

    // proves: Z33
    #[test]
    fn z33_f21_media_types_follow_from_the_body() {
        for (method, path, body, content_type) in [
            ("POST", "/Patient", " {}", Some("application/fhir+json; charset=utf-8")),
            ("PUT", "/Patient/1", "<Patient/>", Some("application/fhir+xml; charset=utf-8")),
            ("PATCH", "/Patient/1", "[]", Some("application/json-patch+json")),
            ("PATCH", "/Patient/1", "{\"active\": true}", Some("application/merge-patch+json")),
            ("PATCH", "/Patient/1", "{\"resourceType\": \"Parameters\"}", Some("application/fhir+json; charset=utf-8")),
            ("PATCH", "/Patient/1", "<diff/>", Some("application/xml-patch+xml")),
            ("POST", "/Patient/_search", "name=a", Some("application/x-www-form-urlencoded")),
            ("GET", "/Patient/1", "", None),
        ] {
            let sent = headers(json!({}), method, path, body);
            assert_eq!(sent.get("content-type"), content_type, "{method} {path} {body}");
        }
        let sent = headers(json!({"fhir_version": "4.0"}), "POST", "/Patient", "{}");
        assert_eq!(sent.get("content-type"), Some("application/fhir+json; charset=utf-8; fhirVersion=4.0"));
        assert_eq!(
            sent.get("accept"),
            Some(
                "application/fhir+json; fhirVersion=4.0, application/json;q=0.9, application/fhir+xml; fhirVersion=4.0;q=0.5"
            )
        );
        assert!(
            headers(json!({}), "POST", "/Patient", "<a/>").get("accept").unwrap().starts_with("application/fhir+xml")
        );
    }

    #[test]
    fn f09_a_preference_is_said_where_something_is_written_and_what_a_request_says_goes_before() {
        let minimal = json!({"prefer": "minimal"});
        for (method, path, said) in [
            ("POST", "/Patient", Some("return=minimal")),
            ("PUT", "/Patient/1", Some("return=minimal")),
            ("PATCH", "/Patient/1", Some("return=minimal")),
            ("GET", "/Patient/1", None),
            ("DELETE", "/Patient/1", None),
            ("POST", "/Patient/_search", None),
        ] {
            assert_eq!(headers(minimal.clone(), method, path, "{}").get("prefer"), said, "{method} {path}");
        }
        let mut given = RequestHead { path: "/Patient".to_owned(), ..RequestHead::default() };
        for (name, value) in [("prefer", "return=representation"), ("ACCEPT", "text/x"), ("Content-Type", "text/y")] {
            given.headers.push(name.to_owned(), value.to_owned()).unwrap();
        }
        assert_eq!(head(&target(minimal), &given, b"{}").unwrap().headers, given.headers);
    }
}
