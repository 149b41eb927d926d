//! The guard at connect time: on literals, and on what a name resolves to.

use std::net::IpAddr;

use postrider_core::NoAnswerKind::NotAllowed;
use postrider_wire::guard::Policy;
use postrider_wire::{Egress, HttpSender, Sender};

use crate::cases::{AMPLE, Fixed, answered, connection, outgoing, send_once, sender_with, unanswered};
use crate::raw_peer::Peer;

fn resolving_to(addresses: &[&str]) -> HttpSender {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    sender_with(Fixed(addresses))
}

#[tokio::test]
async fn r14_a_metadata_literal_is_not_allowed() {
    for host in ["http://169.254.169.254", "http://[::ffff:169.254.169.254]", "https://[fd00:ec2::254]:8443"] {
        let detail = unanswered(send_once(host, AMPLE).await, NotAllowed);
        assert!(detail.contains("metadata"), "{detail}");
    }
}

#[tokio::test]
async fn r14_a_name_that_resolves_to_metadata_is_not_allowed() {
    for address in
        ["169.254.169.254", "100.100.100.200", "::ffff:169.254.170.2", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"]
    {
        let attempt = outgoing(&connection("http://innocent.example.org"));
        unanswered(resolving_to(&[address]).send(attempt).await, NotAllowed);
    }
}

// proves: R14 (a name may change between two looks)
#[tokio::test]
async fn r14_a_mixed_answer_is_refused_whole() {
    let peer = Peer::answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let host = format!("http://innocent.example.org:{}", peer.address.port());
    let reply = resolving_to(&["127.0.0.1", "169.254.169.254"]).send(outgoing(&connection(&host))).await;
    unanswered(reply, NotAllowed);
    assert_eq!(peer.sockets(), 0);
    assert_eq!(answered(resolving_to(&["127.0.0.1"]).send(outgoing(&connection(&host))).await).status, Some(200));
}

#[test]
fn d33_a_metadata_address_named_alone_is_open() {
    let allows = |opened: &str| {
        let egress = Egress::new(&[opened.parse().unwrap()]);
        egress.guard().check(Policy::Connections, false, "169.254.169.254".parse().unwrap()).is_ok()
    };
    assert!(allows("169.254.169.254/32"));
    assert!(!allows("169.254.169.0/24"));
}
