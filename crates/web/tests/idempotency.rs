//! D15: a POST with an idempotency key is acted on once, whatever it makes or does, and a repeat is given the first answer again.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]

mod parts;

use parts::api::{Api, CONNECTIONS, DELIVERIES};
use serde_json::{Value, json};

const PROJECT: &str = "/api/v1/projects/default";

async fn keyed(api: &Api, key: &str, path: &str, body: &Value) -> (u16, String, Value) {
    let headers = format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\n");
    let (status, head, text) = api.with("POST", path, &headers, body.to_string().as_bytes()).await;
    (status, head, serde_json::from_str(&text).unwrap_or(Value::Null))
}

async fn how_many(api: &Api, path: &str) -> usize {
    api.get(path).await["data"].as_array().unwrap().len()
}

#[tokio::test]
async fn d15_what_is_made_with_a_key_is_made_once() {
    let api = Api::start().await;
    let rest = json!({"name": "a", "type": "rest", "host": "http://remote.test", "url_path": ""});
    let login = json!({"name": "login", "type": "bearer", "token": "sesame"});
    for (list, body, before) in [
        ("/connections", rest, 0),
        ("/topics", json!({"name": "t"}), 0),
        ("/topics/t/subscriptions", json!({"name": "s"}), 0),
        ("/topics/t/publish", json!({"body": "x"}), 0),
        ("/security", login, 0),
        ("/keys", json!({"name": "k", "scopes": ["read"]}), 0),
        ("/endpoints", json!({"name": "e", "url": "https://93.184.216.34/in"}), 0),
    ] {
        let path = format!("{PROJECT}{list}");
        let (status, _, mut first) = keyed(&api, "once", &path, &body).await;
        assert_eq!(status, 201, "{path}: {first}");
        let (status, head, again) = keyed(&api, "once", &path, &body).await;
        if list == "/keys" {
            // A key is shown once, also to whoever asks again.
            assert!(first["key"].as_str().unwrap().starts_with("prk_"));
            first["key"] = Value::Null;
        }
        if list == "/endpoints" {
            // D46: nor is the secret of an endpoint, which would else be kept in the clear with the answer.
            assert!(first["secret"].as_str().unwrap().starts_with("whsec_"));
            first["secret"] = Value::Null;
            let path = format!("{path}/{}/rotate-secret", first["id"].as_str().unwrap());
            let made = keyed(&api, "rotated", &path, &json!({})).await;
            let repeated = keyed(&api, "rotated", &path, &json!({})).await;
            assert!(made.2["secret"].as_str().unwrap().starts_with("whsec_"), "{made:?}");
            assert_eq!((repeated.0, &repeated.2["secret"]), (200, &Value::Null), "{repeated:?}");
        }
        assert_eq!((status, &again), (201, &first), "{path}");
        assert!(head.contains("content-type: application/json"), "{head}");
        let shown = if list == "/topics/t/publish" { "/topics/t/messages" } else { list };
        assert_eq!(how_many(&api, &format!("{PROJECT}{shown}")).await, before + 1, "{path}");
        let mut other = body.clone();
        other["description"] = "other".into();
        let (status, _, problem) = keyed(&api, "once", &path, &other).await;
        assert_eq!(status, 409, "{path}: {problem}");
    }
    api.stop().await;
}

#[tokio::test]
async fn d15_an_act_with_a_key_is_done_once_and_its_job_too() {
    let api = Api::start().await;
    api.connection("c", r#", "use_queue": true, "max_retries": 0"#).await;
    let (_, sent) = api.call("POST", &format!("{CONNECTIONS}/c/publish"), r#"{"path": "/fail"}"#).await;
    let id = sent["msg_id"].as_str().unwrap();
    api.until(id, "DLQ").await;
    let id_of_project = api.get(PROJECT).await["id"].as_str().unwrap().to_owned();
    let path = format!("{DELIVERIES}/{id}/retry");
    assert_eq!(keyed(&api, "again", &path, &json!({})).await.0, 200);
    api.until(id, "DLQ").await;
    let attempts = api.get(&format!("{DELIVERIES}/{id}")).await["attempts"].clone();
    // The same address, written otherwise.
    let other_way = path.replace("/default/", &format!("/{id_of_project}/")).replace("/msg_", "/%6Dsg_");
    for path in [&path, &other_way] {
        assert_eq!(keyed(&api, "again", path, &json!({})).await.0, 200, "{path}");
    }
    assert_eq!(api.get(&format!("{DELIVERIES}/{id}")).await["attempts"], attempts);
    assert_eq!(keyed(&api, "other", &path, &json!({})).await.0, 200);

    let (bulk, body) = (format!("{DELIVERIES}/discard"), json!({"filter": {"error": "timeout"}}));
    let (one, two) = tokio::join!(keyed(&api, "job", &bulk, &body), keyed(&api, "job", &bulk, &body));
    assert_eq!((one.0, two.0), (202, 202));
    assert_eq!(one.2, two.2, "the second one waits for the first");
    let location = |head: &str| head.lines().find(|line| line.starts_with("location:")).map(str::to_owned);
    assert!(location(&one.1).is_some());
    assert_eq!(location(&one.1), location(&two.1));
    assert_eq!(how_many(&api, &format!("{PROJECT}/jobs")).await, 1);
    api.stop().await;
}

#[tokio::test]
async fn d15_a_refused_request_gives_its_key_back() {
    let api = Api::start().await;
    let topics = format!("{PROJECT}/topics");
    assert_eq!(keyed(&api, "k", &topics, &json!({"name": "a b"})).await.0, 422);
    assert_eq!(keyed(&api, "k", &topics, &json!({"name": "a"})).await.0, 201);
    assert_eq!(keyed(&api, "k2", &topics, &json!({"name": "a"})).await.0, 409, "there is one by then");
    assert_eq!(keyed(&api, "k2", &topics, &json!({"name": "b"})).await.0, 201);
    let (status, _, problem) = keyed(&api, "\u{1}", &topics, &json!({"name": "c"})).await;
    assert_eq!(status, 400, "{problem}");
    assert_eq!(keyed(&api, "k", "/api/v1/projects/nobodys/topics", &json!({"name": "a"})).await.0, 404);
    assert_eq!(how_many(&api, &topics).await, 2);
    api.stop().await;
}

#[tokio::test]
async fn d15_a_key_on_an_import_is_of_the_project_that_imports() {
    let api = Api::start().await;
    let file = b"pubsub_topic:\n  - name: lab.failed\n";
    for name in ["one", "two"] {
        assert_eq!(api.call("POST", "/api/v1/projects", &json!({"name": name}).to_string()).await.0, 201);
        let path = format!("/api/v1/projects/{name}/keys");
        let (_, made) = api.call("POST", &path, r#"{"name": "ci", "scopes": ["admin"]}"#).await;
        let key = made["key"].as_str().unwrap();
        let request = format!(
            "POST /api/v1/import HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: {key}\r\nIdempotency-Key: release 7\r\n\
             Content-Type: application/yaml\r\nContent-Length: {}\r\n\r\n",
            file.len()
        );
        let (status, _, answer) = api.raw(&[request.as_bytes(), file].concat()).await;
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["created"][0]["project"]), (200, &Value::from(name)), "{answer}");
        assert_eq!(how_many(&api, &format!("/api/v1/projects/{name}/topics")).await, 1, "{name}");
    }
    api.stop().await;
}
