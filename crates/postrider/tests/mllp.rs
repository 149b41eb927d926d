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

/// The receivers, how each is started, and what it takes to get on with it.
fn receivers() -> [(&'static [&'static str], Value); 4] {
    [
        (&["mllp_python.py"], json!({})),
        (&["mllp_node.py", "simple-hl7"], json!({})),
        // It handles all earlier messages on a socket again with each new one, so each message gets its own.
        (&["mllp_node.py", "node-hl7-server"], json!({"keep_open": false})),
        // It closes the socket after each answer, sometimes only after the next message has begun.
        (&["mllp_hl7apy.py"], json!({"keep_open": false})),
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

// proves: Z32
#[tokio::test(flavor = "multi_thread")]
async fn z32_a_message_may_be_called_so_and_is_there_once() {
    let lab = Lab::start(&["mllp_python.py"]).await;
    lab.connection("lis", &json!({}), json!({})).await;
    let send = async |request: Value| lab.bench.call("POST", "/connections/lis/send", &request).await;
    let (_, result) = send(json!({"message": adt("1")})).await;
    assert_eq!((flags(&result), &result["response"]["ack_code"]), (OK, &json!("AA")), "{result}");
    for both in [json!({"message": adt("2"), "body": adt("2")}), json!({"message": adt("2"), "body_base64": "TVNI"})] {
        let (status, refused) = send(both).await;
        let errors = refused["errors"].as_array().unwrap();
        assert_eq!((status, errors.len(), &errors[0]["field"]), (422, 1, &json!("message")), "{refused}");
    }
    assert_eq!(lab.seen(), ["1"]);
    lab.bench.server.stop().await;
}

// proves: Z14
#[tokio::test(flavor = "multi_thread")]
async fn z14_m37_a_large_message_is_not_overtaken_by_small_ones() {
    let lab = Lab::start(&["mllp_python.py", "--limit", "4000000"]).await;
    lab.connection("lis", &json!({}), json!({"use_queue": true, "max_msg_size": 4_000_000})).await;
    lab.bench.call("POST", "/connections/lis/pause", &Value::Null).await;
    let large = format!("{}OBX|1|ED|PDF||^^^Base64^{}\r", adt("0"), "A".repeat(1_600_000));
    lab.bench.publish("lis", &large).await;
    let mut last = String::new();
    for small in 1..5 {
        last = lab.bench.publish("lis", &adt(&small.to_string())).await;
    }
    lab.bench.call("POST", "/connections/lis/resume", &Value::Null).await;
    lab.bench.until_status(&last, "SUCCESS").await;
    assert_eq!(lab.seen(), ["0", "1", "2", "3", "4"]);
    lab.bench.server.stop().await;
}

// proves: D25, P09, D44
#[tokio::test(flavor = "multi_thread")]
async fn d25_a_head_that_was_refused_for_good_shows_rings_and_is_set_aside() {
    let lab = Lab::start(&["mllp_python.py"]).await;
    let settings = json!({"use_queue": true, "use_dlq": false, "max_retries": 2, "retry_sleep_time": 0});
    lab.connection("lis", &json!({}), settings).await;
    let head = lab.bench.publish("lis", &adt("1-AE")).await;
    let behind = lab.bench.publish("lis", &adt("2")).await;
    lab.bench.until_attempted(&head).await;
    let state = async || lab.bench.call("GET", "/connections/lis", &Value::Null).await.1["state"]["blocked"].clone();
    assert_eq!(state().await, "AE");
    let (_, listed) = lab.bench.call("GET", "/connections", &Value::Null).await;
    assert_eq!(listed["data"][0]["state"]["blocked"], "AE", "{listed}");
    let (_, queue) = lab.bench.call("GET", "/connections/lis/queue", &Value::Null).await;
    let shown: Vec<&Value> = queue["data"].as_array().unwrap().iter().map(|one| &one["blocked"]).collect();
    assert_eq!(shown, [&json!("AE"), &Value::Null], "{queue}");
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
    command
        .args(["connections", "list"])
        .env("POSTRIDER_SERVER", &lab.bench.server.address)
        .env("POSTRIDER_KEY", harness::KEY);
    let told = String::from_utf8(command.output().await.unwrap().stdout).unwrap();
    assert!(told.contains("blocked: AE"), "{told}");
    assert_eq!(lab.bench.delivery(&behind).await["status"], "PENDING");
    let (status, answer) = lab.bench.call("POST", &format!("/deliveries/{head}/set-aside"), &Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    lab.bench.until_status(&behind, "SUCCESS").await;
    assert_eq!(state().await, Value::Null);
    lab.bench.server.stop().await;
}

/// What a receiver says, written by the test and framed by mllp-http.
async fn answering(ack: &str) -> (Peer, Peer) {
    let http = Peer::start("http_receiver.py").await;
    http.call("PUT", "/__script", &json!({"rules": [{"answers": [{"status": 200, "body": ack}]}]})).await;
    let mllp = Peer::start_with(&["mllp_bridge.py", &http.address]).await;
    (http, mllp)
}

// proves: Z01, Z32
#[tokio::test(flavor = "multi_thread")]
async fn z32_m08_m11_m12_m35_whatever_a_receiver_answers_is_read_by_its_own_rules() {
    let bench = Bench::start().await;
    let ack = |msa: &str| format!("MSH|^~\\&|LIS|GH|HIS|GH|20260312||ACK|A1|P|2.5\r{msa}\r");
    for (at, (answer, wanted, code)) in [
        (ack("MSA|CA|1"), OK, Some("CA")),
        (ack("MSA|CE|1|not known"), RETURNED, Some("CE")),
        (ack("MSA|CR|1"), RETURNED, Some("CR")),
        // M11: other delimiters, by its own header.
        ("MSH:;~\\&:LIS:GH:HIS:GH:20260312::ACK:A1:P:2.5\rMSA:AE:1:bed taken\r".to_owned(), RETURNED, Some("AE")),
        // M35: an answer of its own kind acknowledges.
        (ack("MSA|AA|1").replace("||ACK|", "||ADR^A19|"), OK, Some("AA")),
        // M28, M29: line feeds, no end of the last segment.
        (ack("MSA|AA|1").replace('\r', "\n").trim_end().to_owned(), OK, Some("AA")),
        // M04: whose it is, is not said; M12: nothing that can be read; M05: a code that there is not.
        (ack("MSA|AA|"), RETURNED, None),
        (ack("MSA|AA|2"), RETURNED, None),
        ("thank you".to_owned(), RETURNED, None),
        // M40: the commit block of MLLP release 2 is nobody's acknowledgment.
        ("\u{6}".to_owned(), RETURNED, None),
        (ack("MSA|OK|1"), RETURNED, None),
        (ack("ERR|x"), RETURNED, None),
    ]
    .into_iter()
    .enumerate()
    {
        let (_http, peer) = answering(&answer).await;
        let name = format!("lis{at}");
        let address = peer.address.strip_prefix("http://").unwrap();
        mllp(&bench, &name, address, &json!({}), json!({"recv_timeout": 1500})).await;
        let (_, result) = bench.send(&name, &adt("1")).await;
        assert_eq!(flags(&result), wanted, "{answer:?}: {result}");
        let response = &result["response"]["ack_code"];
        assert_eq!(response.as_str(), code, "{answer:?}: {result}");
        if code.is_none() {
            let id = result["msg_id"].as_str().unwrap();
            assert_eq!(bench.until_status(id, "FAILED").await["failure"], "no_ack", "{answer:?}: {result}");
        }
    }
    bench.server.stop().await;
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
        // M31: UTF-16, in which the bytes of the framing may be halves of letters.
        (json!({"body_base64": "//5NAFMASAB8AA=="}), "body", "does not begin with MSH"),
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
