//! Receivers that we did not write: what reaches them, in which order, and what the caller is told (Z30).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::{Duration, Instant};

use harness::{Api, Peer, Server};
use serde_json::{Value, json};

const CONNECTIONS: &str = "/api/v1/projects/default/connections";

struct Lab {
    server: Server,
    api: Api,
    peer: Peer,
    _dir: tempfile::TempDir,
}

impl Lab {
    async fn start(script: &str) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let (server, peer) = tokio::join!(Server::start(dir.path()), Peer::start(script));
        let api = Api::new(&server.address);
        Lab { server, api, peer, _dir: dir }
    }

    async fn connection(&self, name: &str, more: Value) {
        let mut body = json!({ "name": name, "type": "rest", "host": self.peer.address, "url_path": format!("/{name}"), "timeout": 2 });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.api.call("POST", CONNECTIONS, &body.to_string()).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }

    async fn post(&self, name: &str, verb: &str, body: &str) -> (u16, Value) {
        let path = format!("{CONNECTIONS}/{name}/{verb}");
        let (status, answer) = self.api.call("POST", &path, &json!({ "body": body }).to_string()).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap())
    }

    /// The bodies that reached pytest-httpserver under a path, in order.
    async fn log(&self, path: &str, at_least: usize) -> Vec<String> {
        let log = self.peer.call("GET", &format!("/__log?at_least={at_least}&timeout_ms=20000"), &Value::Null).await;
        let log = log.as_array().cloned().unwrap_or_else(|| log["requests"].as_array().unwrap().clone());
        log.iter()
            .filter(|request| request["path"] == path)
            .map(|request| {
                use base64::Engine;
                let bytes =
                    base64::engine::general_purpose::STANDARD.decode(request["body_base64"].as_str().unwrap()).unwrap();
                String::from_utf8(bytes).unwrap()
            })
            .collect()
    }
}

fn flags(result: &Value) -> (bool, bool, bool) {
    let flag = |name: &str| result[name].as_bool().unwrap();
    (flag("is_ok"), flag("is_in_queue"), flag("is_in_dlq"))
}

const OK: (bool, bool, bool) = (true, false, false);
const IN_QUEUE: (bool, bool, bool) = (false, true, false);
const IN_DLQ: (bool, bool, bool) = (false, false, true);
const RETURNED: (bool, bool, bool) = (false, false, false);

// proves: Z01, Z02, Z04, Z30
#[tokio::test(flavor = "multi_thread")]
async fn z01_direct_calls_to_a_receiver_we_did_not_write() {
    let lab = Lab::start("http_receiver.py").await;
    let script = json!({ "rules": [
        { "path": "/fails", "answers": [{ "status": 500, "body": "broken" }] },
        { "path": "/limited", "answers": [{ "status": 429, "headers": { "Retry-After": "1" } }, { "status": 200, "body": "done" }] },
        { "path": "/dated", "answers": [{ "status": 429, "retry_after_date_s": 2 }, { "status": 200 }] },
        { "path": "/hangs", "answers": [{ "status": 200, "delay_ms": 5000 }] },
    ] });
    lab.peer.call("PUT", "/__script", &script).await;
    let retried = json!({ "max_retries": 1, "retry_sleep_time": 0 });
    for name in ["fails", "limited", "dated"] {
        lab.connection(name, retried.clone()).await;
    }
    lab.connection("hangs", json!({ "timeout": 1 })).await;
    lab.connection("refuses", json!({ "host": "http://127.0.0.1:1" })).await;

    let (status, result) = lab.post("fails", "send", "a").await;
    assert_eq!((status, flags(&result)), (200, RETURNED), "{result}");
    assert_eq!(result["response"]["status"], 500);
    assert_eq!(result["response"]["body"], "broken");
    assert_eq!(lab.log("/fails", 1).await.len(), 1, "a 500 is a response and is not retried");

    for (name, least) in [("limited", 1.0), ("dated", 0.9)] {
        let before = Instant::now();
        let (_, result) = lab.post(name, "send", "b").await;
        assert_eq!(flags(&result), OK, "{result}");
        assert!(before.elapsed().as_secs_f64() >= least, "Retry-After is waited for, not {:?}", before.elapsed());
        assert_eq!(lab.log(&format!("/{name}"), 2).await.len(), 2);
    }

    let (_, result) = lab.post("hangs", "send", "c").await;
    assert_eq!(flags(&result), RETURNED, "{result}");
    assert!(result["response"].is_null());
    let (_, result) = lab.post("refuses", "send", "d").await;
    assert_eq!(flags(&result), RETURNED, "{result}");
    assert!(result["error"].as_str().unwrap().contains("127.0.0.1:1"), "{result}");
    lab.server.stop().await;
}

// proves: Z10, Z11, Z15, Z20, Z31
#[tokio::test(flavor = "multi_thread")]
async fn z11_everything_reaches_a_receiver_in_order_over_failures() {
    let lab = Lab::start("http_receiver.py").await;
    let script = json!({ "rules": [
        { "path": "/fifo", "cycle": true, "answers": [
            { "status": 500 }, { "status": 200 }, { "status": 429, "headers": { "Retry-After": "3600" } }, { "status": 200 },
            { "status": 404 }, { "status": 200 }, { "status": 200 } ] },
        { "path": "/dead", "answers": [{ "status": 503 }] },
    ] });
    lab.peer.call("PUT", "/__script", &script).await;
    lab.connection("fifo", json!({ "use_queue": true, "max_retries": 3, "retry_sleep_time": 0 })).await;
    lab.connection("dead", json!({ "use_queue": true, "max_retries": 0 })).await;

    let (status, first) = lab.post("fifo", "send", "0").await;
    assert_eq!((status, flags(&first)), (202, IN_QUEUE), "{first}");
    assert_eq!(first["response"]["status"], 500, "a refusal that was queued carries its response");
    assert!(first["error"].is_string());
    for n in 1..12 {
        let verb = if n % 2 == 0 { "send" } else { "publish" };
        let (_, result) = lab.post("fifo", verb, &n.to_string()).await;
        assert!(flags(&result) == IN_QUEUE || (verb == "send" && flags(&result) == OK), "{n}: {result}");
    }
    lab.api.wait_until_drained("fifo", Duration::from_secs(30)).await;
    let mut order: Vec<u32> = lab.log("/fifo", 12).await.iter().map(|body| body.parse().unwrap()).collect();
    order.dedup();
    assert_eq!(order, (0..12).collect::<Vec<_>>(), "in order, each until it got through");

    let (status, result) = lab.post("dead", "send", "x").await;
    assert_eq!((status, flags(&result)), (200, IN_DLQ), "{result}");
    let id = result["msg_id"].as_str().unwrap();
    let (_, dead) = lab.api.call("GET", &format!("/api/v1/projects/default/deliveries/{id}"), "").await.unwrap();
    let dead: Value = serde_json::from_str(&dead).unwrap();
    assert_eq!(
        (&dead["status"], &dead["failure"], &dead["attempts"]),
        (&json!("DLQ"), &json!("status"), &json!(1)),
        "{dead}"
    );
    lab.server.stop().await;
}

// proves: Z01, Z10, R16
#[tokio::test(flavor = "multi_thread")]
async fn z10_a_receiver_that_breaks_http() {
    let lab = Lab::start("wiremock.py").await;
    let faults = ["EMPTY_RESPONSE", "RANDOM_DATA_THEN_CLOSE", "CONNECTION_RESET_BY_PEER"];
    for fault in faults {
        let stub = json!({ "request": { "urlPath": format!("/{fault}") }, "response": { "fault": fault } });
        lab.peer.call("POST", "/__admin/mappings", &stub).await;
        lab.connection(fault, json!({ "use_queue": true, "max_retries": 5, "retry_sleep_time": 0 })).await;
        let (_, result) = lab.post(fault, "send", "first").await;
        assert_eq!(flags(&result), IN_QUEUE, "{fault}: {result}");
        let (_, result) = lab.post(fault, "send", "second").await;
        assert_eq!(flags(&result), IN_QUEUE, "{fault}: {result}");
    }
    // A status line decides: what is broken behind a 2xx is delivered, once.
    let stub = json!({ "request": { "urlPath": "/chunk" }, "response": { "fault": "MALFORMED_RESPONSE_CHUNK" } });
    lab.peer.call("POST", "/__admin/mappings", &stub).await;
    lab.connection("chunk", json!({ "use_queue": true, "max_retries": 5 })).await;
    let (_, result) = lab.post("chunk", "send", "once").await;
    assert_eq!(flags(&result), OK, "{result}");

    let broken = received(&lab.peer).await;
    assert_eq!(broken.iter().filter(|(url, _)| url == "/chunk").count(), 1);

    // WireMock forgets what it received together with its stubs.
    lab.peer.call("POST", "/__admin/mappings/reset", &Value::Null).await;
    let fine = json!({ "request": { "urlPathPattern": "/.*" }, "response": { "status": 200 } });
    lab.peer.call("POST", "/__admin/mappings", &fine).await;
    for fault in faults {
        lab.api.wait_until_drained(fault, Duration::from_secs(30)).await;
    }
    let seen = [broken, received(&lab.peer).await].concat();
    for fault in faults {
        let mut bodies: Vec<&str> =
            seen.iter().filter(|(url, _)| url == &format!("/{fault}")).map(|(_, body)| body.as_str()).collect();
        bodies.dedup();
        assert_eq!(bodies, ["first", "second"], "{fault}");
    }
    lab.server.stop().await;
}

/// The paths and bodies that reached WireMock, in order.
async fn received(peer: &Peer) -> Vec<(String, String)> {
    let log = peer.call("GET", "/__admin/requests", &Value::Null).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    // WireMock lists the newest first.
    let newest_first = log["requests"].as_array().unwrap().iter();
    newest_first.rev().map(|entry| (text(&entry["request"]["url"]), text(&entry["request"]["body"]))).collect()
}
