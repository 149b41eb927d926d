//! HTTP Basic, and tokens for a client's secret, against a server that asks for them (Z33, D32).

use serde_json::{Value, json};

use crate::harness::flags;
use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, patient};

fn create(number: &str) -> Value {
    json!({"operation": "create", "body": patient(number)})
}

async fn defined(lab: &Lab, definition: Value) {
    let (status, answer) = lab.bench.call("POST", "/security", &definition).await;
    assert_eq!(status, 201, "{answer}");
    assert!(!answer.to_string().contains("sesame"), "{answer}");
}

/// A connection to a part of the peer that wants this security; `more` may turn the queue on.
async fn connection(lab: &Lab, name: &str, part: &str, security: &str, more: Value) {
    let mut settings = json!({"address": format!("{}/{part}/fhir", lab.peer.address), "security": security});
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    lab.connection(name, settings).await;
}

/// Retries until the test mends what is wrong.
fn patient_queue() -> Value {
    json!({"use_queue": true, "max_retries": 500, "retry_sleep_time": 0.2, "retry_backoff_multiplier": 1, "retry_backoff_threshold": 3600})
}

// proves: Z33
#[tokio::test(flavor = "multi_thread")]
async fn z33_basic_opens_the_server_and_a_wrong_secret_is_an_answer_or_waits() {
    let lab = Lab::medplum().await;
    lab.peer.call("PUT", "/__keys", &json!({"lab": {"secret": "sesame"}})).await;
    defined(&lab, json!({"name": "right", "type": "basic_auth", "username": "lab", "password": "sesame"})).await;
    defined(&lab, json!({"name": "wrong", "type": "basic_auth", "username": "lab", "password": "sesame?"})).await;
    connection(&lab, "right", "basic", "right", json!({})).await;
    let result = lab.send("right", create("1")).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (OK, &json!(201)), "{result}");
    connection(&lab, "off", "basic", "wrong", json!({})).await;
    let result = lab.send("off", create("2")).await;
    assert_eq!((flags(&result), &result["response"]["status"]), (RETURNED, &json!(401)), "{result}");
    connection(&lab, "on", "basic", "wrong", patient_queue()).await;
    let queued = lab.send("on", create("3")).await;
    assert_eq!((flags(&queued), &queued["response"]["status"]), (IN_QUEUE, &json!(401)), "{queued}");
    let (status, answer) = lab.bench.call("PATCH", "/security/wrong", &json!({"password": "sesame"})).await;
    assert_eq!(status, 200, "{answer}");
    lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
    assert_eq!((lab.patients("1").await, lab.patients("2").await, lab.patients("3").await), (1, 0, 1));
}

// proves: Z33, D32
#[tokio::test(flavor = "multi_thread")]
async fn z33_d32_a_secret_fetches_a_token_in_the_header_or_in_the_form_and_one_that_was_withdrawn_is_fetched_anew() {
    let lab = Lab::medplum().await;
    lab.peer.call("PUT", "/__keys", &json!({"lab:1": {"secret": "sesame & co"}})).await;
    for how in ["basic", "body"] {
        let definition = json!({
            "name": how, "type": "oauth2", "token_url": format!("{}/token", lab.peer.address), "client_id": "lab:1",
            "client_secret": "sesame & co", "client_auth": how, "scopes": "system/*.write",
        });
        defined(&lab, definition).await;
        connection(&lab, how, "secured", how, json!({})).await;
        for number in ["1", "2"] {
            let result = lab.send(how, create(number)).await;
            assert_eq!(flags(&result), OK, "{result}");
        }
    }
    let taken = lab.peer.call("GET", "/__tokens", &Value::Null).await;
    let scope = "system/*.write";
    assert_eq!(taken, json!([{"how": "basic", "scope": scope}, {"how": "post", "scope": scope}]), "one token each");

    // The server forgets its tokens: the next attempt is refused, and the one after it has another token.
    lab.peer.call("DELETE", "/__tokens", &Value::Null).await;
    connection(&lab, "on", "secured", "basic", patient_queue()).await;
    let queued = lab.send("on", create("3")).await;
    assert_eq!((flags(&queued), &queued["response"]["status"]), (IN_QUEUE, &json!(401)), "{queued}");
    let delivered = lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
    assert_eq!(delivered["attempts"], 2, "{delivered}");

    // A wrong secret: nothing is sent without a token.
    let (status, answer) = lab.bench.call("PATCH", "/security/body", &json!({"client_secret": "open"})).await;
    assert_eq!(status, 200, "{answer}");
    let before = lab.seen().await.len();
    let result = lab.send("body", create("4")).await;
    assert_eq!((flags(&result), &result["response"]), (RETURNED, &Value::Null), "{result}");
    assert!(result["error"].as_str().unwrap().contains("no token from"), "{result}");
    assert_eq!(lab.seen().await.len(), before);
}
