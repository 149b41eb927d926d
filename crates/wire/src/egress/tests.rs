//! Hostile destinations against the way out itself: nothing is dialled, whatever the spelling and whatever a resolver says.

use std::net::IpAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::net::TcpListener;

use super::*;

/// Gives its answers one after the other, the last one for ever.
struct Rebinding {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    asked: AtomicUsize,
}

impl Rebinding {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let read = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Rebinding { answers: Mutex::new(answers.iter().map(read).collect()), asked: AtomicUsize::new(0) })
    }
}

#[async_trait]
impl Resolver for Rebinding {
    async fn resolve(&self, _host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        Ok(answer.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }
}

async fn open(egress: &Egress, written: &str, port: u16, policy: Policy) -> Result<TcpStream, NotOpened> {
    let host = Host::new(written, port);
    let to = Destination { host: &host, tls: true, policy };
    // What gets past the guard must not hold up the test.
    let opened = tokio::time::timeout(Duration::from_secs(5), egress.open(to, &Progress::new())).await;
    opened.unwrap_or(Err(NotOpened::NoAddress))
}

/// Each of them would reach this machine, its network or a metadata service, if it were dialled.
const HOSTILE: &[&str] = &[
    // Plain.
    "127.0.0.1",
    "127.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.1.1",
    "169.254.1.1",
    "0.0.0.0",
    "0.1.2.3",
    "100.64.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "127.0.0.1.",
    "169.254.169.254.",
    // Numeric, octal, hexadecimal, short.
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "017700000001",
    "127.1",
    "127.0.1",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f.1",
    "127.0.0.0x1",
    "00000177.0.0.1",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "10.1",
    "0",
    "0x0",
    "127.000.000.001",
    "256.256.256.256",
    "1.2.3.4.5",
    // IPv6 and what it carries.
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::127.0.0.1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:a00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::10.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::1]",
    "[2001:0:4136:e378:8000:63bf:80ff:fffe]",
    "[2001:db8::1]",
    "[2001:10::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[100::1]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[fe80::5efe:10.0.0.1]",
    "[2606:4700::200:5efe:a00:1]",
    "[fe80::1%eth0]",
    "[::1%1]",
    // Names of this machine and of metadata services; other alphabets, escapes, and what is no name at all.
    "localhost",
    "LOCALHOST",
    "localhost.",
    "api.localhost",
    "localhost.localdomain",
    "localhost6",
    "ip6-localhost",
    "ip6-loopback",
    "metadata.google.internal",
    "Metadata.Google.Internal.",
    "metadata",
    "instance-data",
    "１２７.0.0.1",
    "ⓛocalhost",
    "127。0。0。1",
    "127%2e0%2e0%2e1",
    "good.example@127.0.0.1",
    "127.0.0.1\\@good.example",
    "127.0.0.1#good.example",
    "good.example/",
    "a..b",
    "",
    ".",
    " 127.0.0.1",
    "127.0.0.1\n",
];

// proves: R14 (literals, numeric forms and names, at connect time, with the system's own resolver behind)
#[tokio::test]
async fn r14_hostile_destinations_are_refused_before_anything_is_dialled() {
    assert!(HOSTILE.len() >= 60);
    let egress = Egress::new(&[]);
    for written in HOSTILE {
        let opened = open(&egress, written, 9, Policy::Public).await;
        assert!(matches!(opened, Err(NotOpened::Refused(_))), "{written:?}: {opened:?}");
    }
}

// proves: R14 (the same through a name, as with a resolver that serves what the address in its name says)
#[tokio::test]
async fn r14_a_name_is_judged_by_what_it_resolves_to() {
    let literals =
        HOSTILE.iter().map(|written| written.trim_matches(['[', ']'])).filter(|text| text.parse::<IpAddr>().is_ok());
    let mut judged = 0;
    for address in literals {
        let egress = Egress::with_resolver(&[], Rebinding::new(&[&[address]]));
        let opened = open(&egress, "127.0.0.1.nip.example", 9, Policy::Public).await;
        assert!(matches!(opened, Err(NotOpened::Refused(_))), "{address}: {opened:?}");
        judged += 1;
    }
    assert!(judged > 40, "only {judged}");
}

// proves: R14 (DNS rebinding: one look, and the socket goes where that look said)
#[tokio::test]
async fn r14_a_name_that_rebinds_is_resolved_once_and_judged_anew_for_each_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let opened = ["127.0.0.1/32".parse().unwrap()];
    let resolver = Rebinding::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let egress = Egress::with_resolver(&opened, resolver.clone());
    let first = open(&egress, "rebinding.example", port, Policy::Public).await.unwrap();
    assert_eq!(first.peer_addr().unwrap().ip(), "127.0.0.1".parse::<IpAddr>().unwrap());
    assert_eq!(resolver.asked.load(Ordering::Relaxed), 1, "a second look could have had another answer");
    let second = open(&egress, "rebinding.example", port, Policy::Public).await;
    assert!(matches!(second, Err(NotOpened::Refused(Refused::NotPublic { .. }))), "{second:?}");
}

#[tokio::test]
async fn r14_one_closed_address_among_others_refuses_the_name() {
    for answer in [["8.8.8.8", "10.0.0.1"], ["10.0.0.1", "8.8.8.8"], ["2606:4700::1", "::1"]] {
        let egress = Egress::with_resolver(&[], Rebinding::new(&[&answer]));
        let opened = open(&egress, "mixed.example", 9, Policy::Public).await;
        assert!(matches!(opened, Err(NotOpened::Refused(_))), "{answer:?}: {opened:?}");
    }
    let none = open(&Egress::with_resolver(&[], Rebinding::new(&[&[]])), "none.example", 9, Policy::Public).await;
    assert!(matches!(none, Err(NotOpened::NoAddress)));
}

#[tokio::test]
async fn d33_an_operators_connection_reaches_this_machine_and_not_metadata() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let egress = Egress::new(&[]);
    for written in ["127.0.0.1", "[::ffff:127.0.0.1]"] {
        assert!(open(&egress, written, port, Policy::Connections).await.is_ok(), "{written}");
    }
    for written in ["169.254.169.254", "2852039166", "metadata.google.internal", "[::ffff:a9fe:a9fe]"] {
        let opened = open(&egress, written, port, Policy::Connections).await;
        assert!(matches!(opened, Err(NotOpened::Refused(_))), "{written}: {opened:?}");
    }
}
