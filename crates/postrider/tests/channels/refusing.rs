//! What is not let in: nothing of it is stored, and nothing runs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use postrider_core::Secret;
use postrider_wire::signature::SigningKey;
use serde_json::{Value, json};

use crate::harness::Bench;
use crate::lab::{ask, channel, post, until_ended, with_mirror};

async fn security(bench: &Bench, definition: Value) {
    let (status, answer) = bench.call("POST", "/security", &definition).await;
    assert_eq!(status, 201, "{answer}");
}

#[tokio::test]
async fn z46_a_channel_asks_for_a_key_or_a_password_and_keeps_neither() {
    let (bench, mirror) = with_mirror().await;
    security(&bench, json!({"name": "Shop", "type": "basic_auth", "username": "shop", "password": "hunter2ü"})).await;
    security(&bench, json!({"name": "Key", "type": "apikey", "header": "X-Shop-Key", "key": "hunter3"})).await;
    let settings = |security: &str| json!({"service": "mirror", "use_queue": true, "security": security});
    channel(&bench, "Basic", "/basic", settings("Shop")).await;
    channel(&bench, "Keyed", "/keyed", settings("Key")).await;
    let right = format!("Basic {}", STANDARD.encode("shop:hunter2ü"));
    let wrong = format!("Basic {}", STANDARD.encode("shop:hunter2"));
    for headers in [&[][..], &[("authorization", wrong.as_str())], &[("x-shop-key", "hunter3")]] {
        let refused = ask(&bench, "POST", "/basic", headers, b"x").await;
        assert_eq!(
            (refused.status, refused.header("www-authenticate")),
            (401, "Basic realm=\"postrider\", charset=\"UTF-8\"")
        );
    }
    assert_eq!(ask(&bench, "POST", "/keyed", &[("x-shop-key", "hunter2")], b"x").await.status, 401);
    assert_eq!(bench.count().await, 0, "nothing is stored of strangers");
    let basic = ask(&bench, "POST", "/basic", &[("authorization", &right)], b"x").await;
    let keyed =
        ask(&bench, "POST", "/keyed", &[("x-shop-key", "hunter3"), ("x-postrider-authenticated", "forged")], b"x")
            .await;
    for (answer, name) in [(basic, "Shop"), (keyed, "Key")] {
        assert_eq!(answer.status, 200);
        let stored = until_ended(&bench, answer.header("x-postrider-cid"), "SUCCESS").await;
        let shown = stored.to_string();
        assert!(!shown.contains("hunter") && !shown.contains(&right), "{shown}");
        assert!(stored["headers"].to_string().contains("x-postrider-authenticated"), "{shown}");
        let of_this = |got: &crate::harness::Mirrored| got.header("x-postrider-cid") == stored["cid"].as_str();
        let got = mirror.requests().into_iter().find(of_this).unwrap();
        assert!(got.headers.get_all("x-postrider-authenticated").iter().eq([name]), "who was let in, said by us");
        assert_eq!((got.header("authorization"), got.header("x-shop-key")), (None, None));
    }
}

#[tokio::test]
async fn z46_a_webhook_signature_lets_in_what_it_signs() {
    let (bench, mirror) = with_mirror().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    security(&bench, json!({"name": "Sender", "type": "webhook_signature", "secret": secret})).await;
    channel(&bench, "Hooks", "/hooks", json!({"service": "mirror", "use_queue": true, "security": "Sender"})).await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let key = SigningKey::read(&Secret::new(secret)).unwrap();
    let signed = |at: u64, body: &str| key.sign("msg_1", at as i64, body.as_bytes());
    let send = async |at: u64, body: &str, signature: &str| {
        let at = at.to_string();
        let headers = [("webhook-id", "msg_1"), ("webhook-timestamp", at.as_str()), ("webhook-signature", signature)];
        ask(&bench, "POST", "/hooks", &headers, body.as_bytes()).await.status
    };
    assert_eq!(send(now, "{}", &signed(now, "{}")).await, 200);
    assert_eq!(send(now, "{ }", &signed(now, "{}")).await, 401, "other bytes");
    assert_eq!(send(now - 600, "{}", &signed(now - 600, "{}")).await, 401, "too old");
    assert_eq!(post(&bench, "/hooks", "{}").await.status, 401);
    mirror.until(1).await;
    assert_eq!(bench.count().await, 1);
    // A connection cannot be made to send with it, nor a channel to ask for what no caller can show.
    let rest = json!({"name": "a", "type": "rest", "host": "http://h", "url_path": "/", "security": "Sender"});
    assert_eq!(bench.call("POST", "/connections", &rest).await.1["errors"][0]["field"], "security");
    security(&bench, json!({"name": "Envelope", "type": "wss", "username": "u", "password": "p"})).await;
    let soap = json!({"name": "b", "type": "rest", "service": "a", "url_path": "/b", "security": "Envelope"});
    assert_eq!(bench.call("POST", "/channels", &soap).await.1["errors"][0]["field"], "security");
}

#[tokio::test]
async fn z46_a_body_over_the_limit_is_413_and_nothing_is_stored() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders", json!({"service": "mirror", "use_queue": true})).await;
    let large = vec![b'x'; (8 << 20) + 1];
    let refused = ask(&bench, "POST", "/orders", &[], &large).await;
    assert_eq!(refused.status, 413, "{}", refused.text());
    assert!(refused.text().contains("body_bytes_max"));
    let fits = ask(&bench, "POST", "/orders", &[], &large[..8 << 20]).await;
    assert_eq!(fits.status, 200);
    mirror.until(1).await;
    assert_eq!((mirror.last().body.len(), bench.count().await), (8 << 20, 1));
}

#[tokio::test]
async fn d16_an_address_is_one_channels_and_a_name_one_of_its_type() {
    let (bench, _mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders/{id}", json!({"service": "mirror", "method": "POST"})).await;
    let taken = json!({"name": "Other", "type": "rest", "service": "mirror", "url_path": "/orders/{number}"});
    let (status, answer) = bench.call("POST", "/channels", &taken).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("url_path")), "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("channel `Orders`"), "{answer}");
    channel(&bench, "Other", "/orders/{number}", json!({"service": "mirror", "method": "PUT"})).await;
    let (status, _) = bench.call("PATCH", "/channels/Other", &json!({"method": "PUT POST"})).await;
    assert_eq!(status, 422, "nor by a change");
    let again = json!({"name": "Orders", "type": "rest", "service": "mirror", "url_path": "/another"});
    assert_eq!(bench.call("POST", "/channels", &again).await.0, 409);
    let soap = json!({"name": "Orders", "type": "soap", "service": "mirror", "url_path": "/soap"});
    assert_eq!(bench.call("POST", "/channels", &soap).await.0, 201);
    let (status, answer) = bench.call("GET", "/channels/Orders", &Value::Null).await;
    assert_eq!(status, 409, "{answer}");
    assert_eq!(bench.call("GET", "/channels/Orders?type=soap", &Value::Null).await.1["url_path"], "/soap");
    // A channel is none of the connections, and does not make their names ambiguous.
    assert_eq!(bench.call("GET", "/connections/Orders", &Value::Null).await.0, 404);
    bench.connection("Orders", "http://127.0.0.1:1", json!({})).await;
    assert_eq!(bench.call("GET", "/connections/Orders", &Value::Null).await.1["type"], "rest");
    let (_, all) = bench.call("GET", "/connections", &Value::Null).await;
    assert_eq!(all["data"].as_array().unwrap().len(), 1);
    let (status, answer) =
        bench.call("POST", "/connections/Orders/send?type=channel_rest", &json!({"body": "x"})).await;
    assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("connection")), "{answer}");
    assert_eq!(bench.call("DELETE", "/channels/Orders?type=rest", &Value::Null).await.0, 204);
    assert_eq!(post(&bench, "/orders/1", "x").await.status, 405, "the other one takes PUT alone");
}

#[tokio::test]
async fn z16_a_channel_that_is_not_active_asks_to_come_again() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders", json!({"service": "mirror", "use_queue": true, "is_active": false})).await;
    let refused = post(&bench, "/orders", "x").await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    assert_eq!((bench.count().await, mirror.count()), (0, 0));
    bench.call("PATCH", "/channels/Orders", &json!({"is_active": true})).await;
    assert_eq!(post(&bench, "/orders", "x").await.status, 200);
    mirror.until(1).await;
}
