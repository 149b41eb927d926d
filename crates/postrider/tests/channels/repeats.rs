//! Requests that come again, and services that channels still run.

use postrider_core::Secret;
use postrider_wire::signature::SigningKey;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Bench, Mirror};
use crate::lab::{ask, channel, service, with_mirror};
use crate::mllp::{ADT, SOON, connected, framed, heard, listener};

async fn told(port: u16, message: &str) -> String {
    let mut stream = connected(port).await;
    stream.write_all(&framed(message)).await.unwrap();
    heard(&mut stream, SOON).await
}

#[tokio::test]
async fn z41_a_message_that_comes_again_is_acknowledged_the_same_and_runs_once() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let port = listener(&bench, "ADT", json!({"service": "mirror"})).await;
    let first = told(port, ADT).await;
    assert!(first.contains("MSA|AA|MSG1"), "{first}");
    mirror.until(1).await;
    assert_eq!(told(port, ADT).await, first, "the same acknowledgment, byte for byte");
    // It is known as well after a power cut, and by another message under its control id it is not meant.
    let bench = bench.kill_and_restart().await;
    assert_eq!(told(port, ADT).await, first);
    let other = told(port, &ADT.replace("4711", "4712")).await;
    assert!(other.contains("MSA|AA|MSG1") && other != first, "{other}");
    mirror.until(2).await;
    assert_eq!((bench.count().await, mirror.count()), (2, 2));
    // Where repeats are to run, they run.
    let port = listener(&bench, "All", json!({"service": "mirror", "duplicate_seconds": 0})).await;
    for _ in 0..2 {
        assert!(told(port, ADT).await.contains("MSA|AA|MSG1"));
    }
    mirror.until(4).await;
    let refused =
        json!({"name": "x", "type": "mllp", "service": "mirror", "address": "127.0.0.1:1", "duplicate_seconds": -1});
    assert_eq!(bench.call("POST", "/channels", &refused).await.1["errors"][0]["field"], "duplicate_seconds");
}

#[tokio::test]
async fn z41_a_message_without_a_control_id_is_refused_and_not_stored() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let port = listener(&bench, "ADT", json!({"service": "mirror"})).await;
    let refused = told(port, &ADT.replace("MSG1", "")).await;
    assert!(refused.contains("MSA|AE|") && refused.contains("MSH-10"), "{refused}");
    assert_eq!((bench.count().await, mirror.count()), (0, 0));
}

async fn signed(bench: &Bench, key: &SigningKey, body: &str, more: &[(&str, &str)], path: &str) -> (u16, Value) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let (at, signature) = (now.to_string(), key.sign("msg_1", now as i64, body.as_bytes()));
    let mut headers = vec![("webhook-id", "msg_1"), ("webhook-timestamp", &at), ("webhook-signature", &signature)];
    headers.extend(more);
    let answer = ask(bench, "POST", path, &headers, body.as_bytes()).await;
    (answer.status, serde_json::from_slice(&answer.body).unwrap_or_default())
}

#[tokio::test]
async fn z46_a_signed_request_that_is_sent_again_runs_once() {
    let (bench, mirror) = with_mirror().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let definition = json!({"name": "Sender", "type": "webhook_signature", "secret": secret});
    assert_eq!(bench.call("POST", "/security", &definition).await.0, 201);
    let key = SigningKey::read(&Secret::new(secret)).unwrap();
    for (name, path, queued) in [("Hooks", "/hooks", true), ("Direct", "/direct", false)] {
        let before = mirror.count();
        channel(&bench, name, path, json!({"service": "mirror", "use_queue": queued, "security": "Sender"})).await;
        let (status, first) = signed(&bench, &key, "{}", &[], path).await;
        assert_eq!(status, 200, "{first}");
        mirror.until(before + 1).await;
        // Captured, and sent again with headers that nobody signed.
        for more in [&[][..], &[("idempotency-key", "other"), ("x-more", "1")]] {
            assert_eq!(signed(&bench, &key, "{}", more, path).await, (200, first.clone()), "{name}");
        }
        let (status, _) = signed(&bench, &key, "{}", &[], &format!("{path}?x=1")).await;
        assert_eq!(status, 409, "the address is not signed");
        assert_eq!(signed(&bench, &key, "{\"n\":1}", &[], path).await.0, 409, "another body under the same id");
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        assert_eq!(mirror.count(), before + 1, "{name}");
    }
}

#[tokio::test]
async fn z40_a_service_that_channels_run_is_not_deleted_by_accident() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders", json!({"service": "mirror", "use_queue": true})).await;
    let (status, refused) = bench.call("DELETE", "/services/mirror", &Value::Null).await;
    let detail = refused["detail"].as_str().unwrap_or_default();
    assert!(status == 409 && detail.contains("`Orders`") && detail.contains("force"), "{refused}");
    let (status, refused) = bench.call("PATCH", "/services/mirror", &json!({"name": "other"})).await;
    assert!(status == 409 && refused["detail"].as_str().unwrap().contains("`Orders`"), "{refused}");
    assert_eq!(ask(&bench, "POST", "/orders", &[], b"1").await.status, 200);
    mirror.until(1).await;
    // Whoever lets the channel run another one may delete it; and so may whoever says so.
    service(&bench, "next", &mirror.address).await;
    assert_eq!(bench.call("PATCH", "/channels/Orders", &json!({"service": "next"})).await.0, 200);
    assert_eq!(bench.call("DELETE", "/services/mirror", &Value::Null).await.0, 204);
    assert_eq!(bench.call("DELETE", "/services/next?force=true", &Value::Null).await.0, 204);
}
