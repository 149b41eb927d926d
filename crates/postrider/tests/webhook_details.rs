//! Webhooks of the real binary in detail: what is forwarded from the DLQ is pushed, and small things that were once wrong.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use harness::{Hooks, RawRemote, Remote};
use serde_json::{Value, json};

async fn created(hooks: &Hooks, path: &str, body: Value) -> Value {
    let (status, answer) = hooks.call("POST", path, &body).await;
    assert!(matches!(status, 201 | 202), "{path}: {status} {answer}");
    answer
}

/// A REST connection that nobody listens for; what is published there is a dead letter at once.
async fn dead_letter(hooks: &Hooks, name: &str, more: Value, body: Value) -> String {
    let mut connection = json!({"name": name, "type": "rest", "host": "http://127.0.0.1:1", "url_path": "/", "use_queue": true, "max_retries": 0});
    connection.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    created(hooks, "/connections", connection).await;
    created(hooks, &format!("/connections/{name}/publish"), json!({"body": body})).await["msg_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

async fn until_status(hooks: &Hooks, id: &str, status: &str) -> Value {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let delivery = hooks.get(&format!("/deliveries/{id}")).await;
        if delivery["status"] == status {
            return delivery;
        }
        assert!(tokio::time::Instant::now() < deadline, "{id} is not {status}: {delivery}");
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}

// proves: Z21, Z22, Z23, D40
#[tokio::test(flavor = "multi_thread")]
async fn z22_what_is_forwarded_from_the_dlq_is_pushed_to_the_topics_subscriptions() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    created(&hooks, "/topics", json!({"name": "claims.failed"})).await;
    let endpoint = hooks.endpoint(&format!("{}/desk", remote.address), json!({})).await;
    hooks.subscribe(&endpoint, "claims.*", json!({})).await;
    // By the action, then by hand, and by a job.
    let action = json!({"dlq_action": "forward", "dlq_forward_to": "claims.failed", "dlq_retry_interval": 1});
    let first = dead_letter(&hooks, "a", action, json!({"claim": 1})).await;
    let got = remote.until_received(1).await.remove(0);
    assert_eq!((&got.json()["type"], &got.json()["data"]), (&json!("claims.failed"), &json!({"claim": 1})));
    assert_eq!(until_status(&hooks, &first, "FORWARDED").await["failure"], "unreachable");
    let second = dead_letter(&hooks, "b", json!({}), json!({"claim": 2})).await;
    until_status(&hooks, &second, "DLQ").await;
    let (status, answer) =
        hooks.call("POST", &format!("/deliveries/{second}/forward"), &json!({"topic": "claims.failed"})).await;
    assert_eq!(status, 200, "{answer}");
    remote.until_received(2).await;
    let third = dead_letter(&hooks, "c", json!({}), json!({"claim": 3})).await;
    until_status(&hooks, &third, "DLQ").await;
    created(&hooks, "/dlq/forward", json!({"topic": "claims.failed", "filter": {"connection": "c"}})).await;
    let receipts = remote.until_received(3).await;
    assert_eq!(receipts[2].json()["data"], json!({"claim": 3}));
    let ids: Vec<Value> = receipts.iter().map(|one| one.json()["id"].clone()).collect();
    let events: Vec<Value> = [&first, &second, &third].map(|id| json!(id.replacen("msg_", "evt_", 1))).to_vec();
    assert_eq!(ids, events, "the same message id each time, so that a subscriber can drop a duplicate");
}

// proves: R11
#[tokio::test(flavor = "multi_thread")]
async fn r11_an_id_that_is_given_twice_is_retried_once() {
    let hooks = Hooks::start().await;
    let id = dead_letter(&hooks, "a", json!({}), json!(1)).await;
    until_status(&hooks, &id, "DLQ").await;
    let (status, answer) = hooks.call("POST", "/dlq/retry", &json!({"deliveryIds": [id, id, id]})).await;
    assert_eq!((status, answer), (200, json!({"retried": 1, "requested": 1, "refused": []})));
}

// proves: V09
#[tokio::test(flavor = "multi_thread")]
async fn v09_half_a_surrogate_pair_is_refused_wherever_json_is_taken() {
    let (hooks, remote) = tokio::join!(Hooks::start(), RawRemote::start(&[]));
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({})).await;
    created(&hooks, "/connections", json!({"name": "rest", "type": "rest", "host": remote.address, "url_path": "/"}))
        .await;
    created(&hooks, "/topics", json!({"name": "t"})).await;
    let half = r#"{"a": ["\ud800"]}"#;
    let test = format!("/endpoints/{}/test", endpoint["id"].as_str().unwrap());
    for (path, body, field) in [
        ("/events", format!(r#"{{"type": "t", "data": {half}}}"#), "data"),
        (test.as_str(), format!(r#"{{"data": {half}}}"#), "data"),
        ("/transformations/preview", format!(r#"{{"program": ".", "body": {half}}}"#), "body"),
        ("/connections/rest/send", format!(r#"{{"body": {half}}}"#), "body"),
        ("/connections/rest/publish", format!(r#"{{"body": {half}}}"#), "body"),
        ("/topics/t/publish", format!(r#"{{"body": {half}}}"#), "body"),
    ] {
        let (status, answer) = hooks.api.call("POST", &format!("{}{path}", harness::PROJECT), &body).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!(field)), "{path}: {answer}");
        assert!(answer["errors"][0]["message"].as_str().unwrap().contains("not valid Unicode"), "{path}: {answer}");
    }
    let line = format!("{{\"type\": \"t\", \"data\": 1}}\n{{\"type\": \"t\", \"data\": {half}}}\n");
    let (status, answer) = hooks
        .api
        .call_as("POST", &format!("{}/events/batch", harness::PROJECT), &line, "application/x-ndjson")
        .await
        .unwrap();
    assert!(answer.contains("not valid Unicode"), "{status} {answer}");
    assert!(hooks.get("/deliveries").await["data"].as_array().unwrap().is_empty(), "nothing is stored");
    assert_eq!(remote.connections(), 0, "and nothing sent");
}

// proves: R13
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_program_sees_no_environment() {
    let hooks = Hooks::start().await;
    for program in ["env", "$ENV", "[env, $ENV] | add"] {
        let (status, answer) =
            hooks.call("POST", "/transformations/preview", &json!({"program": program, "body": 1})).await;
        assert_eq!((status, &answer["output"]), (200, &json!({})), "{program}: {answer}");
    }
}
