//! The bytes of a request on the wire.

use bytes::Bytes;
use postrider_core::NoAnswerKind::Unsendable;
use postrider_wire::{Outgoing, Sender};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::cases::{answered, connection, connection_with, head, outgoing, sender, unanswered};
use crate::raw_peer::{Peer, Seen};

/// What arrives when this request is sent over a connection with these keys.
async fn arrives(keys: Value, request: Value, body: &[u8]) -> Seen {
    let (seen, mut has_seen) = mpsc::unbounded_channel();
    let peer = Peer::start(move |mut talk| {
        let seen = seen.clone();
        async move {
            if let Some(request) = talk.read_request().await {
                seen.send(request).unwrap();
                talk.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            }
        }
    })
    .await;
    let connection = connection_with(&peer.url(), keys);
    let attempt = Outgoing { head: head(request), body: Bytes::copy_from_slice(body), ..outgoing(&connection) };
    assert_eq!(answered(sender().send(attempt).await).status, Some(200));
    let request = has_seen.recv().await.unwrap();
    assert_eq!(request.header("host"), Some(&*peer.address.to_string()));
    assert_eq!(request.count("host"), 1);
    request
}

// proves: Z42 (one cid), D15
#[tokio::test]
async fn z42_an_attempt_carries_its_ids() {
    let seen = arrives(json!({}), json!({"method": "POST"}), b"{}").await;
    let id = outgoing(&connection("http://a.example")).delivery_id.to_string();
    assert_eq!(seen.line(), "POST /in HTTP/1.1");
    assert_eq!(seen.header("x-postrider-cid"), Some("20260312-120534-7301-7f2c0e51a"));
    assert_eq!(seen.header("x-postrider-msg-id"), Some(&*id));
    assert_eq!(seen.header("idempotency-key"), Some(&*id));
    assert_eq!(seen.header("user-agent"), Some(concat!("postrider/", env!("CARGO_PKG_VERSION"))));
}

// proves: oracle 8 (bytes as they were accepted)
#[tokio::test]
async fn a_body_goes_byte_for_byte_with_its_length() {
    let every_byte: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let seen = arrives(json!({}), json!({"method": "PUT"}), &every_byte).await;
    assert_eq!(seen.header("content-length"), Some("100000"));
    assert_eq!(seen.header("transfer-encoding"), None);
    assert!(seen.body == every_byte);
}

#[tokio::test]
async fn a_request_that_only_reads_has_no_length_and_a_post_always_has() {
    let get = arrives(json!({}), json!({"method": "GET"}), b"").await;
    assert_eq!((get.header("content-length"), get.header("content-type")), (None, None));
    let post = arrives(json!({}), json!({"method": "POST"}), b"").await;
    assert_eq!(post.header("content-length"), Some("0"));
    let odd = arrives(json!({}), json!({"method": "GET"}), b"{}").await;
    assert_eq!((odd.header("content-length"), &odd.body[..]), (Some("2"), &b"{}"[..]));
}

#[tokio::test]
async fn params_fill_the_path_and_the_rest_is_the_query() {
    let keys = json!({"url_path": "/v2/claims/{claim_id}"});
    let request = json!({"method": "PATCH", "path": "lines", "params": [["claim_id", "a/b c"], ["dry", "1&2"]]});
    let seen = arrives(keys, request, b"").await;
    assert_eq!(seen.line(), "PATCH /v2/claims/a%2Fb%20c/lines?dry=1%262 HTTP/1.1");
}

#[tokio::test]
async fn content_type_is_the_requests_else_the_connections_else_the_formats() {
    let given = json!({"method": "POST", "headers": [["content-type", "text/csv"]]});
    let cases = [
        (json!({}), json!({"method": "POST"}), "application/json"),
        (json!({"data_format": "text"}), json!({"method": "POST"}), "text/plain; charset=utf-8"),
        (json!({"data_format": "form"}), json!({"method": "POST"}), "application/x-www-form-urlencoded"),
        (json!({"data_format": "xml"}), json!({"method": "POST"}), "application/xml"),
        (json!({"content_type": "application/fhir+json"}), json!({"method": "POST"}), "application/fhir+json"),
        (json!({"content_type": "application/fhir+json"}), given, "text/csv"),
    ];
    for (keys, request, expected) in cases {
        let seen = arrives(keys, request, b"x").await;
        assert_eq!((seen.header("content-type"), seen.count("content-type")), (Some(expected), 1));
    }
}

#[tokio::test]
async fn d14_hop_by_hop_and_framing_headers_of_the_stored_request_are_dropped() {
    let headers = json!([
        ["Host", "evil.example"],
        ["Content-Length", "999"],
        ["Transfer-Encoding", "chunked"],
        ["Connection", "X-Hop, keep-alive"],
        ["X-Hop", "1"],
        ["Keep-Alive", "timeout=5"],
        ["TE", "trailers"],
        ["Trailer", "X-T"],
        ["Upgrade", "websocket"],
        ["Proxy-Authorization", "Basic x"],
        ["Proxy-Connection", "close"],
        ["Expect", "100-continue"],
        ["X-Postrider-Cid", "forged"],
        ["X-Postrider-Msg-Id", "forged"],
        ["X-Kept", "eins"],
        ["X-Kept", "zwei ä"],
        ["User-Agent", "own/1"],
        ["Idempotency-Key", "own-key"],
    ]);
    let seen = arrives(json!({}), json!({"method": "POST", "headers": headers}), b"{}").await;
    for gone in [
        "transfer-encoding",
        "connection",
        "x-hop",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "proxy-authorization",
        "proxy-connection",
        "expect",
    ] {
        assert_eq!(seen.count(gone), 0, "{gone} was sent: {}", seen.head);
    }
    assert_eq!((seen.header("content-length"), seen.count("content-length")), (Some("2"), 1));
    assert!(!seen.head.contains("forged") && !seen.head.contains("evil"), "{}", seen.head);
    assert_eq!(seen.count("x-kept"), 2);
    assert!(seen.head.contains("zwei ä"));
    assert_eq!((seen.header("user-agent"), seen.header("idempotency-key")), (Some("own/1"), Some("own-key")));
}

#[tokio::test]
async fn a_missing_param_is_unsendable_and_names_it() {
    let connection = connection_with("http://127.0.0.1:9", json!({"url_path": "/claims/{claim_id}"}));
    let detail = unanswered(sender().send(outgoing(&connection)).await, Unsendable);
    assert!(detail.contains("claim_id"), "{detail}");
}

#[tokio::test]
async fn what_cannot_be_a_request_is_unsendable() {
    let connection = connection("http://127.0.0.1:9");
    let params = json!({"method": "GET", "params": [["q", "x".repeat(70_000)]]});
    let long = Outgoing { head: head(params), ..outgoing(&connection) };
    unanswered(sender().send(long).await, Unsendable);
}
