//! Answers that no proper service gives, from pytest-httpserver and from a socket that breaks off.

use serde_json::{Value, json};

use crate::harness::{Act, RawRemote};
use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, flags, queue};

const NS: &str = "http://schemas.xmlsoap.org/soap/envelope/";

fn envelope(inside: &str) -> String {
    format!("<e:Envelope xmlns:e=\"{NS}\"><e:Body>{inside}</e:Body></e:Envelope>")
}

// proves: D24, R16
#[tokio::test(flavor = "multi_thread")]
async fn d24_a_2xx_that_cannot_be_read_is_delivered_with_a_word_and_never_sent_again() {
    let lab = Lab::start("http_receiver.py").await;
    let cut = "<e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><r><id>1</id>";
    let bomb = "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>";
    let answers = [("html", "<html>ok</html>"), ("cut", cut), ("empty", ""), ("bomb", bomb), ("text", "thanks")];
    let rules: Vec<Value> = answers
        .iter()
        .map(|(name, body)| json!({"path": format!("/{name}"), "answers": [{"status": 200, "body": body, "headers": {"Content-Type": "text/xml"}}]}))
        .collect();
    lab.peer.call("PUT", "/__script", &json!({"rules": rules})).await;
    for (name, _) in answers {
        lab.connection(name, &format!("/{name}"), queue()).await;
        let result = lab.invoke(name, "Op", json!({})).await;
        assert_eq!(flags(&result), OK, "{result}");
        assert!(result["error"].as_str().unwrap().starts_with("the answer is"), "{result}");
        let delivery = lab.delivery_until(&result, "SUCCESS").await;
        assert_eq!(delivery["attempts"], 1);
        let path = format!("/deliveries/{}/attempts", result["msg_id"].as_str().unwrap());
        let (_, attempts) = lab.call("GET", &path, &Value::Null).await;
        assert_eq!(attempts["data"][0]["error"], result["error"], "{attempts}");
    }
    let cut = lab.invoke("cut", "Op", json!({})).await;
    assert_eq!(cut["response"]["data"], json!({"id": "1"}), "what came is there: {cut}");
}

// proves: Z01, Z10
#[tokio::test(flavor = "multi_thread")]
async fn s05_an_error_page_is_a_failed_status_and_a_one_way_operation_needs_no_envelope() {
    let lab = Lab::start("http_receiver.py").await;
    let script = json!({"rules": [
        {"path": "/page", "answers": [{"status": 502, "body": "<html>Bad Gateway</html>", "headers": {"Content-Type": "text/html"}}]},
        {"path": "/unsupported", "answers": [{"status": 415}]},
        {"path": "/oneway", "answers": [{"status": 202}]},
        {"path": "/limited", "answers": [{"status": 429}, {"status": 200, "body": envelope("<r>done</r>")}]},
    ]});
    lab.peer.call("PUT", "/__script", &script).await;
    for (name, expected, error) in [
        ("page", RETURNED, Some("HTTP 502")),
        ("unsupported", RETURNED, Some("soap_version")),
        ("oneway", OK, None),
        ("limited", OK, None),
    ] {
        lab.connection(name, &format!("/{name}"), json!({"max_retries": 1, "retry_sleep_time": 0})).await;
        let result = lab.invoke(name, "Op", json!({})).await;
        assert_eq!(flags(&result), expected, "{result}");
        match error {
            Some(error) => assert!(result["error"].as_str().unwrap().contains(error), "{result}"),
            None => assert_eq!(result["error"], Value::Null),
        }
    }
}

// proves: Z34, Z10
#[tokio::test(flavor = "multi_thread")]
async fn z34_s04_a_service_that_says_no_under_200_is_heard() {
    let lab = Lab::start("http_receiver.py").await;
    let says = |status: &str| json!({"status": 200, "body": envelope(&format!("<r><status>{status}</status></r>")), "headers": {"Content-Type": "text/xml"}});
    let rules = json!({"rules": [
        {"path": "/off", "answers": [says("ERROR")]},
        {"path": "/on", "answers": [says("ERROR"), says("BUSY"), says("DONE")]},
        {"path": "/cut", "answers": [{"status": 200, "body": "<html>ok</html>"}]},
    ]});
    lab.peer.call("PUT", "/__script", &rules).await;
    lab.connection(
        "off",
        "/off",
        json!({"success_if": "/status = OK | DONE", "max_retries": 2, "retry_sleep_time": 0}),
    )
    .await;
    let result = lab.invoke("off", "Op", json!({})).await;
    assert_eq!((flags(&result), &result["response"]["data"]["status"]), (RETURNED, &json!("ERROR")), "{result}");
    assert!(result["error"].as_str().unwrap().contains("`/status` is `ERROR`"), "{result}");
    let on = json!({"success_if": "/status = OK | DONE", "use_queue": true, "max_retries": 3, "retry_sleep_time": 0});
    lab.connection("on", "/on", on).await;
    let result = lab.invoke("on", "Op", json!({})).await;
    assert_eq!(flags(&result), IN_QUEUE, "{result}");
    assert_eq!(lab.delivery_until(&result, "SUCCESS").await["attempts"], 3);
    // D24: what cannot be read stays a delivery.
    lab.connection("cut", "/cut", json!({"success_if": "/status = OK"})).await;
    assert_eq!(flags(&lab.invoke("cut", "Op", json!({})).await), OK);
}

/// The length says more than comes; then the socket is closed.
const CUT_FAULT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 5000\r\n\r\n\
    <e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><e:Fault><faultcode>e:Server</faultcode>\
    <faultstring>no bed";
const CUT_ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 5000\r\n\r\n\
    <e:Envelope xmlns:e=\"http://schemas.xmlsoap.org/soap/envelope/\"><e:Body><r><id>1</id>";

// proves: D24
#[tokio::test(flavor = "multi_thread")]
async fn d24_an_answer_that_breaks_off_is_a_fault_only_if_it_began_as_one() {
    let lab = Lab::start("http_receiver.py").await;
    let fault = RawRemote::start(&[Act::Read, Act::Say(CUT_FAULT)]).await;
    let answer = RawRemote::start(&[Act::Read, Act::Say(CUT_ANSWER)]).await;
    for (use_queue, refused) in [(false, RETURNED), (true, IN_QUEUE)] {
        let settings = |remote: &RawRemote| json!({"host": remote.address, "use_queue": use_queue, "max_retries": 1, "retry_sleep_time": 8});
        let names = [format!("fault-{use_queue}"), format!("answer-{use_queue}")];
        lab.connection(&names[0], "/", settings(&fault)).await;
        lab.connection(&names[1], "/", settings(&answer)).await;
        let result = lab.invoke(&names[0], "Op", json!({})).await;
        assert_eq!((flags(&result), &result["response"]["fault"]["reason"]), (refused, &json!("no bed")), "{result}");
        let result = lab.invoke(&names[1], "Op", json!({})).await;
        assert_eq!((flags(&result), &result["response"]["incomplete"]), (OK, &json!(true)), "{result}");
        assert!(result["error"].as_str().unwrap().ends_with("it was cut"), "{result}");
    }
    assert_eq!(answer.connections(), 2, "delivered once each");
}

// proves: D24, R16
#[tokio::test(flavor = "multi_thread")]
async fn d24_hostile_answers_are_delivered_once_and_harm_nothing() {
    let lab = Lab::start("http_receiver.py").await;
    let lol =
        (1..10).map(|n| format!("<!ENTITY l{n} \"&l{m};&l{m};&l{m};&l{m};&l{m};&l{m};&l{m};&l{m};\">", m = n - 1));
    let bomb = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE l [<!ENTITY l0 \"lol\">{}]>{}",
        lol.collect::<String>(),
        envelope("<r>&l9;</r>")
    );
    let outside = format!("<!DOCTYPE l SYSTEM \"file:///etc/passwd\">{}", envelope("<r>1</r>"));
    let entity = envelope("<r>&passwd;</r>");
    let deep = envelope(&"<a>".repeat(30_000));
    let wide = envelope(&format!("<r {}/>", (0..20_000).map(|n| format!("a{n}=\"\" ")).collect::<String>()));
    let huge = envelope(&format!("<r>{}</r>", "A".repeat(3 << 20)));
    let latin = [
        b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>".to_vec(),
        envelope("<r>x</r>").replace('x', "\u{1}").into_bytes(),
    ]
    .concat();
    let latin: Vec<u8> = latin.into_iter().map(|byte| if byte == 1 { 0xe4 } else { byte }).collect();
    let understand = format!(
        "<e:Envelope xmlns:e=\"{NS}\"><e:Header><t:Tx xmlns:t=\"urn:t\" e:mustUnderstand=\"1\">7</t:Tx></e:Header><e:Body><r>1</r></e:Body></e:Envelope>"
    );
    let xml = "text/xml; charset=utf-8";
    let answers: [(&str, &str, Vec<u8>, Option<&str>); 10] = [
        ("bomb", xml, bomb.into_bytes(), Some("the answer is")),
        ("outside", xml, outside.into_bytes(), Some("the answer is")),
        ("entity", xml, entity.into_bytes(), Some("the answer is")),
        ("deep", xml, deep.into_bytes(), Some("the answer is")),
        ("wide", xml, wide.into_bytes(), Some("the answer is")),
        ("huge", xml, huge.into_bytes(), Some("it was cut")),
        ("latin", xml, latin.clone(), Some("not in the encoding")),
        ("bogus", "text/xml; charset=klingon", envelope("<r>1</r>").into_bytes(), None),
        ("fake", "multipart/related; boundary=\"--\"", b"----\r\n\r\n------".to_vec(), Some("the answer is")),
        ("understand", xml, understand.into_bytes(), None),
    ];
    let rules: Vec<Value> = answers
        .iter()
        .map(|(name, content_type, body, _)| {
            let body = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, body);
            json!({"path": format!("/{name}"), "answers": [{"status": 200, "body_base64": body, "headers": {"Content-Type": content_type}}]})
        })
        .collect();
    lab.peer.call("PUT", "/__script", &json!({"rules": rules})).await;
    for (name, _, _, remark) in &answers {
        lab.connection(name, &format!("/{name}"), queue()).await;
        let result = lab.invoke(name, "Op", json!({})).await;
        assert_eq!(flags(&result), OK, "{name}: {}", &result["error"]);
        let error = result["error"].as_str();
        if let Some(remark) = remark {
            assert!(error.is_some_and(|error| error.contains(remark)), "{name}: {error:?}");
        }
        assert!(!result.to_string().contains("root:x:0"), "{name} reads no file");
        assert_eq!(lab.delivery_until(&result, "SUCCESS").await["attempts"], 1, "{name}");
    }
    assert_eq!(lab.invoke("understand", "Op", json!({})).await["response"]["data"], json!("1"));
}

// proves: Z34
#[tokio::test(flavor = "multi_thread")]
async fn s11_s13_an_answer_of_mtom_comes_with_its_attachments_and_a_fault_in_parts_is_a_fault() {
    let lab = Lab::start("http_receiver.py").await;
    let parts = |inside: &str| {
        format!(
            "--x\r\nContent-ID: <root@x>\r\nContent-Type: application/xop+xml; charset=UTF-8; type=\"text/xml\"\r\n\r\n{}\r\n\
             --x\r\nContent-ID: <doc@x>\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: binary\r\n\r\n%PDF-1\r\n--x--\r\n",
            envelope(inside)
        )
    };
    let include = "<xop:Include xmlns:xop=\"http://www.w3.org/2004/08/xop/include\" href=\"cid:doc%40x\"/>";
    let fault = "<e:Fault><faultcode>e:Server</faultcode><faultstring>no bed</faultstring></e:Fault>";
    let answer = |status: u16, inside: &str| {
        let content_type =
            "multipart/related; type=\"application/xop+xml\"; start=\"<root@x>\"; start-info=\"text/xml\"; boundary=x";
        json!([{"status": status, "body": parts(inside), "headers": {"Content-Type": content_type}}])
    };
    let rules = json!({"rules": [
        {"path": "/report", "answers": answer(200, &format!("<r><pdf>{include}</pdf></r>"))},
        {"path": "/fault", "answers": answer(500, fault)},
    ]});
    lab.peer.call("PUT", "/__script", &rules).await;
    for (use_queue, refused) in [(false, RETURNED), (true, IN_QUEUE)] {
        let settings = json!({"use_queue": use_queue, "max_retries": 1, "retry_sleep_time": 8});
        let names = [format!("report-{use_queue}"), format!("fault-{use_queue}")];
        lab.connection(&names[0], "/report", settings.clone()).await;
        lab.connection(&names[1], "/fault", settings).await;
        let result = lab.invoke(&names[0], "Op", json!({})).await;
        assert_eq!((flags(&result), &result["response"]["data"]["pdf"]), (OK, &json!("JVBERi0x")), "{result}");
        let result = lab.invoke(&names[1], "Op", json!({})).await;
        assert_eq!((flags(&result), &result["response"]["fault"]["reason"]), (refused, &json!("no bed")), "{result}");
    }
}
