//! kill -9 while webhooks come in: what was acknowledged is forwarded to each destination, and what is resent is not stored twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Hooks, Remote};
use crate::sender::{destination, headers, send, source};

const SENDERS: usize = 4;
const ROUNDS: usize = 4;

// proves: R12, Z13
#[tokio::test(flavor = "multi_thread")]
async fn r12_an_acknowledged_webhook_reaches_each_destination_whenever_the_server_is_killed() {
    let (mut hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let made = source(&hooks, "shop", "none", json!({"idHeader": "X-Id"})).await;
    for name in ["a", "b"] {
        destination(&hooks, &made, &format!("{}/{name}", remote.address), json!({"retryDelays": [1]})).await;
    }
    let path = made["ingressPath"].as_str().unwrap().to_owned();
    let acknowledged: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    for round in 0..ROUNDS {
        let url = format!("{}{path}", hooks.api.base());
        let senders = (0..SENDERS).map(|sender| {
            let (url, acknowledged) = (url.clone(), Arc::clone(&acknowledged));
            tokio::spawn(async move {
                for number in 0.. {
                    let id = format!("{round}-{sender}-{number}");
                    match send(&url, "text/plain", &headers(&[("x-id", &id)]), id.as_bytes()).await {
                        Ok((202, _)) => {
                            acknowledged.lock().unwrap().insert(id);
                        }
                        Ok((status, answer)) => panic!("{status} {answer}"),
                        Err(_) => return id,
                    }
                }
                unreachable!()
            })
        });
        let senders: Vec<_> = senders.collect();
        tokio::time::sleep(Duration::from_millis(400)).await;
        hooks = hooks.kill_and_restart().await;
        let url = format!("{}{path}", hooks.api.base());
        for sender in senders {
            // Its provider has had no answer, and sends it again until it has.
            let id = sender.await.unwrap();
            for _ in 0..2 {
                let (status, answer) =
                    send(&url, "text/plain", &headers(&[("x-id", &id)]), id.as_bytes()).await.unwrap();
                assert!(status == 202 || status == 200, "{status} {answer}");
            }
            acknowledged.lock().unwrap().insert(id);
        }
    }
    let wanted = acknowledged.lock().unwrap().clone();
    assert!(wanted.len() > 20, "only {} came in", wanted.len());
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    loop {
        let waiting = hooks.get("/forwards?status=PENDING,PROCESSING&limit=1").await;
        if waiting["data"] == json!([]) {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{waiting}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut got: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for receipt in remote.receipts() {
        let id = String::from_utf8(receipt.body.to_vec()).unwrap();
        let forward = receipt.header("x-postrider-forward").to_owned();
        got.entry(receipt.path).or_default().entry(id).or_default().insert(forward);
    }
    for name in ["/a", "/b"] {
        let ours = &got[name];
        assert_eq!(ours.keys().cloned().collect::<BTreeSet<_>>(), wanted, "{name}: none lost, none made up");
        assert!(ours.values().all(|forwards| forwards.len() == 1), "{name}: each is one forward");
    }
    let mut stored = 0;
    let mut cursor = String::new();
    loop {
        let page = hooks.get(&format!("/events?type=incoming.shop&limit=1000&cursor={cursor}")).await;
        stored += page["data"].as_array().unwrap().len();
        match &page["next_cursor"] {
            Value::String(next) => cursor.clone_from(next),
            _ => break,
        }
    }
    assert_eq!(stored, wanted.len(), "each is stored once");
}
