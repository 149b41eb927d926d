//! Token servers that lie, stall or flood, and a FHIR server that takes no token: an attempt fails, and nothing else does (D32).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Act, RawRemote, flags};
use crate::lab::{Lab, OK, RETURNED, patient};

/// An answer without an end, a byte at a time.
const DRIBBLE: &[Act] = &[
    Act::Read,
    Act::Say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"),
    Act::SayForEver(b"1\r\n \r\n", Duration::from_millis(50)),
];
/// The same as fast as it goes.
const FLOOD: &[Act] = &[
    Act::Read,
    Act::Say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"),
    Act::SayForEver(b"10\r\n{\"access_token\":\r\n", Duration::ZERO),
];
const SILENT: &[Act] = &[Act::Read, Act::Hold];
const RESET: &[Act] = &[Act::Read, Act::Reset];

async fn connection(lab: &Lab, name: &str, token_url: &str, more: Value) {
    let definition = json!({
        "name": name, "type": "oauth2", "token_url": token_url, "client_id": "lab", "client_secret": "sesame",
    });
    let (status, answer) = lab.bench.call("POST", "/security", &definition).await;
    assert_eq!(status, 201, "{answer}");
    let mut settings = json!({"security": name, "timeout": 2});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.connection(name, settings).await;
}

async fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn create(number: u32) -> Value {
    json!({"operation": "create", "body": patient(&number.to_string())})
}

async fn asked(lab: &Lab, path: &str) -> usize {
    lab.seen().await.iter().filter(|entry| entry["path"] == path).count()
}

// proves: D32, Z33
#[tokio::test(flavor = "multi_thread")]
async fn d32_a_token_server_that_lies_costs_the_attempt_and_tells_nothing_of_the_secret() {
    let lab = Lab::start("http_receiver.py").await;
    let json_type = json!({"Content-Type": "application/json"});
    let answer = |body: String| json!({"status": 200, "body": body, "headers": json_type});
    let lies = [
        ("html", answer("<html>welcome</html>".to_owned())),
        ("array", answer("[\"sesame\"]".to_owned())),
        ("cut", answer("{\"access_token\": \"ab".to_owned())),
        ("deep", answer("[".repeat(60_000))),
        ("huge", answer(format!("{{\"access_token\": \"{}\"}}", "a".repeat(100_000)))),
        ("long", answer(format!("{{\"access_token\": \"{}\"}}", "a".repeat(20_000)))),
        ("header", answer("{\"access_token\": \"a\\r\\nX-Evil: 1\"}".to_owned())),
        ("surrogate", answer("{\"access_token\": \"\\ud800\"}".to_owned())),
        ("mac", answer("{\"access_token\": \"a\", \"token_type\": \"mac\"}".to_owned())),
        ("moved", json!({"status": 302, "headers": {"Location": "/token-good"}})),
        ("refused", json!({"status": 401, "body": "{\"error\":\"sesame is wrong\"}", "headers": json_type})),
        ("empty", json!({"status": 200})),
    ];
    let rules: Vec<Value> =
        lies.iter().map(|(name, answer)| json!({"path": format!("/token-{name}"), "answers": [answer]})).collect();
    lab.peer.call("PUT", "/__script", &json!({"rules": rules, "default": {"status": 201}})).await;
    for (name, _) in &lies {
        connection(&lab, name, &format!("{}/token-{name}", lab.peer.address), json!({})).await;
        let result = lab.send(name, create(1)).await;
        assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{name}: {result}");
        let error = result["error"].as_str().unwrap();
        assert!(error.contains("no token") && !error.contains("sesame"), "{name}: {error}");
        let ended = lab.bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
        assert_eq!(ended["failure"], "unreachable", "{name}: {ended}");
    }
    assert_eq!(asked(&lab, "/fhir/Patient").await, 0, "nothing is sent without a token");
    assert_eq!(asked(&lab, "/token-good").await, 0, "no redirect is followed");
}

// proves: D32, Z33
#[tokio::test(flavor = "multi_thread")]
async fn d32_a_token_server_that_stalls_or_floods_holds_nobody_up() {
    let lab = Lab::start("http_receiver.py").await;
    lab.connection("open", json!({})).await;
    let before = resident_kib(lab.bench.server.pid()).await;
    for (name, script) in [("dribble", DRIBBLE), ("flood", FLOOD), ("silent", SILENT), ("reset", RESET)] {
        let server = RawRemote::start(script).await;
        connection(&lab, name, &format!("{}/token", server.address), json!({})).await;
        let began = Instant::now();
        let result = lab.send(name, create(1)).await;
        assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{name}: {result}");
        assert!(result["error"].as_str().unwrap().contains("token"), "{name}: {result}");
        assert!(began.elapsed() < Duration::from_secs(20), "{name} took {:?}", began.elapsed());
        assert_eq!(flags(&lab.send("open", create(2)).await), OK, "others go on");
    }
    let after = resident_kib(lab.bench.server.pid()).await;
    assert!(after < before + (64 << 10), "a flood is not kept: {before} KiB before, {after} KiB after");
}

// proves: D32, Z01, Z15
#[tokio::test(flavor = "multi_thread")]
async fn d32_tokens_that_have_ended_or_open_nothing_are_fetched_once_an_attempt_and_no_oftener() {
    let lab = Lab::start("http_receiver.py").await;
    let granted =
        |life: i64| json!({"status": 200, "body": format!("{{\"access_token\": \"abc\", \"expires_in\": {life}}}")});
    let rules = json!({"rules": [
        {"path": "/token-ended", "answers": [granted(-60)]},
        {"path": "/token-loop", "answers": [granted(3600)]},
        {"path": "/closed/Patient", "answers": [{"status": 401}]},
    ], "default": {"status": 201}});
    lab.peer.call("PUT", "/__script", &rules).await;
    connection(&lab, "ended", &format!("{}/token-ended", lab.peer.address), json!({})).await;
    for number in 1..=3 {
        assert_eq!(
            flags(&lab.send("ended", create(number)).await),
            OK,
            "the token serves the attempt that waited for it"
        );
    }
    assert_eq!(asked(&lab, "/token-ended").await, 3, "and no other");

    let closed = json!({"address": format!("{}/closed", lab.peer.address)});
    connection(&lab, "loop", &format!("{}/token-loop", lab.peer.address), closed).await;
    let result = lab.send("loop", create(1)).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (RETURNED, &json!(401)), "{result}");
    assert_eq!((asked(&lab, "/token-loop").await, asked(&lab, "/closed/Patient").await), (1, 1), "a call is made once");
    let queue = json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 0, "address": format!("{}/closed", lab.peer.address)});
    connection(&lab, "loop-on", &format!("{}/token-loop", lab.peer.address), queue).await;
    let result = lab.send("loop-on", create(2)).await;
    let dead = lab.bench.until_status(result["msg_id"].as_str().unwrap(), "DLQ").await;
    assert_eq!((&dead["attempts"], &dead["error"]), (&json!(4), &json!("HTTP 401")), "{dead}");
    assert_eq!(
        (asked(&lab, "/token-loop").await, asked(&lab, "/closed/Patient").await),
        (5, 5),
        "one token an attempt"
    );
}
