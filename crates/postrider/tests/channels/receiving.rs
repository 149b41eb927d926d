//! What comes in, as it arrived, and what its caller is told.

use serde_json::{Value, json};

use crate::harness::Mirror;
use crate::lab::{ask, by_cid, channel, post, service, until_ended, with_mirror};

#[tokio::test]
async fn z40_with_the_queue_off_the_services_response_is_the_answer() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders ü", "/orders/{id}/{what}", json!({"service": "mirror", "method": "POST GET"})).await;
    let headers =
        [("x-lab", "zwei"), ("content-type", "image/png"), ("x-postrider-cid", "forged"), ("x-api-key", "theirs")];
    let answer = ask(&bench, "POST", "/orders/a%2Fb/x?q=1&q=%20&z", &headers, b"\x00\xff{").await;
    assert_eq!((answer.status, answer.text().as_str(), answer.header("x-remote")), (200, "answer 1", "yes"));
    assert_eq!(answer.headers.get_all("set-cookie").iter().count(), 2, "whatever the service says");
    assert_eq!(answer.header("content-security-policy"), "sandbox", "the dashboard is at this address too");
    let got = mirror.last();
    assert_eq!((got.method.as_str(), got.uri.to_string().as_str()), ("POST", "/orders/a%2Fb/x?q=1&q=%20&z"));
    assert_eq!(&got.body[..], b"\x00\xff{", "byte for byte");
    assert_eq!((got.header("x-lab"), got.header("content-type")), (Some("zwei"), Some("image/png")));
    assert_eq!(got.header("x-api-key"), Some("theirs"), "nothing here was let in by it");
    assert_eq!(got.header("x-postrider-channel"), Some("Orders%20%C3%BC"));
    assert_eq!((got.header("x-postrider-project"), got.header("x-postrider-attempt")), (Some("default"), Some("1")));
    assert_eq!(got.header("x-postrider-path-params"), Some("id=a%2Fb&what=x"));
    assert_eq!((got.header("x-postrider-data-format"), got.header("content-length")), (Some("json"), Some("3")));
    assert_eq!(got.header("x-postrider-msg-id"), None, "nobody could look for it");
    let cid = got.header("x-postrider-cid").unwrap();
    assert_eq!(answer.header("x-postrider-cid"), cid);
    assert_ne!(cid, "forged");
    assert_eq!(until_ended(&bench, cid, "SUCCESS").await["service"], "mirror");
    let read = ask(&bench, "GET", "/orders/1/status", &[], b"").await;
    assert_eq!((read.status, mirror.last().method.as_str()), (200, "GET"));
    let refused = ask(&bench, "DELETE", "/orders/1/x", &[], b"").await;
    assert_eq!((refused.status, refused.header("allow")), (405, "GET,POST"));
}

#[tokio::test]
async fn z40_a_status_of_the_service_is_the_callers_and_none_is_502_or_504() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Any", "/any/status/{code}", json!({"service": "mirror"})).await;
    channel(&bench, "Hang", "/any/hang", json!({"service": "mirror", "service_timeout_seconds": 0.3})).await;
    for status in [201, 204, 404, 422, 500, 503] {
        assert_eq!(post(&bench, &format!("/any/status/{status}"), "{}").await.status, status);
    }
    let late = post(&bench, "/any/hang", "{}").await;
    assert_eq!((late.status, late.json()["status"].as_u64()), (504, Some(504)));
    assert_eq!(late.json()["cid"], late.header("x-postrider-cid"));
    service(&bench, "down", "http://127.0.0.1:1").await;
    channel(&bench, "Down", "/down", json!({"service": "down"})).await;
    channel(&bench, "Nobody", "/nobody", json!({"service": "not.there"})).await;
    for path in ["/down", "/nobody"] {
        let none = post(&bench, path, "{}").await;
        assert_eq!(none.status, 502, "{}", none.text());
        assert!(!none.text().contains("127.0.0.1"), "where it was sent is nobody's business: {}", none.text());
    }
    assert_eq!(mirror.count(), 7);
}

#[tokio::test]
async fn z41_with_the_queue_on_it_is_acknowledged_at_once_and_runs_later_as_it_arrived() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Orders", "/orders/{id}", json!({"service": "mirror", "use_queue": true})).await;
    let (status, _) = bench.call("POST", "/channels/Orders/pause", &Value::Null).await;
    assert_eq!(status, 200);
    let answer = ask(&bench, "PUT", "/orders/7?a=b", &[("x-lab", "1")], b"\xff\x00").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
    let cid = answer.json()["cid"].as_str().unwrap().to_owned();
    assert_eq!(
        answer.text(),
        format!("{{\"is_ok\": true, \"cid\": \"{cid}\"}}"),
        "as the documentation of the platform shows it"
    );
    assert_eq!(answer.header("x-postrider-cid"), cid);
    let (_, page) = bench.call("GET", "/channels/Orders/queue", &Value::Null).await;
    let row = &page["data"][0];
    assert_eq!((&row["cid"], &row["origin"]), (&json!(cid), &json!("channel")));
    assert_eq!(row["params"], json!([["id", "7"]]));
    assert_eq!(mirror.count(), 0, "nothing runs while it is paused");
    bench.call("POST", "/channels/Orders/resume", &Value::Null).await;
    let ended = until_ended(&bench, &cid, "SUCCESS").await;
    let got = mirror.last();
    assert_eq!(
        (got.method.as_str(), got.uri.to_string().as_str(), &got.body[..]),
        ("PUT", "/orders/7?a=b", &b"\xff\x00"[..])
    );
    assert_eq!(got.header("x-postrider-cid"), Some(cid.as_str()), "the run goes under the id that was acknowledged");
    assert_eq!(got.header("x-postrider-msg-id"), ended["id"].as_str());
    assert_eq!((got.header("x-lab"), got.header("x-postrider-attempt")), (Some("1"), Some("1")));
    // A queue takes whatever comes, also what only reads.
    let read = ask(&bench, "GET", "/orders/8", &[], b"").await;
    assert_eq!(read.json()["is_ok"], true);
    mirror.until(2).await;
}

#[tokio::test]
async fn z41_a_run_that_fails_is_retried_and_dead_lettered_under_the_channels_settings() {
    let (bench, mirror) = with_mirror().await;
    let settings = json!({"service": "mirror", "use_queue": true, "max_retries": 2, "retry_sleep_time": 1, "retry_backoff_multiplier": 0});
    channel(&bench, "Failing", "/x/status/{code}", settings).await;
    channel(&bench, "Later", "/later", json!({"service": "later", "use_queue": true})).await;
    let cid = post(&bench, "/x/status/500", "{\"n\": 1}").await.json()["cid"].as_str().unwrap().to_owned();
    let dead = until_ended(&bench, &cid, "DLQ").await;
    assert_eq!((&dead["attempts"], &dead["rounds"], &dead["failure"]), (&json!(3), &json!(1), &json!("status")));
    let attempts: Vec<_> =
        mirror.requests().iter().map(|got| got.header("x-postrider-attempt").unwrap().to_owned()).collect();
    assert_eq!(attempts, ["1", "2", "3"], "each run says which one it is");
    // A service that is not there yet: its runs fail until it is.
    let cid = post(&bench, "/later", "{\"n\": 2}").await.json()["cid"].as_str().unwrap().to_owned();
    let dead = until_ended(&bench, &cid, "DLQ").await;
    assert!(dead["error"].as_str().unwrap().contains("no service `later`"), "{dead}");
    let (_, page) = bench.call("GET", "/channels/Later/dlq", &Value::Null).await;
    assert_eq!(page["data"].as_array().unwrap().len(), 1);
    service(&bench, "later", &mirror.address).await;
    let id = dead["id"].as_str().unwrap();
    let (status, answer) = bench.call("POST", &format!("/deliveries/{id}/retry"), &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    until_ended(&bench, &cid, "SUCCESS").await;
    assert_eq!(&mirror.last().body[..], b"{\"n\": 2}");
}

#[tokio::test]
async fn z43_a_fixed_acknowledgment_is_sent_as_it_is() {
    let (bench, _mirror) = with_mirror().await;
    for (at, (text, content_type)) in [
        (" {\"took\": true}", "application/json"),
        ("[1]", "application/json"),
        ("<took/>", "application/xml"),
        ("took {cid}", "text/plain; charset=utf-8"),
    ]
    .into_iter()
    .enumerate()
    {
        let settings = json!({"service": "mirror", "use_queue": true, "queue_response": text});
        channel(&bench, &format!("c{at}"), &format!("/fixed/{at}"), settings).await;
        let answer = post(&bench, &format!("/fixed/{at}"), "x").await;
        assert_eq!((answer.status, answer.text().as_str(), answer.header("content-type")), (200, text, content_type));
        assert_eq!(by_cid(&bench, answer.header("x-postrider-cid")).await.len(), 1);
    }
}

#[tokio::test]
async fn d15_a_key_makes_one_run_of_a_request_and_its_repeats() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Queued", "/queued", json!({"service": "mirror", "use_queue": true})).await;
    channel(&bench, "Direct", "/direct", json!({"service": "mirror"})).await;
    for path in ["/queued", "/direct"] {
        let key = [("idempotency-key", "order-17")];
        let first = ask(&bench, "POST", path, &key, b"1").await;
        let again = ask(&bench, "POST", path, &key, b"1").await;
        assert_eq!((first.status, again.status), (200, 200), "{}", again.text());
        assert_eq!(first.text(), again.text(), "{path}: the first answer again");
        assert_eq!(first.header("x-postrider-cid"), again.header("x-postrider-cid"));
        assert_eq!(ask(&bench, "POST", path, &key, b"2").await.status, 409, "another request");
        assert_eq!(ask(&bench, "POST", &format!("{path}?a=1"), &key, b"1").await.status, 409);
    }
    mirror.until(2).await;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(mirror.count(), 2, "each ran once");
}

#[tokio::test]
async fn z41_a_caller_who_leaves_takes_nothing_along() {
    let (bench, mirror) = with_mirror().await;
    channel(&bench, "Queued", "/queued", json!({"service": "mirror", "use_queue": true})).await;
    channel(&bench, "Direct", "/direct/slow", json!({"service": "mirror"})).await;
    for path in ["/queued", "/direct/slow"] {
        let mut stream = bench.connect().await;
        let request = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nleft");
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(150)).await;
        drop(stream);
    }
    mirror.until(2).await;
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let (_, page) = bench.call("GET", "/deliveries?status=SUCCESS", &Value::Null).await;
        if page["data"].as_array().unwrap().len() == 2 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{page}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn d16_the_root_can_be_a_channel_and_the_servers_own_paths_cannot() {
    let (bench, _mirror): (_, Mirror) = with_mirror().await;
    channel(&bench, "Root", "/", json!({"service": "mirror"})).await;
    assert_eq!(ask(&bench, "GET", "/", &[], b"").await.text(), "answer 1");
    assert_eq!(ask(&bench, "GET", "/health/ready", &[], b"").await.status, 200);
    assert_eq!(ask(&bench, "GET", "/nothing", &[], b"").await.status, 401, "what is no channel's is the API's");
    for path in ["/api/x", "/health", "/metrics", "/docs/a", "/openapi.json", "/ingress/a", "/ui"] {
        let (status, answer) = bench
            .call("POST", "/channels", &json!({"name": "x", "type": "rest", "service": "a", "url_path": path}))
            .await;
        assert_eq!((status, &answer["errors"][0]["field"]), (422, &json!("url_path")), "{path}: {answer}");
    }
}
