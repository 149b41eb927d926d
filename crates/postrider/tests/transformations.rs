//! Transformations of the real binary, in its real workers: what is sent, what is refused, and what a hostile program does to others (nothing).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::Duration;

use harness::{Hooks, Remote, verified};
use serde_json::{Value, json};

const ENDLESS: &str = "def f: f; f";

async fn preview(hooks: &Hooks, program: &str, body: &Value) -> (u16, Value) {
    hooks.call("POST", "/transformations/preview", &json!({"program": program, "body": body})).await
}

// proves: R13, R16, D21
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_the_live_transformation_gives_is_sent_and_signed() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let quick = json!({"retryDelays": [1], "jitter": false});
    let endpoint = hooks.endpoint(&format!("{}/503/503/200", remote.address), quick).await;
    let first = json!({"transformation": "{text: \"\\(.type): \\(.data.total)\", n: 1}"});
    let subscription = hooks.subscribe(&endpoint, "**", first.clone()).await;
    assert_eq!(subscription["transformation"], first["transformation"]);
    let event = hooks.publish("bill.paid", json!({"total": 7})).await;
    let raw = remote.until_received(1).await.remove(0);
    assert_eq!(raw.json(), json!({"text": "bill.paid: 7", "n": 1}));
    let path = format!("/subscriptions/{}", subscription["id"].as_str().unwrap());
    let (status, answer) = hooks.call("PATCH", &path, &json!({"transformation": "{n: 2}"})).await;
    assert_eq!(status, 200, "{answer}");
    let delivery = hooks.until_status(&event, "SUCCESS").await.remove(0);
    assert_eq!(delivery["attempts"], 3);
    let receipts = remote.receipts();
    assert_eq!(receipts.last().unwrap().json(), json!({"n": 2}), "the live one, not the one of its creation");
    for receipt in &receipts {
        let said = verified(endpoint["secret"].as_str(), None, receipt).await;
        assert_eq!(
            said,
            json!({"npm_standardwebhooks": true, "npm_svix": true, "pypi_standardwebhooks": true}),
            "the signature covers what is sent"
        );
    }
}

// proves: R13, D21
#[tokio::test(flavor = "multi_thread")]
async fn r13_what_waits_of_a_deleted_subscription_never_goes_out_raw() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let slow = json!({"retryDelays": [2], "jitter": false});
    let endpoint = hooks.endpoint(&format!("{}/503/200", remote.address), slow).await;
    let subscription = hooks.subscribe(&endpoint, "**", json!({"transformation": "{n: .data.n}"})).await;
    let event = hooks.publish("a", json!({"n": 1, "secret": "sesame"})).await;
    remote.until_received(1).await;
    let path = format!("/subscriptions/{}", subscription["id"].as_str().unwrap());
    assert_eq!(hooks.call("DELETE", &path, &Value::Null).await.0, 204);
    let hooks = hooks.kill_and_restart().await;
    hooks.until_status(&event, "SUCCESS").await;
    for receipt in remote.receipts() {
        assert_eq!(receipt.json(), json!({"n": 1}));
    }
    assert_eq!(remote.receipts().len(), 2);
}

// proves: R13, D30
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_failed_transformation_spends_a_rung_and_nothing_goes_out_raw() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let keys = json!({"retryDelays": [1], "jitter": false, "maxAttempts": 20});
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), keys).await;
    let subscription = hooks.subscribe(&endpoint, "**", json!({"transformation": ".data.secret.x"})).await;
    let event = hooks.publish("a", json!({"secret": "sesame"})).await;
    let waiting = hooks
        .until(&event, |delivery| delivery["attempts"].as_u64() >= Some(2) && delivery["status"] == "PENDING")
        .await
        .remove(0);
    assert_eq!(waiting["failure"], "transform_failed", "{waiting}");
    assert!(remote.receipts().is_empty(), "nothing goes out");
    let attempts = hooks.get(&format!("/deliveries/{}/attempts", waiting["id"].as_str().unwrap())).await;
    assert_eq!(attempts["data"][0]["failure"], "transform_failed");
    assert!(!attempts.to_string().contains("sesame"), "no part of the body: {attempts}");
    let path = format!("/subscriptions/{}", subscription["id"].as_str().unwrap());
    assert_eq!(hooks.call("PATCH", &path, &json!({"transformation": ".data | keys"})).await.0, 200);
    hooks.until_status(&event, "SUCCESS").await;
    assert_eq!(remote.receipts()[0].json(), json!(["secret"]));
}

// proves: R13
#[tokio::test(flavor = "multi_thread")]
async fn r13_hostile_programs_harm_neither_the_server_nor_other_deliveries() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/bad", remote.address), json!({"maxAttempts": 1})).await;
    let other = hooks.endpoint(&format!("{}/good", remote.address), json!({})).await;
    hooks.subscribe(&other, "good", json!({})).await;
    let hostile = [
        (ENDLESS, "transform_time_max"),
        ("[range(1e9)]", "transform_"),
        ("\"0123456789\" * 20000000 | length", "transform_memory_max"),
        ("def f: 1 + f; f", "transform_"),
        ("\"0123456789\" * 900000", "transform_output_bytes_max"),
        (".data[]", "exactly one"),
        ("empty", "exactly one"),
        ("halt_error", "failed on this body"),
        ("error(\"x\")", "failed on this body"),
    ];
    let mut events = Vec::new();
    for (number, (program, _)) in hostile.iter().enumerate() {
        let topic = format!("bad{number}");
        hooks.subscribe(&endpoint, &topic, json!({"transformation": program})).await;
        events.push(hooks.publish(&topic, json!([1, 2])).await);
    }
    let good = hooks.publish("good", json!(1)).await;
    hooks.until_status(&good, "SUCCESS").await;
    for (event, (program, words)) in events.iter().zip(hostile) {
        let ended = hooks.until(event, |delivery| delivery["failure"] == "transform_failed").await.remove(0);
        let attempts = hooks.get(&format!("/deliveries/{}/attempts", ended["id"].as_str().unwrap())).await;
        let error = attempts["data"][0]["error"].as_str().unwrap().to_owned();
        assert!(error.contains(words), "{program}: {error}");
    }
    assert!(remote.receipts().iter().all(|receipt| receipt.path == "/good"), "nothing goes out raw");
    assert_eq!(preview(&hooks, ".a", &json!({"a": 1})).await, (200, json!({"output": 1})));
}

// proves: R13
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_program_is_checked_when_it_is_saved_and_can_be_tried_before() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let endpoint = hooks.endpoint(&format!("{}/in", remote.address), json!({})).await;
    let mut wish = json!({"endpointId": endpoint["id"], "eventType": "a", "transformation": ".data | nothing"});
    let (status, answer) = hooks.call("POST", "/subscriptions", &wish).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("transformation")), "{answer}");
    assert!(answer.to_string().contains("undefined filter `nothing` in line 1, column 9"), "{answer}");
    for unusable in [json!(" "), json!(7), json!("1+".repeat(40_000))] {
        wish["transformation"] = unusable;
        let (status, answer) = hooks.call("POST", "/subscriptions", &wish).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("transformation")), "{answer}");
    }
    let event = json!({"type": "bill.paid", "data": {"n": 1}});
    let wish = json!({"program": "{type, n: .data.n, id: (.id | startswith(\"evt_\"))}", "event": event});
    let tried = hooks.call("POST", "/transformations/preview", &wish).await;
    assert_eq!(tried, (200, json!({"output": {"type": "bill.paid", "n": 1, "id": true}})));
    let seen = preview(&hooks, "env | keys", &Value::Null).await;
    assert_eq!(seen, (200, json!({"output": []})), "nothing of ours");
    for (program, words) in [
        (".a.b", "index"),
        (".[", "closing bracket at its end"),
        (ENDLESS, "transform_time_max"),
        ("include \"/etc/passwd\"; .", "line 1"),
    ] {
        let (status, answer) = preview(&hooks, program, &json!({"a": 1})).await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("program")), "{program}: {answer}");
        assert!(answer.to_string().contains(words), "{program}: {answer}");
    }
    let both = json!({"program": ".", "body": 1, "event": event});
    for wish in [both, json!({"program": "."}), json!({"body": 1})] {
        assert_eq!(hooks.call("POST", "/transformations/preview", &wish).await.0, 422, "{wish}");
    }
}

/// The workers of this server, by the system's own list.
fn workers(server: u32) -> Vec<String> {
    let mut workers = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let pid = entry.file_name().to_string_lossy().into_owned();
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)).map(str::to_owned);
        if parent == Some(server.to_string()) {
            workers.push(pid);
        }
    }
    workers
}

// proves: R13
#[tokio::test(flavor = "multi_thread")]
async fn r13_a_worker_that_is_killed_fails_one_run_and_the_next_one_works() {
    let hooks = Hooks::start().await;
    assert!(workers(hooks.server_pid()).is_empty(), "none is started before it is needed");
    assert_eq!(preview(&hooks, ".", &json!(1)).await.0, 200);
    // One that waits is replaced unseen.
    let killed = workers(hooks.server_pid());
    assert_eq!(killed.len(), 1);
    let environment = std::fs::read(format!("/proc/{}/environ", killed[0])).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("POSTRIDER"), "it is told no key");
    assert!(std::process::Command::new("kill").args(["-9", &killed[0]]).status().unwrap().success());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
    while workers(hooks.server_pid()) == killed {
        assert!(tokio::time::Instant::now() < deadline);
        preview(&hooks, ".", &json!(2)).await;
    }
    // One that is busy takes its program's run with it.
    let body = json!(1);
    let (busy, ()) = tokio::join!(preview(&hooks, ENDLESS, &body), async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        for pid in workers(hooks.server_pid()) {
            std::process::Command::new("kill").args(["-9", &pid]).status().unwrap();
        }
    });
    assert!(matches!(busy.0, 422 | 503), "{busy:?}");
    assert_eq!(preview(&hooks, ".", &json!(3)).await, (200, json!({"output": 3})));
}
