//! `connections ping`: every kind of connection, up and down, over API and command line; nothing is stored.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use harness::{Act, Bench, KEY, Peer, RawRemote};
use serde_json::{Value, json};

async fn made(bench: &Bench, name: &str, kind: &str, settings: Value) {
    let mut body = json!({"name": name, "type": kind});
    body.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/connections", &body).await;
    assert_eq!(status, 201, "{answer}");
}

async fn ping(bench: &Bench, name: &str, request: Value) -> Value {
    let (status, reached) = bench.call("POST", &format!("/connections/{name}/ping"), &request).await;
    assert_eq!(status, 200, "{reached}");
    reached
}

fn stages(reached: &Value) -> Vec<&str> {
    reached["stages"].as_array().unwrap().iter().map(|one| one["stage"].as_str().unwrap()).collect()
}

/// Where a remote system is, for each kind of connection.
fn kinds(address: &str) -> [(&'static str, Value); 4] {
    let bare = address.strip_prefix("http://").unwrap();
    [
        ("rest", json!({"host": address, "url_path": "/orders/{id}/x", "timeout": 0.5})),
        ("soap", json!({"host": address, "url_path": "/soap", "timeout": 0.5})),
        ("mllp", json!({"address": bare, "connect_timeout_ms": 200, "write_timeout_ms": 100, "recv_timeout": 100})),
        ("fhir", json!({"address": format!("{address}/fhir"), "timeout": 0.5})),
    ]
}

// proves: Z12
#[tokio::test(flavor = "multi_thread")]
async fn z12_each_kind_is_tried_without_anything_that_anybody_acts_on() {
    let (bench, peer) = tokio::join!(Bench::start(), Peer::start("http_receiver.py"));
    for (kind, settings) in kinds(&peer.address) {
        made(&bench, kind, kind, settings).await;
        bench.call("PATCH", &format!("/connections/{kind}"), &json!({"is_active": false})).await;
        let reached = ping(&bench, kind, json!({})).await;
        assert_eq!((&reached["is_reachable"], &reached["error"]), (&json!(true), &Value::Null), "{kind}: {reached}");
        let asks = matches!(kind, "rest" | "fhir");
        assert_eq!(stages(&reached), if asks { vec!["connect", "first_byte"] } else { vec!["connect"] }, "{reached}");
        assert_eq!(reached["status"], if asks { json!(200) } else { Value::Null });
        assert!(reached["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{reached}");
    }
    ping(&bench, "rest", json!({"method": "options"})).await;
    let log = peer.call("GET", "/__log", &Value::Null).await;
    let asked: Vec<(&str, &str)> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["method"].as_str().unwrap(), one["path"].as_str().unwrap()))
        .collect();
    assert_eq!(asked, [("HEAD", "/orders/"), ("GET", "/fhir/metadata"), ("OPTIONS", "/orders/")]);
    assert_eq!(bench.count().await, 0, "nothing is a delivery");
    let (status, refused) = bench.call("POST", "/connections/rest/ping", &json!({"method": "POST"})).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("method")), "{refused}");
    assert_eq!(bench.call("POST", "/connections/nobody/ping", &json!({})).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn z01_what_cannot_be_reached_is_told_with_its_stage_and_what_to_do() {
    let bench = Bench::start().await;
    let mute = RawRemote::start(&[Act::Read, Act::Hold]).await;
    let reset = RawRemote::start(&[Act::Read, Act::Reset]).await;
    let cases = [
        ("down", "http://127.0.0.1:1", "connect", "Nothing listens there"),
        ("unknown", "http://nowhere.invalid", "resolve", "spelling"),
        ("mute", mute.address.as_str(), "first_byte", "says nothing"),
        ("reset", reset.address.as_str(), "first_byte", "breaks them off"),
        ("metadata", "http://169.254.169.254", "resolve", "guard"),
        ("https", "", "tls", "TLS"),
    ];
    let in_the_clear = mute.address.replace("http://", "https://");
    for (name, address, stage, advice) in cases {
        let address = if address.is_empty() { &in_the_clear } else { address };
        made(&bench, name, "rest", json!({"host": address, "url_path": "", "timeout": 0.5})).await;
        let reached = ping(&bench, name, Value::Null).await;
        assert_eq!(
            (&reached["is_reachable"], &reached["failedAt"]),
            (&json!(false), &json!(stage)),
            "{name}: {reached}"
        );
        assert!(reached["advice"].as_str().unwrap().contains(advice), "{name}: {reached}");
        assert!(!reached["error"].as_str().unwrap().is_empty());
    }
    assert_eq!(bench.count().await, 0);
    // An endpoint, under the guard of what outsiders name.
    let endpoint = json!({"name": "hook", "url": "http://nowhere.invalid/hook"});
    let (status, answer) = bench.call("POST", "/endpoints", &endpoint).await;
    assert_eq!(status, 201, "{answer}");
    let reached = ping(&bench, "hook", json!({})).await;
    assert_eq!((&reached["is_reachable"], &reached["failedAt"]), (&json!(false), &json!("resolve")), "{reached}");
    assert!(reached["advice"].as_str().unwrap().contains("`url`"), "{reached}");
}

#[tokio::test(flavor = "multi_thread")]
async fn p04_the_command_line_shows_each_part_of_the_way_and_fails_where_it_ends() {
    let (bench, peer) = tokio::join!(Bench::start(), Peer::start("http_receiver.py"));
    let rules = json!({"rules": [{"path": "/private", "answers": [{"status": 401}]}]});
    peer.call("PUT", "/__script", &rules).await;
    made(&bench, "private", "rest", json!({"host": peer.address, "url_path": "/private"})).await;
    made(&bench, "down", "rest", json!({"host": "http://127.0.0.1:1", "url_path": ""})).await;
    let run = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env("POSTRIDER_SERVER", &bench.server.address).env("POSTRIDER_KEY", KEY);
        let ran = command.output().await.unwrap();
        (ran.status.code().unwrap(), String::from_utf8(ran.stdout).unwrap())
    };
    let (code, told) = run(&["connections", "ping", "private"]).await;
    assert!(code == 0 && told.contains("first byte") && told.contains("401") && told.contains("`security`"), "{told}");
    let (code, told) = run(&["connections", "ping", "down"]).await;
    assert!(code == 1 && told.contains("then it failed") && told.contains("Nothing listens there"), "{told}");
    let (code, told) = run(&["--json", "connections", "ping", "private"]).await;
    let read: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((code, &read["is_reachable"], &read["status"]), (0, &json!(true), &json!(401)));
}
