//! What holds webhooks back, and how it shows, with the real binary: limits, an open circuit, order; and webhooks by command line and file.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod cli_parts;
mod harness;

use cli_parts::Cli;
use harness::{Hooks, KEY, Remote};
use serde_json::{Value, json};

fn quick() -> Value {
    json!({"retryDelays": [1], "jitter": false})
}

fn with(mut keys: Value, more: Value) -> Value {
    keys.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    keys
}

async fn waiting(hooks: &Hooks) -> Vec<Value> {
    hooks.get("/deliveries?status=PENDING").await["data"].as_array().unwrap().clone()
}

/// Looks until it is so.
async fn until(hooks: &Hooks, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let found = waiting(hooks).await;
        if holds(&found) {
            return found;
        }
        assert!(tokio::time::Instant::now() < deadline, "not yet: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

// proves: R04
#[tokio::test(flavor = "multi_thread")]
async fn r04_the_reason_shows_on_the_delivery_and_no_attempt_is_used() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let slow =
        hooks.endpoint(&format!("{}/slow", remote.address), with(quick(), json!({"rateLimitPerSecond": 1}))).await;
    hooks.subscribe(&slow, "slow.*", json!({})).await;
    for n in 0..4 {
        hooks.publish("slow.one", json!(n)).await;
    }
    let found = until(&hooks, |all| all.iter().any(|one| one["deferredBy"] == "endpoint_rate_limit")).await;
    for one in &found {
        assert_eq!((&one["attempts"], &one["behind"]), (&json!(0), &Value::Null), "{one}");
    }
    remote.until_received(4).await;
    let broken = format!("{}/500/500/500/500/500/500/500/500", remote.address);
    let keys = json!({"breakerFailures": 2, "breakerSeconds": 600, "concurrency": 1, "maxAttempts": 9});
    let broken = hooks.endpoint(&broken, with(quick(), keys)).await;
    hooks.subscribe(&broken, "broken.*", json!({})).await;
    for n in 0..3 {
        hooks.publish("broken.one", json!(n)).await;
    }
    let open = |all: &[Value]| all.len() == 3 && all.iter().all(|one| one["deferredBy"] == "breaker");
    let found = until(&hooks, open).await;
    let attempts: u64 = found.iter().map(|one| one["attempts"].as_u64().unwrap()).sum();
    assert_eq!(attempts, 2);
    assert!(found.iter().all(|one| one["deferredUntil"].is_string()), "{found:?}");
    let cli = Cli { server: hooks.api.base.clone(), key: KEY.to_owned() };
    let shown = cli.done(&["deliveries", "show", found[0]["id"].as_str().unwrap()]).await.stdout;
    assert!(shown.contains("held back by") && shown.contains("breaker"), "{shown}");
    // Another address is given another chance at once.
    let path = format!("/endpoints/{}", broken["id"].as_str().unwrap());
    let (status, answer) = hooks.call("PATCH", &path, &json!({"url": format!("{}/mended", remote.address)})).await;
    assert_eq!(status, 200, "{answer}");
    until(&hooks, <[Value]>::is_empty).await;
}

// proves: R15
#[tokio::test(flavor = "multi_thread")]
async fn r15_order_by_key_holds_over_kill_nine_and_shows_what_waits_for_what() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let keys =
        json!({"ordered": true, "orderingKey": "/customer", "payload": "data", "retryDelays": [2], "jitter": false});
    let endpoint = hooks.endpoint(&format!("{}/503", remote.address), keys).await;
    assert_eq!((&endpoint["policy"]["ordered"], &endpoint["policy"]["concurrency"]), (&json!(true), &json!(5)));
    hooks.subscribe(&endpoint, "order.*", json!({})).await;
    for (customer, n) in [(7, 1), (7, 2), (8, 1), (7, 3)] {
        hooks.publish("order.placed", json!({"customer": customer, "n": n})).await;
    }
    let behind = |all: &[Value]| all.iter().filter(|one| one["deferredBy"] == "ordering").count() == 2;
    let found = until(&hooks, behind).await;
    let first = found.iter().find(|one| one["attempts"] == 1).unwrap();
    for one in found.iter().filter(|one| one["deferredBy"] == "ordering") {
        assert_eq!(one["behind"], first["id"]);
    }
    let hooks = hooks.kill_and_restart().await;
    until(&hooks, <[Value]>::is_empty).await;
    let of_seven: Vec<Value> =
        remote.receipts().iter().map(harness::Receipt::json).filter(|body| body["customer"] == 7).collect();
    let mut order: Vec<u64> = of_seven.iter().map(|body| body["n"].as_u64().unwrap()).collect();
    order.dedup();
    assert_eq!(order, [1, 2, 3], "{of_seven:?}");
}

// proves: P04
#[tokio::test(flavor = "multi_thread")]
async fn p04_webhooks_by_command_line_and_file() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let cli = Cli { server: hooks.api.base.clone(), key: KEY.to_owned() };
    let url = format!("url={}/in", remote.address);
    let made = cli.done(&["endpoints", "create", &url, "name=shop", "rateLimitPerSecond=50", "--json"]).await.json();
    let id = made["id"].as_str().unwrap().to_owned();
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "shown once");
    assert!(!cli.done(&["endpoints", "show", &id]).await.stdout.contains("whsec_"), "and never again");
    let to = format!("endpointId={id}");
    cli.done(&["subscriptions", "create", &to, "name=orders", "eventType=order.*", "orderingEnabled=true"]).await;
    let listed = cli.done(&["subscriptions", "list", "--endpoint", &id]).await.stdout;
    assert!(listed.contains("orders") && listed.contains("order.*"), "{listed}");
    let ran =
        cli.run_with(&["events", "publish", "order.placed", "--body", "-", "--cid", "my-own-cid"], b"{\"n\": 1}").await;
    assert!(ran.code == 0 && ran.stdout.contains("published, 1 deliveries"), "{ran:?}");
    let lines = b"{\"type\": \"order.placed\", \"data\": 2}\n{\"type\": \"a..b\", \"data\": 3}\n";
    let ran = cli.run_with(&["events", "publish", "--batch", "-"], lines).await;
    assert!(ran.code == 4 && ran.stdout.contains("1 stored, 1 refused") && ran.stderr.contains("line 2"), "{ran:?}");
    remote.until_received(2).await;
    let sent = hooks.get("/deliveries?cid=my-own-cid").await;
    assert_eq!(sent["data"].as_array().unwrap().len(), 1, "{sent}");
    assert_eq!(cli.run(&["endpoints", "test", &id]).await.code, 0);
    let off = cli.done(&["endpoints", "disable", &id, "--json"]).await.json();
    assert_eq!(off["enabled"], false);
    assert_eq!(cli.done(&["endpoints", "enable", &id, "--json"]).await.json()["enabled"], true);
    assert!(cli.done(&["endpoints", "health", &id]).await.stdout.contains("failedInARow"));
    let rotated = cli.done(&["endpoints", "rotate-secret", &id, "--overlap", "0", "--json"]).await.json();
    assert_ne!(rotated["secret"], made["secret"]);
    assert_eq!(cli.run(&["endpoints", "show", "ep_00000000000000000000000000"]).await.code, 3);
    let refused = cli.run(&["endpoints", "set", &id, "orderingKey=customer"]).await;
    assert!(refused.code == 4 && refused.stderr.contains("orderingKey"), "{refused:?}");

    // The file says the same again, and changes what it is told to.
    let exported = cli.done(&["export"]).await.stdout;
    for line in [
        "webhook_endpoint:",
        "webhook_subscription:",
        "endpoint: shop",
        "event_type: \"order.*\"",
        "ordering_enabled: true",
    ] {
        assert!(exported.contains(line), "{line}: {exported}");
    }
    assert!(!exported.contains("whsec_"));
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hooks.yaml").display().to_string();
    std::fs::write(&file, &exported).unwrap();
    let again = cli.done(&["import", &file]).await.stdout;
    assert!(again.contains("0 created, 0 changed"), "{again}");
    let more = exported.replace("rate_limit_per_second: 50", "rate_limit_per_second: 5")
        + "  - name: audit\n    endpoint: shop\n    event_type: audit.**\n    transformation: '{n: .data}'\n";
    std::fs::write(&file, more).unwrap();
    let changed = cli.done(&["import", &file]).await.stdout;
    assert!(changed.contains("1 created, 1 changed"), "{changed}");
    assert_eq!(hooks.get(&format!("/endpoints/{id}")).await["rateLimitPerSecond"], 5);
    std::fs::write(&file, "webhook_subscription:\n  - {name: x, endpoint: nobody, event_type: 'a.*'}\n").unwrap();
    let refused = cli.run(&["import", &file]).await;
    assert!(refused.code == 4 && refused.stderr.contains("nobody"), "{refused:?}");
    std::fs::write(&file, "webhook_endpoint:\n  - {name: inside, url: 'http://10.0.0.1/'}\n").unwrap();
    let refused = cli.run(&["import", &file]).await;
    assert!(refused.code != 0 && refused.stderr.contains("10.0.0.1"), "{refused:?}");
}
