//! The audit log over a real socket: each change by its name, who made it, before and after, and nothing for what was refused.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::api::{Api, CONNECTIONS, DELIVERIES};
use serde_json::{Value, json};

const AUDIT: &str = "/api/v1/projects/default/audit";

/// The actions from the oldest to the newest.
async fn actions(api: &Api) -> Vec<String> {
    let found = api.get(AUDIT).await;
    let data = found["data"].as_array().unwrap();
    data.iter().rev().map(|entry| entry["action"].as_str().unwrap().to_owned()).collect()
}

async fn newest(api: &Api) -> Value {
    api.get(&format!("{AUDIT}?limit=1")).await["data"][0].clone()
}

#[tokio::test]
async fn p07_every_change_is_in_the_audit_log_under_its_actor() {
    let api = Api::start().await;
    api.connection("c", r#", "use_queue": true, "max_retries": 0"#).await;
    let made = newest(&api).await;
    assert_eq!(
        (&made["action"], &made["objectName"], &made["before"]),
        (&json!("connection.create"), &json!("c"), &Value::Null)
    );
    assert_eq!((&made["actor"]["id"], &made["actor"]["address"]), (&json!("bootstrap"), &json!("127.0.0.1")));
    assert_eq!(made["after"]["host"], "http://remote.test");

    let one = format!("{CONNECTIONS}/c");
    let patch = r#"{"host": "http://ada:hunter2@remote.test", "timeout": 7}"#;
    let (status, changed) = api.call("PATCH", &one, patch).await;
    if status == 200 {
        let entry = newest(&api).await;
        assert_eq!((&entry["before"]["timeout"], &entry["after"]["timeout"]), (&Value::Null, &json!(7)));
        assert!(!entry.to_string().contains("hunter2"), "{entry}");
    } else {
        assert_eq!(status, 422, "{changed}");
        api.call("PATCH", &one, r#"{"timeout": 7}"#).await;
    }
    assert_eq!(api.call("PATCH", &one, r#"{"timeout": -1}"#).await.0, 422);
    assert_eq!(
        api.call("POST", CONNECTIONS, r#"{"name": "c", "type": "rest", "host": "http://x.test", "url_path": ""}"#)
            .await
            .0,
        409
    );
    api.call("POST", &format!("{one}/pause"), "").await;
    api.call("POST", &format!("{one}/resume"), "").await;
    let (_, key) = api.call("POST", "/api/v1/projects/default/keys", r#"{"name": "ops", "scopes": ["operate"]}"#).await;
    let topics = "/api/v1/projects/default/topics";
    api.call("POST", topics, r#"{"name": "t"}"#).await;
    api.call("POST", &format!("{topics}/t/subscriptions"), r#"{"name": "s"}"#).await;
    api.call("DELETE", &format!("{topics}/t/subscriptions/s"), "").await;
    api.call("DELETE", &format!("{topics}/t"), "").await;
    api.call("DELETE", &one, "").await;
    assert_eq!(
        actions(&api).await,
        [
            "connection.create",
            "connection.replace",
            "connection.pause",
            "connection.resume",
            "key.create",
            "topic.create",
            "subscription.create",
            "subscription.delete",
            "topic.delete",
            "connection.delete",
        ]
    );
    assert!(!api.get(AUDIT).await.to_string().contains(key["key"].as_str().unwrap()));
    let only = api.get(&format!("{AUDIT}?action=connection&limit=2")).await;
    assert_eq!(only["data"].as_array().unwrap().len(), 2);
    let next = api
        .get(&format!(
            "{AUDIT}?action=connection&limit=2&cursor={}",
            only["next_cursor"].as_str().unwrap().replace('"', "%22")
        ))
        .await;
    assert_eq!(next["data"].as_array().unwrap().len(), 2, "{next}");
    assert_eq!(api.get("/api/v1/projects/other/audit").await["data"], json!([]));
    assert_eq!(api.call("GET", &format!("{AUDIT}?who=ada"), "").await.0, 400);
    api.stop().await;
}

#[tokio::test]
async fn d44_what_is_done_to_a_delivery_and_each_view_of_a_body_is_in_the_audit_log() {
    let api = Api::start().await;
    api.connection("c", r#", "use_queue": true, "max_retries": 0, "data_format": "text""#).await;
    let (_, key) = api.call("POST", "/api/v1/projects/default/keys", r#"{"name": "ops", "scopes": ["operate"]}"#).await;
    let (_, sent) =
        api.call("POST", &format!("{CONNECTIONS}/c/publish"), r#"{"path": "/fail", "body": "patient"}"#).await;
    let id = sent["msg_id"].as_str().unwrap().to_owned();
    api.until(&id, "DLQ").await;
    let one = format!("{DELIVERIES}/{id}");
    let as_ops = async |method: &str, path: &str, body: &str| {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            key["key"].as_str().unwrap(),
            body.len()
        );
        api.raw(request.as_bytes()).await
    };
    assert_eq!(as_ops("GET", &format!("{one}/body"), "").await.2, "patient");
    let view = newest(&api).await;
    assert_eq!(
        (&view["action"], &view["object"], &view["actor"]["name"]),
        (&json!("delivery.body.view"), &json!(id), &json!("ops"))
    );
    assert_eq!(view["actor"]["id"], key["id"]);
    assert_eq!(as_ops("PATCH", &one, r#"{"body": "edited"}"#).await.0, 200);
    assert_eq!(as_ops("POST", &format!("{one}/retry"), "").await.0, 200);
    api.until(&id, "DLQ").await;
    assert_eq!(as_ops("DELETE", &one, "").await.0, 200);
    assert_eq!(as_ops("DELETE", &one, "").await.0, 409, "what was refused leaves no entry");
    let acts: Vec<String> = actions(&api).await.into_iter().filter(|action| action.starts_with("delivery.")).collect();
    assert_eq!(acts, ["delivery.body.view", "delivery.edit", "delivery.retry", "delivery.discard"]);
    let entries = api.get(&format!("{AUDIT}?object={id}")).await.to_string();
    assert!(!entries.contains("edited") && !entries.contains("patient"), "bodies stay out of the log: {entries}");
    api.stop().await;
}

#[tokio::test]
async fn p07_security_jobs_and_imports_are_in_the_audit_log_and_no_secret_is() {
    let api = Api::start().await;
    let security = "/api/v1/projects/default/security";
    let made = r#"{"name": "s", "type": "basic_auth", "username": "ada", "password": "hunter2"}"#;
    assert_eq!(api.call("POST", security, made).await.0, 201);
    assert_eq!(api.call("POST", security, made).await.0, 409);
    assert_eq!(api.call("PATCH", &format!("{security}/s"), r#"{"password": "hunter3"}"#).await.0, 200);
    let changed = newest(&api).await;
    assert_eq!((&changed["before"]["password"], &changed["after"]["password"]), (&Value::Null, &json!("***")));
    assert_eq!(api.call("DELETE", &format!("{security}/s"), "").await.0, 204);

    api.connection("c", r#", "use_queue": true"#).await;
    let path = format!("{DELIVERIES}/discard");
    let (status, job) = api.call("POST", &path, r#"{"filter": {"connection": "c", "status": "DLQ"}}"#).await;
    assert_eq!(status, 202, "{job}");
    // Its end is an entry as well, by whoever carried it out.
    let end = loop {
        let ends = api.get(&format!("{AUDIT}?action=job.end")).await;
        if let Some(end) = ends["data"].get(0) {
            break end.clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    };
    assert_eq!((&end["object"], &end["actor"]["id"], &end["after"]["done"]), (&job["id"], &json!("system"), &json!(0)));
    let entry = api.get(&format!("{AUDIT}?action=job.create")).await["data"][0].clone();
    assert_eq!((&entry["object"], &entry["actor"]["id"]), (&job["id"], &json!("bootstrap")));
    assert!(entry["after"]["filter"].to_string().contains("DLQ"), "{entry}");
    let dry = r#"{"filter": {}, "dry_run": true}"#;
    assert_eq!(api.call("POST", &path, dry).await.0, 200);
    assert_eq!(newest(&api).await["id"], end["id"], "a dry run does nothing");

    let import = async |yaml: &str, query: &str| {
        let yaml = format!(
            "outgoing_rest:\n  - {{name: c, host: 'http://remote.test', url_path: /ok, use_queue: true{yaml}}}\n"
        );
        let text = "Content-Type: text/yaml\r\n";
        api.with("POST", &format!("/api/v1/import{query}"), text, yaml.as_bytes()).await.0
    };
    assert_eq!(import(", timeout: 7", "?dry_run=true").await, 200);
    assert_eq!(import(", timeout: 7", "").await, 200);
    assert_eq!(import(", timeout: -1", "").await, 422);
    let replaced = newest(&api).await;
    assert_eq!((&replaced["before"]["timeout"], &replaced["after"]["timeout"]), (&Value::Null, &json!(7)));
    assert_eq!(
        actions(&api).await,
        [
            "security.create",
            "security.replace",
            "security.delete",
            "connection.create",
            "job.create",
            "job.end",
            "configuration.import",
            "connection.replace",
        ]
    );
    assert!(!api.get(AUDIT).await.to_string().contains("hunter"));
    api.stop().await;
}
