//! How endpoints do, by the real binary and real receivers: tests, verification, switching off and on, and who is told (V03-V09, R10, R11, R14).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::collections::BTreeMap;
use std::time::Duration;

use harness::{Act, Hooks, KEY, Peer, RawRemote, Remote, verified};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const LOOPBACK: &str = "127.0.0.0/8";

fn path(endpoint: &Value, act: &str) -> String {
    format!("/endpoints/{}/{act}", endpoint["id"].as_str().unwrap())
}

async fn act(hooks: &Hooks, endpoint: &Value, act: &str) -> Value {
    let (status, answer) = hooks.call("POST", &path(endpoint, act), &Value::Null).await;
    assert_eq!(status, 200, "{act}: {answer}");
    answer
}

/// What the header of a refusal says, in seconds.
async fn retry_after(hooks: &Hooks, path: &str) -> u64 {
    let host = hooks.api.base().trim_start_matches("http://").to_owned();
    let mut stream = tokio::net::TcpStream::connect(&host).await.unwrap();
    let request = format!(
        "POST /api/v1/projects/default{path} HTTP/1.1\r\nHost: {host}\r\nX-API-Key: {KEY}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429 "), "{answer}");
    let header =
        answer.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("retry-after: ").map(str::to_owned));
    header.unwrap().trim().parse().unwrap()
}

async fn until_health(hooks: &Hooks, endpoint: &Value, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let health = hooks.get(&path(endpoint, "health")).await;
        if holds(&health) {
            return health;
        }
        assert!(tokio::time::Instant::now() < deadline, "not yet: {health}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

// proves: V03, V04, V09, V10
#[tokio::test(flavor = "multi_thread")]
async fn v09_a_test_is_signed_shown_never_tried_again_and_counts_for_nothing() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/503/200", remote.address), json!({"preset": "patient"})).await;
    let failed = act(&hooks, &endpoint, "test").await;
    assert_eq!(failed["succeeded"], false, "{failed}");
    let attempt = &failed["attempt"];
    assert_eq!(
        (&attempt["status"], &attempt["failure"], &attempt["responseBody"]),
        (&json!(503), &json!("status"), &json!("seen")),
        "{failed}"
    );
    assert!(attempt["tookMs"].is_u64());
    let given = json!({"type": "invoice.paid", "data": {"total": 12.5}});
    let (status, passed) = hooks.call("POST", &path(&endpoint, "test"), &given).await;
    assert_eq!((status, &passed["succeeded"]), (200, &json!(true)), "{passed}");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let receipts = remote.receipts();
    assert_eq!(receipts.len(), 2, "never tried again");
    for (receipt, told) in receipts.iter().zip([&failed, &passed]) {
        assert_eq!(receipt.header("x-postrider-test"), "true");
        assert_eq!(receipt.header("webhook-id"), told["deliveryId"].as_str().unwrap());
        assert_eq!(receipt.json()["id"], told["eventId"]);
        let said = verified(endpoint["secret"].as_str(), None, receipt).await;
        assert!(said.as_object().unwrap().values().all(|verdict| *verdict == json!(true)), "{said}");
    }
    assert_eq!(
        (receipts[0].header("x-postrider-event"), receipts[1].header("x-postrider-event")),
        ("postrider.test", "invoice.paid")
    );
    assert_eq!(receipts[1].json()["data"], json!({"total": 12.5}));
    assert_eq!(hooks.get("/deliveries").await["data"], json!([]), "it leaves no delivery");
    let health = hooks.get(&path(&endpoint, "health")).await;
    assert_eq!((&health["failedInARow"], &health["failingSince"]), (&json!(0), &Value::Null));
    assert_eq!(health["lastTest"]["succeeded"], true);
    let rules = &health["switchOff"];
    assert_eq!(
        (&rules["onGone"], &rules["afterFailures"], &rules["failingForSeconds"]),
        (&json!(true), &json!(100), &json!(259_200.0))
    );
    for _ in 0..8 {
        act(&hooks, &endpoint, "test").await;
    }
    let (status, refused) = hooks.call("POST", &path(&endpoint, "test"), &Value::Null).await;
    assert_eq!(status, 429, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("10 tests, verifications and resends a minute"), "{refused}");
    let retry_after = retry_after(&hooks, &path(&endpoint, "test")).await;
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    let (status, refused) = hooks.call("POST", &path(&endpoint, "test"), &json!({"type": "no type"})).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("type")), "{refused}");
}

/// The guard stands before tests and challenges as before deliveries, and an answer is shown by its first 2 KB.
// proves: R14, V07
#[tokio::test(flavor = "multi_thread")]
async fn r14_a_test_goes_nowhere_where_a_delivery_may_not_and_shows_two_kilobytes() {
    const LONG: &[Act] =
        &[Act::Read, Act::Say(b"HTTP/1.1 500 Oops\r\nContent-Length: 6000\r\n\r\n"), Act::Say(&[b'x'; 6000])];
    let (hooks, remote) = tokio::join!(Hooks::start(), RawRemote::start(LONG));
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({"verify": true})).await;
    let shown = act(&hooks, &endpoint, "test").await;
    let attempt = &shown["attempt"];
    assert_eq!(attempt["responseBody"].as_str().unwrap().len(), 2048, "{attempt}");
    assert_eq!(attempt["responseBytes"], 6000);
    let hooks = hooks.restart_opening("10.0.0.0/8").await;
    for (what, failure) in [("test", "not_allowed"), ("verify", "not_allowed")] {
        let shown = act(&hooks, &endpoint, what).await;
        assert_eq!(
            (&shown["attempt"]["failure"], &shown["attempt"]["status"]),
            (&json!(failure), &Value::Null),
            "{shown}"
        );
    }
    assert_eq!(remote.bodies().len(), 1, "nobody was dialled");
}

// proves: R14, D20
#[tokio::test(flavor = "multi_thread")]
async fn r14_an_endpoint_that_must_be_verified_is_sent_nothing_before() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    for (preset, end) in [("webhook", "FAILED"), ("patient", "DLQ")] {
        let url = format!("{}/{preset}", remote.address);
        let endpoint = hooks.endpoint(&url, json!({"preset": preset, "verify": true})).await;
        assert_eq!(endpoint["verification"], "pending", "{endpoint}");
        hooks.subscribe(&endpoint, preset, json!({})).await;
        let event = hooks.publish(preset, json!(1)).await;
        let ended = hooks.until_status(&event, end).await.remove(0);
        assert_eq!((&ended["failure"], &ended["attempts"]), (&json!("not_verified"), &json!(0)), "{ended}");
    }
    assert!(remote.receipts().is_empty(), "without an attempt");

    let endpoint = hooks.endpoint(&format!("{}/seen/500/echo", remote.address), json!({"verify": true})).await;
    hooks.subscribe(&endpoint, "a", json!({})).await;
    let wrong = hooks.endpoint(&format!("{}/wrong", remote.address), json!({"verify": true})).await;
    let shown = act(&hooks, &wrong, "verify").await;
    assert_eq!(
        (&shown["verification"], &shown["attempt"]["failure"]),
        (&json!("failed"), &json!("not_verified")),
        "{shown}"
    );
    // `echo` gives the challenge back with 200, and with 500 to the second request.
    let shown = act(&hooks, &endpoint, "verify").await;
    assert_eq!(shown["verification"], "verified", "{shown}");
    let asked = remote.receipts().pop().unwrap();
    assert_eq!(asked.json()["type"], "webhook.verification");
    assert!(asked.json()["challenge"].as_str().unwrap().starts_with("whc_"));
    let said = verified(endpoint["secret"].as_str(), None, &asked).await;
    assert!(said.as_object().unwrap().values().all(|verdict| *verdict == json!(true)), "{said}");
    assert_eq!(act(&hooks, &endpoint, "verify").await["attempt"], Value::Null, "nothing is sent again");

    let hooks = hooks.kill_and_restart().await;
    let event = hooks.publish("a", json!(2)).await;
    hooks.until(&event, |delivery| delivery["attempts"] == 1).await;
    // Another address has shown nothing.
    let one = format!("/endpoints/{}", endpoint["id"].as_str().unwrap());
    let moved = json!({"url": format!("{}/elsewhere", remote.address)});
    let (status, moved) = hooks.call("PATCH", &one, &moved).await;
    assert_eq!((status, &moved["verification"]), (200, &json!("pending")), "{moved}");
    let event = hooks.publish("a", json!(3)).await;
    assert_eq!(hooks.until_status(&event, "FAILED").await[0]["failure"], "not_verified");
    let (_, freed) = hooks.call("PATCH", &one, &json!({"verify": false})).await;
    assert_eq!(freed["verification"], "not_needed", "{freed}");
    let event = hooks.publish("a", json!(4)).await;
    hooks.until_status(&event, "SUCCESS").await;
}

// proves: V03, V04, V05, V06, P09
#[tokio::test(flavor = "multi_thread")]
async fn v03_gone_is_off_its_owner_hears_of_it_once_and_switches_it_on_again() {
    let peer = Peer::start("smtp_server.py").await;
    let port = peer.call("GET", "/__ports", &Value::Null).await["plain"].clone();
    let more = [
        ("POSTRIDER_SMTP_URL", format!("smtp://127.0.0.1:{port}?tls=off")),
        ("POSTRIDER_SMTP_FROM", "postrider@clinic.example".to_owned()),
        ("POSTRIDER_ENDPOINT_SWEEP_SECONDS", "1".to_owned()),
    ];
    let (hooks, remote) = tokio::join!(Hooks::with(LOOPBACK, &more), Remote::start());
    let settings = json!({"ownerEmail": "ada@clinic.example", "alertDeadLetters": 0});
    assert_eq!(hooks.call("PATCH", "", &settings).await.0, 200);
    let keys = json!({"preset": "patient", "name": "shop", "retryDelays": [3]});
    let endpoint = hooks.endpoint(&format!("{}/500/410/200", remote.address), keys).await;
    hooks.subscribe(&endpoint, "a", json!({})).await;
    let waiting = hooks.publish("a", json!(1)).await;
    hooks.until(&waiting, |delivery| delivery["label"] == "Retrying" && delivery["status"] == "PENDING").await;
    let gone = hooks.publish("a", json!(2)).await;
    let dead = hooks.until_status(&gone, "DLQ").await.remove(0);
    assert_eq!((&dead["attempts"], &dead["error"]), (&json!(1), &json!("HTTP 410")), "{dead}");
    let health = hooks.get(&path(&endpoint, "health")).await;
    assert_eq!((&health["enabled"], &health["switchedOff"]["reason"]), (&json!(false), &json!("gone")), "{health}");
    assert_eq!(hooks.publish("a", json!(3)).await["deliveriesCreated"], 0);
    let log = peer.call("GET", "/__log?at_least=1&timeout_ms=60000", &Value::Null).await;
    let mail = &log["mails"][0];
    assert_eq!(mail["to"], json!(["ada@clinic.example"]));
    assert!(mail["data"].as_str().unwrap().contains("Subject: Switched off: the webhook endpoint shop"), "{mail}");
    // Nor does a start switch it on, or tell again.
    let hooks = hooks.kill_and_restart().await;
    let off = hooks.until_status(&waiting, "DLQ").await.remove(0);
    assert_eq!((&off["failure"], &off["attempts"]), (&json!("endpoint_off"), &json!(1)), "{off}");
    let id = off["id"].as_str().unwrap();
    for act in ["retry", "resend"] {
        let (status, refused) = hooks.call("POST", &format!("/deliveries/{id}/{act}"), &Value::Null).await;
        assert_eq!(status, 409, "{refused}");
        assert!(refused["detail"].as_str().unwrap().contains("the endpoint is off"), "{refused}");
    }
    let shown = hooks.get(&format!("/endpoints/{}", endpoint["id"].as_str().unwrap())).await;
    assert!(shown["warnings"][0].as_str().unwrap().contains("/enable"), "{shown}");
    let on = act(&hooks, &endpoint, "enable").await;
    assert_eq!((&on["enabled"], &on["switchedOff"]), (&json!(true), &Value::Null), "{on}");
    assert!(on["warnings"][0].as_str().unwrap().contains("never been tested"), "{on}");
    assert_eq!(hooks.call("POST", &format!("/deliveries/{id}/retry"), &Value::Null).await.0, 200);
    hooks.until_status(&waiting, "SUCCESS").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let log = peer.call("GET", "/__log?at_least=1", &Value::Null).await;
    assert_eq!(log["mails"].as_array().unwrap().len(), 1, "once");
    let audit = hooks.get("/audit?action=endpoint").await;
    let acts: Vec<&str> = audit["data"].as_array().unwrap().iter().map(|one| one["action"].as_str().unwrap()).collect();
    assert_eq!(acts, ["endpoint.enable", "endpoint.switch_off"], "{audit}");
}

// proves: V04
#[tokio::test(flavor = "multi_thread")]
async fn v04_so_many_deliveries_or_so_long_and_a_success_in_between_resets() {
    let more = [("POSTRIDER_ENDPOINT_SWEEP_SECONDS", "1".to_owned())];
    let (hooks, remote) = tokio::join!(Hooks::with(LOOPBACK, &more), Remote::start());
    let counted = json!({"switchOffAfterFailures": 3, "maxAttempts": 2, "retryDelays": [1], "jitter": false});
    // The third delivery succeeds at its second attempt; each fails once before.
    let endpoint = hooks.endpoint(&format!("{}/500/500/500/500/500/200/500/500/500", remote.address), counted).await;
    hooks.subscribe(&endpoint, "a", json!({})).await;
    for n in 0..2 {
        let event = hooks.publish("a", json!(n)).await;
        hooks.until_status(&event, "DLQ").await;
    }
    let health = hooks.get(&path(&endpoint, "health")).await;
    assert_eq!((&health["failedInARow"], &health["enabled"]), (&json!(2), &json!(true)), "each counts once: {health}");
    // Off by the third different one, though it might succeed later: what waits is given up when it comes due.
    let third = hooks.publish("a", json!(2)).await;
    let health = until_health(&hooks, &endpoint, |health| health["enabled"] == false).await;
    assert_eq!((&health["switchedOff"]["reason"], &health["failedInARow"]), (&json!("failures_in_a_row"), &json!(3)));
    assert_eq!(hooks.until_status(&third, "DLQ").await[0]["failure"], "endpoint_off");
    let (_, figures) = hooks.api.call("GET", "/metrics", "").await.unwrap();
    assert!(figures.contains("postrider_endpoints{project=\"default\",state=\"switched_off\"} 1\n"), "{figures}");
    // As its owner is told to: test it, then switch it on.
    assert_eq!(act(&hooks, &endpoint, "test").await["succeeded"], true, "also while it is off");
    let on = act(&hooks, &endpoint, "enable").await;
    assert_eq!((&on["health"]["failedInARow"], &on["warnings"]), (&json!(0), &json!([])), "{on}");

    let long = json!({"switchOffFailingFor": 2, "maxAttempts": 1});
    let endpoint = hooks.endpoint(&format!("{}/500/500/500", remote.address), long).await;
    hooks.subscribe(&endpoint, "b", json!({})).await;
    let event = hooks.publish("b", json!(1)).await;
    hooks.until_status(&event, "DLQ").await;
    let health = hooks.get(&path(&endpoint, "health")).await;
    assert!(health["enabled"] == true && health["switchOff"]["dueAt"].is_string(), "{health}");
    let hooks = hooks.kill_and_restart().await;
    let health = until_health(&hooks, &endpoint, |health| health["enabled"] == false).await;
    assert_eq!(health["switchedOff"]["reason"], "failing_for", "{health}");
    let mut doctor = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
    let ran = doctor.args(["doctor", "--json", "--data"]).arg(hooks.data()).output().await.unwrap();
    assert!(!ran.status.success(), "an endpoint that is off is something wrong");
    let report: Value = serde_json::from_slice(&ran.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter().filter(|finding| finding["check"] == "endpoints");
    let told: Vec<&str> = findings.map(|finding| finding["detail"].as_str().unwrap()).collect();
    assert_eq!(told, [format!("switched off by the server: `{}`", endpoint["name"].as_str().unwrap())], "{report}");
}

/// What operators see of what was given up: every field, filters, and a replay by filter and time range.
// proves: R10, R11, V07, V08, P08
#[tokio::test(flavor = "multi_thread")]
async fn r10_failed_messages_are_found_by_what_they_show_and_retried_by_filter() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let mut endpoints = BTreeMap::new();
    for name in ["shop", "lab"] {
        let url = format!("{}/400/400/400/200/{name}", remote.address);
        let endpoint = hooks.endpoint(&url, json!({ "name": name })).await;
        let subscription = hooks.subscribe(&endpoint, &format!("{name}.*"), json!({})).await;
        endpoints.insert(name, (endpoint, subscription));
    }
    let mut events = Vec::new();
    for event_type in ["shop.paid", "shop.sent", "lab.done"] {
        let event = hooks.publish(event_type, json!({"of": event_type})).await;
        hooks.until_status(&event, "DLQ").await;
        events.push(event);
    }
    let listed = hooks.get("/dlq").await["data"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 3);
    let (shop, subscription) = &endpoints["shop"];
    let item = listed.iter().find(|item| item["eventType"] == "shop.sent").unwrap();
    assert_eq!(item["eventId"], events[1]["eventId"]);
    assert_eq!((&item["endpointId"], &item["endpointUrl"]), (&shop["id"], &shop["url"]));
    assert_eq!(item["subscriptionId"], subscription["id"]);
    assert_eq!((&item["attemptCount"], &item["maxAttempts"]), (&json!(1), &json!(7)));
    assert_eq!((&item["lastError"], &item["failure"]), (&json!("HTTP 400"), &json!("status")));
    for time in ["failedAt", "createdAt"] {
        assert!(item[time].as_str().is_some_and(|time| time.ends_with('Z')), "{item}");
    }
    let id = item["deliveryId"].as_str().unwrap();
    assert_eq!(hooks.get(&format!("/dlq/{id}")).await, *item);
    let failed_at = item["failedAt"].as_str().unwrap();
    for (filter, count) in [
        (format!("endpoint={}", shop["id"].as_str().unwrap()), 2),
        ("event_type=lab.done".to_owned(), 1),
        (format!("subscription={}", subscription["id"].as_str().unwrap()), 2),
        (format!("event_id={}", events[0]["eventId"].as_str().unwrap()), 1),
        ("error=status".to_owned(), 3),
        ("error=timeout".to_owned(), 0),
        ("error_text=http%20400".to_owned(), 3),
        ("attempts_min=2".to_owned(), 0),
        (format!("dead_from={failed_at}"), 2),
        (format!("dead_before={failed_at}"), 1),
        (format!("id={id}"), 1),
        ("connection=lab".to_owned(), 1),
    ] {
        let found = hooks.get(&format!("/dlq?{filter}")).await["data"].as_array().unwrap().len();
        assert_eq!(found, count, "{filter}");
    }
    assert_eq!(hooks.call("GET", "/dlq?status=DLQ", &Value::Null).await.0, 400);
    for (label, count) in [("Not%20delivered", 3), ("delivered", 0), ("Retrying", 0), ("waiting", 0)] {
        let found = hooks.get(&format!("/deliveries?label={label}")).await["data"].as_array().unwrap().len();
        assert_eq!(found, count, "{label}");
    }
    assert_eq!(hooks.call("GET", "/deliveries?label=lost", &Value::Null).await.0, 400);
    // By ids: what is none of them is told and left.
    let elsewhere = "msg_01kkgynzg0vt52strdnec9fx6j";
    let (_, retried) = hooks.call("POST", "/dlq/retry", &json!({"deliveryIds": [id, elsewhere]})).await;
    assert_eq!((&retried["retried"], &retried["requested"]), (&json!(1), &json!(2)), "{retried}");
    assert_eq!(retried["refused"][0]["status"], 404, "{retried}");
    hooks.until(&events[1], |delivery| delivery["attempts"] == 2 && delivery["status"] == "DLQ").await;
    // By filter: a job.
    let filter = json!({"filter": {"endpoint": shop["id"], "dead_before": "2100-01-01T00:00:00Z"}});
    let (status, job) = hooks.call("POST", "/dlq/retry", &filter).await;
    assert_eq!(status, 202, "{job}");
    for event in &events[..2] {
        hooks.until_status(event, "SUCCESS").await;
    }
    let still = hooks.get("/dlq").await["data"].as_array().unwrap().clone();
    assert_eq!(still.len(), 1, "the other endpoint's stays: {still:?}");
    // A replay: what was delivered in a time range is sent again, once each.
    let before = remote.receipts().len();
    let replay =
        json!({"filter": {"endpoint": shop["id"], "status": ["SUCCESS"], "created_from": "2020-01-01T00:00:00Z"}});
    let (status, job) = hooks.call("POST", "/deliveries/resend", &replay).await;
    assert_eq!(status, 202, "{job}");
    remote.until_received(before + 2).await;
}

/// What changes from run to run gives way to one form: ids, times, ports.
fn normalized(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            let is_id = ["msg_", "evt_", "ep_", "sub_", "con_"].iter().find(|prefix| text.starts_with(**prefix));
            let is_time = text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T';
            let is_cid = text.len() == 30 && text.as_bytes()[8] == b'-' && text.as_bytes()[15] == b'-';
            match is_id {
                Some(prefix) => json!(format!("{prefix}…")),
                None if is_time => json!("a time"),
                None if is_cid => json!("a cid"),
                None if text.starts_with("http://127.0.0.1") || text.starts_with("https://hooks") => json!("a url"),
                None => value.clone(),
            }
        }
        Value::Array(items) => items.iter().map(normalized).collect(),
        Value::Object(members) => {
            let volatile = ["tookMs", "responseHeaders", "version"];
            let kept = members.iter().filter(|(name, _)| !volatile.contains(&name.as_str()));
            Value::Object(kept.map(|(name, member)| (name.clone(), normalized(member))).collect())
        }
        other => other.clone(),
    }
}

/// Whatever is shown is given; members may have been added.
fn is_part_of(shown: &Value, given: &Value) -> bool {
    match (shown, given) {
        (Value::Object(shown), Value::Object(given)) => {
            shown.iter().all(|(name, member)| given.get(name).is_some_and(|given| is_part_of(member, given)))
        }
        (Value::Array(shown), Value::Array(given)) => {
            shown.len() == given.len() && shown.iter().zip(given).all(|(shown, given)| is_part_of(shown, given))
        }
        (shown, given) => shown == given,
    }
}

/// The log of one delivery from its first attempt to the DLQ, to a retry and to its success is in the docs as the API gives it.
// proves: V07, V08, R10, R11
#[tokio::test(flavor = "multi_thread")]
async fn v07_the_docs_show_the_log_of_a_delivery_as_the_api_gives_it() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let keys = json!({"name": "shop", "maxAttempts": 2, "retryDelays": [1], "jitter": false});
    let endpoint = hooks.endpoint(&format!("{}/503/503/200", remote.address), keys).await;
    hooks.subscribe(&endpoint, "invoice.*", json!({})).await;
    let event = hooks.publish("invoice.paid", json!({"total": 12.5})).await;
    let retrying = hooks.until(&event, |one| one["attempts"] == 1 && one["status"] == "PENDING").await.remove(0);
    let id = retrying["id"].as_str().unwrap().to_owned();
    hooks.until_status(&event, "DLQ").await;
    let dead = hooks.get(&format!("/dlq/{id}")).await;
    let (status, retried) = hooks.call("POST", "/dlq/retry", &json!({"deliveryIds": [id]})).await;
    assert_eq!(status, 200, "{retried}");
    let delivered = hooks.until_status(&event, "SUCCESS").await.remove(0);
    let attempts = hooks.get(&format!("/deliveries/{id}/attempts")).await["data"].clone();

    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/webhooks.md")).unwrap();
    let (_, section) = page.split_once("## The log of one delivery\n").expect("docs/webhooks.md has the section");
    let section = section.split("\n## ").next().unwrap();
    let shown: Vec<Value> = section
        .split("```json\n")
        .skip(1)
        .map(|block| serde_json::from_str(block.split("```").next().unwrap()).unwrap())
        .collect();
    let given = [retrying, dead, retried, delivered, attempts];
    let printed: Vec<String> = given.iter().map(|one| serde_json::to_string(one).unwrap()).collect();
    assert_eq!(shown.len(), given.len(), "put these there: {}", printed.join("\n"));
    for (shown, given) in shown.iter().zip(&given) {
        assert!(
            is_part_of(&normalized(shown), &normalized(given)),
            "docs/webhooks.md shows something else than the API gives: {given}"
        );
    }
}
