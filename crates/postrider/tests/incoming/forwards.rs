//! Forwards on their way: what they carry, how they fail, how they are retried as new ones, and what came in forwarded again.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Hooks, Remote};
use crate::sender::{address, destination, headers, send, source};

async fn until(hooks: &Hooks, path: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let found = hooks.get(path).await;
        if holds(&found) {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "{path}: not yet: {found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn count(page: &Value) -> usize {
    page["data"].as_array().unwrap().len()
}

// proves: R12, R03, R09
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_forward_has_the_ladder_of_forwards_and_the_headers_that_came() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let made = source(&hooks, "shop", "none", json!({})).await;
    let more = json!({"retryDelays": [1], "customHeaders": {"X-Team": "seven"}});
    let to = destination(&hooks, &made, &format!("{}/503/200", remote.address), more).await;
    assert_eq!((&to["policy"]["maxAttempts"], &to["policy"]["timeoutSeconds"]), (&json!(5), &json!(30.0)));
    let sent = headers(&[
        ("x-topic", "orders"),
        ("connection", "x-hop"),
        ("x-hop", "1"),
        ("x-postrider-verified", "true"),
        ("user-agent", "Shop/1"),
    ]);
    let url = format!("{}?a=1&b=%20", address(&hooks, &made));
    let (status, accepted) = send(&url, "text/csv", &sent, b"a,b\r\n\xff").await.unwrap();
    assert_eq!(status, 202, "{accepted}");
    let receipts = remote.until_received(2).await;
    let forward = until(&hooks, "/forwards?status=SUCCESS", |page| count(page) == 1).await["data"][0].clone();
    assert_eq!((&forward["sourceId"], &forward["destinationId"]), (&made["id"], &to["id"]));
    assert_eq!((&forward["incomingEventId"], &forward["cid"]), (&accepted["eventId"], &accepted["cid"]));
    assert_eq!(
        (&forward["maxAttempts"], &forward["attempts"], &forward["origin"]),
        (&json!(5), &json!(2), &json!("incoming"))
    );
    for (receipt, attempt) in receipts.iter().zip(["1", "2"]) {
        assert_eq!(&receipt.body[..], b"a,b\r\n\xff");
        for (name, value) in [
            ("content-type", "text/csv"),
            ("x-topic", "orders"),
            ("user-agent", "Shop/1"),
            ("x-team", "seven"),
            ("x-postrider-verified", "false"),
            ("x-postrider-query", "a=1&b=%20"),
            ("x-postrider-source", made["id"].as_str().unwrap()),
            ("x-postrider-event", "incoming.shop"),
            ("x-postrider-event-id", accepted["eventId"].as_str().unwrap()),
            ("x-postrider-forward", forward["id"].as_str().unwrap()),
            ("x-postrider-attempt", attempt),
            ("idempotency-key", &format!("{}-{}", accepted["eventId"].as_str().unwrap(), to["id"].as_str().unwrap())),
        ] {
            assert_eq!(receipt.header(name), value, "{name}");
        }
        assert!(!receipt.headers.contains_key("x-hop") && !receipt.headers.contains_key("webhook-signature"));
        assert!(
            !receipt.headers.values().any(|value| value.as_str().unwrap().contains("in_")),
            "the address stays here"
        );
    }
    assert_eq!(count(&hooks.get("/forwards?status=DLQ").await), 0);
    let other = source(&hooks, "other", "none", json!({})).await;
    assert_eq!(count(&hooks.get(&format!("/forwards?source={}", other["id"].as_str().unwrap())).await), 0);
    assert_eq!(count(&hooks.get(&format!("/forwards?destination={}", to["id"].as_str().unwrap())).await), 1);
}

// proves: R12, R11, D16
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_failed_forward_is_retried_as_a_new_one_to_the_same_destination() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let made = source(&hooks, "shop", "none", json!({})).await;
    let to = destination(&hooks, &made, &format!("{}/404/404/200", remote.address), json!({})).await;
    let other = destination(&hooks, &made, &format!("{}/other", remote.address), json!({})).await;
    let (_, accepted) = send(&address(&hooks, &made), "text/plain", &headers(&[]), b"one").await.unwrap();
    let failed = until(&hooks, "/incoming-dlq", |page| count(page) == 1).await["data"][0].clone();
    assert_eq!(
        (&failed["destinationId"], &failed["attemptCount"]),
        (&to["id"], &json!(1)),
        "a 404 earns no second attempt"
    );
    assert_eq!((&failed["incomingEventId"], &failed["sourceName"]), (&accepted["eventId"], &json!("shop")));
    let old = failed["forwardId"].as_str().unwrap();
    let (status, new) = hooks.call("POST", &format!("/incoming-dlq/{old}/retry"), &Value::Null).await;
    assert_eq!(status, 201, "{new}");
    assert_ne!(new["id"], old);
    assert_eq!(
        (&new["destinationId"], &new["incomingEventId"], &new["cid"]),
        (&to["id"], &accepted["eventId"], &accepted["cid"])
    );
    let ended = hooks.get(&format!("/forwards/{old}")).await;
    assert_eq!((&ended["status"], &ended["attempts"]), (&json!("FAILED"), &json!(1)));
    assert_eq!(ended["dlqNote"], format!("retried as {}", new["id"].as_str().unwrap()));
    let (status, twice) = hooks.call("POST", &format!("/forwards/{old}/retry"), &Value::Null).await;
    assert_eq!(status, 409, "{twice}");
    // The new one fails as well, and is retried in bulk.
    until(&hooks, "/incoming-dlq", |page| count(page) == 1).await;
    let (_, counted) =
        hooks.call("POST", "/incoming-dlq/retry", &json!({"filter": {"error": "status"}, "dry_run": true})).await;
    assert_eq!(counted, json!({"matched": 1, "hasMore": false}));
    let ids = json!({"forwardIds": [new["id"], old]});
    let (status, several) = hooks.call("POST", "/incoming-dlq/retry", &ids).await;
    assert_eq!((status, &several["retried"], &several["requested"]), (200, &json!(1), &json!(2)), "{several}");
    assert_eq!(several["refused"][0]["forwardId"], old);
    let last = several["forwards"][0]["forward"].as_str().unwrap();
    until(&hooks, &format!("/forwards/{last}"), |forward| forward["status"] == "SUCCESS").await;
    let receipts = remote.receipts();
    let ours: Vec<_> = receipts.iter().filter(|receipt| receipt.path == "/404/404/200").collect();
    assert_eq!(ours.len(), 3, "the other destination is not sent it again");
    assert_eq!(receipts.len(), 4);
    assert!(ours.iter().all(|receipt| receipt.header("x-postrider-attempt") == "1"), "from attempt 1");
    let keys: std::collections::BTreeSet<&str> = ours.iter().map(|receipt| receipt.header("idempotency-key")).collect();
    assert_eq!(keys.len(), 1, "a receiver that has it can tell");
    assert_eq!(count(&hooks.get("/incoming-dlq").await), 0);
    assert!(other["id"].is_string());
    let audit = hooks.get("/audit?action=forward.retry").await;
    assert_eq!(count(&audit), 2);
}

// proves: R12, P08
#[tokio::test(flavor = "multi_thread")]
async fn r12_what_came_in_is_forwarded_again_by_time_and_by_id() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let made = source(&hooks, "shop", "none", json!({})).await;
    let url = address(&hooks, &made);
    let mut events = Vec::new();
    for body in ["one", "two", "three"] {
        events.push(send(&url, "text/plain", &headers(&[]), body.as_bytes()).await.unwrap().1["eventId"].clone());
    }
    // The destination came later.
    let to = destination(&hooks, &made, &format!("{}/late", remote.address), json!({})).await;
    let path = format!("/sources/{}/replay", made["id"].as_str().unwrap());
    let range = |dry_run| json!({"from": "2020-01-01T00:00:00Z", "dry_run": dry_run});
    let (status, counted) = hooks.call("POST", &path, &range(true)).await;
    assert_eq!((status, counted), (200, json!({"events": 3, "forwards": 3, "next_cursor": null})));
    assert_eq!(remote.receipts().len(), 0);
    hooks.call("POST", &path, &range(false)).await;
    let receipts = remote.until_received(3).await;
    let mut bodies: Vec<&[u8]> = receipts.iter().map(|receipt| &receipt.body[..]).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, [&b"one"[..], b"three", b"two"]);
    let (status, one) = hooks.call("POST", &path, &json!({"eventIds": [events[1]], "destinationId": to["id"]})).await;
    assert_eq!((status, &one["forwards"]), (200, &json!(1)), "{one}");
    let again = remote.until_received(4).await.remove(3);
    assert_eq!(&again.body[..], b"two");
    assert_eq!(again.header("x-postrider-event-id"), events[1].as_str().unwrap());
    for (body, field) in
        [(json!({}), "eventIds"), (json!({"from": "yesterday"}), "from"), (json!({"eventIds": ["x"]}), "eventIds[0]")]
    {
        let (status, problem) = hooks.call("POST", &path, &body).await;
        assert_eq!((status, problem["errors"][0]["field"].as_str().unwrap()), (422, field), "{problem}");
    }
    let (status, _) = hooks
        .call(
            "POST",
            &path,
            &json!({"from": "2020-01-01T00:00:00Z", "destinationId": "dst_00000000000000000000000000"}),
        )
        .await;
    assert_eq!(status, 404);
}

// proves: R12, R14
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_destination_is_guarded_as_an_endpoint_is_and_may_be_any_connection() {
    let hooks = Hooks::opening("127.0.0.0/8").await;
    let remote = Remote::start().await;
    let made = source(&hooks, "shop", "none", json!({})).await;
    let refused = json!({"sourceId": made["id"], "url": "http://10.1.2.3/"});
    let (status, problem) = hooks.call("POST", "/destinations", &refused).await;
    assert_eq!((status, problem["errors"][0]["field"].as_str().unwrap()), (422, "url"), "{problem}");
    assert_eq!(count(&hooks.get("/endpoints").await), 0, "nothing is half-stored");
    let rest = json!({"name": "Lab", "type": "rest", "host": remote.address, "url_path": "/lab", "use_queue": true});
    assert_eq!(hooks.call("POST", "/connections", &rest).await.0, 201);
    let body = json!({"sourceId": made["id"], "connection": "Lab", "name": "to the lab"});
    let (status, to) = hooks.call("POST", "/destinations", &body).await;
    assert_eq!((status, &to["type"]), (201, &json!("rest")), "{to}");
    send(&address(&hooks, &made), "text/plain", &headers(&[("x-kept", "yes")]), b"in").await.unwrap();
    let receipt = remote.until_received(1).await.remove(0);
    assert_eq!((receipt.path.as_str(), receipt.header("x-kept"), &receipt.body[..]), ("/lab", "yes", &b"in"[..]));
    let path = format!("/destinations/{}", to["id"].as_str().unwrap());
    let (status, off) = hooks.call("PATCH", &path, &json!({"enabled": false})).await;
    assert_eq!((status, &off["enabled"]), (200, &json!(false)), "{off}");
    send(&address(&hooks, &made), "text/plain", &headers(&[]), b"nobody").await.unwrap();
    assert_eq!(hooks.call("DELETE", &path, &Value::Null).await.0, 204);
    assert_eq!(count(&hooks.get("/destinations").await), 0);
    assert_eq!(remote.receipts().len(), 1);
}
