//! What a caller can do wrong, and that neither it nor anybody else loses anything by it.
//!
//! How slow heads, silent connections and answers that nobody reads are bounded is shown on the accept loop itself (`crates/web/tests/server.rs`).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use harness::Act::{Hold, Read, Say};
use harness::{Bench, RawRemote, flags};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const BODY_BYTES_MAX: usize = 8 << 20;
const OK: (bool, bool, bool) = (true, false, false);
const IN_QUEUE: (bool, bool, bool) = (false, true, false);

async fn healthy() -> RawRemote {
    let remote = RawRemote::start(&[]).await;
    remote.heal();
    remote
}

/// D07
#[tokio::test(flavor = "multi_thread")]
async fn bodies_at_the_limit_arrive_whole_and_one_byte_more_is_413_and_nowhere() {
    let bench = Bench::start().await;
    let remote = healthy().await;
    bench.connection("q", &remote.address, json!({"use_queue": true})).await;
    let send = |request: String| bench.api.call("POST", "/api/v1/projects/default/connections/q/send", request.leak());
    // As text, and as clients write it that escape whatever is not ASCII: six bytes for the two of `é`.
    for (unit, bytes) in [("x", 1), (r"\u00e9", 2)] {
        for (more, status) in [(0, 200), (1, 413)] {
            let request = format!(r#"{{"body":"{}"}}"#, unit.repeat(BODY_BYTES_MAX / bytes + more));
            let (told, answer) = send(request).await.unwrap();
            assert_eq!(told, status, "{unit} {more}: {}", &answer[..answer.len().min(300)]);
        }
    }
    // 8 MiB is one more than a multiple of three: "AA==" holds the last two bytes, "AAAA" three.
    let whole = "AAAA".repeat(BODY_BYTES_MAX / 3);
    for (end, status) in [("AAA=", 200), ("AAAA", 413)] {
        let (told, _) = send(format!(r#"{{"body_base64":"{whole}{end}"}}"#)).await.unwrap();
        assert_eq!(told, status, "{end}");
    }
    let (told, answer) = send(format!(r#"{{"body":"{}"}}"#, "x".repeat(26 << 20))).await.unwrap();
    assert_eq!(told, 413);
    assert!(answer.contains("request_bytes_max"), "{answer}");
    let received: Vec<usize> = remote.bodies().iter().map(String::len).collect();
    assert_eq!(received, [BODY_BYTES_MAX; 3]);
    assert_eq!(bench.count().await, 3, "what was refused is nowhere");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_refused_and_stored_nowhere() {
    let bench = Bench::start().await;
    let remote = healthy().await;
    bench.connection("q", &remote.address, json!({"use_queue": true})).await;
    let deep = format!(r#"{{"body":{}1{}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    let requests: [(&[u8], &str); 12] = [
        (b"{\"body\":\"\xff\"}", "400"),
        (b"{\"body\":\"\0\"}", "400"),
        (b"\xef\xbb\xbf{}", "400"),
        (b"[]", "400"),
        (b"null", "400"),
        (b"{\"body\":\"x\"", "400"),
        (b"{\"body\":\"a\",\"body\":\"b\"}", "422"),
        (deep.as_bytes(), "422"),
        (br#"{"body":"x","body_base64":"eA=="}"#, "422"),
        (br#"{"body_base64":"e"}"#, "422"),
        (br#"{"body":"\ud800"}"#, "422"),
        (br#"{"bodi":"x"}"#, "422"),
    ];
    for (request, status) in requests {
        let mut bytes =
            bench.head("/connections/q/send", &format!("Content-Length: {}\r\n", request.len())).into_bytes();
        bytes.extend_from_slice(request);
        let answer = bench.exchange(&bytes).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{:.60?}: {answer}",
            String::from_utf8_lossy(request)
        );
    }
    // Framing that two readers could understand differently, and bytes that are no HTTP.
    for framing in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 14\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: other\r\n",
    ] {
        let request = format!("{}{{\"body\":\"x\"}}\n", bench.head("/connections/q/send", framing));
        let answer = bench.exchange(request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{framing}: {answer}");
    }
    let answer = bench.exchange(b"\x16\x03\x01\0\0\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let other = bench.head("/connections/q/send", "Content-Length: 2\r\n").replace("application/json", "text/plain");
    assert!(bench.exchange(format!("{other}{{}}").as_bytes()).await.starts_with("HTTP/1.1 415 "));
    assert_eq!((bench.count().await, remote.connections()), (0, 0));
    bench.server.stop().await;
}

// What could never be sent must not get into a queue, where it would stand in the way of all behind it.
#[tokio::test(flavor = "multi_thread")]
async fn z11_what_could_never_be_sent_is_refused_by_name_before_it_is_queued() {
    let bench = Bench::start().await;
    let remote = healthy().await;
    bench.connection("q", &remote.address, json!({"use_queue": true, "max_retries": 5, "use_dlq": false})).await;
    let cases = [
        (json!({"headers": {"X": "a\r\nY: b"}}), "headers"),
        (json!({"headers": {"X\r\nY": "a"}}), "headers"),
        (json!({"headers": {"X": "a\u{0}"}}), "headers"),
        (json!({"headers": {"": "a"}}), "headers"),
        (json!({"headers": {"Host": "other"}}), "headers"),
        (json!({"headers": {"Content-Length": "1"}}), "headers"),
        (json!({"headers": {"Transfer-Encoding": "chunked"}}), "headers"),
        (json!({"method": "CONNECT"}), "method"),
        (json!({"method": "connect"}), "method"),
        (json!({"method": "G\r\nX"}), "method"),
        (json!({"path": "/a\r\nX: y"}), "path"),
        (json!({"path": "/../b"}), "path"),
        (json!({"path": "/%2e%2e/b"}), "path"),
        (json!({"params": {"q": "x".repeat(66_000)}}), "path"),
    ];
    for verb in ["send", "publish"] {
        for (request, field) in &cases {
            let (status, problem) = bench.call("POST", &format!("/connections/q/{verb}"), request).await;
            assert_eq!(status, 422, "{problem}");
            let named = problem["errors"][0]["field"].as_str().unwrap();
            assert!(named.starts_with(field), "{named} for {field}: {problem}");
        }
    }
    let (_, result) = bench.send("q", "free").await;
    assert_eq!((flags(&result), remote.bodies()), (OK, vec!["free".to_owned()]), "nothing stands in the way: {result}");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_cursors_and_ids_that_nobody_gave_are_told_so() {
    let bench = Bench::start().await;
    for name in ["ü", "%41", "a b", "a?b", "a#b", "\"", "<script>", "e\u{301}", "…", "a.b"] {
        bench.connection(name, "http://127.0.0.1:1", json!({})).await;
        let path: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let (status, found) = bench.call("GET", &format!("/connections/{path}"), &Value::Null).await;
        assert_eq!((status, &found["name"]), (200, &json!(name)));
    }
    let long = "x".repeat(3_000_000);
    for name in ["", " a", "a/b", "a\nb", "\0", ".", "..", &long] {
        let new = json!({"name": name, "type": "rest", "host": "http://a"});
        let (status, problem) = bench.call("POST", "/connections", &new).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!("name")), "{name:.9}");
        assert!(problem.to_string().len() < 4000, "a long value comes back shortened");
    }
    let id = bench.publish("a.b", "x").await;
    let (_, page) = bench.call("GET", "/connections?limit=1", &Value::Null).await;
    let of_another_list = page["next_cursor"].as_str().unwrap().bytes().map(|byte| format!("%{byte:02X}")).collect();
    for cursor in [of_another_list, "x".to_owned(), "%00".to_owned(), "9".repeat(500), "9".repeat(600)] {
        for list in ["/deliveries", "/dlq", "/topics", "/connections/a.b/queue", "/connections/a.b/dlq"] {
            let (status, problem) = bench.call("GET", &format!("{list}?cursor={cursor}"), &Value::Null).await;
            assert_eq!((status, &problem["errors"][0]["field"]), (400, &json!("cursor")), "{list} {cursor}: {problem}");
        }
    }
    for other in [id.replace("msg_", "evt_"), format!("{id}0"), "msg_".to_owned(), "x".to_owned()] {
        for part in ["", "/attempts", "/body"] {
            assert_eq!(bench.call("GET", &format!("/deliveries/{other}{part}"), &Value::Null).await.0, 404);
        }
    }
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z05_callers_who_break_off_or_leave_lose_and_double_nothing() {
    let bench = Bench::start().await;
    let remote = RawRemote::start(&[Read, Hold]).await;
    bench.connection("q", &remote.address, json!({"use_queue": true, "timeout": 1, "max_retries": 5})).await;
    let head = bench.head("/connections/q/send", "Content-Length: 1000\r\n");
    for _ in 0..50 {
        let mut stream = bench.connect().await;
        stream.write_all(format!("{head}{{\"body\":\"").as_bytes()).await.unwrap();
    }
    assert_eq!(bench.count().await, 0, "half a request is no request");

    let request = r#"{"body":"left"}"#;
    let head = bench.head("/connections/q/send", &format!("Content-Length: {}\r\n", request.len()));
    let mut stream = bench.connect().await;
    stream.write_all(format!("{head}{request}").as_bytes()).await.unwrap();
    remote.until_received(1).await;
    drop(stream);
    remote.heal();
    remote.until_received(2).await;
    bench.api.wait_until_drained("q", Duration::from_secs(20)).await;
    assert_eq!(remote.bodies(), ["left", "left"], "the attempt that timed out, and the one that succeeded");
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_silent_connections_and_pipelined_requests_are_served_beside_each_other() {
    let bench = Bench::start().await;
    let idle = join_all((0..800).map(|_| bench.connect())).await;
    let half = join_all((0..50).map(|_| async {
        let mut stream = bench.connect().await;
        stream.write_all(b"GET /health/live HT").await.unwrap();
        stream
    }))
    .await;
    let before = Instant::now();
    assert_eq!(bench.api.call("GET", "/health/ready", "").await.unwrap().0, 200);
    assert!(before.elapsed() < Duration::from_secs(5));

    let mut stream = bench.connect().await;
    stream.write_all("GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n".repeat(49).as_bytes()).await.unwrap();
    stream.write_all(b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 50);
    drop((idle, half));
    bench.server.stop().await;
}

// proves: Z10, D10
#[tokio::test(flavor = "multi_thread")]
async fn z11_of_two_hundred_callers_at_once_none_hangs_past_its_timeout() {
    let bench = Bench::start().await;
    let remote = RawRemote::start(&[Read, Hold]).await;
    bench.connection("q", &remote.address, json!({"use_queue": true, "timeout": 1, "max_retries": 3})).await;
    let bodies: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let before = Instant::now();
    let told = join_all(bodies.iter().map(|body| async {
        let answer = bench.send("q", body).await;
        (before.elapsed(), answer)
    }))
    .await;
    for (took, (status, result)) in &told {
        assert_eq!((*status, flags(result)), (202, IN_QUEUE), "{result}");
        assert!(took.as_secs_f64() < 1.0 + 1.0 + 1.5, "its timeout and one attempt, not {took:?}");
    }
    assert_eq!(told.iter().filter(|(_, (_, result))| result["error"].is_string()).count(), 1, "one was attempted");
    bench.server.stop().await;
}

// proves: Z10, Z15
#[tokio::test(flavor = "multi_thread")]
async fn z11_two_callers_racing_are_never_inverted_when_the_first_one_fails() {
    let bench = Bench::start().await;
    let races = (0..20).map(|number| {
        let bench = &bench;
        async move {
            let remote =
                RawRemote::start(&[Read, Say(b"HTTP/1.1 500 ?\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")])
                    .await;
            let name = format!("race{number}");
            let settings = json!({"use_queue": true, "max_retries": 9, "retry_sleep_time": 0});
            bench.connection(&name, &remote.address, settings).await;
            let (a, b) = tokio::join!(bench.send(&name, "a"), bench.send(&name, "b"));
            assert_eq!((flags(&a.1), flags(&b.1)), (IN_QUEUE, IN_QUEUE), "{a:?} {b:?}");
            remote.heal();
            bench.api.wait_until_drained(&name, Duration::from_secs(30)).await;
            let mut order = remote.bodies();
            let first = order[0].clone();
            order.dedup();
            assert_eq!(order.len(), 2, "{first} until it was through, then the other: {order:?}");
        }
    });
    join_all(races).await;
    bench.server.stop().await;
}
