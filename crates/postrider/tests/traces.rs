//! Traces through the real binary: what a caller sends, what a remote system sees, and what a collector that we did not write reads (P06).
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test of real processes in real time")]

mod harness;

use std::time::{Duration, Instant};

use bytes::Bytes;
use harness::{Api, KEY, Peer, Server};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::process::Command;

const PROJECT: &str = "/api/v1/projects/default";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

struct Lab {
    server: Server,
    api: Api,
    remote: Peer,
    _dir: tempfile::TempDir,
}

impl Lab {
    async fn start(collector: Option<&str>) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(dir.path());
        command.env("POSTRIDER_ADMIN_KEY", KEY).env("POSTRIDER_LOG", "warn");
        if let Some(collector) = collector {
            command.env("POSTRIDER_OTLP_ENDPOINT", collector).env("POSTRIDER_OTLP_HEADERS", "Authorization=Bearer c");
        }
        let (server, remote) = tokio::join!(Server::of(command), Peer::start("http_receiver.py"));
        let api = Api::new(&server.address);
        let lab = Lab { server, api, remote, _dir: dir };
        lab.connection("direct", json!({})).await;
        let queued = json!({"use_queue": true, "max_retries": 3, "retry_sleep_time": 0});
        lab.connection("queued", queued).await;
        lab
    }

    async fn connection(&self, name: &str, more: Value) {
        let mut body =
            json!({"name": name, "type": "rest", "host": self.remote.address, "url_path": format!("/{name}")});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) =
            self.api.call("POST", &format!("{PROJECT}/connections"), &body.to_string()).await.unwrap();
        assert_eq!(status, 201, "{answer}");
    }

    async fn post(&self, path: &str, headers: &[(&str, &str)], body: &str) {
        let mut request = http::Request::post(format!("{}{PROJECT}/connections/{path}", self.server.address))
            .header("x-api-key", KEY)
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let answer = client.request(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.into_body().collect().await.unwrap();
    }

    /// `traceparent` and `tracestate` of each request that the remote system has seen under a path.
    async fn seen(&self, path: &str, at_least: usize) -> Vec<(Option<String>, Option<String>)> {
        let log = self.remote.call("GET", &format!("/__log?at_least={at_least}&timeout_ms=30000"), &Value::Null).await;
        let log = log.as_array().cloned().unwrap_or_else(|| log["requests"].as_array().unwrap().clone());
        let of_path = log.iter().filter(|request| request["path"].as_str().unwrap().starts_with(path));
        of_path.map(|request| (header(request, "traceparent"), header(request, "tracestate"))).collect()
    }
}

fn header(request: &Value, name: &str) -> Option<String> {
    let headers = &request["headers"];
    let found =
        |(known, value): (&str, &Value)| known.eq_ignore_ascii_case(name).then(|| value.as_str().unwrap().to_owned());
    match headers {
        Value::Object(map) => map.iter().find_map(|(known, value)| found((known, value))),
        Value::Array(pairs) => pairs.iter().find_map(|pair| found((pair[0].as_str().unwrap(), &pair[1]))),
        _ => None,
    }
}

fn span_id(traceparent: Option<&String>) -> String {
    let parts: Vec<&str> = traceparent.unwrap().split('-').collect();
    assert_eq!((parts[0], parts[1], parts[3]), ("00", TRACE, "01"));
    parts[2].to_owned()
}

// proves: P06
#[tokio::test(flavor = "multi_thread")]
async fn p06_without_a_collector_a_callers_trace_goes_on_and_nothing_is_made_up() {
    let lab = Lab::start(None).await;
    let parent = format!("00-{TRACE}-{CALLER}-01");
    let traced = [("traceparent", parent.as_str()), ("tracestate", "a=1,b=2")];
    lab.post("direct/send", &traced, r#"{"body": "x"}"#).await;
    lab.post("queued/publish", &traced, r#"{"body": "x"}"#).await;
    lab.post("direct/raw/r", &traced, "{}").await;
    lab.post("direct/send", &[], r#"{"body": "x"}"#).await;
    lab.post("direct/send", &[("traceparent", "00-broken")], r#"{"body": "x"}"#).await;
    let direct = lab.seen("/direct", 5).await;
    let queued = lab.seen("/queued", 5).await;
    assert_eq!((direct.len(), queued.len()), (4, 1), "{direct:?} {queued:?}");
    let traced = direct.iter().chain(&queued).filter(|(parent, _)| parent.is_some()).collect::<Vec<_>>();
    assert_eq!(traced.len(), 3, "{direct:?}");
    for (parent, state) in traced {
        assert_ne!(span_id(parent.as_ref()), CALLER, "a span of its own");
        assert_eq!(state.as_deref(), Some("a=1,b=2"));
    }
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_each_attempt_is_a_span_of_the_callers_trace_over_a_restart_of_the_round() {
    let collector = Peer::start("otlp_collector.py").await;
    let lab = Lab::start(Some(&collector.address)).await;
    let rules = json!({"rules": [{"path": "/queued", "answers": [{"status": 503}, {"status": 200}]}]});
    lab.remote.call("PUT", "/__script", &rules).await;
    let parent = format!("00-{TRACE}-{CALLER}-01");
    lab.post("queued/publish", &[("traceparent", &parent), ("tracestate", "a=1")], r#"{"body": "x"}"#).await;
    let log = collector.call("GET", "/__log?at_least=3&timeout_ms=30000", &Value::Null).await;
    assert!(log["refused"].is_null(), "{log}");
    assert_eq!(log["authorization"], "Bearer c");
    let spans = log["spans"].as_array().unwrap();
    assert!(
        spans.iter().all(|span| span["trace_id"] == TRACE && span["service"] == "postrider" && span["state"] == "a=1"),
        "{log}"
    );
    let accept = spans.iter().find(|span| span["name"] == "accept queued").unwrap();
    assert_eq!((&accept["parent"], &accept["kind"]), (&json!(CALLER), &json!(2)));
    let mut attempts: Vec<&Value> = spans.iter().filter(|span| span["name"] == "attempt queued").collect();
    attempts.sort_by_key(|span| span["attributes"]["postrider.attempt"].as_i64());
    let sent = lab.seen("/queued", 2).await;
    for (index, (attempt, (parent, _))) in attempts.iter().zip(&sent).enumerate() {
        assert_eq!(attempt["parent"], accept["span_id"]);
        assert_eq!(attempt["kind"], 3);
        assert_eq!(attempt["span_id"], span_id(parent.as_ref()), "what the remote system saw is the attempt's span");
        let (status, code) = if index == 0 { (2, 503) } else { (0, 200) };
        assert_eq!(
            (&attempt["status"], &attempt["attributes"]["http.response.status_code"]),
            (&json!(status), &json!(code))
        );
    }
    assert_eq!(attempts.len(), 2, "{log}");
    // Not sampled: it goes on, and is nobody's span here.
    let unsampled = parent.replace("-01", "-00");
    lab.post("direct/send", &[("traceparent", &unsampled)], r#"{"body": "x"}"#).await;
    lab.post("direct/send", &[], r#"{"body": "x"}"#).await;
    let log = collector.call("GET", "/__log?at_least=5&timeout_ms=30000", &Value::Null).await;
    assert_eq!(log["spans"].as_array().unwrap().len(), 5, "one new trace of two spans: {log}");
    lab.server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn p06_a_collector_that_is_down_or_hangs_never_slows_a_delivery() {
    let hanging = Peer::start("otlp_collector.py").await;
    hanging.call("PUT", "/__mode", &json!({"delay_ms": 60_000})).await;
    for collector in ["http://127.0.0.1:1", hanging.address.as_str()] {
        let lab = Lab::start(Some(collector)).await;
        let began = Instant::now();
        for _ in 0..50 {
            lab.post("direct/send", &[], r#"{"body": "x"}"#).await;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(lab.seen("/direct", 50).await.len(), 50);
        lab.server.stop().await;
    }
}
