//! Webhooks of the real binary, to real receivers: signatures that others verify, events and their fan-out, what an endpoint may be.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use harness::{Hooks, Remote, verified};
use serde_json::{Value, json};

/// Waits of a second: no test waits for real ladders.
fn quick() -> Value {
    json!({"retryDelays": [1], "jitter": false})
}

// proves: V10, V09, D40
#[tokio::test(flavor = "multi_thread")]
async fn v10_libraries_that_we_did_not_write_verify_what_is_sent() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/503/200?team=7", remote.address), quick()).await;
    let subscription = hooks.subscribe(&endpoint, "order.*", json!({"customHeaders": {"X-Team": "seven"}})).await;
    let text = r#"{"type": "order.created", "data": {"n": 1.50, "é": "ü"}}"#;
    let (status, event) = hooks.api.call("POST", "/api/v1/projects/default/events", text).await.unwrap();
    let event: Value = serde_json::from_str(&event).unwrap();
    assert_eq!((status, &event["deliveriesCreated"]), (201, &json!(1)), "{event}");
    let receipts = remote.until_received(2).await;
    let delivery = hooks.until_status(&event, "SUCCESS").await.remove(0);
    assert_eq!(delivery["label"], "Delivered");
    assert_eq!((&delivery["attempts"], &delivery["maxAttempts"]), (&json!(2), &json!(7)));
    assert_eq!((&delivery["eventId"], &delivery["subscriptionId"]), (&event["eventId"], &subscription["id"]));
    let secret = endpoint["secret"].as_str().unwrap();
    for (receipt, attempt) in receipts.iter().zip(["1", "2"]) {
        let all = json!({"npm_standardwebhooks": true, "npm_svix": true, "pypi_standardwebhooks": true});
        assert_eq!(verified(Some(secret), None, receipt).await, all);
        let id = delivery["id"].as_str().unwrap();
        for name in ["webhook-id", "x-postrider-delivery", "idempotency-key"] {
            assert_eq!(receipt.header(name), id, "{name}");
        }
        assert_eq!(receipt.header("x-postrider-event"), "order.created");
        assert_eq!(receipt.header("x-postrider-event-id"), event["eventId"].as_str().unwrap());
        assert_eq!(receipt.header("x-postrider-attempt"), attempt);
        assert_eq!((receipt.header("x-team"), receipt.header("content-type")), ("seven", "application/json"));
        let body = receipt.json();
        assert_eq!(
            (&body["id"], &body["type"], &body["data"]["n"]),
            (&event["eventId"], &json!("order.created"), &json!(1.5))
        );
        assert!(body["timestamp"].as_str().unwrap().ends_with('Z'));
    }
    assert_eq!(receipts[0].body, receipts[1].body, "every attempt sends the same bytes");
    assert_ne!(receipts[0].header("webhook-timestamp"), receipts[1].header("webhook-timestamp"), "signed anew");
    assert!(String::from_utf8_lossy(&receipts[0].body).contains("\"n\":1.50"), "no number is rewritten");
}

// proves: V10
#[tokio::test(flavor = "multi_thread")]
async fn v10_a_rotated_secret_signs_beside_the_former_one_until_the_overlap_ends() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({})).await;
    hooks.subscribe(&endpoint, "**", json!({})).await;
    let path = format!("/endpoints/{}/rotate-secret", endpoint["id"].as_str().unwrap());
    let (status, rotated) = hooks.call("POST", &path, &json!({"overlapSeconds": 3600})).await;
    assert_eq!(status, 200, "{rotated}");
    let (former, current) = (endpoint["secret"].as_str().unwrap(), rotated["secret"].as_str().unwrap());
    assert_ne!(former, current);
    assert!(rotated["formerSecretSignsUntil"].is_string());
    hooks.publish("a", json!(1)).await;
    let both = remote.until_received(1).await.remove(0);
    assert_eq!(both.header("webhook-signature").split(' ').count(), 2);
    for secret in [former, current] {
        assert_eq!(verified(Some(secret), None, &both).await["pypi_standardwebhooks"], true);
    }
    // Over to Ed25519, at once; the secrets survive a kill -9.
    let wish = json!({"signatureScheme": "asymmetric", "overlapSeconds": 0});
    let (_, rotated) = hooks.call("POST", &path, &wish).await;
    let public = rotated["publicKey"].as_str().unwrap().to_owned();
    let hooks = hooks.kill_and_restart().await;
    let shown = hooks.get(&format!("/endpoints/{}", endpoint["id"].as_str().unwrap())).await;
    assert_eq!((&shown["publicKey"], shown.get("secret")), (&json!(public), None), "a secret is shown once");
    hooks.publish("a", json!(2)).await;
    let signed = remote.until_received(2).await.remove(1);
    assert!(signed.header("webhook-signature").starts_with("v1a,"));
    assert_eq!(verified(Some(current), Some(&public), &signed).await["ed25519"], true);
    assert_eq!(verified(Some(current), None, &signed).await["npm_svix"], false);
}

// proves: D40, R03, D21
#[tokio::test(flavor = "multi_thread")]
async fn d40_an_event_goes_to_whoever_subscribed_to_its_type() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let one = hooks.endpoint(&format!("{}/one", remote.address), json!({})).await;
    let two = hooks.endpoint(&format!("{}/two", remote.address), json!({"payload": "data"})).await;
    hooks.subscribe(&one, "order.*", json!({})).await;
    hooks.subscribe(&one, "**", json!({"maxAttempts": 3, "timeoutSeconds": 5})).await;
    hooks.subscribe(&two, "order.created", json!({})).await;
    hooks.subscribe(&two, "bill.*", json!({})).await;
    let event = hooks.publish("order.created", json!({"total": 12345678901234567890u64})).await;
    assert_eq!(event["deliveriesCreated"], 3, "two subscriptions of one endpoint make two deliveries");
    let deliveries = hooks.until_status(&event, "SUCCESS").await;
    let mut most: Vec<u64> = deliveries.iter().map(|one| one["maxAttempts"].as_u64().unwrap()).collect();
    most.sort_unstable();
    assert_eq!(most, [3, 7, 7]);
    let receipts = remote.until_received(3).await;
    let bare: Vec<_> = receipts.iter().filter(|receipt| receipt.path == "/two").collect();
    assert_eq!(bare.len(), 1);
    assert_eq!(&bare[0].body[..], br#"{"total":12345678901234567890}"#);
    let nobody = hooks.publish("bill", json!(null)).await;
    assert_eq!(nobody["deliveriesCreated"], 1, "`**` has it, `bill.*` has not");
    let listed = hooks.get("/events?type=order.created").await;
    assert_eq!(listed["data"][0]["id"], event["eventId"]);
    let shown = hooks.get(&format!("/events/{}", event["eventId"].as_str().unwrap())).await;
    assert_eq!(shown["data"]["total"], json!(12345678901234567890u64));
    // A subscription that is changed or gone concerns the events after it.
    let (_, all) = hooks.call("GET", "/subscriptions", &Value::Null).await;
    for subscription in all["data"].as_array().unwrap() {
        let path = format!("/subscriptions/{}", subscription["id"].as_str().unwrap());
        assert_eq!(hooks.call("PATCH", &path, &json!({"enabled": false})).await.0, 200);
        assert_eq!(hooks.call("DELETE", &path, &Value::Null).await.0, 204);
    }
    assert_eq!(hooks.publish("order.created", json!(1)).await["deliveriesCreated"], 0);
}

// proves: D40 (topics push to any connection)
#[tokio::test(flavor = "multi_thread")]
async fn p02_a_topic_pushes_to_any_connection() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let rest = json!({"name": "lab", "type": "rest", "host": remote.address, "url_path": "/lab", "use_queue": true});
    assert_eq!(hooks.call("POST", "/connections", &rest).await.0, 201);
    let placed = json!({"name": "placed", "type": "rest", "host": remote.address, "url_path": "/lab/{id}"});
    assert_eq!(hooks.call("POST", "/connections", &placed).await.0, 201);
    assert_eq!(hooks.call("POST", "/topics", &json!({"name": "lab.results"})).await.0, 201);
    let (status, refused) =
        hooks.call("POST", "/subscriptions", &json!({"connection": "placed", "eventType": "**"})).await;
    assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("connection")), "{refused}");
    let wish = json!({"connection": "lab", "eventType": "lab.**"});
    assert_eq!(hooks.call("POST", "/subscriptions", &wish).await.0, 201);
    let message = json!({"headers": {"X-Lab": "north"}, "body": "MSH|^~\\&|"});
    assert_eq!(hooks.call("POST", "/topics/lab.results/publish", &message).await.0, 201);
    let receipt = remote.until_received(1).await.remove(0);
    assert_eq!((receipt.path.as_str(), &receipt.body[..]), ("/lab", &b"MSH|^~\\&|"[..]));
    assert_eq!(receipt.header("x-lab"), "north");
}

#[tokio::test(flavor = "multi_thread")]
async fn d40_a_batch_of_events_is_read_line_by_line() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({"ordered": true})).await;
    hooks.subscribe(&endpoint, "**", json!({})).await;
    let id = "evt_01k3v9q8h4m2n6p7r0s5t1w2x3";
    let lines = format!(
        "{}\n\n{}\nnothing\n{}\n{}\n",
        json!({"type": "a", "data": 1}),
        json!({"type": "a..b", "data": 1}),
        json!({"type": "b", "data": [2], "id": id}),
        json!({"type": "b", "data": [3], "id": id}),
    );
    let answer =
        hooks.api.call_as("POST", "/api/v1/projects/default/events/batch", &lines, "application/x-ndjson").await;
    let (status, text) = answer.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200, "{answer}");
    assert_eq!((&answer["accepted"], &answer["refused"]), (&json!(3), &json!(2)), "{answer}");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|one| one["line"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 3, 4, 5, 6]);
    assert_eq!((&results[1]["error"]["field"], &results[3]["eventId"]), (&json!("type"), &json!(id)));
    assert_eq!((&results[4]["repeated"], &results[4]["deliveriesCreated"]), (&json!(true), &json!(0)));
    let receipts = remote.until_received(2).await;
    assert_eq!(
        receipts.iter().map(|receipt| receipt.json()["data"].clone()).collect::<Vec<_>>(),
        [json!(1), json!([2])]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn v05_an_endpoint_that_is_off_gets_no_deliveries_now_or_later() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint =
        hooks.endpoint(&format!("{}/503/200", remote.address), json!({"retryDelays": [2], "jitter": false})).await;
    hooks.subscribe(&endpoint, "**", json!({})).await;
    let waiting = hooks.publish("a", json!(1)).await;
    hooks.until(&waiting, |delivery| delivery["label"] == "Retrying" && delivery["status"] == "PENDING").await;
    let path = format!("/endpoints/{}", endpoint["id"].as_str().unwrap());
    let (status, off) = hooks.call("PATCH", &path, &json!({"enabled": false})).await;
    assert_eq!((status, &off["enabled"]), (200, &json!(false)), "{off}");
    assert_eq!(hooks.publish("a", json!(2)).await["deliveriesCreated"], 0);
    let dead = hooks.until_status(&waiting, "DLQ").await.remove(0);
    assert_eq!(
        (&dead["failure"], &dead["attempts"], &dead["label"]),
        (&json!("endpoint_off"), &json!(1), &json!("Not delivered"))
    );
    assert_eq!(hooks.call("PATCH", &path, &json!({"enabled": true})).await.1["enabled"], true);
    let listed = hooks.get("/dlq").await;
    let item = &listed["data"][0];
    assert_eq!((&item["endpointId"], &item["eventType"]), (&endpoint["id"], &json!("a")));
    assert_eq!(item["endpointUrl"], endpoint["url"]);
    let retry = format!("/dlq/{}/retry", dead["id"].as_str().unwrap());
    assert_eq!(hooks.call("POST", &retry, &Value::Null).await.0, 200);
    hooks.until_status(&waiting, "SUCCESS").await;
    assert_eq!(remote.receipts().len(), 2);
}

// proves: V08 (not_entitled), D45
#[tokio::test(flavor = "multi_thread")]
async fn v08_a_project_that_is_not_entitled_sends_nothing() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({})).await;
    hooks.subscribe(&endpoint, "**", json!({})).await;
    assert_eq!(hooks.call("PATCH", "", &json!({"entitled": false})).await.0, 200);
    let event = hooks.publish("a", json!(1)).await;
    let dead = hooks.until_status(&event, "DLQ").await.remove(0);
    assert_eq!((&dead["failure"], &dead["attempts"]), (&json!("not_entitled"), &json!(0)));
    assert!(remote.receipts().is_empty());
}

// proves: R14, D20
#[tokio::test(flavor = "multi_thread")]
async fn r14_addresses_that_are_not_public_are_refused_when_they_are_saved() {
    let hooks = Hooks::opening("198.51.100.7/32").await;
    for url in HOSTILE {
        let (status, answer) = hooks.call("POST", "/endpoints", &json!({"url": url})).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("url")), "{url}: {answer}");
    }
    let (status, answer) =
        hooks.call("POST", "/endpoints", &json!({"url": "http://93.184.215.14/in", "preset": "patient"})).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("url")), "only https: {answer}");
    for url in PUBLIC {
        assert_eq!(hooks.call("POST", "/endpoints", &json!({"url": url})).await.0, 201, "{url}");
    }
    assert!(HOSTILE.len() >= 40);
}

const PUBLIC: [&str; 6] = [
    "https://93.184.215.14/in",
    "http://8.8.8.8:8080/",
    "https://[2606:4700:4700::1111]/x",
    "http://1.1.1.1/",
    // Opened by the operator.
    "http://198.51.100.7/in",
    // It cannot be resolved now, and is judged when it is dialled.
    "https://hooks.example.invalid/in",
];

const HOSTILE: [&str; 46] = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://127.0.0.1./",
    "http://localhost/",
    "http://LOCALHOST:8080/",
    "http://localhost./",
    "http://a.localhost/",
    "http://0.0.0.0/",
    "http://0/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.170.2/",
    "http://100.100.100.200/",
    "http://metadata.google.internal/",
    "http://192.0.0.8/",
    "http://192.0.2.1/",
    "http://198.18.0.1/",
    "http://198.51.100.8/",
    "http://203.0.113.9/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://good.example.org@10.0.0.1/",
];
