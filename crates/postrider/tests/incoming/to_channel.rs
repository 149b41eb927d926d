//! A source whose webhooks run a channel's service.

use serde_json::json;

use crate::harness::{Hooks, Remote};
use crate::sender::{address, headers, send, source};

// proves: R12, P02
#[tokio::test(flavor = "multi_thread")]
async fn r12_a_webhook_that_is_pushed_to_a_channel_tells_its_service_where_it_came_from() {
    let (hooks, remote) = tokio::join!(Hooks::start(), Remote::start());
    let made = source(&hooks, "shop", "none", json!({"idHeader": "X-Shop-Id"})).await;
    let service = json!({"name": "orders", "address": remote.address});
    assert_eq!(hooks.call("POST", "/services", &service).await.0, 201);
    let channel =
        json!({"name": "Orders", "type": "rest", "url_path": "/orders", "service": "orders", "use_queue": true});
    assert_eq!(hooks.call("POST", "/channels", &channel).await.0, 201);
    let to = json!({"sourceId": made["id"], "connection": "Orders", "type": "channel_rest"});
    let (status, to) = hooks.call("POST", "/destinations", &to).await;
    assert_eq!(status, 201, "{to}");
    let url = format!("{}?shop=7&b=%20", address(&hooks, &made));
    let sent = headers(&[("x-shop-id", "order-1"), ("x-topic", "orders"), ("x-postrider-source", "forged")]);
    let (status, accepted) = send(&url, "application/json", &sent, b"{\"n\":1.50}\xff").await.unwrap();
    assert_eq!(status, 202, "{accepted}");
    let receipts = remote.until_received(1).await;
    assert_eq!(&receipts[0].body[..], b"{\"n\":1.50}\xff");
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-topic", "orders"),
        ("x-postrider-channel", "Orders"),
        ("x-postrider-source", made["id"].as_str().unwrap()),
        ("x-postrider-verified", "false"),
        ("x-postrider-query", "shop=7&b=%20"),
        ("idempotency-key", &format!("{}-{}", accepted["eventId"].as_str().unwrap(), to["id"].as_str().unwrap())),
    ] {
        assert_eq!(receipts[0].header(name), value, "{name}: {:?}", receipts[0].headers);
    }
    // The provider's own resend is none of the service's business.
    let (status, again) = send(&url, "application/json", &sent, b"{\"n\":1.50}\xff").await.unwrap();
    assert_eq!((status, &again["status"]), (200, &json!("duplicate")));
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(remote.receipts().len(), 1);
}
