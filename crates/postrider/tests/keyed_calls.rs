//! Idempotency keys on direct calls against kill -9 (D15).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use harness::{Bench, KEY, Mirror};
use serde_json::{Value, json};

async fn send(bench: &Bench, path: &str, key: &str, body: &str) -> Result<(u16, Value), String> {
    let request = http::Request::builder()
        .method("POST")
        .uri(format!("{}/api/v1/projects/default/connections/c/send", bench.server.address))
        .header("x-api-key", KEY)
        .header("content-type", "application/json")
        .header("idempotency-key", key)
        .body(http_body_util::Full::new(bytes::Bytes::from(json!({"path": path, "body": body}).to_string())))
        .unwrap();
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    let answer = client.request(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let body = http_body_util::BodyExt::collect(answer.into_body()).await.map_err(|error| error.to_string())?;
    Ok((status, serde_json::from_slice(&body.to_bytes()).unwrap()))
}

async fn stage() -> (Bench, Mirror) {
    let (bench, remote) = tokio::join!(Bench::start(), Mirror::start());
    bench.connection("c", &remote.address, json!({"timeout": 20})).await;
    (bench, remote)
}

#[tokio::test(flavor = "multi_thread")]
async fn d15_a_repeat_waits_for_the_first_and_is_told_the_same() {
    let (bench, remote) = stage().await;
    let (first, repeat) = tokio::join!(send(&bench, "/slow", "k", "x"), async {
        remote.until(1).await;
        send(&bench, "/slow", "k", "x").await
    });
    let (first, repeat) = (first.unwrap(), repeat.unwrap());
    assert_eq!((first.0, &first.1["is_ok"], remote.count()), (200, &json!(true), 1), "{first:?}");
    assert_eq!(repeat, first);
    let later = send(&bench, "/slow", "k", "x").await.unwrap();
    assert_eq!((later.0, &later.1["msg_id"], &later.1["response"]["status"]), (200, &first.1["msg_id"], &json!(200)));
    let (status, other) = send(&bench, "/slow", "k", "other").await.unwrap();
    assert_eq!((status, remote.count()), (409, 1), "{other}");
    let refused = send(&bench, "/status/404", "k404", "x").await.unwrap();
    let again = send(&bench, "/status/404", "k404", "x").await.unwrap();
    assert_eq!((&again.1["is_ok"], &again.1["msg_id"], remote.count()), (&json!(false), &refused.1["msg_id"], 2));
    bench.server.stop().await;
}

// proves: D15 (an answered call is remembered over kill -9, and one that was cut off is not made again)
#[tokio::test(flavor = "multi_thread")]
async fn d15_after_kill_nine_a_repeat_is_told_what_is_known() {
    let (bench, remote) = stage().await;
    let done = send(&bench, "/done", "done", "x").await.unwrap();
    assert_eq!((done.0, &done.1["is_ok"]), (200, &json!(true)));
    let address = bench.server.address.clone();
    let cut_off = tokio::spawn(async move {
        let client: hyper_util::client::legacy::Client<_, http_body_util::Full<bytes::Bytes>> =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
        let request = http::Request::builder()
            .method("POST")
            .uri(format!("{address}/api/v1/projects/default/connections/c/send"))
            .header("x-api-key", KEY)
            .header("content-type", "application/json")
            .header("idempotency-key", "cut")
            .body(http_body_util::Full::new(bytes::Bytes::from(json!({"path": "/hang", "body": "x"}).to_string())));
        client.request(request.unwrap()).await.is_err()
    });
    remote.until(2).await;
    let bench = bench.kill_and_restart().await;
    assert!(cut_off.await.unwrap(), "its caller was never told anything");
    for _ in 0..2 {
        let (status, problem) = send(&bench, "/hang", "cut", "x").await.unwrap();
        assert_eq!((status, &problem["code"]), (409, &json!("outcome_unknown")), "{problem}");
        assert!(problem["msg_id"].as_str().unwrap().starts_with("msg_"));
    }
    let repeat = send(&bench, "/done", "done", "x").await.unwrap();
    assert_eq!((repeat.0, &repeat.1["is_ok"], &repeat.1["msg_id"]), (200, &json!(true), &done.1["msg_id"]));
    assert_eq!(remote.count(), 2, "nothing was sent twice");
    assert_eq!(send(&bench, "/done", "new", "x").await.unwrap().0, 200);
    bench.server.stop().await;
}

// proves: D15 (killed right after its answer, a call is still known: the log is written before the caller is told)
#[tokio::test(flavor = "multi_thread")]
async fn d15_no_answered_call_is_forgotten_however_soon_the_kill_comes() {
    let (mut bench, remote) = stage().await;
    for round in 0..5 {
        let key = format!("k{round}");
        let first = send(&bench, "/x", &key, "x").await.unwrap();
        bench = bench.kill_and_restart().await;
        let repeat = send(&bench, "/x", &key, "x").await.unwrap();
        assert_eq!((repeat.0, &repeat.1["msg_id"]), (200, &first.1["msg_id"]), "round {round}: {}", repeat.1);
        assert_eq!(remote.count(), round + 1);
    }
    bench.server.stop().await;
}
