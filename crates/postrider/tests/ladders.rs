//! The tables of the second and third seed, row by row: what earns another attempt, which statuses do, and why an attempt failed; each
//! against a real receiver.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::Duration;

use harness::{Act, Hooks, RawRemote, Remote};
use serde_json::{Value, json};

/// An endpoint at this address, subscribed to an event type of its own, and the event published to it.
async fn published(hooks: &Hooks, url: &str, event_type: &str, more: Value) -> Value {
    let mut keys = json!({"retryDelays": [1], "jitter": false});
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let endpoint = hooks.endpoint(url, keys).await;
    hooks.subscribe(&endpoint, event_type, json!({})).await;
    hooks.publish(event_type, json!({"n": 1})).await
}

// proves: R02, R07, V01, V08
#[tokio::test(flavor = "multi_thread")]
async fn r02_what_earns_another_attempt_status_by_status() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let mut waiting = Vec::new();
    for status in [200, 204, 299] {
        let event =
            published(&hooks, &format!("{}/{status}", remote.address), &format!("ok.{status}"), json!({})).await;
        waiting.push((event, "SUCCESS", 1));
    }
    for status in [408, 429, 500, 501, 503, 599] {
        let url = format!("{}/{status}/200", remote.address);
        waiting.push((published(&hooks, &url, &format!("again.{status}"), json!({})).await, "SUCCESS", 2));
    }
    for status in [301, 302, 304, 400, 401, 404, 409, 410, 422] {
        let url = format!("{}/{status}/200", remote.address);
        waiting.push((published(&hooks, &url, &format!("never.{status}"), json!({})).await, "DLQ", 1));
    }
    for (event, status, attempts) in waiting {
        let delivery = hooks.until_status(&event, status).await.remove(0);
        assert_eq!(delivery["attempts"], attempts, "{delivery}");
        let (label, failure) =
            if status == "DLQ" { ("Not delivered", json!("status")) } else { ("Delivered", Value::Null) };
        assert_eq!((&delivery["label"], &delivery["failure"]), (&json!(label), &failure), "{delivery}");
    }
    assert!(remote.receipts().iter().all(|receipt| receipt.path != "/elsewhere"), "redirects are not followed");
}

// proves: R02, R05, V08
#[tokio::test(flavor = "multi_thread")]
async fn r02_no_answer_earns_another_attempt() {
    const HANGS: &[Act] = &[Act::Read, Act::Hold];
    const RESETS: &[Act] = &[Act::Read, Act::Reset];
    let (hooks, hanging, resetting) = tokio::join!(Hooks::start(), RawRemote::start(HANGS), RawRemote::start(RESETS));
    let closed = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let cases = [
        (hanging.address.clone(), "hangs", "timeout"),
        (resetting.address.clone(), "resets", "unreachable"),
        (closed, "closed", "unreachable"),
        ("http://hooks.example.invalid".to_owned(), "unresolved", "unreachable"),
    ];
    for (address, event_type, failure) in cases {
        let more = json!({"timeoutSeconds": 1, "maxAttempts": 2});
        let event = published(&hooks, &format!("{address}/in"), event_type, more).await;
        let retrying = hooks.until(&event, |delivery| delivery["failure"] == failure).await.remove(0);
        assert!(matches!(retrying["label"].as_str(), Some("Retrying" | "Not delivered")), "{retrying}");
        let dead = hooks.until_status(&event, "DLQ").await.remove(0);
        assert_eq!((&dead["attempts"], &dead["failure"]), (&json!(2), &json!(failure)), "{dead}");
    }
}

// proves: R06, R07
#[tokio::test(flavor = "multi_thread")]
async fn r06_which_statuses_are_worth_retrying_is_the_endpoints_or_the_subscriptions_to_say() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let rows = [
        ("408,429,500-599", 500, true),
        ("5xx,!501", 501, false),
        ("!501,5xx", 502, true),
        (">=500,408,429,409", 409, true),
        ("408,429", 503, false),
        ("3xx", 302, true),
    ];
    for (number, (list, status, again)) in rows.into_iter().enumerate() {
        let endpoint = hooks
            .endpoint(
                &format!("{}/{status}/200/{number}", remote.address),
                json!({"retryDelays": [1], "jitter": false}),
            )
            .await;
        let event_type = format!("listed.{number}");
        hooks.subscribe(&endpoint, &event_type, json!({"retryableStatuses": list})).await;
        let event = hooks.publish(&event_type, json!(1)).await;
        let (end, attempts) = if again { ("SUCCESS", 2) } else { ("DLQ", 1) };
        let ended = hooks.until_status(&event, end).await.remove(0);
        assert_eq!(ended["attempts"], attempts, "{list}: {ended}");
    }
    for (list, term) in [("5xx,9xx", "9xx"), ("", "empty"), ("500-", "500-")] {
        let body = json!({"url": format!("{}/in", remote.address), "retryableStatuses": list});
        let (status, answer) = hooks.call("POST", "/endpoints", &body).await;
        let error = &answer["errors"][0];
        assert_eq!((status, &error["field"]), (422, &json!("retryableStatuses")), "{answer}");
        assert!(error["message"].as_str().unwrap().contains(term), "{answer}");
    }
}

// proves: R08
#[tokio::test(flavor = "multi_thread")]
async fn r08_retry_after_is_honoured_on_429_and_503_alone_and_only_later() {
    const LATER: &[Act] =
        &[Act::Read, Act::Say(b"HTTP/1.1 429 Slow Down\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n")];
    const SOONER: &[Act] = &[Act::Read, Act::Say(b"HTTP/1.1 503 Busy\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n")];
    const LEFT_ON: &[Act] =
        &[Act::Read, Act::Say(b"HTTP/1.1 500 Oops\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n")];
    const FOR_A_YEAR: &[Act] =
        &[Act::Read, Act::Say(b"HTTP/1.1 429 Slow Down\r\nRetry-After: 31536000\r\nContent-Length: 0\r\n\r\n")];
    let hooks = Hooks::start().await;
    for (script, event_type, waits_s) in
        [(LATER, "later", 3600), (SOONER, "sooner", 600), (LEFT_ON, "left.on", 600), (FOR_A_YEAR, "year", 21_600)]
    {
        let remote = RawRemote::start(script).await;
        let event =
            published(&hooks, &format!("{}/in", remote.address), event_type, json!({"retryDelays": [600]})).await;
        let waiting =
            hooks.until(&event, |delivery| delivery["label"] == "Retrying" && delivery["status"] == "PENDING");
        let waiting = waiting.await.remove(0);
        let time = |name: &str| jiff(waiting[name].as_str().unwrap());
        let waited_s = (time("nextAttemptAt") - time("lastAttemptAt")).as_secs();
        assert!((waits_s..waits_s + 20).contains(&waited_s), "{event_type}: {waited_s}");
    }
}

fn jiff(text: &str) -> Duration {
    Duration::from_millis(postrider_core::Timestamp::parse_rfc3339(text).unwrap().as_millis().unsigned_abs())
}

// proves: R16, V01
#[tokio::test(flavor = "multi_thread")]
async fn r16_a_2xx_is_delivered_once_whatever_becomes_of_its_body() {
    const STALLED: &[Act] = &[Act::Read, Act::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome"), Act::Hold];
    const BROKEN: &[Act] = &[Act::Read, Act::Say(b"HTTP/1.1 202 OK\r\nContent-Length: 100\r\n\r\nsome"), Act::Reset];
    const ENDLESS: &[Act] = &[
        Act::Read,
        Act::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        Act::SayForEver(b"5\r\nagain\r\n", Duration::from_millis(1)),
    ];
    const GARBLED: &[Act] = &[Act::Read, Act::Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")];
    let hooks = Hooks::start().await;
    for (script, event_type) in [(STALLED, "stalled"), (BROKEN, "broken"), (ENDLESS, "endless"), (GARBLED, "garbled")] {
        let remote = RawRemote::start(script).await;
        let url = format!("{}/in", remote.address);
        let event = published(&hooks, &url, event_type, json!({"timeoutSeconds": 1})).await;
        let delivery = hooks.until_status(&event, "SUCCESS").await.remove(0);
        assert_eq!((&delivery["attempts"], &delivery["failure"]), (&json!(1), &Value::Null), "{event_type}");
        let attempts = hooks.get(&format!("/deliveries/{}/attempts", delivery["id"].as_str().unwrap())).await;
        assert_eq!(attempts["data"][0]["incomplete"], true, "{event_type}: {attempts}");
        assert_eq!(remote.bodies().len(), 1, "{event_type} was sent once");
    }
}

// proves: R14, V08 (not_allowed, secret_unreadable)
#[tokio::test(flavor = "multi_thread")]
async fn v08_an_address_that_was_closed_since_and_a_secret_that_is_lost() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let mut types = Vec::new();
    for (preset, end) in [("webhook", "FAILED"), ("patient", "DLQ")] {
        let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({"preset": preset})).await;
        hooks.subscribe(&endpoint, preset, json!({})).await;
        types.push((preset, end));
    }
    let hooks = hooks.restart_opening("10.0.0.0/8").await;
    for (preset, end) in types {
        let event = hooks.publish(preset, json!(1)).await;
        let ended = hooks.until_status(&event, end).await.remove(0);
        assert_eq!((&ended["failure"], &ended["attempts"]), (&json!("not_allowed"), &json!(0)), "{ended}");
        let attempts = hooks.get(&format!("/deliveries/{}/attempts", ended["id"].as_str().unwrap())).await;
        assert_eq!(attempts["data"], json!([]), "nobody was dialled");
    }
    let hooks = hooks.restart_without_its_key().await;
    let event = hooks.publish("webhook", json!(2)).await;
    let retrying =
        hooks.until(&event, |delivery| delivery["attempts"] == 1 && delivery["status"] == "PENDING").await.remove(0);
    assert_eq!(
        (&retrying["failure"], &retrying["label"]),
        (&json!("secret_unreadable"), &json!("Retrying")),
        "{retrying}"
    );
    assert!(remote.receipts().is_empty(), "nothing goes out unsigned");
    let endpoints = hooks.get("/endpoints").await;
    let endpoint = endpoints["data"][0].clone();
    assert!(endpoint["secretUnreadable"].is_string(), "{endpoint}");
    let path = format!("/endpoints/{}/rotate-secret", endpoint["id"].as_str().unwrap());
    assert_eq!(hooks.call("POST", &path, &json!({})).await.0, 200);
    let resend = format!("/deliveries/{}/attempt-now", retrying["id"].as_str().unwrap());
    assert_eq!(hooks.call("POST", &resend, &Value::Null).await.0, 200);
    hooks.until_status(&event, "SUCCESS").await;
}

// proves: R10, R11, V09, D27
#[tokio::test(flavor = "multi_thread")]
async fn r11_a_retry_gives_three_more_attempts_and_a_resend_the_whole_schedule() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let url = format!("{}/500/500/500/500/500/200/500/200", remote.address);
    let event = published(&hooks, &url, "a", json!({"maxAttempts": 2})).await;
    let dead = hooks.until_status(&event, "DLQ").await.remove(0);
    assert_eq!((&dead["attempts"], &dead["maxAttempts"]), (&json!(2), &json!(2)));
    let listed = hooks.get("/dlq").await["data"][0].clone();
    assert_eq!((&listed["attemptCount"], &listed["lastError"]), (&json!(2), &json!("HTTP 500")));
    assert_eq!((&listed["eventId"], &listed["eventType"]), (&event["eventId"], &json!("a")));
    let id = dead["id"].as_str().unwrap();
    let bulk = json!({"deliveryIds": [id]});
    let (_, retried) = hooks.call("POST", "/dlq/retry", &bulk).await;
    assert_eq!((&retried["retried"], &retried["requested"]), (&json!(1), &json!(1)), "{retried}");
    let dead = hooks.until(&event, |delivery| delivery["status"] == "DLQ" && delivery["attempts"] == 5).await.remove(0);
    assert_eq!((&dead["id"], &dead["maxAttempts"]), (&json!(id), &json!(5)));
    let (status, answer) = hooks.call("POST", &format!("/deliveries/{id}/resend"), &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let delivered = hooks.until_status(&event, "SUCCESS").await.remove(0);
    assert_eq!((&delivered["attempts"], &delivered["maxAttempts"]), (&json!(6), &json!(2)));
    // Of a success too; its schedule is the whole one.
    assert_eq!(hooks.call("POST", &format!("/deliveries/{id}/resend"), &Value::Null).await.0, 200);
    let again =
        hooks.until(&event, |delivery| delivery["status"] == "SUCCESS" && delivery["attempts"] == 8).await.remove(0);
    assert!(again["deliveredAt"].is_string());
    let receipts = remote.receipts();
    assert_eq!(receipts.len(), 8);
    for receipt in &receipts {
        assert_eq!(receipt.body, receipts[0].body, "the same envelope with the same id");
        assert_eq!(receipt.header("webhook-id"), id);
        assert_eq!(receipt.header("idempotency-key"), id);
    }
}

// proves: R15
#[tokio::test(flavor = "multi_thread")]
async fn r15_an_ordered_endpoint_waits_through_the_retries_of_the_first() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let keys = json!({"ordered": true, "retryDelays": [1], "jitter": false});
    let endpoint = hooks.endpoint(&format!("{}/503/503/200", remote.address), keys).await;
    hooks.subscribe(&endpoint, "**", json!({})).await;
    let mut last = Value::Null;
    for number in 0..4 {
        last = hooks.publish("a", json!(number)).await;
    }
    hooks.until_status(&last, "SUCCESS").await;
    let order: Vec<Value> = remote.receipts().iter().map(|receipt| receipt.json()["data"].clone()).collect();
    assert_eq!(order, [json!(0), json!(0), json!(0), json!(1), json!(2), json!(3)]);
}
