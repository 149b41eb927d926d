//! Import and export over the API: the difference first, all or nothing, and nothing of the server's own environment.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::api::{Api, CONNECTIONS};
use serde_json::{Value, json};

const FILE: &str = "\
pubsub_topic:
  - {name: lab.failed, description: undeliverable}
outgoing_rest:
  - {name: Claims API, host: 'http://remote.test', url_path: /ok, use_queue: true, dlq_forward_to: lab.failed, ping_method: GET}
";

async fn import(api: &Api, query: &str, yaml: &str) -> (u16, Value) {
    let (status, _, text) =
        api.with("POST", &format!("/api/v1/import{query}"), "Content-Type: text/yaml\r\n", yaml.as_bytes()).await;
    (status, serde_json::from_str(&text).unwrap())
}

async fn export(api: &Api, query: &str) -> String {
    let (status, head, text) = api.with("GET", &format!("/api/v1/export{query}"), "", b"").await;
    assert_eq!(status, 200, "{text}");
    assert!(head.contains("content-type: application/yaml"), "{head}");
    text
}

#[tokio::test]
async fn d18_a_file_is_shown_applied_and_exported_again() {
    let api = Api::start().await;
    let (status, dry) = import(&api, "?dry_run=true", FILE).await;
    assert_eq!((status, &dry["applied"], dry["created"].as_array().unwrap().len()), (200, &json!(false), 2), "{dry}");
    assert_eq!(dry["warnings"][0]["line"], 4);
    assert_eq!(api.get(CONNECTIONS).await["data"], json!([]), "a dry run changes nothing");

    let plan = dry["plan"].as_str().unwrap();
    let (status, done) = import(&api, &format!("?plan={plan}"), FILE).await;
    assert_eq!((status, &done["applied"], &done["created"]), (200, &json!(true), &dry["created"]), "{done}");
    let made = api.get(&format!("{CONNECTIONS}/Claims%20API")).await;
    assert_eq!((&made["use_queue"], made.get("ping_method")), (&json!(true), None), "{made}");
    // It is in force, not only in the store.
    let (_, result) = api.call("POST", &format!("{CONNECTIONS}/Claims%20API/send"), r#"{"body": "1"}"#).await;
    assert_eq!(result["is_ok"], true, "{result}");

    // What was agreed to is not what would happen now.
    assert_eq!(import(&api, &format!("?plan={plan}"), FILE).await.0, 409);
    let (status, again) = import(&api, "", FILE).await;
    assert_eq!((status, &again["created"], &again["changed"]), (200, &json!([]), &json!([])), "{again}");
    assert_eq!(again["unchanged"].as_array().unwrap().len(), 2);
    assert_eq!(api.get(&format!("{CONNECTIONS}/Claims%20API")).await["version"], 1, "nothing was written");

    let text = export(&api, "?project=default").await;
    assert!(
        text.contains("  - name: Claims API\n    host: http://remote.test\n    url_path: /ok\n    use_queue: true\n"),
        "{text}"
    );
    let (_, same) = import(&api, "", &text).await;
    assert_eq!((&same["created"], &same["changed"]), (&json!([]), &json!([])), "{same}");
    let all = export(&api, "").await;
    assert!(all.contains("projects:\n  - name: default\n  - name: other\n"), "{all}");
    api.stop().await;
}

#[tokio::test]
async fn d18_a_changed_file_changes_what_is_in_force_and_keeps_what_is_paused() {
    let api = Api::start().await;
    import(&api, "", FILE).await;
    let path = format!("{CONNECTIONS}/Claims%20API");
    api.call("POST", &format!("{path}/pause"), "").await;
    let (status, changed) =
        import(&api, "", &FILE.replace("use_queue: true", "is_active: false").replace("undeliverable", "lost")).await;
    assert_eq!(status, 200);
    let keys = |index: usize| changed["changed"][index]["keys"].clone();
    assert_eq!(keys(0), json!([{"key": "description", "old": "undeliverable", "new": "lost", "default": ""}]));
    let key = |key: &str, old: Value, new: Value, default: &str| json!({"key": key, "old": old, "new": new, "default": default});
    let wanted = [
        key("is_active", Value::Null, json!(false), "true"),
        key("use_queue", json!(true), Value::Null, "false, or true with a ladder"),
    ];
    assert_eq!(keys(1), json!(wanted));
    assert_eq!(api.get(&path).await["state"]["paused"], true, "a pause by hand is no setting");
    api.call("POST", &format!("{path}/resume"), "").await;
    let (status, refused) = api.call("POST", &format!("{path}/send"), r#"{"body": "1"}"#).await;
    assert_eq!(status, 409, "the engine knows that it is not active: {refused}");
    // Another project has its own.
    let (_, other) = import(&api, "?project=other", FILE).await;
    assert_eq!(other["created"].as_array().unwrap().len(), 2, "{other}");
    assert_eq!(other["created"][0]["project"], "other");
    assert!(api.get("/api/v1/projects/other/topics/lab.failed").await["description"] == "undeliverable");
    api.stop().await;
}

#[tokio::test]
async fn d18_a_refused_file_names_every_line_and_changes_nothing() {
    let api = Api::start().await;
    let bad = FILE.replace("use_queue: true", "use_queue: yes, max_retrys: 3");
    let (status, refused) = import(&api, "", &bad).await;
    assert_eq!(
        (status, &refused["detail"]),
        (422, &json!("2 errors in the configuration; nothing was applied")),
        "{refused}"
    );
    assert_eq!(
        (&refused["errors"][0]["field"], &refused["errors"][0]["line"]),
        (&json!("outgoing_rest[0].use_queue"), &json!(4))
    );
    assert_eq!(refused["errors"][1]["field"], "outgoing_rest[0].max_retrys");
    assert_eq!(refused["errors"][1]["allowed"], "a key that exists here; did you mean `max_retries`?");
    assert!(api.get("/api/v1/projects/default/topics").await["data"].as_array().unwrap().is_empty());
    let many: String = (0..1500).map(|n| format!("  - {{name: t{n}, bad: 1}}\n")).collect();
    let (_, refused) = import(&api, "", &format!("pubsub_topic:\n{many}")).await;
    assert_eq!(refused["errors"].as_array().unwrap().len(), 1000);
    assert!(
        refused["detail"].as_str().unwrap().contains("the last 500 of them are not shown"),
        "{}",
        refused["detail"]
    );
    for (query, yaml, wanted) in
        [("?dry_run=maybe", "", 400), ("?force=true", "", 400), ("", "\u{0}", 422), ("?project=nobody", FILE, 422)]
    {
        assert_eq!(import(&api, query, yaml).await.0, wanted, "{query}");
    }
    assert_eq!(api.with("POST", "/api/v1/import", "Content-Type: text/yaml\r\n", b"a: \xff").await.0, 400);
    assert_eq!(api.with("POST", "/api/v1/import", "Content-Type: text/html\r\n", b"a").await.0, 415);
    assert_eq!(api.with("GET", "/api/v1/export?project=nobody", "", b"").await.0, 404);
    let nobody = "POST /api/v1/import HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(api.raw(nobody.as_bytes()).await.0, 401);
    api.stop().await;
}

#[tokio::test]
async fn d18_variables_come_with_the_request_and_never_from_the_server() {
    let api = Api::start().await;
    let yaml = "pubsub_topic:\n  - {name: a, description: Env.PATH}\n";
    let (status, refused) = import(&api, "", yaml).await;
    assert_eq!(status, 422);
    assert!(
        refused["errors"][0]["message"].as_str().unwrap().contains("the variable `PATH`, and that is not set"),
        "{refused}"
    );
    let with = |env: Value| json!({"yaml": yaml, "env": env}).to_string();
    let (status, done) = api.call("POST", "/api/v1/import", &with(json!({"PATH": "mine"}))).await;
    assert_eq!((status, &done["created"][0]["keys"][0]["new"]), (200, &json!("mine")), "{done}");
    for bad in [with(json!({"PATH": 5})), with(json!([])), json!({"yml": ""}).to_string()] {
        assert_eq!(api.call("POST", "/api/v1/import", &bad).await.0, 422, "{bad}");
    }
    api.stop().await;
}
