//! Interactions by name become requests of HTTP.

use proptest::prelude::*;

use super::*;
use crate::connection::{ConnectionKind, ConnectionSpec};

fn target() -> FhirTarget {
    let written = serde_json::json!({"address": "https://fhir.example.org/r4"});
    let spec = ConnectionSpec::parse(ConnectionKind::Fhir, written.as_object().unwrap()).unwrap();
    spec.target.fhir().unwrap().clone()
}

fn call(operation: &str) -> FhirCall {
    FhirCall { operation: operation.to_owned(), ..FhirCall::default() }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn params() -> Vec<(String, String)> {
    vec![("identifier".to_owned(), "a|1".to_owned())]
}

fn of(resource_type: &str, id: &str, operation: &str) -> FhirCall {
    let given = |word: &str| (!word.is_empty()).then(|| word.to_owned());
    FhirCall { resource_type: given(resource_type), id: given(id), ..call(operation) }
}

const PATIENT: &str = r#"{"resourceType": "Patient", "id": "7"}"#;
const NEW: &str = r#"{"resourceType": "Patient"}"#;

// proves: Z33
#[test]
fn z33_each_interaction_has_its_request() {
    let post = |call: FhirCall| FhirCall { method: Some(Method::POST), ..call };
    let get = |call: FhirCall| FhirCall { method: Some(Method::GET), ..call };
    let found = |call: FhirCall| FhirCall { params: params(), ..call };
    for (call, body, method, path) in [
        (call("create"), NEW, "POST", "/Patient"),
        (call("create"), PATIENT, "POST", "/Patient"),
        (of("Patient", "", "create"), "<Patient/>", "POST", "/Patient"),
        (call("save"), NEW, "POST", "/Patient"),
        (call("save"), PATIENT, "PUT", "/Patient/7"),
        (of("Patient", "7", "read"), "", "GET", "/Patient/7"),
        (FhirCall { version_id: text("2"), ..of("Patient", "7", "vread") }, "", "GET", "/Patient/7/_history/2"),
        (call("update"), PATIENT, "PUT", "/Patient/7"),
        (of("", "8", "update"), NEW, "PUT", "/Patient/8"),
        (found(call("update")), PATIENT, "PUT", "/Patient"),
        (of("Patient", "7", "patch"), "[]", "PATCH", "/Patient/7"),
        (found(of("Patient", "", "patch")), "[]", "PATCH", "/Patient"),
        (of("Patient", "7", "delete"), "", "DELETE", "/Patient/7"),
        (found(of("Patient", "", "delete")), "", "DELETE", "/Patient"),
        (found(of("Patient", "", "search")), "", "GET", "/Patient"),
        (found(call("search")), "", "GET", ""),
        (post(found(of("Patient", "", "search"))), "", "POST", "/Patient/_search"),
        (call("history"), "", "GET", "/_history"),
        (of("Patient", "", "history"), "", "GET", "/Patient/_history"),
        (of("Patient", "7", "history"), "", "GET", "/Patient/7/_history"),
        (call("batch"), r#"{"resourceType": "Bundle", "type": "batch"}"#, "POST", ""),
        (call("transaction"), r#"{"resourceType": "Bundle", "type": "transaction"}"#, "POST", ""),
        (call("transaction"), "<Bundle/>", "POST", ""),
        (call("capabilities"), "", "GET", "/metadata"),
        (FhirCall { url: text("https://fhir.example.org/r4?page=2"), ..call("page") }, "", "GET", "?page=2"),
        (of("Patient", "", "$validate"), PATIENT, "POST", "/Patient/$validate"),
        (get(of("Patient", "7", "$everything")), "", "GET", "/Patient/7/$everything"),
        (get(call("$meta")), "", "GET", "/$meta"),
    ] {
        let request = call.request(&target(), body.as_bytes()).unwrap_or_else(|error| panic!("{call:?}: {error}"));
        assert_eq!((request.method.as_str(), request.path.as_str()), (method, path), "{call:?}");
        assert_eq!(request.params, call.params);
        assert_eq!(request.is_form, path.ends_with("/_search"));
    }
}

#[test]
fn f06_conditions_become_headers_and_a_bare_version_a_tag() {
    let headers = |call: FhirCall, body: &str| call.request(&target(), body.as_bytes()).unwrap().headers;
    let create = FhirCall { if_none_exist: text("Patient?identifier=a|1"), prefer: text("minimal"), ..call("create") };
    let wanted = [("If-None-Exist", "identifier=a|1"), ("Prefer", "return=minimal")];
    assert_eq!(headers(create, NEW), wanted.map(|(name, value)| (name, value.to_owned())));
    for (given, sent) in [("3", "W/\"3\""), ("W/\"3\"", "W/\"3\""), ("\"3\"", "\"3\""), ("*", "*")] {
        let update = FhirCall { if_match: text(given), ..call("update") };
        assert_eq!(headers(update, PATIENT), [("If-Match", sent.to_owned())]);
        let read = FhirCall { if_none_match: text(given), ..of("Patient", "7", "read") };
        assert_eq!(headers(read, ""), [("If-None-Match", sent.to_owned())]);
    }
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let read = FhirCall { if_modified_since: text(date), ..of("Patient", "7", "read") };
    assert_eq!(headers(read, ""), [("If-Modified-Since", date.to_owned())]);
    let whole = FhirCall { prefer: text("respond-async"), ..call("batch") };
    assert_eq!(headers(whole, r#"{"resourceType": "Bundle", "type": "batch"}"#)[0].1, "respond-async");
}

#[test]
fn z33_what_is_missing_or_of_no_use_is_refused_by_name() {
    let put = |call: FhirCall| FhirCall { method: Some("PUT".parse().unwrap()), ..call };
    for (call, body, field) in [
        (call(""), "", "operation"),
        (call("create "), NEW, "operation"),
        (call("$a/b"), "", "operation"),
        (call("$"), "", "operation"),
        (call("create"), "", "body"),
        (call("create"), "[1]", "resource_type"),
        (call("create"), r#"{"resourceType": "../x"}"#, "body"),
        (of("Observation", "", "create"), NEW, "resource_type"),
        (of("patient", "", "create"), "<p/>", "resource_type"),
        (of("Patient", "7", "create"), NEW, "id"),
        (of("Patient", "", "read"), "", "id"),
        (of("", "7", "read"), "", "resource_type"),
        (of("Patient", "..", "read"), "", "id"),
        (of("Patient", "a/b", "read"), "", "id"),
        (of("Patient", "7", "read"), "x", "body"),
        (of("Patient", "7", "vread"), "", "version_id"),
        (of("Patient", "8", "update"), PATIENT, "id"),
        (call("update"), NEW, "id"),
        (call("save"), r#"{"resourceType": "Patient", "id": "a b"}"#, "body"),
        (of("Patient", "", "delete"), "", "id"),
        (of("Patient", "", "patch"), "[]", "id"),
        (put(of("Patient", "", "search")), "", "method"),
        (put(of("Patient", "7", "delete")), "", "method"),
        (call("batch"), NEW, "body"),
        (call("batch"), r#"{"resourceType": "Bundle", "type": "transaction"}"#, "body"),
        (call("batch"), "{}", "body"),
        (FhirCall { url: text("https://evil.example/"), ..call("page") }, "", "url"),
        (FhirCall { url: text("?a"), params: params(), ..call("page") }, "", "params"),
        (FhirCall { url: text("?a"), ..call("capabilities") }, "", "url"),
        (FhirCall { if_match: text("1"), ..call("create") }, NEW, "if_match"),
        (FhirCall { if_none_exist: text("a=b"), ..call("update") }, PATIENT, "if_none_exist"),
        (FhirCall { if_none_exist: text("a=b\r\nX: 1"), ..call("create") }, NEW, "if_none_exist"),
        (FhirCall { if_none_match: text("ä"), ..of("Patient", "7", "read") }, "", "if_none_match"),
        (FhirCall { if_modified_since: text("yesterday"), ..of("Patient", "7", "read") }, "", "if_modified_since"),
        (
            FhirCall { if_modified_since: text("2026-03-12T12:00:00Z"), ..of("Patient", "7", "read") },
            "",
            "if_modified_since",
        ),
        (FhirCall { if_modified_since: text("3600"), ..of("Patient", "7", "read") }, "", "if_modified_since"),
        (FhirCall { prefer: text(""), ..call("create") }, NEW, "prefer"),
        (FhirCall { method: Some(Method::GET), ..of("Patient", "", "$validate") }, PATIENT, "body"),
    ] {
        let error =
            call.request(&target(), body.as_bytes()).map(|request| panic!("{call:?}: {request:?}")).unwrap_err();
        assert_eq!(error.field, field, "{call:?}: {error}");
    }
}

proptest! {
    /// Whatever is asked, no request leaves the connection's address.
    #[test]
    fn z33_no_call_leaves_the_address(
        operation in prop_oneof![proptest::sample::select(OPERATIONS.to_vec()).prop_map(str::to_owned), "\\$\\PC{0,8}"],
        resource_type in proptest::option::of("\\PC{0,8}|Patient"),
        id in proptest::option::of("\\PC{0,8}|[a-z./%]{1,5}"),
        url in proptest::option::of("(https://fhir.example.org)?/r4[/?.a-z%@:]{0,12}"),
        body in "\\PC{0,20}|\\{\"resourceType\": \"[A-Za-z./]{1,8}\", \"id\": \"[a-z./]{1,4}\"\\}",
    ) {
        let call = FhirCall { resource_type, id, url, ..call(&operation) };
        let target = target();
        if let Ok(request) = call.request(&target, body.as_bytes()) {
            if let Ok(filled) = target.http.url_path.fill(&request.params, &request.path) {
                prop_assert!(filled == "/r4" || filled.starts_with("/r4/") || filled.starts_with("/r4?"), "{filled}");
                prop_assert!(!filled.split(['/', '?']).any(|segment| segment == ".."));
            } else {
                prop_assert!(operation == "page", "only a server's link can be one that cannot be sent: {request:?}");
            }
        }
    }
}
