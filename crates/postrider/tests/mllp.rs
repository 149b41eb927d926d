//! HL7 over MLLP end to end: the real binary, receivers that others wrote, queue on and off (issue of connections of more kinds).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::path::PathBuf;

use harness::{Bench, Peer, flags};
use serde_json::{Value, json};

const OK: (bool, bool, bool) = (true, false, false);
const IN_QUEUE: (bool, bool, bool) = (false, true, false);
const IN_DLQ: (bool, bool, bool) = (false, false, true);
const RETURNED: (bool, bool, bool) = (false, false, false);

/// The three receivers, how each is started, and what it takes to get on with it.
fn receivers() -> [(&'static [&'static str], Value); 3] {
    [
        (&["mllp_python.py"], json!({})),
        (&["mllp_node.py", "simple-hl7"], json!({})),
        // It handles all earlier messages on a socket again with each new one, so each message gets its own.
        (&["mllp_node.py", "node-hl7-server"], json!({"keep_open": false})),
    ]
}

struct Lab {
    bench: Bench,
    peer: Peer,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Lab {
    async fn start(program: &[&str]) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let arguments: Vec<&str> = program.iter().copied().chain(["--log", log.to_str().unwrap()]).collect();
        let (bench, peer) = tokio::join!(Bench::start(), Peer::start_with(&arguments));
        Lab { bench, peer, log, _dir: dir }
    }

    async fn connection(&self, name: &str, own: &Value, more: Value) {
        let address = self.peer.address.strip_prefix("http://").unwrap();
        mllp(&self.bench, name, address, own, more).await;
    }

    /// The control ids that the receiver was given, in order.
    fn seen(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

async fn mllp(bench: &Bench, name: &str, address: &str, own: &Value, more: Value) {
    let mut body =
        json!({"name": name, "type": "mllp", "address": address, "recv_timeout": 10_000, "connect_timeout_ms": 2000});
    body.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/connections", &body).await;
    assert_eq!(status, 201, "{answer}");
}

fn adt(id: &str) -> String {
    format!("MSH|^~\\&|HIS|GH|LIS|GH|20260312120534||ADT^A01^ADT_A01|{id}|P|2.5\rPID|1||7^^^MRN||Doe^Jane\r")
}

// proves: Z32, Z01, D25
#[tokio::test(flavor = "multi_thread")]
async fn z32_queue_off_every_acknowledgment_is_returned() {
    for (program, own) in receivers() {
        let lab = Lab::start(program).await;
        lab.connection("lis", &own, json!({"max_retries": 2, "retry_sleep_time": 0})).await;
        for (id, code, wanted) in [("1", "AA", OK), ("2-AE", "AE", RETURNED), ("3-AR", "AR", RETURNED), ("4", "AA", OK)]
        {
            let (status, result) = lab.bench.send("lis", &adt(id)).await;
            assert_eq!((status, flags(&result)), (200, wanted), "{program:?} {result}");
            assert_eq!((&result["response"]["ack_code"], &result["response"]["status"]), (&json!(code), &Value::Null));
            assert!(result["response"]["body"].as_str().unwrap().contains(&format!("MSA|{code}|{id}")), "{result}");
        }
        assert_eq!(
            lab.seen(),
            ["1", "2-AE", "3-AR", "4"],
            "an acknowledgment is an answer and is not retried: {program:?}"
        );
        // No acknowledgment is a failure that is tried again (Z01), under the same control id (M17).
        lab.connection("short", &own, json!({"recv_timeout": 300, "max_retries": 2, "retry_sleep_time": 0})).await;
        let (_, result) = lab.bench.send("short", &adt("5-ONCE-MUTE")).await;
        assert_eq!((flags(&result), &result["response"]["ack_code"]), (OK, &json!("AA")), "{program:?} {result}");
        assert_eq!(lab.seen()[4..], ["5-ONCE-MUTE", "5-ONCE-MUTE"]);
        let (_, result) = lab.bench.send("short", &adt("6-MUTE")).await;
        assert_eq!(flags(&result), RETURNED);
        assert!(result["error"].as_str().unwrap().contains("no acknowledgment within 0.3 s"), "{result}");
        assert_eq!(lab.seen()[6..], ["6-MUTE", "6-MUTE", "6-MUTE"]);
        lab.bench.server.stop().await;
    }
}

// proves: Z32, Z30, D25, Z15
#[tokio::test(flavor = "multi_thread")]
async fn z32_queue_on_ar_is_queued_when_retries_are_set_and_ae_is_returned() {
    for (program, own) in receivers() {
        let lab = Lab::start(program).await;
        lab.connection("lis", &own, json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 0.2})).await;
        let (status, result) = lab.bench.send("lis", &adt("1")).await;
        assert_eq!(
            (status, flags(&result), &result["response"]["ack_code"]),
            (200, OK, &json!("AA")),
            "{program:?} {result}"
        );
        let (status, result) = lab.bench.send("lis", &adt("2-AE")).await;
        assert_eq!(
            (status, flags(&result), &result["response"]["ack_code"]),
            (200, RETURNED, &json!("AE")),
            "{program:?} {result}"
        );
        assert!(result["error"].as_str().unwrap().starts_with("AE"), "{result}");
        let (status, result) = lab.bench.send("lis", &adt("3-ONCE-AR")).await;
        assert_eq!(
            (status, flags(&result), &result["response"]["ack_code"]),
            (202, IN_QUEUE, &json!("AR")),
            "{program:?} {result}"
        );
        let id = result["msg_id"].as_str().unwrap().to_owned();
        assert_eq!(lab.bench.until_status(&id, "SUCCESS").await["attempts"], 2);
        assert_eq!(lab.seen(), ["1", "2-AE", "3-ONCE-AR", "3-ONCE-AR"]);
        // D25: an AE that a round meets goes to the DLQ at once, and one that never gets better after the round.
        let queued = lab.bench.publish("lis", &adt("4-AE")).await;
        let dead = lab.bench.until_status(&queued, "DLQ").await;
        assert_eq!((&dead["attempts"], &dead["failure"]), (&json!(1), &json!("rejected")), "{program:?} {dead}");
        let queued = lab.bench.publish("lis", &adt("5-AR")).await;
        let dead = lab.bench.until_status(&queued, "DLQ").await;
        assert_eq!((&dead["attempts"], &dead["failure"]), (&json!(4), &json!("rejected")), "{program:?} {dead}");
        // Without retries an AR goes to the DLQ, or back to its caller where there is none.
        lab.connection("once", &own, json!({"use_queue": true})).await;
        assert_eq!(flags(&lab.bench.send("once", &adt("6-AR")).await.1), IN_DLQ);
        lab.connection("back", &own, json!({"use_queue": true, "use_dlq": false})).await;
        assert_eq!(flags(&lab.bench.send("back", &adt("7-AR")).await.1), RETURNED);
        // `retry_on` turns it round.
        lab.connection(
            "stubborn",
            &own,
            json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 0.2, "retry_on": ["AR", "AE"]}),
        )
        .await;
        let (_, result) = lab.bench.send("stubborn", &adt("8-ONCE-AE")).await;
        assert_eq!(flags(&result), IN_QUEUE, "{result}");
        lab.bench.until_status(result["msg_id"].as_str().unwrap(), "SUCCESS").await;
        lab.bench.server.stop().await;
    }
}

// proves: Z11, Z13, Z14
#[tokio::test(flavor = "multi_thread")]
async fn z11_a_hundred_messages_arrive_in_order_over_an_outage_and_a_kill() {
    for (program, own) in receivers() {
        let mut lab = Lab::start(program).await;
        // Nobody listens yet at the address that the connection has.
        mllp(
            &lab.bench,
            "lis",
            "127.0.0.1:1",
            &own,
            json!({"use_queue": true, "use_dlq": false, "retry_sleep_time": 0}),
        )
        .await;
        let wanted: Vec<String> = (0..100).map(|n| format!("N{n}")).collect();
        let mut last = String::new();
        for id in &wanted {
            last = lab.bench.publish("lis", &adt(id)).await;
        }
        lab.bench = lab.bench.kill_and_restart().await;
        let address = lab.peer.address.strip_prefix("http://").unwrap().to_owned();
        let (status, answer) = lab.bench.call("PATCH", "/connections/lis", &json!({"address": address})).await;
        assert_eq!(status, 200, "{answer}");
        lab.bench.until_status(&last, "SUCCESS").await;
        assert_eq!(lab.seen(), wanted, "{program:?}");
        lab.bench.server.stop().await;
    }
}

// On a socket that stays open it acknowledges all earlier messages again before the new one: the first frame is not the answer.
#[tokio::test(flavor = "multi_thread")]
async fn m03_a_receiver_that_repeats_old_acknowledgments_is_understood() {
    let lab = Lab::start(&["mllp_node.py", "node-hl7-server"]).await;
    lab.connection("lis", &json!({}), json!({})).await;
    for (id, code, wanted) in [("1-AE", "AE", RETURNED), ("2", "AA", OK), ("3-AR", "AR", RETURNED)] {
        let (_, result) = lab.bench.send("lis", &adt(id)).await;
        assert_eq!((flags(&result), &result["response"]["ack_code"]), (wanted, &json!(code)), "{result}");
    }
    assert_eq!(lab.seen(), ["1-AE", "1-AE", "2", "1-AE", "2", "3-AR"], "as its manual says");
    lab.bench.server.stop().await;
}

// proves: Z03, D13
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_go_over_mllp_is_refused_and_nothing_is_stored() {
    let bench = Bench::start().await;
    mllp(&bench, "lis", "127.0.0.1:1", &json!({}), json!({"use_queue": true, "max_msg_size": 200})).await;
    for (request, field, why) in [
        (json!({"body": "hello"}), "body", "does not begin with MSH"),
        (json!({"body": {"resourceType": "Patient"}}), "body", "a string"),
        (json!({"body": adt("")}), "body", "MSH-10 is empty"),
        (json!({"body": format!("{}\u{1c}", adt("1"))}), "body", "0x1C"),
        (json!({"body": adt("1") + &"OBX|".repeat(60)}), "body", "at most 200 bytes"),
        (json!({"body": adt("1"), "path": "/x"}), "path", "only the body is sent"),
        (json!({"body": adt("1"), "method": "PUT"}), "method", "only the body is sent"),
        (json!({"body": adt("1"), "headers": {"X-A": "1"}}), "headers", "only the body is sent"),
    ] {
        let (status, problem) = bench.call("POST", "/connections/lis/send", &request).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{problem}");
        assert!(problem.to_string().contains(why), "{problem}");
    }
    assert_eq!(bench.count().await, 0);
    let told = bench.exchange(bench.head("/connections/lis/raw", "Content-Length: 0\r\n").as_bytes()).await;
    assert!(told.starts_with("HTTP/1.1 422") && told.contains("over HTTP"), "{told}");
    // D16: one name, two types.
    bench.connection("lis", "http://127.0.0.1:1", json!({})).await;
    let (status, problem) = bench.call("GET", "/connections/lis", &Value::Null).await;
    assert!(status == 409 && problem.to_string().contains("rest, mllp"), "{problem}");
    let (status, found) = bench.call("GET", "/connections/lis?type=mllp", &Value::Null).await;
    assert_eq!((status, &found["address"]), (200, &json!("127.0.0.1:1")));
    bench.server.stop().await;
}
