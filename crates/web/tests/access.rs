//! Who may take which route, over a real socket: every route there is, without a key, with a foreign one, with too small a scope.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use base64::Engine as _;
use std::time::Duration;

use http::Method;
use parts::api::{Api, CONNECTIONS, DELIVERIES, field};
use postrider_core::access::{Scope, ScopeSet};
use postrider_web::{Needs, PROJECT, routes};
use serde_json::{Value, json};

const INGRESS: &str = "/ingress/{token}";
/// In everything that must not be seen.
const SESAME: &str = "sesame";

/// A project with one of everything.
struct Furnished {
    api: Api,
    delivery: String,
}

impl Furnished {
    async fn start() -> Furnished {
        let api = Api::start().await;
        api.connection("c", r#", "use_queue": true, "data_format": "text""#).await;
        let (status, sent) =
            api.call("POST", &format!("{CONNECTIONS}/c/publish"), &format!(r#"{{"body": "{SESAME}"}}"#)).await;
        assert_eq!(status, 202, "{sent}");
        let topics = "/api/v1/projects/default/topics";
        for (path, body) in [
            (topics.to_owned(), json!({"name": "c", "description": SESAME})),
            (format!("{topics}/c/subscriptions"), json!({"name": "c"})),
            (format!("{topics}/c/publish"), json!({"body": SESAME})),
            (
                "/api/v1/projects/default/security".to_owned(),
                json!({"name": "c", "type": "basic_auth", "username": SESAME, "password": SESAME}),
            ),
        ] {
            assert_eq!(api.call("POST", &path, &body.to_string()).await.0, 201, "{path}");
        }
        let owner = json!({"ownerEmail": format!("{SESAME}@example.org")}).to_string();
        assert_eq!(api.call("PATCH", "/api/v1/projects/default", &owner).await.0, 200);
        let delivery = sent["msg_id"].as_str().unwrap().to_owned();
        api.until(&delivery, "SUCCESS").await;
        Furnished { api, delivery }
    }

    /// The text of a new key of a project, or of the installation.
    async fn key(&self, project: Option<&str>, scopes: ScopeSet) -> String {
        let path = project.map_or("/api/v1/keys".to_owned(), |name| format!("/api/v1/projects/{name}/keys"));
        let body = json!({"name": format!("key for {scopes}"), "scopes": scopes.to_json()}).to_string();
        let (status, made) = self.api.call("POST", &path, &body).await;
        assert_eq!(status, 201, "{made}");
        made["key"].as_str().unwrap().to_owned()
    }

    fn path(&self, route: &str, project: &str) -> String {
        route
            .replace("{project}", project)
            .replace("{id}", &self.delivery)
            .replace("{name}", "c")
            .replace("{*rest}", "x/y")
            .replace("{topic}", "c")
            .replace("{key}", "key%20for%20admin")
    }

    async fn asks(&self, method: &Method, path: &str, key: Option<&str>) -> (u16, String, String) {
        let key = key.map_or(String::new(), |key| format!("X-API-Key: {key}\r\n"));
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\n{key}Content-Length: 0\r\n\r\n");
        self.api.raw(request.as_bytes()).await
    }

    /// A refusal is a problem with this status, and holds nothing of what is there.
    async fn is_refused(&self, method: &Method, path: &str, key: Option<&str>, status: u16) -> (String, String) {
        let (found, head, body) = self.asks(method, path, key).await;
        assert_eq!(found, status, "{method} {path}: {body}");
        assert!(head.contains("content-type: application/problem+json"), "{method} {path}: {head}");
        assert!(!body.contains(SESAME), "{method} {path}: {body}");
        (head, body)
    }

    /// Nothing of what was tried has changed anything.
    async fn is_untouched(&self) {
        let delivery = self.api.get(&format!("{DELIVERIES}/{}", self.delivery)).await;
        assert_eq!(delivery["status"], "SUCCESS");
        assert_eq!(self.api.get(&format!("{CONNECTIONS}/c")).await["version"], 1);
        assert_eq!(self.api.get("/api/v1/projects/default/security/c").await["version"], 1);
        assert_eq!(self.api.get("/api/v1/projects/default/jobs").await["data"], json!([]));
        assert_eq!(self.api.get(DELIVERIES).await["data"].as_array().unwrap().len(), 1);
        let messages = self.api.get("/api/v1/projects/default/topics/c/messages").await;
        assert_eq!(messages["data"].as_array().unwrap().len(), 1);
    }
}

/// What is asked there, the remote system is asked.
fn is_raw(route: &str) -> bool {
    route.contains("/{name}/raw")
}

fn every_set() -> impl Iterator<Item = ScopeSet> {
    (1..16_u32).map(|bits| {
        let scopes: Vec<Scope> = Scope::ALL
            .into_iter()
            .enumerate()
            .filter(|(at, _)| bits & (1 << at) != 0)
            .map(|(_, scope)| scope)
            .collect();
        ScopeSet::of(&scopes)
    })
}

#[tokio::test]
async fn p07_no_route_answers_without_a_key() {
    let furnished = Furnished::start().await;
    let (_, rules) = routes().finish();
    assert!(rules.len() > 40, "only {} paths found", rules.len());
    let mut open = Vec::new();
    for (route, rule) in &rules {
        for (method, needs) in rule.iter() {
            let path = furnished.path(route, "default");
            if needs == Needs::Nobody {
                open.push(*route);
                // At an address that no source has, nobody is told more than that.
                let status = if *route == INGRESS { 404 } else { 200 };
                assert_eq!(furnished.asks(method, &path, None).await.0, status, "{method} {path}");
                continue;
            }
            for key in [None, Some("prk_0000000000000000000000000000000000000000000000000000000000000000"), Some("")] {
                let (head, _) = furnished.is_refused(method, &path, key, 401).await;
                assert!(head.contains("www-authenticate: bearer realm="), "{head}");
            }
        }
    }
    assert_eq!(open, ["/docs", "/docs/style.css", "/health/live", "/health/ready", INGRESS, "/openapi.json"]);
    furnished.is_untouched().await;
    furnished.api.stop().await;
}

#[tokio::test]
async fn p07_a_foreign_projects_key_finds_nothing_and_cannot_tell_that_there_is_something() {
    let furnished = Furnished::start().await;
    let foreign = furnished.key(Some("other"), ScopeSet::of(&[Scope::Admin])).await;
    let (_, rules) = routes().finish();
    let id = furnished.api.get("/api/v1/projects/default").await["id"].as_str().unwrap().to_owned();
    for (route, rule) in &rules {
        for (method, needs) in rule.iter() {
            if !route.starts_with(PROJECT) {
                let path = furnished.path(route, "default");
                if matches!(needs, Needs::Installation(_)) {
                    furnished.is_refused(method, &path, Some(&foreign), 403).await;
                } else if matches!(needs, Needs::AnyKey(_)) {
                    assert!(!furnished.asks(method, &path, Some(&foreign)).await.2.contains(SESAME), "{path}");
                }
                continue;
            }
            let named = |name: &str| furnished.path(route, name);
            let (_, missing) = furnished.is_refused(method, &named("nobodys"), Some(&foreign), 404).await;
            for name in ["default", id.as_str(), "d%65fault"] {
                let (_, body) = furnished.is_refused(method, &named(name), Some(&foreign), 404).await;
                let shown = if name == "d%65fault" { "default" } else { name };
                assert_eq!(body, missing.replace("nobodys", shown), "{method} {route}");
            }
        }
    }
    // Not even by the id of what it knows, under its own project.
    for path in [
        "deliveries/ID",
        "deliveries/ID/body",
        "deliveries/ID/attempts",
        "dlq/ID",
        "connections/c",
        "topics/c",
        "topics/c/messages",
    ] {
        let path = format!("/api/v1/projects/other/{}", path.replace("ID", &furnished.delivery));
        furnished.is_refused(&Method::GET, &path, Some(&foreign), 404).await;
    }
    let seen = furnished.asks(&Method::GET, "/api/v1/projects", Some(&foreign)).await;
    let seen: Value = serde_json::from_str(&seen.2).unwrap();
    assert_eq!((seen["data"].as_array().unwrap().len(), &seen["data"][0]["name"]), (1, &json!("other")));
    furnished.is_untouched().await;
    furnished.api.stop().await;
}

#[tokio::test]
async fn p07_too_small_a_scope_is_403_on_every_route() {
    let furnished = Furnished::start().await;
    let (_, rules) = routes().finish();
    let mut refused = 0;
    for scopes in every_set() {
        let own = furnished.key(Some("default"), scopes).await;
        let everywhere = furnished.key(None, scopes).await;
        for (route, rule) in &rules {
            for (method, needs) in rule.iter() {
                let path = furnished.path(route, "default");
                let is_installations = matches!(needs, Needs::Installation(_));
                let may = [
                    (&own, scopes.cover(needs.scopes()) && !is_installations),
                    (&everywhere, scopes.cover(needs.scopes())),
                ];
                for (key, may) in may {
                    if !may {
                        let (head, body) = furnished.is_refused(method, &path, Some(key), 403).await;
                        assert!(head.contains("insufficient_scope"), "{head}");
                        assert!(body.contains(&needs.scopes().to_string()), "{body}");
                        refused += 1;
                    } else if method == Method::GET && !is_raw(route) {
                        let (status, _, body) = furnished.asks(method, &path, Some(key)).await;
                        assert!(![401, 403].contains(&status), "{scopes}: {path}: {status} {body}");
                    }
                }
            }
        }
    }
    assert!(refused > 400, "only {refused} refusals");
    furnished.is_untouched().await;
    furnished.api.stop().await;
}

#[tokio::test]
async fn p07_a_key_is_shown_once_rotated_with_an_overlap_and_revoked() {
    let furnished = Furnished::start().await;
    let api = &furnished.api;
    let keys = "/api/v1/projects/default/keys";
    let body = r#"{"name": "ci", "scopes": ["send", "read"], "expiresAt": "2999-01-01T00:00:00Z"}"#;
    let (status, made) = api.call("POST", keys, body).await;
    assert_eq!(status, 201, "{made}");
    let first = made["key"].as_str().unwrap();
    assert!(first.starts_with("prk_") && first.len() == 68);
    let works = async |key: &str| furnished.asks(&Method::GET, CONNECTIONS, Some(key)).await.0 == 200;
    assert!(works(first).await);
    let one = api.get(&format!("{keys}/ci")).await;
    assert_eq!(
        (&one["key"], &one["scopes"], &one["hint"]),
        (&Value::Null, &json!(["read", "send"]), &json!(format!("{}…", &first[..12])))
    );
    assert!(one["lastUsedAt"].is_string());
    assert!(!api.get(keys).await.to_string().contains(first));

    let (status, rotated) = api.call("POST", &format!("{keys}/ci/rotate"), r#"{"overlap_seconds": 1}"#).await;
    assert_eq!((status, &rotated["id"]), (200, &made["id"]));
    let second = rotated["key"].as_str().unwrap();
    assert!(works(first).await && works(second).await, "both work during the overlap");
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert!(!works(first).await && works(second).await);
    let (_, third) = api.call("POST", &format!("{keys}/ci/rotate"), r#"{"overlap_seconds": 0}"#).await;
    assert!(!works(second).await && works(third["key"].as_str().unwrap()).await);
    assert_eq!(api.call("DELETE", &format!("{keys}/{}", made["id"].as_str().unwrap()), "").await.0, 204);
    assert!(!works(third["key"].as_str().unwrap()).await);
    assert_eq!(api.call("DELETE", &format!("{keys}/ci"), "").await.0, 404);

    for (body, named) in [
        (r#"{"scopes": ["read"]}"#, "name"),
        (r#"{"name": "x"}"#, "scopes"),
        (r#"{"name": "x", "scopes": []}"#, "scopes"),
        (r#"{"name": "x", "scopes": ["root"]}"#, "scopes"),
        (r#"{"name": "x", "scopes": ["read"], "expiresAt": "1999-01-01T00:00:00Z"}"#, "expiresAt"),
        (r#"{"name": "x", "scopes": ["read"], "expiresAt": "soon"}"#, "expiresAt"),
        (r#"{"name": "x", "scopes": ["read"], "project": "other"}"#, "project"),
    ] {
        let (status, problem) = api.call("POST", keys, body).await;
        assert_eq!((status, field(&problem)), (422, named), "{body}: {problem}");
    }
    furnished.api.stop().await;
}

#[tokio::test]
async fn d45_a_projects_settings_are_the_installations_to_change() {
    let furnished = Furnished::start().await;
    let api = &furnished.api;
    let body = r#"{"name": "clinic", "ownerEmail": "ada@example.org", "rateLimitPerSecond": 50, "concurrency": 4}"#;
    let (status, made) = api.call("POST", "/api/v1/projects", body).await;
    assert_eq!((status, &made["entitled"]), (201, &json!(true)), "{made}");
    assert_eq!(api.call("POST", "/api/v1/projects", body).await.0, 409);
    let patch = r#"{"entitled": false, "rateLimitPerSecond": null}"#;
    let (status, changed) = api.call("PATCH", "/api/v1/projects/clinic", patch).await;
    let shown = (&changed["entitled"], &changed["rateLimitPerSecond"], &changed["concurrency"], &changed["ownerEmail"]);
    assert_eq!((status, shown), (200, (&json!(false), &Value::Null, &json!(4), &json!("ada@example.org"))));
    assert_eq!(api.get("/api/v1/projects/clinic").await, changed);
    for (body, named) in [
        (r#"{"name": "x", "ownerEmail": "nobody"}"#, "ownerEmail"),
        (r#"{"name": "x", "concurrency": 0}"#, "concurrency"),
        (r#"{"name": "x/y"}"#, "name"),
        (r#"{"name": "prj_x"}"#, "name"),
        (r#"{"name": "x", "plan": "gold"}"#, "plan"),
    ] {
        let (status, problem) = api.call("POST", "/api/v1/projects", body).await;
        assert_eq!((status, field(&problem)), (422, named), "{body}: {problem}");
    }
    furnished.api.stop().await;
}

/// The tests above hold the gate to the table; this one holds the table to what scopes mean.
#[test]
fn p07_the_table_asks_for_what_the_scopes_mean() {
    let covered = |by: Scope, needs: Needs| ScopeSet::of(&[by]).cover(needs.scopes());
    let (_, rules) = routes().finish();
    let mut for_any_key = Vec::new();
    for (route, rule) in &rules {
        for (method, needs) in rule.iter() {
            let told = format!("{method} {route}: {needs:?}");
            if matches!(needs, Needs::AnyKey(_)) {
                for_any_key.push(*route);
            }
            if route.contains("/keys") || route.contains("/users") || route.ends_with("/audit") {
                assert!(!covered(Scope::Operate, needs) && !covered(Scope::Send, needs), "{told}");
            } else if is_raw(route) {
                assert_eq!(needs, Needs::InProject(ScopeSet::of(&[Scope::Send])), "{told}");
            } else if route.starts_with(PROJECT) && method == Method::GET {
                assert_eq!(needs, Needs::InProject(ScopeSet::of(&[Scope::Read])), "{told}");
            } else if route.starts_with(PROJECT) && route.ends_with("/schedule") {
                // A dry run: it says what settings would do, and changes nothing.
                assert_eq!(needs, Needs::InProject(ScopeSet::of(&[Scope::Read])), "{told}");
            } else if route.starts_with(PROJECT) {
                assert!(!covered(Scope::Read, needs), "{told}");
            }
            if route.contains("/security") && method != Method::GET {
                assert_eq!(needs, Needs::InProject(ScopeSet::of(&[Scope::Admin])), "{told}");
            }
            let acts_on_deliveries = ["/deliveries", "/dlq", "/jobs", "/queue"].iter().any(|part| route.contains(part));
            if acts_on_deliveries && method != Method::GET {
                assert_eq!(needs, Needs::InProject(ScopeSet::of(&[Scope::Operate])), "{told}");
            }
            let configures = [Method::PUT, Method::PATCH, Method::DELETE].contains(method) && !acts_on_deliveries;
            assert!(!configures || !covered(Scope::Operate, needs), "{told}");
        }
    }
    assert_eq!(for_any_key, ["/api/v1/export", "/api/v1/import", "/api/v1/projects", "/api/v1/schedule"]);
    for route in ["/api/v1/export", "/api/v1/import"] {
        assert!(rules[route].iter().all(|(_, needs)| needs == Needs::AnyKey(ScopeSet::of(&[Scope::Admin]))), "{route}");
    }
    // Every part of the API that there is has its routes here.
    for part in ["/jobs/{id}/cancel", "/security/{name}", "/raw/{*rest}", "/deliveries/forward", "/queue/set-aside"] {
        assert!(rules.keys().any(|route| route.ends_with(part)), "{part}");
    }
}

#[tokio::test]
async fn d14_on_the_raw_path_only_our_own_header_opens_and_none_of_our_keys_goes_on() {
    let furnished = Furnished::start().await;
    let key = furnished.key(Some("default"), ScopeSet::of(&[Scope::Send])).await;
    let other = furnished.key(Some("other"), ScopeSet::of(&[Scope::Read])).await;
    let asks = async |headers: &str| {
        let request = format!("GET {CONNECTIONS}/c/raw/x HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: 0\r\n\r\n");
        furnished.api.raw(request.as_bytes()).await
    };
    let ours = format!("X-API-Key: {key}\r\n");
    assert_eq!(asks(&format!("Authorization: Bearer {key}\r\n")).await.0, 401);
    assert_eq!(asks(&format!("{ours}Authorization: Bearer theirs\r\n")).await.0, 200);
    for leaked in [&key, &other, &furnished.api.key] {
        let (status, _, body) = asks(&format!("{ours}Authorization: Bearer {leaked}\r\n")).await;
        assert_eq!(status, 422, "{body}");
        assert!(!body.contains(leaked.as_str()), "{body}");
        // Nor as the user or the password of a Basic credential, however it is written (RFC 7617).
        for (pair, scheme) in
            [(format!("{leaked}:"), "Basic"), (format!("x:{leaked}"), "basic "), (format!("{leaked}:y"), "Basic")]
        {
            let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
            let (status, _, body) = asks(&format!("{ours}Authorization: {scheme} {encoded}\r\n")).await;
            assert_eq!(status, 422, "{body}");
        }
    }
    // Theirs goes on.
    assert_eq!(asks(&format!("{ours}Authorization: Basic eDp5\r\n")).await.0, 200);
    furnished.api.stop().await;
}

#[tokio::test]
async fn p07_a_projects_key_imports_and_exports_that_project_and_no_other() {
    let furnished = Furnished::start().await;
    let other = furnished.key(Some("other"), ScopeSet::of(&[Scope::Admin])).await;
    let id = furnished.api.get("/api/v1/projects/default").await["id"].as_str().unwrap().to_owned();
    let import = async |query: &str, yaml: &str| {
        let request = format!(
            "POST /api/v1/import{query} HTTP/1.1\r\nHost: x\r\nX-API-Key: {other}\r\nContent-Type: text/yaml\r\nContent-Length: {}\r\n\r\n{yaml}",
            yaml.len()
        );
        furnished.api.raw(request.as_bytes()).await
    };
    let topic = "pubsub_topic:\n  - {name: made";
    for (query, yaml, wanted) in [
        ("", format!("{topic}}}\n"), 200),
        ("?project=other", format!("{topic}, project: other}}\n"), 200),
        ("?project=default", format!("{topic}}}\n"), 404),
        (&format!("?project={id}"), format!("{topic}}}\n"), 404),
        ("?project=nobodys", format!("{topic}}}\n"), 404),
        ("", format!("{topic}, project: default}}\n"), 422),
        ("", format!("{topic}, project: nobodys}}\n"), 422),
        ("", "projects:\n  - {name: other}\n".to_owned(), 200),
        // One that is there and one that is not are refused alike, and a dry run tells no more.
        ("", "projects:\n  - {name: default}\n".to_owned(), 403),
        ("", "projects:\n  - {name: nobodys}\n".to_owned(), 403),
        ("?dry_run=true", "projects:\n  - {name: default}\n".to_owned(), 403),
        ("", format!("projects:\n  - {{name: default}}\n{topic}, project: default}}\n"), 403),
    ] {
        let (status, _, body) = import(query, &yaml).await;
        assert_eq!(status, wanted, "{query} {yaml}: {body}");
        assert!(!body.contains(SESAME), "{query} {yaml}: {body}");
    }
    assert_eq!(furnished.api.call("GET", "/api/v1/projects/default/topics/made", "").await.0, 404);
    assert_eq!(furnished.api.get("/api/v1/projects/other/topics/made").await["name"], "made");
    let export =
        async |query: &str| furnished.asks(&Method::GET, &format!("/api/v1/export{query}"), Some(&other)).await;
    for query in ["", "?project=other"] {
        let (status, _, text) = export(query).await;
        assert!(status == 200 && text.contains("made") && !text.contains(SESAME) && !text.contains("host:"), "{text}");
    }
    for query in ["?project=default", "?project=nobodys", &format!("?project={id}")] {
        assert_eq!(export(query).await.0, 404, "{query}");
    }
    furnished.is_untouched().await;
    furnished.api.stop().await;
}
