//! SOAP channels, called by zeep with the WSDL that they serve, and by hand where zeep would not say such a thing (Z42, Z43).

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Bench, Mirror, Peer};
use crate::lab::{ask, service, until_ended, with_mirror};
use crate::python::Host;

const SERVICE: &str = r#"
from postrider.services import Service

class Intake(Service):
    name = "intake"
    def handle(self):
        if "fail" in self.request.text:
            raise KeyError("secret")
        self.response.content_type = "text/xml; charset=utf-8"
        self.response.payload = (
            '<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body>'
            '<r:submitResponse xmlns:r="urn:registry"><r:took>%d</r:took></r:submitResponse></e:Body></e:Envelope>'
            % len(self.request.raw))
"#;

async fn zeep(asked: Value) -> Value {
    let mut child = Peer::tool("soap_zeep.py").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "zeep failed on {asked}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn soap_channel(bench: &Bench, name: &str, url_path: &str, more: Value) {
    let mut body = json!({
        "name": name, "type": "soap", "url_path": url_path, "namespace": "urn:registry", "operations": {"submit": "urn:submit"}
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/channels", &body).await;
    assert_eq!(status, 201, "{answer}");
}

fn envelope(namespace: &str, body: &str) -> String {
    format!("<e:Envelope xmlns:e=\"{namespace}\"><e:Body>{body}</e:Body></e:Envelope>")
}

const V11: &str = "http://schemas.xmlsoap.org/soap/envelope/";
const V12: &str = "http://www.w3.org/2003/05/soap-envelope";

#[tokio::test]
async fn z43_zeep_reads_is_ok_and_cid_from_a_queued_channel_in_both_versions() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    for version in ["1.1", "1.2"] {
        let path = format!("/soap/{version}");
        let settings = json!({"service": "mirror", "use_queue": true, "soap_version": version});
        soap_channel(&bench, version, &path, settings).await;
        let asked = json!({
            "wsdl": format!("{}{path}?wsdl", bench.server.address), "operation": "submit", "content": "<m xmlns='urn:m'>ü &amp; 1</m>"
        });
        let told = zeep(asked).await;
        assert_eq!(told["told"]["is_ok"], true, "{told}");
        let cid = told["told"]["cid"].as_str().unwrap();
        until_ended(&bench, cid, "SUCCESS").await;
        let got = mirror.last();
        let text = String::from_utf8_lossy(&got.body).into_owned();
        assert!(text.contains("submit") && text.contains("ü &amp; 1"), "the envelope as it arrived: {text}");
        assert_eq!((got.uri.path(), got.header("x-postrider-data-format")), (path.as_str(), Some("xml")));
        let action = if version == "1.1" { got.header("soapaction") } else { got.header("content-type") };
        assert!(action.unwrap().contains("urn:submit"), "{action:?}");
    }
}

#[tokio::test]
async fn z42_zeep_gets_the_services_own_answer_with_the_queue_off_and_a_fault_when_it_fails() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("soap.py"), SERVICE).unwrap();
    let bench = Bench::start().await;
    let host = Host::start(folder.path(), &bench.server.address, "127.0.0.1:0").await;
    service(&bench, "intake", &host.service("intake")).await;
    soap_channel(&bench, "Direct", "/soap", json!({"service": "intake"})).await;
    let wsdl = format!("{}/soap?wsdl", bench.server.address);
    let told = zeep(json!({"wsdl": wsdl, "operation": "submit", "content": "<m/>"})).await;
    assert!(told["told"].to_string().contains("took"), "{told}");
    let failed = zeep(json!({"wsdl": wsdl, "operation": "submit", "content": "<fail/>"})).await;
    assert_eq!(failed["fault"]["message"], "the service failed", "{failed}");
    assert!(!failed.to_string().contains("secret"));
    host.kill_nine().await;
    let down = zeep(json!({"wsdl": wsdl, "operation": "submit", "content": "<m/>"})).await;
    assert_eq!(down["fault"], json!({"code": "soap:Server", "message": "the service did not answer"}), "{down}");
}

#[tokio::test]
async fn z42_what_is_refused_is_a_fault_and_nothing_is_stored() {
    let (bench, mirror): (_, Mirror) = with_mirror().await;
    let (status, answer) = bench
        .call("POST", "/security", &json!({"name": "Shop", "type": "basic_auth", "username": "u", "password": "p"}))
        .await;
    assert_eq!(status, 201, "{answer}");
    soap_channel(&bench, "Old", "/old", json!({"service": "mirror", "use_queue": true, "soap_action": "urn:submit"}))
        .await;
    soap_channel(&bench, "New", "/new", json!({"service": "mirror", "use_queue": true, "soap_version": "1.2"})).await;
    soap_channel(&bench, "Guarded", "/guarded", json!({"service": "mirror", "use_queue": true, "security": "Shop"}))
        .await;
    let action = ("soapaction", "\"urn:submit\"");
    let good = envelope(V11, "<submit xmlns='urn:registry'/>");
    for (path, headers, body, status, code) in [
        ("/old", &[action][..], "{}".to_owned(), 500, "Client"),
        ("/old", &[action], envelope(V12, "<a/>"), 500, "VersionMismatch"),
        ("/old", &[action], envelope(V11, ""), 500, "Client"),
        ("/old", &[action], format!("<!DOCTYPE a [<!ENTITY b 'c'>]>{good}"), 500, "Client"),
        ("/old", &[("soapaction", "\"urn:other\"")], good.clone(), 500, "Client"),
        ("/new", &[], "<a/>".to_owned(), 400, "Sender"),
        ("/new", &[("content-type", "multipart/related; boundary=x")], "--x".to_owned(), 400, "Sender"),
        ("/guarded", &[], good.clone(), 401, "Client"),
    ] {
        let refused = ask(&bench, "POST", path, headers, body.as_bytes()).await;
        assert_eq!(refused.status, status, "{path} {body}: {}", refused.text());
        assert!(refused.text().contains(&format!("soap:{code}<")), "{path}: {}", refused.text());
        assert!(refused.header("content-type").contains("xml"));
    }
    assert_eq!((bench.count().await, mirror.count()), (0, 0));
    let answer = ask(&bench, "POST", "/old", &[action], good.as_bytes()).await;
    assert_eq!(answer.status, 200);
    assert!(
        answer.text().contains("<submitResponse xmlns=\"urn:registry\"><is_ok>true</is_ok><cid>"),
        "{}",
        answer.text()
    );
    let get = ask(&bench, "GET", "/old", &[], b"").await;
    assert_eq!((get.status, get.header("allow")), (405, "POST"));
    assert_eq!(ask(&bench, "GET", "/guarded?wsdl", &[], b"").await.status, 401, "shown to whom it takes requests from");
    let told = zeep(json!({
        "wsdl": format!("{}/guarded?wsdl", bench.server.address), "operation": "submit", "content": "<m/>", "user": ["u", "p"]
    }));
    assert_eq!(told.await["told"]["is_ok"], true);
}

#[tokio::test]
async fn z43_a_fixed_acknowledgment_of_a_soap_channel_is_always_xml() {
    let (bench, _mirror): (_, Mirror) = with_mirror().await;
    soap_channel(
        &bench,
        "Fixed",
        "/fixed",
        json!({"service": "mirror", "use_queue": true, "queue_response": "{\"a\": 1}"}),
    )
    .await;
    let answer = ask(&bench, "POST", "/fixed", &[], envelope(V11, "<submit xmlns='urn:registry'/>").as_bytes()).await;
    assert_eq!((answer.text().as_str(), answer.header("content-type")), ("{\"a\": 1}", "text/xml; charset=utf-8"));
}
