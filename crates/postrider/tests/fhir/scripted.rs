//! Answers that a router in one process does not give, from pytest-httpserver and from a socket that breaks off.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Act, RawRemote, flags};
use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, patient};

const OUTCOME: &str = r#"{"resourceType":"OperationOutcome","issue":[{"severity":"error","code":"conflict","diagnostics":"in use","expression":["Patient.id"]}]}"#;

fn rule(path: &str, answers: Value) -> Value {
    json!({"path": format!("/fhir/{path}*"), "answers": answers})
}

fn outcome(status: u16) -> Value {
    json!({"status": status, "body": OUTCOME, "headers": {"Content-Type": "application/fhir+json"}})
}

fn create(path: &str) -> Value {
    json!({"method": "POST", "path": format!("/{path}"), "body": patient("1")})
}

// proves: Z33, Z01, Z10
#[tokio::test(flavor = "multi_thread")]
async fn z33_f05_f08_f16_f18_a_refusal_is_returned_with_its_outcome_or_queued_for_a_round() {
    let lab = Lab::start("http_receiver.py").await;
    let xml = "<OperationOutcome xmlns=\"http://hl7.org/fhir\"><issue><severity value=\"error\"/><code value=\"conflict\"/>\
               <diagnostics value=\"in use\"/><expression value=\"Patient.id\"/></issue></OperationOutcome>";
    let rules = json!({"rules": [
        rule("409", json!([outcome(409)])),
        rule("412", json!([outcome(412)])),
        rule("422", json!([outcome(422)])),
        rule("500", json!([outcome(500)])),
        rule("xml", json!([{"status": 422, "body": xml, "headers": {"Content-Type": "application/fhir+xml"}}])),
        rule("text", json!([{"status": 400, "body": "unknown tenant", "headers": {"Content-Type": "text/plain"}}])),
        rule("html", json!([{"status": 502, "body": "<html>Bad Gateway</html>", "headers": {"Content-Type": "text/html"}}])),
    ]});
    lab.peer.call("PUT", "/__script", &rules).await;
    lab.connection("off", json!({"max_retries": 2, "retry_sleep_time": 0})).await;
    lab.connection("on", json!({"use_queue": true, "max_retries": 1, "retry_sleep_time": 0, "ordered": false})).await;
    let told = ": error:conflict: in use (Patient.id)";
    for (path, error) in [
        ("409", format!("HTTP 409{told}")),
        ("412", format!("HTTP 412{told}")),
        ("422", format!("HTTP 422{told}")),
        ("500", format!("HTTP 500{told}")),
        ("xml", format!("HTTP 422{told}")),
        ("text", "HTTP 400: unknown tenant".to_owned()),
        ("html", "HTTP 502".to_owned()),
    ] {
        let result = lab.send("off", create(path)).await;
        assert_eq!((flags(&result), result["error"].as_str()), (RETURNED, Some(error.as_str())), "{result}");
        let id = result["msg_id"].as_str().unwrap();
        assert_eq!(
            lab.bench.until_status(id, "FAILED").await["attempts"],
            1,
            "{path} is no failure that a call tries again"
        );
        let result = lab.send("on", create(path)).await;
        assert_eq!((flags(&result), result["error"].as_str()), (IN_QUEUE, Some(error.as_str())), "{result}");
        let dead = lab.bench.until_status(result["msg_id"].as_str().unwrap(), "DLQ").await;
        assert_eq!((&dead["attempts"], dead["error"].as_str()), (&json!(2), Some(error.as_str())), "{dead}");
    }
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f07_f12_f22_a_refused_transaction_is_one_failure_and_headers_pass_through() {
    let lab = Lab::start("http_receiver.py").await;
    lab.peer.call("PUT", "/__script", &json!({"rules": [{"path": "/fhir", "answers": [outcome(412)]}]})).await;
    lab.connection("f", json!({})).await;
    let entry = |more: Value| {
        let mut request = json!({"method": "POST", "url": "Patient"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"resource": patient("1"), "request": request})
    };
    let entries = [
        entry(json!({})),
        entry(json!({"ifNoneExist": "identifier=1"})),
        entry(json!({"ifNoneExist": "identifier=2"})),
    ];
    let bundle = json!({"resourceType": "Bundle", "type": "transaction", "entry": entries});
    let request = json!({"operation": "transaction", "body": bundle, "headers": {"X-Retry-On-Version-Conflict": "retry; max-retries=3"}});
    let result = lab.send("f", request).await;
    assert_eq!(flags(&result), RETURNED, "{result}");
    assert_eq!(result["error"], "HTTP 412: error:conflict: in use (Patient.id); entries with a condition: 2, 3");
    lab.bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
    assert_eq!(lab.bench.count().await, 1, "one request, whatever is in it");
    let log = lab.peer.call("GET", "/__log", &Value::Null).await;
    let headers = log[0]["headers"].to_string().to_ascii_lowercase();
    assert!(headers.contains("x-retry-on-version-conflict") && headers.contains("max-retries=3"), "{headers}");
}

// proves: Z04, Z15
#[tokio::test(flavor = "multi_thread")]
async fn z04_f19_a_server_that_is_busy_is_asked_again_when_it_says() {
    let lab = Lab::start("http_receiver.py").await;
    let busy = |seconds: &str| json!({"status": 429, "headers": {"Retry-After": seconds}});
    let rules = json!({"rules": [
        rule("soon", json!([busy("1"), {"status": 201}])),
        rule("late", json!([busy("3600")])),
    ]});
    lab.peer.call("PUT", "/__script", &rules).await;
    lab.connection("f", json!({"max_retries": 3, "retry_sleep_time": 0})).await;
    let started = Instant::now();
    let result = lab.send("f", create("soon")).await;
    assert_eq!((flags(&result), started.elapsed() >= Duration::from_secs(1)), (OK, true), "{result}");
    let result = lab.send("f", create("late")).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (RETURNED, &json!(429)), "more than is left: {result}");
    assert_eq!(lab.bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await["attempts"], 1);
}

// proves: Z33, R16
#[tokio::test(flavor = "multi_thread")]
async fn z33_f10_f11_a_2xx_is_a_success_whatever_it_holds() {
    let lab = Lab::start("http_receiver.py").await;
    let fhir = json!({"Content-Type": "application/fhir+json"});
    let rules = json!({"rules": [
        rule("outcome", json!([{"status": 201, "body": OUTCOME, "headers": {"Content-Type": "application/fhir+json", "Location": "https://elsewhere.example/r4/Patient/7/_history/2"}}])),
        rule("cut", json!([{"status": 200, "body": "{\"resourceType\": \"Pat", "headers": fhir}])),
        rule("html", json!([{"status": 200, "body": "<html>", "headers": {"Content-Type": "text/html"}}])),
        rule("304", json!([{"status": 304}])),
    ]});
    lab.peer.call("PUT", "/__script", &rules).await;
    lab.connection("f", json!({"use_queue": true, "max_retries": 1, "retry_sleep_time": 0})).await;
    let result = lab.send("f", create("outcome")).await;
    let response = &result["response"];
    assert_eq!((flags(&result), &result["error"]), (OK, &Value::Null), "{result}");
    assert_eq!(
        (&response["resource_type"], &response["id"], &response["version_id"]),
        (&json!("Patient"), &json!("7"), &json!("2"))
    );
    assert_eq!(
        (&response["data"]["resourceType"], &response["issues"][0]["diagnostics"]),
        (&json!("OperationOutcome"), &json!("in use"))
    );
    let result = lab.send("f", create("cut")).await;
    assert_eq!(flags(&result), OK, "{result}");
    assert!(result["error"].as_str().unwrap().contains("no resource of FHIR"), "{result}");
    assert_eq!(flags(&lab.send("f", create("html")).await), OK);
    // Nothing that writes is answered "not modified".
    let result = lab.send("f", create("304")).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (IN_QUEUE, &json!(304)), "{result}");
}

// proves: Z01, Z10, Z13, Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_f23_a_server_that_is_down_silent_or_breaks_off_is_a_failure_and_mended_a_delivery() {
    let lab = Lab::start("http_receiver.py").await;
    let reset = RawRemote::start(&[Act::Read, Act::Reset]).await;
    let silent = RawRemote::start(&[Act::Read, Act::Hold]).await;
    let down = "http://127.0.0.1:1".to_owned();
    for (name, address, failure) in [
        ("reset", &reset.address, "unreachable"),
        ("silent", &silent.address, "timeout"),
        ("down", &down, "unreachable"),
    ] {
        let off = format!("{name}-off");
        let fast =
            json!({"address": format!("{address}/fhir"), "timeout": 0.4, "max_retries": 1, "retry_sleep_time": 0});
        lab.connection(&off, fast).await;
        let result = lab.send(&off, create("Patient")).await;
        assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{result}");
        let ended = lab.bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
        assert_eq!((&ended["attempts"], &ended["failure"]), (&json!(2), &json!(failure)), "{ended}");
        let on = format!("{name}-on");
        let slow = json!({"address": format!("{address}/fhir"), "timeout": 0.4, "use_queue": true, "max_retries": 500, "retry_sleep_time": 0.2, "retry_backoff_multiplier": 1, "retry_backoff_threshold": 3600});
        lab.connection(&on, slow).await;
        let queued = lab.send(&on, create("Patient")).await;
        assert_eq!(flags(&queued), IN_QUEUE, "{queued}");
        lab.bench
            .call(
                "PATCH",
                &format!("/connections/{on}"),
                &json!({"address": format!("{}/fhir", lab.peer.address), "timeout": 20}),
            )
            .await;
        let delivered = lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
        assert!(delivered["attempts"].as_u64().unwrap() >= 2, "{delivered}");
    }
    // F23: bytes had gone out, so nobody can know, and the error says so.
    let result = lab.send("reset-off", create("Patient")).await;
    assert!(result["error"].as_str().unwrap().contains("reset after write"), "{result}");
}
