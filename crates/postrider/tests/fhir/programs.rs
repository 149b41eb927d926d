//! Programs of others that use us: fhirpy and fhir.resources through the drop-in proxy, and our own command line.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{KEY, Peer, flags};
use crate::lab::{Lab, OK, PROJECT, patient};

// proves: Z33, D13
#[tokio::test(flavor = "multi_thread")]
async fn z33_d13_fhirpy_takes_the_drop_in_proxy_for_a_fhir_server() {
    let lab = Lab::medplum().await;
    lab.connection("f", json!({"use_queue": true, "max_retries": 1})).await;
    let base = format!("{}{PROJECT}/connections/f/raw", lab.bench.server.address);
    let mut command = Peer::tool("fhir_client.py");
    let ran = command.args([base, format!("X-API-Key:{KEY}")]).stderr(Stdio::piped()).output().await.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let seen: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&seen["birthDate"], &seen["found"], &seen["changed"]),
        (&json!("1974-12-25"), &json!(1), &json!(true)),
        "{seen}"
    );
    assert!(seen["gone"].is_string());
}

// proves: Z33, P04
#[tokio::test(flavor = "multi_thread")]
async fn z33_the_command_line_and_the_rust_client_speak_fhir() {
    use postrider::{Call, Client, FhirFields};

    let lab = Lab::medplum().await;
    lab.connection("FHIR", json!({})).await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("patient.json");
    std::fs::write(&file, patient("1").to_string()).unwrap();
    let run = async |arguments: &[&str]| {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(arguments).env("POSTRIDER_SERVER", &lab.bench.server.address).env("POSTRIDER_KEY", KEY);
        command.output().await.unwrap()
    };
    let create = [
        "send",
        "FHIR",
        "--operation",
        "create",
        "--body",
        file.to_str().unwrap(),
        "--if-none-exist",
        "identifier=urn:lab|1",
    ];
    let ran = run(&create).await;
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!((flags(&result), &result["response"]["status"]), (OK, &json!(201)), "{result}");
    let id = result["response"]["id"].as_str().unwrap().to_owned();
    let ran = run(&["send", "FHIR", "--operation", "read", "--resource-type", "Patient", "--id", &id]).await;
    let result: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(result["response"]["data"]["birthDate"], "1974-12-25", "{result}");
    let ran = run(&["send", "FHIR", "--operation", "read", "--resource-type", "Patient", "--id", "nobody"]).await;
    assert_eq!(ran.status.code(), Some(6), "{ran:?}");
    let ran = run(&["send", "FHIR", "--operation", "explode"]).await;
    let told = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.code() == Some(4) && told.contains("operation") && told.contains("transaction"), "{ran:?}");
    let ran = run(&["send", "FHIR", "--id", "7"]).await;
    assert_eq!(ran.status.code(), Some(2), "an id without an interaction means nothing: {ran:?}");

    let client = Client::new(&lab.bench.server.address, KEY).unwrap();
    let saved = client.send("FHIR", &Call::save(patient("2").to_string())).await.unwrap();
    let response = saved.response.unwrap();
    assert_eq!((saved.is_ok, response.resource_type.as_deref()), (true, Some("Patient")));
    let fields = FhirFields { resource_type: response.resource_type, id: response.id, ..FhirFields::default() };
    let read = client.send("FHIR", &Call::interaction("read", fields)).await.unwrap();
    assert_eq!(read.response.unwrap().data["birthDate"], "1974-12-25");
}
