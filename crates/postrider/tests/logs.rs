//! The log of the real binary: every line has its event, and no body, header or credential is ever in one, whatever the level (P06, D14).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use harness::Act::{Read, Say};
use harness::{Api, KEY, RawRemote, Server};
use postrider_core::log;
use serde_json::{Value, json};
use tokio::process::Command;

const PROJECT: &str = "/api/v1/projects/default";
/// In everything that is nobody's business.
const CANARY: &str = "canary7f3a";

async fn start(data: &Path, level: &str, format: &str, log: &Path) -> (Server, Api) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data);
    command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", level).env("POSTRIDER_LOG_FORMAT", format);
    command.stderr(Stdio::from(std::fs::File::create(log).unwrap()));
    let server = Server::of(command).await;
    let api = Api::new(&server.address);
    (server, api)
}

async fn call(api: &Api, method: &str, path: &str, body: Value) -> (u16, Value) {
    let (status, answer) = api.call(method, &format!("{PROJECT}{path}"), &body.to_string()).await.unwrap();
    (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
}

async fn connection(api: &Api, name: &str, host: &str, more: Value) -> Value {
    let mut body = json!({"name": name, "type": "rest", "host": host, "url_path": "/"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = call(api, "POST", "/connections", body).await;
    assert_eq!(status == 201, !host.contains('@'), "{answer}");
    answer
}

fn secret(n: u32) -> String {
    format!("{CANARY}-{n}")
}

/// Bodies, headers, queries, credentials, topics, bad input: with a canary in each.
async fn traffic(api: &Api, base: &str) {
    let failing = RawRemote::start(&[
        Read,
        Say(b"HTTP/1.1 500 ?\r\nX-Token: canary7f3a-r\r\nContent-Length: 12\r\n\r\ncanary7f3a-b"),
    ])
    .await;
    let well = RawRemote::start(&[]).await;
    well.heal();
    let definitions = [
        json!({"name": "basic", "type": "basic_auth", "username": "u", "password": secret(1)}),
        json!({"name": "key", "type": "apikey", "header": "X-Partner", "key": secret(2)}),
        json!({"name": "bearer", "type": "bearer", "token": secret(3)}),
        json!({"name": "oauth", "type": "oauth2", "client_id": "c", "client_secret": secret(4),
            "token_url": format!("{}/token?x={}", failing.address, secret(5))}),
    ];
    for definition in definitions {
        let (status, answer) = call(api, "POST", "/security", definition).await;
        assert_eq!(status, 201, "{answer}");
    }
    let queued =
        json!({"use_queue": true, "use_dlq": true, "max_retries": 2, "retry_sleep_time": 0, "security": "basic"});
    connection(api, "failing", &failing.address, queued).await;
    connection(api, "well", &well.address, json!({"security": "bearer"})).await;
    connection(api, "oauth", &well.address, json!({"security": "oauth", "timeout": 2})).await;
    connection(api, "nowhere", "http://127.0.0.1:1", json!({"max_retries": 1, "retry_sleep_time": 0})).await;
    let userinfo = failing.address.replace("http://", &format!("http://u:{}@", secret(6)));
    connection(api, "userinfo", &userinfo, json!({})).await;
    let message = json!({"body": secret(7), "path": format!("/{}", secret(8)), "params": {"q": secret(9)},
        "headers": {"Authorization": secret(10), "X-Patient": secret(11)}});
    for name in ["failing", "well", "oauth", "nowhere", "userinfo"] {
        for verb in ["send", "publish"] {
            let (status, answer) = call(api, "POST", &format!("/connections/{name}/{verb}"), message.clone()).await;
            assert_eq!(status == 404, name == "userinfo", "{answer}");
            assert!(matches!(status, 200 | 202 | 404), "{answer}");
        }
    }
    call(api, "POST", "/topics", json!({"name": "t"})).await;
    call(api, "POST", "/topics/t/publish", json!({"body": secret(12), "headers": {"X-A": secret(13)}})).await;
    call(
        api,
        "POST",
        "/connections",
        json!({"name": "bad", "type": "rest", "host": secret(14), "no_such": secret(15)}),
    )
    .await;
    // Bytes by hand: a foreign key, a query with a secret, a body cut off, a head that is no HTTP.
    for request in [
        format!(
            "GET {PROJECT}/connections?key={} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            secret(16),
            secret(17)
        ),
        format!(
            "POST {PROJECT}/connections/well/raw/a?t={} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nAuthorization: Bearer {}\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{CANARY}-x",
            secret(18),
            secret(19)
        ),
        format!(
            "POST {PROJECT}/connections/well/send HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Length: 900\r\nConnection: close\r\n\r\n{CANARY}-x"
        ),
        format!("{CANARY} nonsense\r\n\r\n"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(base.strip_prefix("http://").unwrap()).await.unwrap();
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await;
    }
    api.wait_until_drained("failing", Duration::from_secs(30)).await;
}

fn read(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap();
    assert!(!text.contains(CANARY), "{}", text.lines().find(|line| line.contains(CANARY)).unwrap_or_default());
    assert!(!text.contains(KEY), "the admin key is in the log");
    text
}

// proves: P06, D14
#[tokio::test(flavor = "multi_thread")]
async fn p06_no_body_header_or_credential_is_ever_logged_and_every_json_line_is_one_of_the_catalogue() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (server, api) = start(&dir.path().join("data"), "trace", "json", &log).await;
    traffic(&api, &server.address).await;
    server.stop().await;
    let text = read(&log);
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let known = log::ALL.iter().find(|event| line["event"] == event.name);
        let known = known.unwrap_or_else(|| panic!("no event of the catalogue: {line}"));
        assert_eq!(line["level"].as_str().unwrap().to_lowercase(), known.level.as_str(), "{line}");
        assert!(line["timestamp"].is_string() && line["message"].is_string(), "{line}");
        seen.insert(known.name);
    }
    for name in
        [log::SERVER_LISTENING, log::REQUEST_STORED, log::ATTEMPT_ENDED, log::REMOTE_FAILING, log::SERVER_STOPPED]
    {
        assert!(seen.contains(name), "{name} is not among {seen:?}");
    }
    let attempt = text.lines().find(|line| line.contains(log::ATTEMPT_ENDED) && line.contains("failing")).unwrap();
    let attempt: Value = serde_json::from_str(attempt).unwrap();
    for field in ["cid", "msg_id", "connection", "attempt", "failure", "took_ms"] {
        assert!(!attempt[field].is_null(), "{field}: {attempt}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_a_remote_that_is_down_is_one_line_and_another_when_it_is_back_with_counts() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let (server, api) = start(&dir.path().join("data"), "info", "text", &log).await;
    let remote = RawRemote::start(&[Read, Say(b"HTTP/1.1 503 ?\r\nContent-Length: 0\r\n\r\n")]).await;
    let often = json!({"use_queue": true, "use_dlq": false, "max_retries": 1000, "retry_sleep_time": 0,
        "retry_backoff_multiplier": 0, "retry_backoff_threshold": 86400});
    connection(&api, "q", &remote.address, often).await;
    for _ in 0..20 {
        call(&api, "POST", "/connections/q/publish", json!({"body": "x"})).await;
    }
    remote.until_received(6).await;
    remote.heal();
    api.wait_until_drained("q", Duration::from_secs(60)).await;
    server.stop().await;
    let text = read(&log);
    let of = |event: &str| text.lines().filter(|line| line.contains(event)).map(str::to_owned).collect::<Vec<_>>();
    let (failing, back) = (of(log::REMOTE_FAILING), of(log::REMOTE_BACK));
    assert_eq!((failing.len(), back.len()), (1, 1), "{text}");
    assert!(failing[0].contains("connection=\"q\"") && failing[0].contains("status=503"), "{}", failing[0]);
    let count = back[0].split("failures=").nth(1).and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(count.is_some_and(|count| count >= 6), "{}", back[0]);
}
