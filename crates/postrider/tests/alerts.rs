//! Alerts of the real binary: by mail to a server that we did not write, as events, in the API and on the command line (P09).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use std::path::Path;
use std::time::Duration;

use cli_parts::Cli;
use harness::Act::{Read, Say};
use harness::{Api, KEY, Peer, RawRemote, Server};
use serde_json::{Value, json};
use tokio::process::Command;

const PROJECT: &str = "/api/v1/projects/default";

async fn start(data: &Path, smtp: &str) -> (Server, Api) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "error").env("POSTRIDER_SMTP_URL", smtp);
    command.env("POSTRIDER_SMTP_FROM", "postrider@clinic.example").env("POSTRIDER_ALERT_TO", "ops@clinic.example");
    command.env("POSTRIDER_ALERT_SECONDS", "1").env("POSTRIDER_MAIL_RETRY_SECONDS", "1");
    let server = Server::of(command).await;
    let api = Api::new(&server.address);
    (server, api)
}

async fn call(api: &Api, method: &str, path: &str, body: Value) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let (status, answer) = api.call(method, &format!("{PROJECT}{path}"), &body).await.unwrap();
    (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
}

async fn mails(peer: &Peer, at_least: usize) -> Vec<(Value, String)> {
    let log = peer.call("GET", &format!("/__log?at_least={at_least}&timeout_ms=60000"), &Value::Null).await;
    let mails = log["mails"].as_array().unwrap().iter();
    mails.map(|mail| (mail["to"].clone(), mail["data"].as_str().unwrap().to_owned())).collect()
}

// proves: P09
#[tokio::test(flavor = "multi_thread")]
async fn p09_a_dead_letter_wakes_its_people_once_and_tells_them_once_when_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let peer = Peer::start("smtp_server.py").await;
    peer.call("PUT", "/__mode", &json!({"greylist": 2})).await;
    let port = peer.call("GET", "/__ports", &Value::Null).await["plain"].clone();
    let smtp = format!("smtp://127.0.0.1:{port}?tls=off");
    let (server, api) = start(dir.path(), &smtp).await;
    assert_eq!(call(&api, "PATCH", "", json!({"ownerEmail": "ada@clinic.example"})).await.0, 200);
    let remote = RawRemote::start(&[Read, Say(b"HTTP/1.1 400 ?\r\nContent-Length: 0\r\n\r\n")]).await;
    let queued = json!({"name": "q", "type": "rest", "host": remote.address, "url_path": "/", "use_queue": true,
        "max_retries": 1, "retry_sleep_time": 0, "retry_backoff_threshold": 1});
    assert_eq!(call(&api, "POST", "/connections", queued).await.0, 201);
    let id = call(&api, "POST", "/connections/q/publish", json!({"body": "x"})).await.1["msg_id"]
        .as_str()
        .unwrap()
        .to_owned();

    let first = mails(&peer, 1).await;
    assert_eq!(first[0].0, json!(["ada@clinic.example", "ops@clinic.example"]), "it is tried until it is taken");
    assert!(first[0].1.contains("Subject: Alert: dead_letters of q (default)"), "{}", first[0].1);
    let (_, open) = call(&api, "GET", "/alerts?state=open", Value::Null).await;
    let alert = &open["data"][0];
    assert_eq!(
        (&alert["kind"], &alert["connection"], &alert["value"]),
        (&json!("dead_letters"), &json!("q"), &json!(1)),
        "{open}"
    );
    assert!(alert["recoveredAt"].is_null() && alert["detail"] == "dead letters: 1 (1 or more are told)", "{open}");
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    let shown = cli.done(&["alerts", "list"]).await.stdout;
    assert!(shown.contains("dead_letters") && shown.contains('q'), "{shown}");

    // Over a restart it stays one alert.
    server.stop().await;
    let (server, api) = start(dir.path(), &smtp).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(mails(&peer, 1).await.len(), 1, "told once");
    assert_eq!(call(&api, "DELETE", &format!("/deliveries/{id}"), Value::Null).await.0, 200);
    let both = mails(&peer, 2).await;
    assert!(both[1].1.contains("Subject: Recovered: dead_letters of q (default)"), "{}", both[1].1);
    let (_, past) = call(&api, "GET", "/alerts?state=past", Value::Null).await;
    assert_eq!(past["data"].as_array().unwrap().len(), 1);
    assert!(past["data"][0]["recoveredAt"].is_string(), "{past}");
    let (_, events) = call(&api, "GET", "/topics/postrider.alert/messages", Value::Null).await;
    assert_eq!(events["data"].as_array().unwrap().len(), 2, "one event for each crossing: {events}");
    let (status, refused) = call(&api, "GET", "/alerts?state=ajar", Value::Null).await;
    assert_eq!(status, 400, "{refused}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p09_a_threshold_of_zero_is_never_crossed_and_a_mail_server_that_is_down_holds_up_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (server, api) = start(dir.path(), "smtp://127.0.0.1:1?tls=off").await;
    assert_eq!(call(&api, "PATCH", "", json!({"alertDeadLetters": 0, "alertDeadLettersGrowth": 0})).await.0, 200);
    assert_eq!(call(&api, "PATCH", "", json!({"alertDeadLetters": -1})).await.0, 422);
    let cli = Cli { server: server.address.clone(), key: KEY.to_owned() };
    let shown = cli.done(&["projects", "show"]).await.stdout;
    let line = |label: &str| shown.lines().find_map(|line| line.strip_prefix(label).map(str::trim));
    assert_eq!(
        (line("alert, dead letters "), line("alert, head blocked ")),
        (Some("never"), Some("at 15 min")),
        "{shown}"
    );
    let remote = RawRemote::start(&[Read, Say(b"HTTP/1.1 400 ?\r\nContent-Length: 0\r\n\r\n")]).await;
    let queued = json!({"name": "q", "type": "rest", "host": remote.address, "url_path": "/", "use_queue": true,
        "max_retries": 1, "retry_sleep_time": 0, "retry_backoff_threshold": 1});
    assert_eq!(call(&api, "POST", "/connections", queued).await.0, 201);
    call(&api, "POST", "/connections/q/publish", json!({"body": "x"})).await;
    api.wait_until_drained("q", Duration::from_secs(30)).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(call(&api, "GET", "/alerts", Value::Null).await.1["data"], json!([]));
    assert_eq!(call(&api, "PATCH", "", json!({"alertDeadLetters": 1})).await.0, 200);
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while call(&api, "GET", "/alerts?state=open", Value::Null).await.1["data"].as_array().unwrap().is_empty() {
        assert!(std::time::Instant::now() < deadline, "the new threshold holds");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(api.call("GET", "/health/ready", "").await.unwrap().0, 200);
    server.stop().await;
}
