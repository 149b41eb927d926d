//! What a remote system can do wrong on the wire, and what the caller is told, with the queue off and on.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::{Duration, Instant};

use harness::Act::{Hold, Read, Reset, Say, SayForEver};
use harness::{Act, Bench, RawRemote, flags};
use serde_json::{Value, json};

const AT_ONCE: Duration = Duration::ZERO;
const SLOWLY: Duration = Duration::from_millis(100);
const TIMEOUT_S: f64 = 1.0;

/// What a fault amounts to (D24, R16: a status line decides).
enum Told {
    /// Delivered; `true`: the answer is marked incomplete.
    Delivered(bool),
    Status(u16),
    /// No answer; the error says this.
    NoAnswer(&'static str),
}
use Told::{Delivered, NoAnswer, Status};

struct Fault {
    name: &'static str,
    script: &'static [Act],
    told: Told,
}

const fn fault(name: &'static str, script: &'static [Act], told: Told) -> Fault {
    Fault { name, script, told }
}

const NO_HTTP: Told = NoAnswer("gave no valid HTTP answer");
const IN_TIME: Told = NoAnswer("within 1 s");
const BROKE_OFF: Told = NoAnswer("before an answer");
/// Bytes before the request: no HTTP, or a socket closed on them, whichever is noticed first.
const NOTHING: Told = NoAnswer("127.0.0.1");

const FAULTS: [Fault; 32] = [
    fault("reset after the request", &[Read, Reset], BROKE_OFF),
    fault("close after the request", &[Read], BROKE_OFF),
    fault("close at once", &[], BROKE_OFF),
    fault("hang before the head", &[Read, Hold], IN_TIME),
    fault("never read", &[Hold], IN_TIME),
    fault("trickling head", &[Read, Say(b"HTTP/1.1 200 OK\r\nX: "), SayForEver(b"a", SLOWLY)], IN_TIME),
    fault(
        "endless headers",
        &[Read, Say(b"HTTP/1.1 200 OK\r\n"), SayForEver(b"X: aaaaaaaaaaaaaaaa\r\n", AT_ONCE)],
        NO_HTTP,
    ),
    fault("endless header", &[Read, Say(b"HTTP/1.1 200 OK\r\nX: "), SayForEver(&[b'a'; 1000], AT_ONCE)], NO_HTTP),
    fault("flood of 1xx", &[Read, SayForEver(b"HTTP/1.1 100 Continue\r\n\r\n", AT_ONCE)], NoAnswer("gave no answer")),
    fault("hang in the body", &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), Hold], Delivered(true)),
    fault(
        "trickling body",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), SayForEver(b"a", SLOWLY)],
        Delivered(true),
    ),
    fault(
        "endless body",
        &[Read, Say(b"HTTP/1.1 200 OK\r\n\r\n"), SayForEver(&[b'a'; 65536], AT_ONCE)],
        Delivered(true),
    ),
    fault(
        "endless chunks",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), SayForEver(b"5\r\naaaaa\r\n", AT_ONCE)],
        Delivered(true),
    ),
    fault(
        "endless chunk extension",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"), SayForEver(&[b'a'; 1000], AT_ONCE)],
        Delivered(true),
    ),
    fault(
        "endless trailers",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"), SayForEver(b"X: y\r\n", AT_ONCE)],
        Delivered(true),
    ),
    fault(
        "no chunk size",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n")],
        Delivered(true),
    ),
    fault(
        "reset in the body",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"), Reset],
        Delivered(true),
    ),
    fault("shorter than its length", &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")], Delivered(true)),
    fault(
        "longer than its length",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabcdef")],
        Delivered(false),
    ),
    fault("length below zero", &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nabc")], NO_HTTP),
    fault(
        "two lengths",
        &[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd")],
        NO_HTTP,
    ),
    fault("status 99", &[Read, Say(b"HTTP/1.1 99 ?\r\nContent-Length: 0\r\n\r\n")], NO_HTTP),
    fault("HTTP/2 in words", &[Read, Say(b"HTTP/2 200 OK\r\n\r\n")], NO_HTTP),
    fault("garbage", &[Read, Say(b"\x00\xff\x16\x03\x01 no http\r\n\r\n")], NO_HTTP),
    fault("another protocol", &[Say(b"SSH-2.0-peer\r\n"), Hold], NOTHING),
    fault("500 that hangs", &[Read, Say(b"HTTP/1.1 500 ?\r\nContent-Length: 9\r\n\r\nabc"), Hold], Status(500)),
    fault("redirect", &[Read, Say(b"HTTP/1.1 302 ?\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")], Status(302)),
    fault("101 unasked", &[Read, Say(b"HTTP/1.1 101 ?\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")], Status(101)),
    fault(
        "429 with an unreadable Retry-After",
        &[Read, Say(b"HTTP/1.1 429 ?\r\nRetry-After: -5\r\nContent-Length: 0\r\n\r\n")],
        Status(429),
    ),
    fault("204 with a body", &[Read, Say(b"HTTP/1.1 204 ?\r\nContent-Length: 5\r\n\r\nhello")], Delivered(false)),
    fault("HTTP/1.0 without a length", &[Read, Say(b"HTTP/1.0 200 OK\r\n\r\nhello")], Delivered(false)),
    fault(
        "JSON of 100,000 brackets",
        &[
            Read,
            Say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"),
            Say(&[b'['; 100_000]),
        ],
        Delivered(false),
    ),
];

async fn one(bench: &Bench, number: usize, fault: &Fault, use_queue: bool) {
    let remote = RawRemote::start(fault.script).await;
    let name = format!("{number}-{use_queue}");
    bench.connection(&name, &remote.address, json!({"use_queue": use_queue, "timeout": TIMEOUT_S})).await;
    let before = Instant::now();
    let (status, result) = bench.send(&name, "x").await;
    let took = before.elapsed();
    // Room for a busy machine: a flood costs processor time, here and there.
    let context = format!("{}, queue {use_queue}: {result}", fault.name);
    assert_eq!(status, 200, "{context}");
    assert!(took.as_secs_f64() < TIMEOUT_S + 5.0, "{took:?}, {context}");
    // Without retries a failure goes to the DLQ, or back to the caller where there is no queue (Z10, Z02).
    let failed = (false, false, use_queue);
    match fault.told {
        Delivered(incomplete) => {
            assert_eq!(flags(&result), (true, false, false), "{context}");
            assert_eq!(result["response"]["incomplete"].as_bool().unwrap_or(false), incomplete, "{context}");
        }
        Status(code) => {
            assert_eq!((flags(&result), &result["response"]["status"]), (failed, &json!(code)), "{context}");
        }
        NoAnswer(why) => {
            assert_eq!((flags(&result), &result["response"]), (failed, &Value::Null), "{context}");
            assert!(result["error"].as_str().unwrap().contains(why), "{context}");
        }
    }
    assert_eq!(remote.connections(), 1, "asked once: {context}");
}

// proves: Z01, Z02, Z10, R16
#[tokio::test(flavor = "multi_thread")]
async fn z10_every_fault_of_a_remote_system_is_a_result_in_time() {
    let bench = Bench::start().await;
    for some in FAULTS.iter().enumerate().collect::<Vec<_>>().chunks(4) {
        let pairs = some.iter().flat_map(|(number, fault)| [false, true].map(|on| one(&bench, *number, fault, on)));
        futures_util::future::join_all(pairs).await;
    }
    let (status, _) = bench.api.call("GET", "/health/ready", "").await.unwrap();
    assert_eq!(status, 200);
    bench.server.stop().await;
}

// proves: Z11, Z13, Z16
#[tokio::test(flavor = "multi_thread")]
async fn z11_once_the_fault_stops_everything_arrives_once_more_in_order() {
    let bench = Bench::start().await;
    let failing = FAULTS.iter().enumerate().filter(|(_, fault)| !matches!(fault.told, Delivered(_)));
    let checks = failing.map(|(number, fault)| {
        let bench = &bench;
        async move {
            let remote = RawRemote::start(fault.script).await;
            let name = format!("f{number}");
            let settings = json!({"use_queue": true, "use_dlq": false, "timeout": 0.3, "max_retries": 1000,
                "retry_sleep_time": 0, "retry_backoff_multiplier": 0, "retry_backoff_threshold": 86400});
            bench.connection(&name, &remote.address, settings).await;
            let mut ids = Vec::new();
            for body in ["1", "2", "3"] {
                ids.push(bench.publish(&name, body).await);
            }
            bench.until_attempted(&ids[0]).await;
            remote.heal();
            for id in &ids {
                bench.until_status(id, "SUCCESS").await;
            }
            let mut bodies = remote.bodies();
            bodies.dedup();
            assert_eq!(bodies, ["1", "2", "3"], "{}", fault.name);
            let second = bench.delivery(&ids[1]).await;
            assert_eq!(second["attempts"], 1, "{}: never sent before its turn: {second}", fault.name);
        }
    });
    futures_util::future::join_all(checks).await;
    bench.server.stop().await;
}

// proves: Z05
#[tokio::test(flavor = "multi_thread")]
async fn what_never_becomes_a_connection_is_told_with_its_reason() {
    let bench = Bench::start().await;
    let silent = RawRemote::start(&[Hold]).await;
    let full = tokio::net::TcpSocket::new_v4().unwrap();
    full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let full = full.listen(1).unwrap();
    let address = full.local_addr().unwrap();
    // More than its backlog takes: the next one waits for a place.
    let crowd: Vec<_> = (0..4).map(|_| tokio::spawn(tokio::net::TcpStream::connect(address))).collect();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let tls = silent.address.replace("http:", "https:");
    for (name, host, why) in [
        ("refused", "http://127.0.0.1:1".to_owned(), "Connection refused"),
        ("accept", format!("http://{address}"), "the connection was not accepted"),
        ("tls", tls, "the TLS handshake was not finished"),
        ("name", "http://no-such-host.invalid".to_owned(), "cannot be resolved"),
        ("metadata", "http://169.254.169.254".to_owned(), "cloud metadata"),
        ("mapped", "http://[::ffff:169.254.169.254]".to_owned(), "cloud metadata"),
    ] {
        bench.connection(name, &host, json!({"timeout": 1})).await;
        let (status, result) = bench.send(name, "x").await;
        assert_eq!((status, flags(&result)), (200, (false, false, false)), "{result}");
        assert!(result["error"].as_str().unwrap().contains(why), "{name}: {result}");
    }
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
    bench.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_that_closes_each_socket_after_its_answer_costs_nobody_a_failure() {
    let bench = Bench::start().await;
    let remote = RawRemote::start(&[Read, Say(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")]).await;
    bench.connection("c", &remote.address, json!({})).await;
    for number in 0..40 {
        let (_, result) = bench.send("c", &number.to_string()).await;
        assert_eq!(flags(&result), (true, false, false), "{number}: {result}");
        // A request that is under way while the remote closes is lost, and nobody may send it again; here the close comes before the next one.
        remote.until_closed(number + 1).await;
    }
    assert_eq!(remote.bodies().len(), 40, "each came once");
    bench.server.stop().await;
}
