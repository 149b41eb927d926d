//! From headers and body of an answer to what it says, whatever status it came with.
//!
//! An answer that cannot be read is no error here: the status decides what it means. What a server adds, leaves out or writes oddly is
//! passed over (F08). This module must not know of statuses.

use postrider_core::fhir::{Entry, FhirAnswer, Issue, is_id, is_type};
use postrider_core::message::HeaderList;
use serde_json::Value;

use super::{location, xml};

/// Issues that are kept of one OperationOutcome.
pub const ISSUES_MAX: usize = 100;
/// Of every text that is kept.
pub const TEXT_CHARS_MAX: usize = 2000;
/// Of a body that is no resource.
const LINE_CHARS_MAX: usize = 200;
const EXPRESSIONS_MAX: usize = 20;
const OUTCOME: &str = "OperationOutcome";

/// Reads an answer. `is_cut`: it was longer than what is kept, or broke off.
pub fn read(headers: &HeaderList, body: &[u8], is_cut: bool) -> FhirAnswer {
    let content_type = headers.get("content-type").unwrap_or_default();
    let resource = resource(content_type, body);
    let mut answer = match &resource {
        Some(resource) => of_resource(resource),
        None => FhirAnswer { text: line(content_type, body), ..FhirAnswer::default() },
    };
    let is_json = content_type.contains("json") && !body.is_empty();
    if resource.is_none() && is_json {
        let cut = if is_cut { "; it was cut" } else { "" };
        answer.remark = Some(format!("the answer is no resource of FHIR that can be read{cut}"));
        answer.text = None;
    }
    from_headers(&mut answer, headers);
    answer
}

/// What the body does not say about the resource, the headers may (F09, F11).
fn from_headers(answer: &mut FhirAnswer, headers: &HeaderList) {
    let named = ["location", "content-location"].iter().find_map(|name| location::read(headers.get(name)?));
    let is_silent = answer.resource_type.as_deref().is_none_or(|kind| kind == OUTCOME);
    if let Some(named) = named.filter(|named| is_silent || answer.resource_type.as_ref() == Some(&named.resource_type))
    {
        answer.resource_type = Some(named.resource_type);
        answer.id = Some(if is_silent { named.id } else { answer.id.take().unwrap_or(named.id) });
        answer.version_id = answer.version_id.take().or(named.version_id);
    }
    let is_of_one = answer.id.is_some();
    if let Some(version) = headers.get("etag").and_then(location::version).filter(|_| is_of_one) {
        answer.version_id.get_or_insert(version);
    }
}

/// A body as a resource in JSON; XML is read into the same.
fn resource(content_type: &str, body: &[u8]) -> Option<Value> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let resource = match first {
        Some(b'{') => serde_json::from_slice::<Value>(body).ok()?,
        Some(b'<') if !content_type.contains("html") => xml::read(std::str::from_utf8(body).ok()?)?,
        _ => return None,
    };
    resource["resourceType"].is_string().then_some(resource)
}

fn of_resource(resource: &Value) -> FhirAnswer {
    let resource_type = resource["resourceType"].as_str().filter(|text| is_type(text)).map(str::to_owned);
    let is_outcome = resource["resourceType"] == OUTCOME;
    let id = |value: &Value| value.as_str().filter(|text| is_id(text)).map(str::to_owned);
    let is_answer =
        resource["type"].as_str().is_some_and(|kind| matches!(kind, "batch-response" | "transaction-response"));
    let is_bundle = resource["resourceType"] == "Bundle";
    FhirAnswer {
        // An outcome is about something else; its own id is of no use to anybody.
        id: if is_outcome { None } else { id(&resource["id"]) },
        version_id: if is_outcome { None } else { id(&resource["meta"]["versionId"]) },
        resource_type,
        issues: if is_outcome { issues(resource) } else { Vec::new() },
        entries: if is_bundle && is_answer { items(&resource["entry"]).map(entry).collect() } else { Vec::new() },
        next: if is_bundle { next(resource) } else { None },
        ..FhirAnswer::default()
    }
}

/// A list, or a single one that some servers write instead.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
    .iter()
}

fn issues(outcome: &Value) -> Vec<Issue> {
    let issue = |issue: &Value| {
        let details = &issue["details"];
        let coded = items(&details["coding"]).find_map(|coding| {
            let shown = text(&coding["display"]);
            let shown = if shown.is_empty() { text(&coding["code"]) } else { shown };
            (!shown.is_empty()).then_some(shown)
        });
        let details = text(&details["text"]);
        let places = if issue["expression"].is_null() { &issue["location"] } else { &issue["expression"] };
        Issue {
            severity: text(&issue["severity"]),
            code: text(&issue["code"]),
            diagnostics: text(&issue["diagnostics"]),
            details: if details.is_empty() { coded.unwrap_or_default() } else { details },
            expression: items(places).map(text).filter(|text| !text.is_empty()).take(EXPRESSIONS_MAX).collect(),
        }
    };
    items(&outcome["issue"]).take(ISSUES_MAX).map(issue).collect()
}

fn entry(entry: &Value) -> Entry {
    let response = &entry["response"];
    let status = match &response["status"] {
        // `201 Created`, as a status line has it.
        Value::String(text) => text.split_whitespace().next().and_then(|word| word.parse().ok()),
        Value::Number(number) => number.as_u64().and_then(|number| u16::try_from(number).ok()),
        _ => None,
    };
    let named = response["location"].as_str().and_then(location::read);
    let inner = of_resource(&entry["resource"]);
    let outcome = if response["outcome"].is_null() { &entry["resource"] } else { &response["outcome"] };
    let is_outcome = outcome["resourceType"] == OUTCOME;
    let of_inner = |text: Option<String>| text.filter(|_| inner.resource_type.as_deref() != Some(OUTCOME));
    let (resource_type, id, version_id) = match named {
        Some(named) => (Some(named.resource_type), Some(named.id), named.version_id),
        None => (of_inner(inner.resource_type.clone()), inner.id.clone(), inner.version_id.clone()),
    };
    let version_id = version_id.or_else(|| response["etag"].as_str().and_then(location::version));
    Entry {
        status: status.filter(|status| (100..600).contains(status)),
        resource_type,
        version_id: version_id.filter(|_| id.is_some()),
        id,
        issues: if is_outcome { issues(outcome) } else { Vec::new() },
    }
}

fn next(bundle: &Value) -> Option<String> {
    let is_next = |link: &&Value| link["relation"] == "next";
    let url = items(&bundle["link"]).find(is_next)?["url"].as_str()?;
    (url.len() <= 8192 && !url.chars().any(char::is_control)).then(|| url.to_owned())
}

/// A text without control characters; numbers and the like as they are written, for `"code": 409` has been seen.
fn text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return String::new(),
    };
    clean(text.trim(), TEXT_CHARS_MAX)
}

fn clean(text: &str, chars_max: usize) -> String {
    let shown: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(chars_max).collect();
    if text.chars().nth(chars_max).is_some() { shown + "…" } else { shown }
}

/// The first line of a text for people. A page in HTML says nothing in its first line.
fn line(content_type: &str, body: &[u8]) -> Option<String> {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    if !(kind.is_empty() || kind.eq_ignore_ascii_case("text/plain")) {
        return None;
    }
    let text = std::str::from_utf8(body).ok()?.trim_start();
    let line = text.lines().next().filter(|line| !line.starts_with(['<', '{', '[']))?;
    Some(clean(line.trim(), LINE_CHARS_MAX)).filter(|line| !line.is_empty())
}

#[cfg(test)]
mod tests;
