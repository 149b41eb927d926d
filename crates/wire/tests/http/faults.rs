//! What remotes do wrong, and the reply that each of it becomes.

use postrider_core::NoAnswerKind::{Timeout, Unreachable};
use postrider_core::Reply;
use postrider_wire::{HttpOptions, Sender};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cases::{
    AMPLE, Failing, Fixed, Hanging, SHORT, answered, connection, connection_with, head, outgoing, send_once, sender,
    sender_of, sender_with, unanswered, within,
};
use crate::raw_peer::{Peer, full_backlog, refusing_port};

// ---- before the request

#[tokio::test]
async fn z01_a_refused_connection_is_unreachable() {
    let address = refusing_port().await;
    let detail = unanswered(send_once(&format!("http://{address}"), AMPLE).await, Unreachable);
    assert!(detail.contains(&address.to_string()) && detail.contains("refused"), "{detail}");
}

#[tokio::test]
async fn z01_a_name_that_does_not_resolve_is_unreachable() {
    let sender = sender_with(Failing);
    let detail = unanswered(sender.send(outgoing(&connection("http://claims.example.org"))).await, Unreachable);
    assert_eq!(detail, "claims.example.org cannot be resolved: Name or service not known");
}

#[tokio::test]
async fn z01_a_name_without_addresses_is_unreachable() {
    let sender = sender_with(Fixed(vec![]));
    let detail = unanswered(sender.send(outgoing(&connection("http://claims.example.org"))).await, Unreachable);
    assert!(detail.contains("no address"), "{detail}");
}

#[tokio::test]
async fn r05_the_timeout_covers_resolving_the_name() {
    let sender = sender_with(Hanging);
    let detail = unanswered(sender.send(within(&connection("http://claims.example.org"), SHORT)).await, Timeout);
    assert!(detail.contains("claims.example.org:80") && detail.contains("resolved"), "{detail}");
}

#[tokio::test]
async fn r05_the_timeout_covers_connecting() {
    let (address, _kept) = full_backlog();
    let detail = unanswered(send_once(&format!("http://{address}"), SHORT).await, Timeout);
    assert_eq!(detail, format!("no answer from {address} within 0.2 s: the connection was not accepted"));
}

#[tokio::test]
async fn r05_the_timeout_covers_the_tls_handshake() {
    let peer = Peer::start(|talk| talk.hang()).await;
    let detail = unanswered(send_once(&format!("https://{}", peer.address), SHORT).await, Timeout);
    assert!(detail.contains("TLS"), "{detail}");
}

#[tokio::test]
async fn z01_a_second_address_is_tried_when_the_first_refuses() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    // Nothing listens on the second loopback address.
    let addresses = vec!["127.0.0.2".parse().unwrap(), "127.0.0.1".parse().unwrap()];
    let sender = sender_with(Fixed(addresses));
    let host = format!("http://claims.example.org:{}", peer.address.port());
    assert_eq!(answered(sender.send(outgoing(&connection(&host))).await).status, Some(200));
}

#[tokio::test]
async fn z01_plain_http_where_tls_was_expected_is_unreachable() {
    let peer = Peer::start(|mut talk| async move {
        let mut hello = [0; 16];
        let _ = talk.tcp.read(&mut hello).await;
        talk.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
    })
    .await;
    let detail = unanswered(send_once(&format!("https://{}", peer.address), AMPLE).await, Unreachable);
    assert!(detail.contains("TLS") && detail.contains(&peer.address.to_string()), "{detail}");
}

// ---- before the status line

#[tokio::test]
async fn r05_silence_after_the_request_is_a_timeout() {
    let peer = Peer::stuck_after("").await;
    let detail = unanswered(send_once(&peer.url(), SHORT).await, Timeout);
    assert_eq!(detail, format!("no answer from {} within 0.2 s", peer.address));
    assert_eq!(peer.requests(), 1);
}

#[tokio::test]
async fn r05_a_head_that_does_not_end_is_a_timeout() {
    let peer = Peer::stuck_after("HTTP/1.1 200 OK\r\nContent-Type: te").await;
    unanswered(send_once(&peer.url(), SHORT).await, Timeout);
}

#[tokio::test]
async fn z01_a_reset_instead_of_reading_is_unreachable() {
    let peer = Peer::start(|talk| async move { talk.reset() }).await;
    let detail = unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
    assert!(detail.contains(&peer.address.to_string()), "{detail}");
}

// proves: F23 of the research: the outcome is unknown, so it says so
#[tokio::test]
async fn z01_a_reset_after_the_request_is_unreachable() {
    let peer = Peer::start(|mut talk| async move {
        talk.read_request().await;
        talk.reset();
    })
    .await;
    let detail = unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
    assert!(detail.contains("(reset after write)"), "{detail}");
    assert_eq!(peer.requests(), 1, "sent twice");
}

#[tokio::test]
async fn z01_an_end_after_the_request_is_unreachable() {
    let peer = Peer::closing_after("").await;
    let detail = unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
    assert_eq!(detail, format!("{}: connection closed before an answer (reset after write)", peer.address));
    assert_eq!(peer.requests(), 1, "sent twice");
}

#[tokio::test]
async fn z01_an_end_within_the_headers_is_unreachable() {
    let peer = Peer::closing_after("HTTP/1.1 200 OK\r\nX-Half: ").await;
    unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
}

#[tokio::test]
async fn z01_bytes_that_are_no_http_are_unreachable() {
    for garbage in ["SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 OK\r\n\r\n", "\0\0\0\0\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n"] {
        let peer = Peer::closing_after(garbage).await;
        let detail = unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
        assert!(detail.contains("no valid HTTP answer"), "{garbage:?}: {detail}");
    }
}

#[tokio::test]
async fn z01_endless_headers_end_the_attempt() {
    let peer = Peer::flooding("HTTP/1.1 200 OK\r\n", "X-More: and more and more\r\n").await;
    unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
    let peer = Peer::flooding("HTTP/1.1 200 OK\r\nX-Long: ", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa").await;
    unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
}

#[tokio::test]
async fn z01_a_flood_of_interim_responses_ends_the_attempt() {
    let peer = Peer::flooding("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await;
    let detail = unanswered(send_once(&peer.url(), AMPLE).await, Unreachable);
    assert!(detail.contains("256 KiB"), "{detail}");
}

#[tokio::test]
async fn r05_interim_responses_do_not_extend_the_timeout() {
    let peer = Peer::start(|mut talk| async move {
        talk.read_request().await;
        while talk.tcp.write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    })
    .await;
    unanswered(send_once(&peer.url(), SHORT).await, Timeout);
}

#[tokio::test]
async fn interim_responses_before_the_final_one_are_skipped() {
    let peer = Peer::answering(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let answer = answered(send_once(&peer.url(), AMPLE).await);
    assert_eq!((answer.status, &answer.body[..]), (Some(201), &b"ok"[..]));
}

// ---- after the status line

#[tokio::test]
async fn r16_the_status_decides_when_the_body_breaks_off() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nno chunk\r\n",
    ] {
        let peer = Peer::closing_after(answer).await;
        let answer = answered(send_once(&peer.url(), AMPLE).await);
        assert_eq!((answer.status, &answer.body[..], answer.incomplete), (Some(200), &b"half"[..], true));
    }
}

#[tokio::test]
async fn r16_the_status_decides_when_the_body_is_reset() {
    let peer = Peer::start(|mut talk| async move {
        talk.read_request().await;
        talk.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 9\r\n\r\n").await;
        talk.reset();
    })
    .await;
    let answer = answered(send_once(&peer.url(), AMPLE).await);
    assert_eq!((answer.status, answer.incomplete), (Some(202), true));
}

// proves: R05, D24
#[tokio::test]
async fn r16_the_status_decides_when_the_body_hangs_or_dribbles() {
    let stuck = Peer::stuck_after("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").await;
    let answer = answered(send_once(&stuck.url(), SHORT).await);
    assert_eq!((answer.status, &answer.body[..], answer.incomplete), (Some(200), &b"half"[..], true));

    let dribbling = Peer::start(|mut talk| async move {
        talk.read_request().await;
        talk.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 1000\r\n\r\n").await;
        while talk.tcp.write_all(b"x").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    let answer = answered(send_once(&dribbling.url(), SHORT).await);
    assert!(answer.status == Some(500) && answer.incomplete && answer.body.starts_with(b"x"), "{answer:?}");
}

// proves: D07
#[tokio::test]
async fn r16_an_endless_body_is_cut_at_the_limit() {
    let peer = Peer::flooding("HTTP/1.1 200 OK\r\n\r\n", "0123456789abcdef").await;
    let answer = answered(send_once(&peer.url(), AMPLE).await);
    assert_eq!((answer.status, answer.body.len(), answer.incomplete), (Some(200), 1 << 20, true));
    assert!(answer.body.ends_with(b"0123456789abcdef"));
}

#[tokio::test]
async fn d07_a_body_of_exactly_the_limit_is_whole() {
    for (length, whole) in [(9, true), (10, true), (11, false)] {
        let body = "x".repeat(length);
        let peer = Peer::answering(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}")).await;
        let sender = sender_of(HttpOptions { response_bytes_max: 10, ..HttpOptions::default() });
        let answer = answered(sender.send(outgoing(&connection(&peer.url()))).await);
        assert_eq!((answer.body.len(), !answer.incomplete), (length.min(10), whole));
    }
}

#[tokio::test]
async fn r16_an_answer_before_the_request_was_read_counts() {
    let peer = Peer::start(|mut talk| async move {
        let mut first = [0; 64];
        talk.tcp.read_exact(&mut first).await.unwrap();
        talk.write(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
        // Dropped with most of the request unread, which resets the connection.
    })
    .await;
    let large = bytes::Bytes::from(vec![b'x'; 8 << 20]);
    let attempt = postrider_wire::Outgoing { body: large, ..outgoing(&connection(&peer.url())) };
    assert_eq!(answered(sender().send(attempt).await).status, Some(413));
}

#[tokio::test]
async fn r07_a_redirect_is_not_followed() {
    let other = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let peer =
        Peer::answering(format!("HTTP/1.1 307 Go\r\nLocation: {}/\r\nContent-Length: 0\r\n\r\n", other.url())).await;
    let answer = answered(send_once(&peer.url(), AMPLE).await);
    assert_eq!((answer.status, answer.headers.get("location")), (Some(307), Some(&*format!("{}/", other.url()))));
    assert_eq!((peer.requests(), other.sockets()), (1, 0));
}

#[tokio::test]
async fn statuses_without_a_body_are_complete() {
    for status in ["204 No Content", "304 Not Modified"] {
        // The length that a 304 announces is that of what it does not send.
        let length = if status.starts_with("304") { "Content-Length: 50\r\n" } else { "" };
        let peer = Peer::answering(format!("HTTP/1.1 {status}\r\n{length}\r\n")).await;
        let (sender, connection) = (sender(), connection(&peer.url()));
        for _ in 0..2 {
            let answer = answered(sender.send(outgoing(&connection)).await);
            assert_eq!((answer.body.len(), answer.incomplete), (0, false), "{status}");
        }
        assert_eq!(peer.sockets(), 1, "{status}");
    }
}

#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n").await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    for _ in 0..2 {
        let mut attempt = outgoing(&connection);
        attempt.head = head(serde_json::json!({"method": "HEAD"}));
        attempt.body = bytes::Bytes::new();
        let answer = answered(sender.send(attempt).await);
        assert_eq!((answer.status, answer.body.len(), answer.incomplete), (Some(200), 0, false));
    }
    assert_eq!(peer.sockets(), 1);
}

#[tokio::test]
async fn switching_protocols_is_an_answer_like_any_other() {
    let peer = Peer::answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n").await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    for _ in 0..2 {
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(101));
    }
    assert_eq!(peer.sockets(), 2, "a switched socket was used again");
}

#[tokio::test]
async fn an_old_server_that_closes_is_read_to_the_end() {
    let peer = Peer::closing_after("HTTP/1.0 200 OK\r\nX-Odd : 1\r\nbroken line\r\n\r\nhello").await;
    let answer = answered(send_once(&peer.url(), AMPLE).await);
    assert_eq!((answer.status, &answer.body[..], answer.incomplete), (Some(200), &b"hello"[..], false));
}

#[tokio::test]
async fn details_carry_no_header_and_no_body() {
    let address = refusing_port().await;
    let connection = connection_with(&format!("http://{address}"), serde_json::json!({"url_path": "/hidden-path"}));
    let mut attempt = outgoing(&connection);
    attempt.head = head(
        serde_json::json!({"method": "POST", "params": [["token", "hidden"]], "headers": [["Authorization", "hidden"]]}),
    );
    attempt.body = "hidden".into();
    let Reply::Unanswered(none) = sender().send(attempt).await else { panic!() };
    assert!(!none.detail.contains("hidden"), "{}", none.detail);
}
