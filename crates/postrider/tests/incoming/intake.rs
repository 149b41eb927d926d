//! What comes in at all: limits, switches, what is refused, and what is said of it. Nothing of a refused one is kept.

use serde_json::{Value, json};

use crate::harness::Hooks;
use crate::sender::{address, headers, send, source};

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_source_that_is_off_full_or_unknown_says_so_and_stores_nothing() {
    let hooks = Hooks::start().await;
    let made = source(&hooks, "any", "none", json!({"rateLimitPerSecond": 2})).await;
    let url = address(&hooks, &made);
    let (status, _) =
        send(&format!("{}/ingress/in_nothing", hooks.api.base()), "text/plain", &headers(&[]), b"x").await.unwrap();
    assert_eq!(status, 404);
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(send(&url, "text/plain", &headers(&[]), b"x").await.unwrap().0);
    }
    assert!(statuses.contains(&429) && statuses.contains(&202), "{statuses:?}");
    let id = made["id"].as_str().unwrap();
    let (status, off) =
        hooks.call("PATCH", &format!("/sources/{id}"), &json!({"enabled": false, "rateLimitPerSecond": null})).await;
    assert_eq!((status, &off["enabled"]), (200, &json!(false)), "{off}");
    assert_eq!(send(&url, "text/plain", &headers(&[]), b"x").await.unwrap().0, 410);
    hooks.call("PATCH", &format!("/sources/{id}"), &json!({"enabled": true})).await;
    let too_large = vec![b'x'; (8 << 20) + 1];
    assert_eq!(send(&url, "text/plain", &headers(&[]), &too_large).await.unwrap().0, 413);
    let shown = hooks.get(&format!("/sources/{id}")).await;
    let rejected = &shown["figures"]["rejected"];
    assert_eq!((&rejected["disabled"], &rejected["too_large"]), (&json!(1), &json!(1)), "{shown}");
    let accepted = shown["figures"]["accepted"].as_u64().unwrap();
    let events = hooks.get("/events?type=incoming.any&limit=100").await;
    assert_eq!(events["data"].as_array().unwrap().len() as u64, accepted);
    let (_, metrics) = hooks.api.call("GET", "/metrics", "").await.unwrap();
    assert!(metrics.contains("postrider_incoming_webhooks_total{outcome=\"unknown_address\"} 1"), "{metrics}");
    assert!(metrics.contains("postrider_incoming_webhooks_total{outcome=\"too_large\"} 1"), "{metrics}");
    let (status, _) = hooks.call("DELETE", &format!("/sources/{id}"), &Value::Null).await;
    assert_eq!(status, 204);
    assert_eq!(send(&url, "text/plain", &headers(&[]), b"x").await.unwrap().0, 404);
}

// proves: R12
#[tokio::test(flavor = "multi_thread")]
async fn r12_what_makes_no_source_is_refused_by_its_field() {
    let hooks = Hooks::start().await;
    let field = async |body: Value| {
        let (status, problem) = hooks.call("POST", "/sources", &body).await;
        assert_eq!(status, 422, "{body}: {problem}");
        problem["errors"][0]["field"].as_str().unwrap().to_owned()
    };
    for (body, wanted) in [
        (json!({"name": "a"}), "provider"),
        (json!({"name": "a", "provider": "paypal"}), "provider"),
        (json!({"name": "a", "provider": "stripe"}), "secret"),
        (json!({"name": "a", "provider": "standard", "secret": "hunter2"}), "secret"),
        (json!({"name": "a", "provider": "sendgrid", "secret": "hunter2"}), "secret"),
        (json!({"name": "a", "provider": "none", "secret": "hunter2"}), "secret"),
        (json!({"name": "a", "provider": "twilio", "secret": "x"}), "publicUrl"),
        (json!({"name": "a", "provider": "hmac", "toleranceSeconds": 0}), "toleranceSeconds"),
        (json!({"name": "a", "provider": "hmac", "hmac_header": "x"}), "hmac_header"),
        (json!({"name": "a/b", "provider": "github"}), "name"),
    ] {
        assert_eq!(field(body.clone()).await, wanted, "{body}");
    }
    source(&hooks, "a", "github", json!({})).await;
    let (status, taken) = hooks.call("POST", "/sources", &json!({"name": "a", "provider": "github"})).await;
    assert_eq!(status, 409, "{taken}");
    let (status, taken) =
        hooks.call("POST", "/sources", &json!({"name": "b", "provider": "none", "topic": "incoming.a"})).await;
    assert_eq!(status, 409, "{taken}");
}

/// What was configured is never the provider's secret, whatever it is asked for.
// proves: R12, D46
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_source_without_its_key_lets_nobody_in_until_its_secret_is_set_anew() {
    let hooks = Hooks::start().await;
    let made = source(&hooks, "hub", "github", json!({})).await;
    let id = made["id"].as_str().unwrap().to_owned();
    let hooks = hooks.restart_without_its_key().await;
    let url = format!("{}{}", hooks.api.base(), made["ingressPath"].as_str().unwrap());
    let (status, answer) = send(&url, "application/json", &headers(&[]), b"{}").await.unwrap();
    assert_eq!(status, 503, "{answer}");
    let shown = hooks.get(&format!("/sources/{id}")).await;
    assert!(shown["secretUnreadable"].is_string(), "{shown}");
    let (status, anew) = hooks.call("POST", &format!("/sources/{id}/rotate-secret"), &json!({})).await;
    assert_eq!((status, &anew["secretUnreadable"]), (200, &Value::Null), "{anew}");
    assert_eq!(send(&url, "application/json", &headers(&[]), b"{}").await.unwrap().0, 401);
}
