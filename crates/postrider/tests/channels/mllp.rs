//! MLLP channels: HL7 from a sender that we did not write, and from sockets that misbehave.

use std::process::Stdio;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Bench, Mirror, Peer};
use crate::lab::{service, with_mirror};

pub const ADT: &str = "MSH|^~\\&|LAB|GH|LIS|GH2|20260311||ADT^A01^ADT_A01|MSG1|P|2.5\rPID|1||4711\r";

pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

pub async fn listener(bench: &Bench, name: &str, more: Value) -> u16 {
    let port = free_port();
    let mut body = json!({"name": name, "type": "mllp", "address": format!("127.0.0.1:{port}")});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/channels", &body).await;
    assert_eq!(status, 201, "{answer}");
    connected(port).await;
    port
}

/// The port is open a moment after its channel is made.
pub async fn connected(port: u16) -> TcpStream {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)).await {
            return stream;
        }
        assert!(tokio::time::Instant::now() < deadline, "port {port} is not open");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn sent(port: u16, messages: &[String], tls: Value) -> Value {
    let asked = json!({"host": "127.0.0.1", "port": port, "messages": messages, "tls": tls});
    let mut child = Peer::tool("mllp_sender.py").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "the sender failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What comes until the other side closes, or until it rests for so long.
pub async fn heard(stream: &mut TcpStream, rest: Duration) -> String {
    let mut all = Vec::new();
    let mut some = [0; 4096];
    while let Ok(Ok(count @ 1..)) = tokio::time::timeout(rest, stream.read(&mut some)).await {
        all.extend_from_slice(&some[..count]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

pub fn framed(message: &str) -> Vec<u8> {
    [b"\x0b", message.as_bytes(), b"\x1c\r"].concat()
}

pub const SOON: Duration = Duration::from_millis(600);

#[tokio::test]
async fn z41_a_message_is_acknowledged_once_it_is_stored_and_runs_as_it_arrived() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let port = listener(&bench, "ADT", json!({"service": "mirror"})).await;
    bench.call("POST", "/channels/ADT/pause", &Value::Null).await;
    let messages: Vec<String> = (1..=20).map(|n| ADT.replace("MSG1", &format!("MSG{n}"))).collect();
    let told = sent(port, &messages, Value::Null).await;
    let acks = told["acks"].as_array().unwrap_or_else(|| panic!("{told}"));
    for (n, ack) in acks.iter().enumerate() {
        assert_eq!((&ack["code"], &ack["id"]), (&json!("AA"), &json!(format!("MSG{}", n + 1))));
        assert_eq!((&ack["sender"], &ack["receiver"]), (&json!(["LIS", "GH2"]), &json!(["LAB", "GH"])));
        assert_eq!(ack["type"], "ACK^A01^ACK");
    }
    assert_eq!((acks.len(), mirror.count(), bench.count().await), (20, 0, 20), "stored, and not run");
    bench.call("POST", "/channels/ADT/resume", &Value::Null).await;
    mirror.until(20).await;
    let bodies: Vec<_> = mirror.requests().iter().map(|got| String::from_utf8_lossy(&got.body).into_owned()).collect();
    assert_eq!(bodies, messages, "byte for byte, in order");
    let got = mirror.last();
    assert_eq!(
        (got.header("content-type"), got.header("x-postrider-channel")),
        (Some("application/hl7-v2"), Some("ADT"))
    );
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let (_, shown) = bench.call("GET", "/channels/ADT", &Value::Null).await;
        assert_eq!(shown["type"], "mllp");
        if shown["state"]["waiting"] == 0 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{shown}");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_ae_and_what_cannot_be_taken_is_ar() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let port = listener(&bench, "ADT", json!({"service": "mirror", "max_msg_size": 500})).await;
    let mut stream = connected(port).await;
    stream.write_all(&framed("hello")).await.unwrap();
    let refused = heard(&mut stream, SOON).await;
    assert!(refused.contains("MSA|AE|"), "{refused}");
    // The same socket goes on.
    stream.write_all(&framed(ADT)).await.unwrap();
    assert!(heard(&mut stream, SOON).await.contains("MSA|AA|MSG1"));
    mirror.until(1).await;
    stream.write_all(&framed(&format!("{ADT}{}", "Z".repeat(600)))).await.unwrap();
    let long = heard(&mut stream, SOON).await;
    assert!(long.contains("MSA|AE|") && long.contains("max_msg_size"), "{long}");
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0, "nothing that follows can be trusted");
    // A connection that is not active has its port closed; one that is there while the server stops answers AR.
    bench.call("PATCH", "/channels/ADT", &json!({"is_active": false})).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
        assert!(tokio::time::Instant::now() < deadline, "the port is still open");
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert_eq!(bench.count().await, 1);
}

#[tokio::test]
async fn m25_frames_that_come_together_or_in_pieces_are_each_acknowledged_in_order() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let settings = json!({"service": "mirror", "recv_timeout": 700, "connections_max": 2});
    let port = listener(&bench, "ADT", settings).await;
    let mut stream = connected(port).await;
    let several: Vec<u8> = (1..=3).flat_map(|n| framed(&ADT.replace("MSG1", &format!("T{n}")))).collect();
    stream.write_all(&several).await.unwrap();
    let acks = heard(&mut stream, SOON).await;
    let at = |text: &str| acks.find(text).unwrap_or_else(|| panic!("{text}: {acks}"));
    assert!(at("MSA|AA|T1") < at("MSA|AA|T2") && at("MSA|AA|T2") < at("MSA|AA|T3"));
    // M23: the end without its last byte, which comes late or never.
    let whole = framed(&ADT.replace("MSG1", "P1"));
    for byte in &whole[..whole.len() - 1] {
        stream.write_all(&[*byte]).await.unwrap();
    }
    assert!(heard(&mut stream, Duration::from_millis(1200)).await.contains("MSA|AA|P1"));
    // Half a message holds its socket for so long and no longer, and nothing of it is stored.
    stream.write_all(&whole[..40]).await.unwrap();
    assert_eq!(stream.read(&mut [0; 1]).await.unwrap_or(0), 0);
    // So many connections at once; a further one is closed, and one that ends makes room.
    let (one, mut two) = (connected(port).await, connected(port).await);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut third = connected(port).await;
    assert_eq!(third.read(&mut [0; 1]).await.unwrap_or(0), 0, "over the limit");
    drop(one);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut fourth = connected(port).await;
    for (stream, id) in [(&mut two, "W1"), (&mut fourth, "W2")] {
        stream.write_all(&framed(&ADT.replace("MSG1", id))).await.unwrap();
        assert!(heard(stream, SOON).await.contains(&format!("MSA|AA|{id}")));
    }
    mirror.until(6).await;
    assert_eq!(bench.count().await, 6);
}

#[tokio::test]
async fn what_was_acknowledged_outlives_a_kill_nine() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let port = listener(&bench, "ADT", json!({"service": "mirror"})).await;
    bench.call("POST", "/channels/ADT/pause", &Value::Null).await;
    let messages: Vec<String> = (1..=50).map(|n| ADT.replace("MSG1", &format!("K{n}"))).collect();
    let told = sent(port, &messages, Value::Null).await;
    assert_eq!(told["acks"].as_array().map(Vec::len), Some(50), "{told}");
    let bench = bench.kill_and_restart().await;
    bench.call("POST", "/channels/ADT/resume", &Value::Null).await;
    mirror.until(50).await;
    connected(port).await;
}

#[tokio::test]
async fn z41_a_listener_feeds_connections_and_speaks_tls_with_those_who_have_a_certificate() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name = DistinguishedName::new();
    authority.distinguished_name.push(DnType::CommonName, "lab");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(path("ca.pem"), authority.pem()).unwrap();
    for name in ["server", "client"] {
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec![format!("{name}.lab")]).unwrap().signed_by(&key, &authority).unwrap();
        std::fs::write(path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    let archive =
        json!({"name": "Archive", "type": "rest", "host": mirror.address, "url_path": "/archive", "use_queue": true});
    assert_eq!(bench.call("POST", "/connections", &archive).await.0, 201);
    let settings = json!({
        "forward_to": "Archive", "tls_cert_path": path("server.pem"), "tls_key_path": path("server.key"), "tls_ca_path": path("ca.pem")
    });
    let port = listener(&bench, "ADT", settings).await;
    let known = json!({"ca": path("ca.pem"), "cert": path("client.pem"), "key": path("client.key")});
    let told = sent(port, &[ADT.to_owned()], known).await;
    assert_eq!(told["acks"][0]["code"], "AA", "{told}");
    mirror.until(1).await;
    assert_eq!((mirror.last().uri.path(), &mirror.last().body[..]), ("/archive", ADT.as_bytes()));
    let unknown = sent(port, &[ADT.to_owned()], json!({"ca": path("ca.pem")})).await;
    assert!(unknown["error"].is_string(), "{unknown}");
    let clear = sent(port, &[ADT.to_owned()], Value::Null).await;
    assert!(clear["acks"].as_array().is_none_or(Vec::is_empty), "{clear}");
    assert_eq!(bench.count().await, 2, "the channel's delivery and the connection's");
    service(&bench, "other", "http://127.0.0.1:1").await;
    let taken = json!({"name": "Other", "type": "mllp", "service": "other", "address": format!("0.0.0.0:{port}")});
    assert_eq!(bench.call("POST", "/channels", &taken).await.1["errors"][0]["field"], "address");
}

#[tokio::test]
async fn z41_a_channel_whose_port_is_taken_says_so_until_it_listens() {
    let (bench, _mirror) = with_mirror().await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let body = json!({"name": "Lab", "type": "mllp", "address": address, "service": "mirror"});
    let (status, made) = bench.call("POST", "/channels", &body).await;
    assert_eq!(status, 201, "{made}");
    let until = async |listening: bool| {
        for _ in 0..200 {
            let (_, shown) = bench.call("GET", "/channels/Lab", &Value::Null).await;
            if shown["state"]["listening"] == listening && shown["warnings"].as_array().unwrap().is_empty() == listening
            {
                return shown;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("never: {listening}");
    };
    let shut = until(false).await;
    assert!(shut["warnings"][0].as_str().unwrap().starts_with("it does not listen: "), "{shut}");
    drop(taken);
    until(true).await;
}
