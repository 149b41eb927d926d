//! npm `soap`: a UsernameToken that is checked, and faults under any status.

use serde_json::{Value, json};

use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, flags, queue};

const NAMESPACE: &str = "urn:lab:node";

fn settings(more: Value) -> Value {
    let mut settings = json!({
        "namespace": NAMESPACE,
        "operations": {
            "Submit": "urn:lab:node#Submit {urn:lab:node}SubmitRequest",
            "Refuse": "urn:lab:node#Refuse {urn:lab:node}RefuseRequest",
        },
    });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    settings
}

// proves: Z34, D32
#[tokio::test(flavor = "multi_thread")]
async fn z34_d32_a_username_token_is_made_anew_for_every_attempt() {
    let lab = Lab::start("soap_node.py").await;
    for (name, password_type, password) in
        [("text", "text", "hunter2"), ("digest", "digest", "hunter2"), ("wrong", "digest", "x")]
    {
        let definition = json!({"name": name, "type": "wss", "username": "ada", "password": password, "password_type": password_type});
        let (status, answer) = lab.call("POST", "/security", &definition).await;
        assert_eq!(status, 201, "{answer}");
        assert!(!answer.to_string().contains("hunter2"));
        lab.connection(name, "/secured", settings(json!({"security": name}))).await;
    }
    for name in ["text", "digest"] {
        let result = lab.invoke(name, "Submit", json!({"message": "m"})).await;
        assert_eq!((flags(&result), &result["response"]["data"]["id"]), (OK, &json!("N-m")), "{result}");
        assert!(!result.to_string().contains("hunter2"));
    }
    let (status, _) = lab.call("PATCH", "/connections/wrong", &queue()).await;
    assert_eq!(status, 200);
    let result = lab.invoke("wrong", "Submit", json!({"message": "m"})).await;
    assert_eq!(flags(&result), IN_QUEUE, "{result}");
    let before = lab.delivery_until(&result, "DLQ").await;
    assert_eq!(before["attempts"], 2, "{before}");
    let log = lab.peer.call("GET", "/__log", &Value::Null).await;
    let nonces: std::collections::BTreeSet<&str> =
        log.as_array().unwrap().iter().map(|seen| seen["nonce"].as_str().unwrap()).collect();
    assert_eq!(nonces.len(), 4, "one for each attempt: {log}");
    // The stored request has no credentials, so a mended definition is enough.
    let mended = json!({"type": "wss", "username": "ada", "password": "hunter2", "password_type": "digest"});
    let (status, answer) = lab.call("PUT", "/security/wrong", &mended).await;
    assert_eq!(status, 200, "{answer}");
    let path = format!("/dlq/{}/retry", result["msg_id"].as_str().unwrap());
    lab.call("POST", &path, &Value::Null).await;
    lab.delivery_until(&result, "SUCCESS").await;
    let (_, body) =
        lab.call("GET", &format!("/deliveries/{}/body", result["msg_id"].as_str().unwrap()), &Value::Null).await;
    assert!(!body.to_string().contains("UsernameToken"), "{body}");
}

// proves: D24
#[tokio::test(flavor = "multi_thread")]
async fn d24_a_fault_is_a_failure_under_any_status() {
    let lab = Lab::start("soap_node.py").await;
    lab.connection("off", "/registry", settings(json!({"max_retries": 2, "retry_sleep_time": 0}))).await;
    lab.connection("on", "/registry", settings(queue())).await;
    for status in [200, 400, 500] {
        for (name, expected) in [("off", RETURNED), ("on", IN_QUEUE)] {
            let result = lab.invoke(name, "Refuse", json!({"status": status})).await;
            assert_eq!(flags(&result), expected, "{result}");
            let response = &result["response"];
            assert_eq!(response["status"], status);
            assert_eq!((&response["fault"]["code"], &response["data"]), (&json!("Server"), &Value::Null), "{result}");
            assert_eq!(response["fault"]["detail"]["status"], status.to_string());
            if name == "on" {
                lab.delivery_until(&result, "DLQ").await;
            }
        }
    }
}
