//! A WSDL fills a connection: those of spyne and of our own making, over the API and the command line.

use http_body_util::BodyExt;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::harness::KEY;
use crate::lab::{Lab, NAMESPACE, OK, flags};

async fn fetched(url: &str) -> String {
    let client = Client::builder(TokioExecutor::new()).build_http::<http_body_util::Empty<bytes::Bytes>>();
    let answer = client.get(url.parse().unwrap()).await.unwrap();
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

// proves: Z34
#[tokio::test(flavor = "multi_thread")]
async fn z34_a_wsdl_of_a_service_is_all_that_a_connection_needs() {
    let lab = Lab::start("soap_spyne.py").await;
    for (name, version) in [("v11", "1.1"), ("v12", "1.2")] {
        let wsdl = fetched(&format!("{}/{name}/?wsdl", lab.peer.address)).await;
        let request = json!({"name": name, "type": "soap", "wsdl": wsdl, "timeout": 20});
        let (status, made) = lab.call("POST", "/connections", &request).await;
        assert_eq!(status, 201, "{made}");
        assert_eq!(
            (&made["host"], &made["url_path"]),
            (&json!(lab.peer.address), &json!(format!("/{name}/"))),
            "{made}"
        );
        assert_eq!((&made["namespace"], &made["soap_version"]), (&json!(NAMESPACE), &json!(version)));
        let operations: Vec<&str> = made["operations"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut sorted = operations.clone();
        sorted.sort_unstable();
        assert_eq!((sorted, made.get("wsdl")), (vec!["Beds", "Refuse", "Slow", "Submit"], None));
        let result = lab.invoke(name, "Submit", json!({"message": "w", "count": 1})).await;
        assert_eq!(
            (flags(&result), &result["response"]["data"]["SubmitResult"]["id"]),
            (OK, &json!("R-w-1")),
            "{result}"
        );
    }
    // Given again for a connection that is there, it leaves what it says nothing of.
    let wsdl = fetched(&format!("{}/v12/?wsdl", lab.peer.address)).await;
    let changed = json!({"wsdl": wsdl, "host": "http://127.0.0.1:1", "soap_version": "1.2"});
    let (status, made) = lab.call("PATCH", "/connections/v11", &changed).await;
    assert_eq!(
        (status, &made["soap_version"], &made["host"], &made["timeout"]),
        (200, &json!("1.2"), &json!("http://127.0.0.1:1"), &json!(20))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wsdl_that_cannot_be_used_is_refused_with_its_field_and_nothing_is_made() {
    let lab = Lab::start("soap_spyne.py").await;
    let wsdl = fetched(&format!("{}/v11/?wsdl", lab.peer.address)).await;
    for (request, field, why) in [
        (json!({"type": "soap", "wsdl": "<html/>"}), "wsdl", "html"),
        (json!({"type": "soap", "wsdl": "<!DOCTYPE a><a/>"}), "wsdl", "DTD"),
        (json!({"type": "soap", "wsdl": wsdl, "wsdl_port": "nobody"}), "wsdl_port", "one of"),
        (json!({"type": "soap", "wsdl": wsdl, "soap_version": "1.2"}), "wsdl", "SOAP 1.2"),
        (json!({"type": "rest", "wsdl": wsdl, "host": "http://a", "url_path": "/"}), "wsdl", "soap"),
        (json!({"type": "soap", "wsdl_port": "x", "host": "http://a", "url_path": "/"}), "wsdl", "wsdl_port"),
    ] {
        let mut request = request;
        request["name"] = "x".into();
        let (status, problem) = lab.call("POST", "/connections", &request).await;
        assert_eq!((status, &problem["errors"][0]["field"]), (422, &json!(field)), "{problem}");
        assert!(problem["errors"][0].to_string().contains(why), "{problem}");
    }
    let (_, connections) = lab.call("GET", "/connections", &Value::Null).await;
    assert_eq!(connections["data"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_takes_a_wsdl_and_invokes_an_operation() {
    let lab = Lab::start("soap_spyne.py").await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("registry.wsdl");
    std::fs::write(&file, fetched(&format!("{}/v11/?wsdl", lab.peer.address)).await).unwrap();
    let message = dir.path().join("message.json");
    std::fs::write(&message, r#"{"message": "cli", "count": 2}"#).unwrap();
    let run = |args: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
        command
            .args(args)
            .args(["--json"])
            .env("POSTRIDER_SERVER", lab.api.base())
            .env("POSTRIDER_KEY", KEY)
            .kill_on_drop(true);
        async move { command.output().await.unwrap() }
    };
    let made =
        run(&["connections", "create", "soap", "Registry", "--wsdl", file.to_str().unwrap(), "timeout=20"]).await;
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let sent = run(&["send", "Registry", "--operation", "Submit", "--body", message.to_str().unwrap()]).await;
    let result: Value = serde_json::from_slice(&sent.stdout).unwrap();
    assert_eq!(
        (sent.status.code(), &result["response"]["data"]["SubmitResult"]["id"]),
        (Some(0), &json!("R-cli-2")),
        "{result}"
    );
    let refused = run(&["send", "Registry", "--operation", "Refuse", "--body", message.to_str().unwrap()]).await;
    assert_eq!(refused.status.code(), Some(6));
}
