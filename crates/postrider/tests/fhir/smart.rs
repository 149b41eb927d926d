//! SMART Backend Services: the token server is Node's crypto, which knows nothing of how we sign.

use serde_json::{Value, json};

use crate::harness::flags;
use crate::lab::{IN_QUEUE, Lab, OK, RETURNED, patient, queue};

/// A pair of keys in PEM, made by openssl.
async fn keys(options: &[&str]) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let run = async |arguments: &[&str]| {
        let ran = tokio::process::Command::new("openssl").args(arguments).output().await.unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    run(&[&["genpkey"], options, &["-out", &path("private")]].concat()).await;
    run(&["pkey", "-in", &path("private"), "-pubout", "-out", &path("public")]).await;
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    (read("private"), read("public"))
}

// proves: Z33, D32
#[tokio::test(flavor = "multi_thread")]
async fn z33_d32_a_signed_assertion_fetches_the_token_and_a_wrong_one_is_a_failed_attempt() {
    let lab = Lab::medplum().await;
    let secured = json!({"address": format!("{}/secured/fhir", lab.peer.address)});
    let with = |more: Value| {
        let mut settings = secured.clone();
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        settings
    };
    let rsa = keys(&["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]).await;
    let ec = keys(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384"]).await;
    let known = json!({"RS384-client": {"alg": "RS384", "pem": rsa.1}, "ES384-client": {"alg": "ES384", "pem": ec.1}});
    lab.peer.call("PUT", "/__keys", &known).await;
    for (algorithm, key) in [("RS384", &rsa.0), ("ES384", &ec.0)] {
        let definition = json!({
            "name": algorithm, "type": "smart", "token_url": format!("{}/token", lab.peer.address), "client_id": format!("{algorithm}-client"),
            "key_id": "k1", "algorithm": algorithm, "private_key": key, "scopes": "system/*.write",
        });
        let (status, answer) = lab.bench.call("POST", "/security", &definition).await;
        assert_eq!(status, 201, "{answer}");
        assert!(!answer.to_string().contains("PRIVATE KEY"), "{answer}");
        lab.connection(algorithm, with(json!({"security": algorithm}))).await;
        for number in ["1", "2"] {
            let result = lab.send(algorithm, json!({"operation": "create", "body": patient(number)})).await;
            assert_eq!(flags(&result), OK, "{result}");
            assert!(!result.to_string().contains("Bearer"));
        }
    }
    let assertions = lab.peer.call("GET", "/__tokens", &Value::Null).await;
    let taken = assertions.as_array().unwrap();
    assert_eq!(taken.len(), 2, "a token serves many attempts: {assertions}");
    assert_eq!((&taken[0]["scope"], &taken[0]["header"]["kid"]), (&json!("system/*.write"), &json!("k1")));

    // A key that the server does not know: nothing is sent without a token, and a mended definition delivers what waits.
    let wrong = json!({
        "name": "wrong", "type": "smart", "token_url": format!("{}/token", lab.peer.address), "client_id": "nobody", "key_id": "k1",
        "private_key": rsa.0,
    });
    assert_eq!(lab.bench.call("POST", "/security", &wrong).await.0, 201);
    lab.connection("off", with(json!({"security": "wrong"}))).await;
    let result = lab.send("off", json!({"operation": "create", "body": patient("3")})).await;
    let ended = lab.bench.until_status(result["msg_id"].as_str().unwrap(), "FAILED").await;
    assert_eq!((flags(&result), &ended["failure"]), (RETURNED, &json!("unreachable")), "{result}");
    assert!(
        result["error"].as_str().unwrap().contains("no token from")
            && result["error"].as_str().unwrap().contains("invalid_client"),
        "{result}"
    );
    lab.connection("on", with(queue())).await;
    lab.bench.call("PATCH", "/connections/on", &json!({"security": "wrong", "max_retries": 300, "retry_sleep_time": 0.2, "retry_backoff_multiplier": 1, "retry_backoff_threshold": 3600})).await;
    let queued = lab.send("on", json!({"operation": "create", "body": patient("4")})).await;
    assert_eq!(flags(&queued), IN_QUEUE, "{queued}");
    let (status, answer) = lab.bench.call("PATCH", "/security/wrong", &json!({"client_id": "RS384-client"})).await;
    assert_eq!(status, 200, "{answer}");
    lab.bench.until_status(queued["msg_id"].as_str().unwrap(), "SUCCESS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn z03_a_key_that_cannot_sign_is_refused_and_never_shown() {
    let lab = Lab::medplum().await;
    let p256 = keys(&["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]).await.0;
    let base = json!({"name": "x", "type": "smart", "token_url": "https://login.example.org/token", "client_id": "c", "key_id": "k"});
    for (key, algorithm) in
        [(json!("hunter2"), "RS384"), (json!(p256), "ES384"), (json!(p256), "RS384"), (Value::Null, "RS384")]
    {
        let mut definition = base.clone();
        definition["private_key"] = key;
        definition["algorithm"] = json!(algorithm);
        let (status, refused) = lab.bench.call("POST", "/security", &definition).await;
        assert_eq!((status, &refused["errors"][0]["field"]), (422, &json!("private_key")), "{refused}");
        assert!(!refused.to_string().contains("hunter2") && !refused.to_string().contains("BEGIN"), "{refused}");
    }
}
