//! HL7 over MLLP with the queue on and off against a receiver that is down, silent, late or breaks off in the middle of its acknowledgment;
//! mended, it gets what waits.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{Bench, flags};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const OK: (bool, bool, bool) = (true, false, false);
const IN_QUEUE: (bool, bool, bool) = (false, true, false);
const RETURNED: (bool, bool, bool) = (false, false, false);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Well,
    Mute,
    /// A second after the sender has given up.
    Late,
    /// Half of an acknowledgment, and a reset.
    BreaksOff,
}

struct Receiver {
    address: String,
    manner: Arc<Mutex<Manner>>,
    /// Control ids in the order of their arrival.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    async fn start(manner: Manner) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Receiver {
            address: listener.local_addr().unwrap().to_string(),
            manner: Arc::new(Mutex::new(manner)),
            seen: Arc::default(),
        };
        let (manner, seen) = (receiver.manner.clone(), receiver.seen.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, manner.clone(), seen.clone()));
            }
        });
        receiver
    }

    fn becomes(&self, manner: Manner) {
        *self.manner.lock().unwrap() = manner;
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, manner: Arc<Mutex<Manner>>, seen: Arc<Mutex<Vec<String>>>) {
    let mut bytes = Vec::new();
    loop {
        let Ok(1..) = stream.read_buf(&mut bytes).await else { return };
        if !bytes.ends_with(b"\x1c\r") {
            continue;
        }
        let message = String::from_utf8(std::mem::take(&mut bytes)).unwrap();
        let id = message.split('|').nth(9).unwrap().to_owned();
        seen.lock().unwrap().push(id.clone());
        let ack = format!("\x0bMSH|^~\\&|LIS|GH|HIS|GH|20260312||ACK|{id}|P|2.5\rMSA|AA|{id}\r\x1c\r");
        let manner = *manner.lock().unwrap();
        match manner {
            Manner::Mute => {}
            Manner::Late => {
                tokio::time::sleep(Duration::from_millis(1300)).await;
                let _ = stream.write_all(ack.as_bytes()).await;
            }
            Manner::BreaksOff => {
                let _ = stream.write_all(&ack.as_bytes()[..30]).await;
                stream.set_zero_linger().unwrap();
                return;
            }
            Manner::Well => {
                let _ = stream.write_all(ack.as_bytes()).await;
            }
        }
    }
}

fn adt(id: &str) -> String {
    format!("MSH|^~\\&|HIS|GH|LIS|GH|20260312120534||ADT^A01^ADT_A01|{id}|P|2.5\rPID|1||7^^^MRN||Doe^Jane\r")
}

async fn connection(bench: &Bench, name: &str, address: &str, more: Value) {
    let mut body = json!({"name": name, "type": "mllp", "address": address, "recv_timeout": 300});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/connections", &body).await;
    assert_eq!(status, 201, "{answer}");
}

/// Retries until the receiver is mended.
fn queue() -> Value {
    json!({"use_queue": true, "max_retries": 300, "retry_sleep_time": 0.2, "retry_backoff_multiplier": 1, "retry_backoff_threshold": 3600})
}

// proves: Z01, Z10, Z14, Z32
#[tokio::test(flavor = "multi_thread")]
async fn z32_m01_m13_m18_every_trouble_of_a_receiver_is_returned_or_waits_until_it_is_over() {
    let bench = Bench::start().await;
    for (manner, failure, told) in [
        (Manner::Mute, "no_ack", "no acknowledgment within 0.3 s"),
        (Manner::Late, "no_ack", "no acknowledgment within 0.3 s"),
        (Manner::BreaksOff, "unreachable", "reset"),
    ] {
        let receiver = Receiver::start(manner).await;
        let name = format!("off-{manner:?}");
        connection(&bench, &name, &receiver.address, json!({})).await;
        let (_, result) = bench.send(&name, &adt("OFF-1")).await;
        assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{manner:?}: {result}");
        assert!(result["error"].as_str().unwrap().contains(told), "{manner:?}: {result}");
        let ended = bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
        assert_eq!((&ended["failure"], &ended["attempts"]), (&json!(failure), &json!(1)), "{manner:?}: {ended}");
        receiver.becomes(Manner::Well);
        let (_, result) = bench.send(&name, &adt("OFF-2")).await;
        assert_eq!((flags(&result), &result["response"]["ack_code"]), (OK, &json!("AA")), "{manner:?}: {result}");
        assert!(result["response"]["body"].as_str().unwrap().contains("MSA|AA|OFF-2"), "its own: {result}");

        receiver.becomes(manner);
        let name = format!("on-{manner:?}");
        connection(&bench, &name, &receiver.address, queue()).await;
        let (_, first) = bench.send(&name, &adt("ON-1")).await;
        assert_eq!((flags(&first), &first["response"]), (IN_QUEUE, &Value::Null), "{manner:?}: {first}");
        let second = bench.publish(&name, &adt("ON-2")).await;
        receiver.becomes(Manner::Well);
        let first = bench.until_status(first["msg_id"].as_str().unwrap(), "SUCCESS").await;
        assert!(first["attempts"].as_u64().unwrap() >= 2, "{manner:?}: {first}");
        bench.until_status(&second, "SUCCESS").await;
        let seen: Vec<String> = receiver.seen().into_iter().filter(|id| id.starts_with("ON")).collect();
        let before = seen.iter().take_while(|id| *id == "ON-1").count();
        assert_eq!(seen[before..], ["ON-2"], "{manner:?}: the second only once the first is through: {seen:?}");
    }
}

// proves: Z01, Z10
#[tokio::test(flavor = "multi_thread")]
async fn z10_a_receiver_that_is_down_is_told_or_waited_for() {
    let bench = Bench::start().await;
    connection(&bench, "off", "127.0.0.1:1", json!({"max_retries": 1, "retry_sleep_time": 0})).await;
    let (_, result) = bench.send("off", &adt("1")).await;
    assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{result}");
    let ended = bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
    assert_eq!((&ended["failure"], &ended["attempts"]), (&json!("unreachable"), &json!(2)), "{ended}");
    connection(&bench, "on", "127.0.0.1:1", queue()).await;
    let (_, queued) = bench.send("on", &adt("2")).await;
    assert_eq!(flags(&queued), IN_QUEUE, "{queued}");
    let receiver = Receiver::start(Manner::Well).await;
    bench.call("PATCH", "/connections/on", &json!({"address": receiver.address})).await;
    bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
    assert_eq!(receiver.seen(), ["2"]);
}
