//! A channel that feeds connections, and messages of topics that run a channel's service.

use serde_json::{Value, json};

use crate::harness::{Bench, Mirror};
use crate::lab::{ask, by_cid, channel, until_ended, with_mirror};

#[tokio::test]
async fn z41_a_channel_puts_its_request_into_the_queues_of_connections() {
    let (bench, mirror) = tokio::join!(Bench::start(), Mirror::start());
    for (name, url_path) in [("Billing", "/billing/{id}"), ("Archive", "/archive")] {
        let body =
            json!({"name": name, "type": "rest", "host": mirror.address, "url_path": url_path, "use_queue": true});
        assert_eq!(bench.call("POST", "/connections", &body).await.0, 201);
    }
    let settings = json!({"forward_to": ["Billing", "rest:Archive"], "use_queue": true});
    channel(&bench, "Orders", "/orders/{id}", settings).await;
    let answer =
        ask(&bench, "PUT", "/orders/a%20b?x=1", &[("content-type", "image/png"), ("x-lab", "7")], b"\xff").await;
    let cid = answer.json()["cid"].as_str().unwrap().to_owned();
    mirror.until(2).await;
    let mut seen: Vec<_> = mirror.requests().iter().map(|got| got.uri.to_string()).collect();
    seen.sort();
    assert_eq!(seen, ["/archive?x=1", "/billing/a%20b?x=1"]);
    for got in mirror.requests() {
        assert_eq!((got.method.as_str(), &got.body[..], got.header("x-lab")), ("PUT", &b"\xff"[..], Some("7")));
        assert_eq!(
            (got.header("x-postrider-cid"), got.header("content-type")),
            (Some(cid.as_str()), Some("image/png"))
        );
    }
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while by_cid(&bench, &cid).await.iter().filter(|delivery| delivery["status"] == "SUCCESS").count() < 3 {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", by_cid(&bench, &cid).await);
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
    // One of them is missing: the other has its request all the same, and once only when it is retried.
    bench.call("DELETE", "/connections/Archive", &Value::Null).await;
    let cid = ask(&bench, "PUT", "/orders/2", &[], b"2").await.json()["cid"].as_str().unwrap().to_owned();
    let dead = until_ended(&bench, &cid, "DLQ").await;
    assert!(dead["error"].as_str().unwrap().contains("`Archive`"), "{dead}");
    let body =
        json!({"name": "Archive", "type": "rest", "host": mirror.address, "url_path": "/archive", "use_queue": true});
    assert_eq!(bench.call("POST", "/connections", &body).await.0, 201);
    let id = dead["id"].as_str().unwrap();
    assert_eq!(bench.call("POST", &format!("/deliveries/{id}/retry"), &Value::Null).await.0, 200);
    mirror.until(4).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let billed = mirror.requests().iter().filter(|got| got.uri.path() == "/billing/2").count();
    assert_eq!((billed, mirror.count()), (1, 4), "what a queue has is not put there again");
    // Sent again by hand, it is another request for both.
    let id = by_cid(&bench, &cid)
        .await
        .iter()
        .find(|row| row["origin"] == "channel" && row["connection"] == "Orders")
        .unwrap()["id"]
        .clone();
    let (status, answer) =
        bench.call("POST", &format!("/deliveries/{}/resend", id.as_str().unwrap()), &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    mirror.until(6).await;
}

#[tokio::test]
async fn p02_a_topic_pushes_to_a_channels_service_and_to_a_service() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders", json!({"service": "mirror", "use_queue": true})).await;
    for (connection, kind) in [("Orders", "channel_rest"), ("mirror", "service")] {
        let subscription = json!({"connection": connection, "type": kind, "eventType": "order.*"});
        let (status, answer) = bench.call("POST", "/subscriptions", &subscription).await;
        assert_eq!(status, 201, "{answer}");
    }
    let (status, answer) = bench.call("POST", "/events", &json!({"type": "order.created", "data": {"id": 5}})).await;
    assert_eq!((status, &answer["deliveriesCreated"]), (201, &json!(2)), "{answer}");
    mirror.until(2).await;
    let channels: Vec<_> =
        mirror.requests().iter().map(|got| got.header("x-postrider-channel").map(str::to_owned)).collect();
    assert!(channels.contains(&Some("Orders".to_owned())) && channels.contains(&None), "{channels:?}");
    for got in mirror.requests() {
        assert_eq!((&got.body[..], got.method.as_str()), (&b"{\"id\":5}"[..], "POST"));
        assert!(got.header("x-postrider-msg-id").is_some_and(|id| id.starts_with("msg_")));
    }
}
