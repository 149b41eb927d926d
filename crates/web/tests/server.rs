//! The accept loop against callers that misbehave: slow, silent, breaking off, too large, too many.

mod parts;

use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use parts::{Running, answer, exchange, read_answer};
use postrider_web::{Server, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn service() -> Router {
    async fn length(request: Request) -> Response {
        match axum::body::to_bytes(request.into_body(), 1 << 20).await {
            Ok(bytes) => bytes.len().to_string().into_response(),
            Err(_) => http::StatusCode::BAD_REQUEST.into_response(),
        }
    }
    #[allow(clippy::panic)]
    async fn broken() -> Response {
        panic!("as the test wants it: secret detail")
    }
    async fn large() -> Vec<u8> {
        vec![b'x'; 64 << 20]
    }
    Router::new()
        .route("/", get(|| async { "here" }))
        .route("/length", post(length))
        .route("/broken", get(broken))
        .route("/large", get(large))
        .route("/refuse", post(|| async { http::StatusCode::PAYLOAD_TOO_LARGE }))
}

fn quick() -> ServerLimits {
    ServerLimits {
        head_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_millis(600),
        write_timeout: Duration::from_millis(300),
        ..ServerLimits::default()
    }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";

/// Reads until the server ends the connection.
async fn ended(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut all)).await;
    assert!(read.is_ok(), "the server did not end the connection");
    all
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_off_while_others_are_served() {
    // Idle connections may live long, so that only the head's own time can end this one.
    let limits = ServerLimits { idle_timeout: Duration::from_secs(600), ..quick() };
    let server = Running::start(service(), limits).await;
    let (mut reader, mut writer) = server.connect().await.into_split();
    let trickle = tokio::spawn(async move {
        let mut sent = 0;
        while writer.write_all(b"G").await.is_ok() && sent < 10_000 {
            sent += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sent
    });
    assert!(exchange(server.address, GET).await.ends_with("here"));
    let mut rest = Vec::new();
    let read = tokio::time::timeout(Duration::from_secs(20), reader.read_to_end(&mut rest)).await;
    assert!(read.is_ok(), "the trickling caller was never cut off");
    assert!(trickle.await.unwrap() < 1000);
    server.stop().await;
}

#[tokio::test]
async fn an_idle_connection_is_kept_longer_than_a_head_may_take_and_then_ended() {
    let server = Running::start(service(), quick()).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        stream.write_all(GET).await.unwrap();
        assert!(read_answer(&mut stream).await.ends_with("here"));
        // Longer than the head's time, shorter than the idle time.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(ended(&mut stream).await, b"");
    server.stop().await;
}

#[tokio::test]
async fn a_panic_is_answered_500_without_detail_and_the_server_goes_on() {
    let server = Running::start(service(), quick()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let broken = read_answer(&mut stream).await;
    assert!(broken.starts_with("HTTP/1.1 500 "), "{broken}");
    assert!(broken.contains("application/problem+json") && !broken.contains("secret"), "{broken}");
    stream.write_all(GET).await.unwrap();
    assert!(read_answer(&mut stream).await.ends_with("here"));
    server.stop().await;
}

#[tokio::test]
async fn too_large_heads_and_bytes_that_are_no_http_are_refused() {
    let server = Running::start(service(), quick()).await;
    let many: String = (0..101).map(|n| format!("X-{n}: 1\r\n")).collect();
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(200 << 10));
    for (at, (request, status)) in [
        (format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n"), "431"),
        (long, "431"),
        ("\0\u{1}\u{2} nothing\r\n\r\n".to_owned(), "400"),
        ("GET / HTTP/1.1\r\nHost: x\r\nX-A: a\0b\r\n\r\n".to_owned(), "400"),
        ("POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), "400"),
    ]
    .into_iter()
    .enumerate()
    {
        let head = exchange(server.address, request.as_bytes()).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "case {at} got {head}");
    }
    assert!(exchange(server.address, GET).await.ends_with("here"));
    server.stop().await;
}

#[tokio::test]
async fn one_connection_more_than_allowed_is_answered_503_and_a_free_slot_is_taken_again() {
    let limits = ServerLimits { connections_max: 1, linger: Duration::from_millis(50), ..quick() };
    let server = Running::start(service(), limits).await;
    let mut first = server.connect().await;
    first.write_all(GET).await.unwrap();
    assert!(read_answer(&mut first).await.ends_with("here"));
    let refused = ended(&mut server.connect().await).await;
    let refused = String::from_utf8(refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("connections_max"), "{refused}");
    drop(first);
    let mut tries = 0;
    while !exchange(server.address, GET).await.ends_with("here") {
        tries += 1;
        assert!(tries < 1000, "the slot did not come free");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_caller_that_does_not_read_its_answer_is_let_go() {
    let server =
        Running::start(service(), ServerLimits { connections_max: 1, linger: Duration::ZERO, ..quick() }).await;
    let mut deaf = server.connect().await;
    deaf.write_all(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let served = tokio::time::timeout(Duration::from_secs(20), async {
        while !exchange(server.address, GET).await.ends_with("here") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    assert!(served.await.is_ok(), "the only slot was held for ever");
    drop(deaf);
    server.stop().await;
}

#[tokio::test]
async fn a_refusal_reaches_a_caller_that_is_still_sending() {
    let server = Running::start(service(), quick()).await;
    let mut stream = server.connect().await;
    let head = format!("POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 4 << 20);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; 4 << 20]).await.unwrap();
    let got = String::from_utf8(ended(&mut stream).await).unwrap();
    assert!(got.starts_with("HTTP/1.1 413 "), "{got}");
    server.stop().await;
}

#[tokio::test]
async fn a_caller_that_leaves_mid_body_harms_nobody() {
    let server = Running::start(service(), quick()).await;
    let mut stream = server.connect().await;
    stream.write_all(b"POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc").await.unwrap();
    drop(stream);
    assert!(exchange(server.address, GET).await.ends_with("here"));
    server.stop().await;
}

#[tokio::test]
async fn stopping_lets_a_request_end_and_takes_no_more() {
    let server = Running::start(service(), quick()).await;
    let address = server.address;
    let mut stream = server.connect().await;
    stream
        .write_all(b"POST /length HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        .await
        .unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    let stopping = tokio::spawn(server.stop());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    stream.write_all(b"abc").await.unwrap();
    let last = String::from_utf8(ended(&mut stream).await).unwrap();
    assert!(last.starts_with("HTTP/1.1 200 ") && last.ends_with('3'), "{last}");
    assert!(answer(&last).0.contains("connection: close"), "{last}");
    stopping.await.unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_told() {
    let server = Running::start(service(), quick()).await;
    let refused = Server::bind(server.address, quick()).await.unwrap_err().to_string();
    assert!(refused.contains("in use") && refused.contains(&server.address.to_string()), "{refused}");
    server.stop().await;
}
