//! Sockets kept open: used again, bounded, and never the reason for a request sent twice.

use std::sync::Arc;
use std::time::Duration;

use postrider_core::NoAnswerKind::{Timeout, Unreachable};
use postrider_core::connection::Connection;
use postrider_wire::{HttpOptions, Sender};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::cases::{SHORT, answered, connection, connection_with, outgoing, sender, sender_of, unanswered, within};
use crate::raw_peer::Peer;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_second_request_goes_over_the_same_socket() {
    let peer = Peer::answering(OK).await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    for _ in 0..5 {
        assert_eq!(&answered(sender.send(outgoing(&connection)).await).body[..], b"ok");
    }
    assert_eq!((peer.sockets(), peer.requests()), (1, 5));
}

#[tokio::test]
async fn a_peer_that_says_close_is_obeyed() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    for _ in 0..2 {
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
    }
    assert_eq!(peer.sockets(), 2);
}

/// A peer whose first socket ends, by `farewell`, after one answer; the test is told when it has ended.
async fn closing_first(farewell: &'static [u8], by_reset: bool) -> (Peer, mpsc::UnboundedReceiver<()>) {
    let (ended, has_ended) = mpsc::unbounded_channel();
    let peer = Peer::start(move |mut talk| {
        let ended = ended.clone();
        async move {
            if talk.index > 0 {
                while talk.read_request().await.is_some() {
                    talk.write(OK).await;
                }
                return;
            }
            talk.read_request().await;
            talk.write(OK).await;
            talk.write(farewell).await;
            if by_reset {
                talk.reset()
            } else {
                drop(talk)
            }
            ended.send(()).unwrap();
        }
    })
    .await;
    (peer, has_ended)
}

// proves: Z01 (one attempt is one request, and a stale socket is no failure)
#[tokio::test]
async fn z01_an_idle_socket_that_the_peer_closed_is_replaced_within_the_attempt() {
    for (farewell, by_reset) in
        [(&b""[..], false), (b"", true), (b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n", false)]
    {
        let (peer, mut has_ended) = closing_first(farewell, by_reset).await;
        let (sender, connection) = (sender(), connection(&peer.url()));
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
        has_ended.recv().await.unwrap();
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200), "{farewell:?} {by_reset}");
        assert_eq!((peer.sockets(), peer.requests()), (2, 2));
    }
}

// The runtime has not looked at the socket since the peer closed it: only the kernel knows.
#[test]
fn z01_a_close_that_was_not_noticed_yet_is_seen_before_the_first_byte() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let mut requests = Vec::new();
        let mut first = listener.accept().unwrap().0;
        requests.push(blocking_exchange(&mut first));
        (listener, first, requests)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (sender, connection) = (sender(), connection(&format!("http://{address}")));
    runtime.block_on(async { assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200)) });
    let (listener, first, mut requests) = peer.join().unwrap();
    runtime.block_on(async {
        // Closed and sent within one turn of the runtime, so its reactor does not run in between.
        drop(first);
        let second = std::thread::spawn(move || blocking_exchange(&mut listener.accept().unwrap().0));
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
        requests.push(second.join().unwrap());
    });
    assert_eq!(requests.len(), 2);
}

fn blocking_exchange(tcp: &mut std::net::TcpStream) -> Vec<u8> {
    use std::io::{Read, Write};
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.ends_with(b"{\"claim\":1}") {
        let count = tcp.read(&mut chunk).unwrap();
        assert!(count > 0, "closed within a request");
        request.extend_from_slice(&chunk[..count]);
    }
    tcp.write_all(OK).unwrap();
    request
}

// proves: Z01; F23 of the research (after a write the outcome is unknown: never sent again within the attempt)
#[tokio::test]
async fn z01_a_reused_socket_that_closes_on_the_request_is_unreachable_and_not_sent_again() {
    let peer = Peer::start(|mut talk| async move {
        talk.read_request().await;
        talk.write(OK).await;
        talk.read_request().await;
    })
    .await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
    let detail = unanswered(sender.send(outgoing(&connection)).await, Unreachable);
    assert_eq!(detail, format!("{}: connection closed before an answer (reset after write)", peer.address));
    assert_eq!((peer.sockets(), peer.requests()), (1, 2), "sent again");
}

#[tokio::test]
async fn bytes_after_an_answer_are_not_the_next_answer() {
    let peer = Peer::answering(
        &b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n"[..],
    )
    .await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    for _ in 0..2 {
        assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
    }
    assert_eq!(peer.sockets(), 2);
}

#[tokio::test]
async fn a_socket_with_an_unread_body_is_not_used_again() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n01234567890123456789").await;
    let sender = sender_of(HttpOptions { response_bytes_max: 10, ..HttpOptions::default() });
    let connection = connection(&peer.url());
    for _ in 0..2 {
        assert!(answered(sender.send(outgoing(&connection)).await).incomplete);
    }
    assert_eq!(peer.sockets(), 2);
}

#[tokio::test]
async fn pool_size_bounds_sockets_and_attempts() {
    let (arrived, mut has_arrived) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let go_on = go.clone();
    let peer = Peer::start(move |mut talk| {
        let (arrived, go_on) = (arrived.clone(), go_on.clone());
        async move {
            while talk.read_request().await.is_some() {
                arrived.send(()).unwrap();
                go_on.notified().await;
                talk.write(OK).await;
            }
        }
    })
    .await;
    let sender = Arc::new(sender());
    let connection = connection_with(&peer.url(), json!({"pool_size": 2}));
    let attempts: Vec<_> = (0..6)
        .map(|_| {
            let (sender, attempt) = (sender.clone(), outgoing(&connection));
            tokio::spawn(async move { answered(sender.send(attempt).await).status })
        })
        .collect();
    for _ in 0..2 {
        has_arrived.recv().await.unwrap();
    }
    // A third attempt finds both sockets busy for the whole of its time.
    let detail = unanswered(sender.send(within(&connection, SHORT)).await, Timeout);
    assert!(detail.contains("all 2 of the connection's sockets were busy"), "{detail}");
    assert_eq!(peer.requests(), 2);
    for _ in 0..4 {
        go.notify_one();
        has_arrived.recv().await.unwrap();
    }
    go.notify_one();
    go.notify_one();
    for attempt in attempts {
        assert_eq!(attempt.await.unwrap(), Some(200));
    }
    assert_eq!((peer.sockets(), peer.requests()), (2, 6));
}

#[tokio::test]
async fn a_timed_out_attempt_gives_its_slot_back() {
    let peer = Peer::start(|mut talk| async move {
        talk.read_request().await;
        if talk.index == 0 {
            talk.hang().await;
        } else {
            talk.write(OK).await;
        }
    })
    .await;
    let (sender, connection) = (sender(), connection_with(&peer.url(), json!({"pool_size": 1})));
    unanswered(sender.send(within(&connection, SHORT)).await, Timeout);
    assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
}

/// A peer that reports the end of each of its sockets.
async fn reporting_ends() -> (Peer, mpsc::UnboundedReceiver<usize>) {
    let (ended, has_ended) = mpsc::unbounded_channel();
    let peer = Peer::start(move |mut talk| {
        let ended = ended.clone();
        async move {
            while talk.read_request().await.is_some() {
                talk.write(OK).await;
            }
            ended.send(talk.index).unwrap();
        }
    })
    .await;
    (peer, has_ended)
}

#[tokio::test]
async fn an_idle_socket_is_closed_after_the_idle_timeout() {
    let (peer, mut has_ended) = reporting_ends().await;
    let idle = Duration::from_millis(50);
    let sender = sender_of(HttpOptions { pool_idle_timeout: idle, ..HttpOptions::default() });
    answered(sender.send(outgoing(&connection(&peer.url()))).await);
    assert_eq!(has_ended.recv().await, Some(0));
}

#[tokio::test]
async fn a_forgotten_connection_keeps_no_socket() {
    let (peer, mut has_ended) = reporting_ends().await;
    let (sender, connection) = (sender(), connection(&peer.url()));
    answered(sender.send(outgoing(&connection)).await);
    sender.forget(connection.id);
    assert_eq!(has_ended.recv().await, Some(0));
    assert_eq!(answered(sender.send(outgoing(&connection)).await).status, Some(200));
}

#[tokio::test]
async fn a_changed_connection_goes_to_its_new_address_at_once() {
    let (old, mut has_ended) = reporting_ends().await;
    let new = Peer::answering(OK).await;
    let before = connection(&old.url());
    let after = Arc::new(Connection { version: 2, ..(*connection(&new.url())).clone() });
    let sender = sender();
    answered(sender.send(outgoing(&before)).await);
    answered(sender.send(outgoing(&after)).await);
    assert_eq!(has_ended.recv().await, Some(0), "the old socket stayed open");
    // An attempt prepared before the change goes where it was meant to, and does not bring the old settings back.
    answered(sender.send(outgoing(&before)).await);
    answered(sender.send(outgoing(&after)).await);
    assert_eq!((old.requests(), new.requests(), new.sockets()), (2, 2, 1));
}
