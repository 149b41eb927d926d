//! P04: the OpenAPI document says of every route what it is, and what it says of request bodies is what the handlers read.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use std::collections::BTreeSet;

use http::Method;
use parts::api::{Api, CONNECTIONS};
use postrider_web::{openapi_document, routes};
use serde_json::{Value, json};

/// Every operation: path, method, description.
fn operations(document: &Value) -> Vec<(String, Method, &Value)> {
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (name, operation) in item.as_object().unwrap() {
            if let (Ok(method), false) = (name.to_ascii_uppercase().parse(), name == "parameters") {
                operations.push((path.clone(), method, operation));
            }
        }
    }
    operations
}

#[test]
fn p04_every_route_is_described() {
    let (_, rules) = routes().finish();
    let document = openapi_document();
    let routes: BTreeSet<(String, String)> = rules
        .iter()
        .flat_map(|(path, rule)| rule.iter().map(|(method, _)| (path.replace("{*", "{"), method.to_string())))
        .collect();
    let described: BTreeSet<(String, String)> =
        operations(document).into_iter().map(|(path, method, _)| (path, method.to_string())).collect();
    assert_eq!(described, routes);
    let tags: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations(document) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "{id} is there twice");
        assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{id}");
        assert!(operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()), "{id}");
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path} has no answer");
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert_ne!(parameter["description"], "", "{id}: {parameter}");
        }
    }
    for (path, item) in document["paths"].as_object().unwrap() {
        for parameter in item["parameters"].as_array().into_iter().flatten() {
            assert_ne!(parameter["description"], "", "{path}: `openapi/path.rs` says nothing of {parameter}");
        }
        assert_eq!(
            path.matches('{').count(),
            item["parameters"].as_array().map_or(0, Vec::len),
            "{path}: a variable segment without a parameter"
        );
    }
}

/// The names that a body may have, over all of its alternatives.
fn members(document: &Value, schema: &Value, found: &mut BTreeSet<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        return members(document, target.unwrap_or_else(|| panic!("{reference} leads nowhere")), found);
    }
    for alternative in schema["anyOf"].as_array().into_iter().flatten() {
        members(document, alternative, found);
    }
    found.extend(schema["properties"].as_object().into_iter().flat_map(|members| members.keys().cloned()));
}

/// A refusal of an unknown field lists those that are known: the handler's own word against the document's.
#[tokio::test]
async fn p04_bodies_are_described_as_the_handlers_read_them() {
    let api = Api::start().await;
    api.connection("c", r#", "use_queue": true"#).await;
    let (_, sent) = api.call("POST", &format!("{CONNECTIONS}/c/publish"), "{}").await;
    let topics = "/api/v1/projects/default/topics";
    for (path, body) in [
        (topics.to_owned(), json!({"name": "c"})),
        (format!("{topics}/c/subscriptions"), json!({"name": "c"})),
        ("/api/v1/projects/default/keys".to_owned(), json!({"name": "c", "scopes": ["read"]})),
        ("/api/v1/keys".to_owned(), json!({"name": "c", "scopes": ["read"]})),
    ] {
        assert_eq!(api.call("POST", &path, &body.to_string()).await.0, 201, "{path}");
    }
    let document = openapi_document();
    let mut compared = 0;
    for (path, method, operation) in operations(document) {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        let filled = path
            .replace("{project}", "default")
            .replace("{id}", sent["msg_id"].as_str().unwrap())
            .replace("{name}", "c")
            .replace("{topic}", "c")
            .replace("{key}", "c");
        let (status, problem) = api.call(method.as_str(), &filled, r#"{"zzz": 1}"#).await;
        assert!(matches!(status, 400..=499), "{method} {path}: {status}");
        let errors = problem["errors"].as_array().cloned().unwrap_or_default();
        let Some(unknown) = errors.iter().find(|error| error["field"] == "zzz") else { continue };
        let known = unknown["allowed"].as_str().unwrap();
        if known.is_empty() || known.contains("a key that exists here") {
            // Settings: their keys are described from the very definitions that they are read with.
            continue;
        }
        let mut described = BTreeSet::new();
        members(document, schema, &mut described);
        let mut read: BTreeSet<String> = known.split(", ").map(str::to_owned).collect();
        if path.ends_with("/{name}/send") || path.ends_with("/{name}/publish") {
            // The connection here is REST; one of SOAP reads these as well, and one of FHIR those.
            read.extend(["operation", "message", "soap_headers"].map(str::to_owned));
            let of_fhir = ["resource_type", "id", "version_id", "url", "if_none_exist", "if_match", "if_none_match"];
            read.extend(of_fhir.into_iter().chain(["if_modified_since", "prefer"]).map(str::to_owned));
        }
        assert_eq!(described, read, "{method} {path}");
        compared += 1;
    }
    assert!(compared >= 20, "only {compared} bodies were compared");
    api.stop().await;
}

#[tokio::test]
async fn p04_the_document_is_served_without_a_key() {
    let api = Api::start().await;
    let (status, head, body) = api.raw(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: application/json"), "{head}");
    assert_eq!(&serde_json::from_str::<Value>(&body).unwrap(), openapi_document());
    api.stop().await;
}

#[tokio::test]
async fn p04_the_page_needs_nothing_from_elsewhere_and_runs_nothing() {
    let api = Api::start().await;
    let (status, head, page) = api.raw(b"GET /docs HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/html"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'; style-src 'self';"), "{head}");
    for foreign in ["<script", "style=", "onclick", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    // Each link within the page leads somewhere, and each operation that is shown can be called.
    let ids: BTreeSet<&str> = page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(target), "nothing has the id {target}");
    }
    for (_, _, operation) in operations(openapi_document()) {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.contains(id) || id.starts_with("raw"), "{id} is not on the page");
    }
    assert!(page.contains("curl &quot;$POSTRIDER/api/v1/projects/default/connections/Billing%20API/send&quot;"));
    let (status, head, style) = api.raw(b"GET /docs/style.css HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert_eq!(status, 200);
    assert!(head.contains("content-type: text/css"), "{head}");
    assert!(!style.contains("@import") && !style.contains("url("), "the style needs nothing else");
    api.stop().await;
}

#[tokio::test]
async fn p04_a_method_that_a_path_does_not_have_is_405_also_where_nobody_needs_a_key() {
    let api = Api::start().await;
    for path in ["/docs", "/openapi.json", "/health/live"] {
        let (status, head, _) = api.raw(format!("POST {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
        assert_eq!(status, 405, "{path}");
        assert!(head.contains("allow: get,head"), "{path}: {head}");
    }
    // Elsewhere nobody learns without a key what there is.
    assert_eq!(api.raw(b"PUT /api/v1/projects HTTP/1.1\r\nHost: x\r\n\r\n").await.0, 401);
    let (status, head, _) = api.with("PUT", "/api/v1/projects", "", b"").await;
    assert_eq!(status, 405);
    assert!(head.contains("allow: get,head,post"), "{head}");
    api.stop().await;
}

#[tokio::test]
async fn a_change_without_a_body_is_refused_and_changes_nothing() {
    let api = Api::start().await;
    api.connection("c", "").await;
    for method in ["PUT", "PATCH"] {
        let (status, problem) = api.call(method, &format!("{CONNECTIONS}/c"), "").await;
        assert_eq!((status, parts::api::field(&problem)), (422, "body"), "{method}");
    }
    assert_eq!(api.get(&format!("{CONNECTIONS}/c")).await["version"], 1);
    api.stop().await;
}
