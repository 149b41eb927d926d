//! A server whose endpoints may be on loopback, a receiver that remembers, and the few calls that tests of webhooks make.

use std::convert::Infallible;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{Api, KEY, Peer, Server};

pub const PROJECT: &str = "/api/v1/projects/default";

/// One request as it came.
#[derive(Clone, Debug)]
pub struct Receipt {
    pub path: String,
    pub headers: Map<String, Value>,
    pub body: Bytes,
}

impl Receipt {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("no {name}: {:?}", self.headers))
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Answers each path by its script: `/503/200` is answered 503, then 200, and 200 ever after. A path with `echo` gets its own body back.
pub struct Remote {
    pub address: String,
    receipts: Arc<Mutex<Vec<Receipt>>>,
}

impl Remote {
    pub async fn start() -> Remote {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let receipts: Arc<Mutex<Vec<Receipt>>> = Arc::default();
        let shared = receipts.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let shared = shared.clone();
                let service = service_fn(move |request| receive(request, shared.clone()));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Remote { address, receipts }
    }

    pub fn receipts(&self) -> Vec<Receipt> {
        self.receipts.lock().unwrap().clone()
    }

    pub async fn until_received(&self, count: usize) -> Vec<Receipt> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        loop {
            let receipts = self.receipts();
            if receipts.len() >= count {
                return receipts;
            }
            assert!(tokio::time::Instant::now() < deadline, "only {} of {count} came", receipts.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn receive(
    request: http::Request<Incoming>,
    receipts: Arc<Mutex<Vec<Receipt>>>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let Ok(body) = body.collect().await else {
        return Ok(http::Response::builder().status(400).body(Full::default()).unwrap());
    };
    let body = body.to_bytes();
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), Value::from(String::from_utf8_lossy(value.as_bytes()).into_owned()))
    };
    let headers = parts.headers.iter().map(pair).collect();
    let path = parts.uri.path().to_owned();
    let before = {
        let mut receipts = receipts.lock().unwrap();
        let before = receipts.iter().filter(|receipt| receipt.path == path).count();
        receipts.push(Receipt { path: path.clone(), headers, body: body.clone() });
        before
    };
    let scripted = path.split('/').skip(1).nth(before).and_then(|segment| segment.parse().ok());
    let status: u16 = scripted.unwrap_or(200);
    let mut response = http::Response::builder().status(status);
    if (300..400).contains(&status) {
        response = response.header("location", "/elsewhere");
    }
    let answer = if path.contains("echo") { body } else { Bytes::from_static(b"seen") };
    Ok(response.body(Full::new(answer)).unwrap())
}

pub struct Hooks {
    pub api: Api,
    server: Server,
    data: std::path::PathBuf,
    more: Vec<(&'static str, String)>,
    _dir: tempfile::TempDir,
}

impl Hooks {
    /// Loopback is opened to endpoints.
    pub async fn start() -> Hooks {
        Hooks::opening("127.0.0.0/8").await
    }

    pub async fn opening(ranges: &str) -> Hooks {
        Hooks::with(ranges, &[]).await
    }

    /// With further variables, which a restart keeps.
    pub async fn with(ranges: &str, more: &[(&'static str, String)]) -> Hooks {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let server = Server::of(command(&data, ranges, more)).await;
        Hooks { api: Api::new(&server.address), server, data, more: more.to_vec(), _dir: dir }
    }

    pub fn data(&self) -> &std::path::Path {
        &self.data
    }

    pub fn server_pid(&self) -> u32 {
        self.server.pid()
    }

    /// kill -9, and a new process over the same data.
    pub async fn kill_and_restart(self) -> Hooks {
        self.restart_opening("127.0.0.0/8").await
    }

    /// kill -9, and a new process that opens other ranges.
    pub async fn restart_opening(self, ranges: &str) -> Hooks {
        self.server.kill_nine().await;
        let server = Server::of(command(&self.data, ranges, &self.more)).await;
        Hooks { api: Api::new(&server.address), server, data: self.data, more: self.more, _dir: self._dir }
    }

    /// A new process that has not got the key under which secrets were sealed.
    pub async fn restart_without_its_key(self) -> Hooks {
        self.server.kill_nine().await;
        std::fs::remove_file(self.data.join("secrets.key")).unwrap();
        let server = Server::of(command(&self.data, "127.0.0.0/8", &self.more)).await;
        Hooks { api: Api::new(&server.address), server, data: self.data, more: self.more, _dir: self._dir }
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &body).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.call("GET", path, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// With its secret.
    pub async fn endpoint(&self, url: &str, more: Value) -> Value {
        let mut body = json!({ "url": url });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.call("POST", "/endpoints", &body).await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    pub async fn subscribe(&self, endpoint: &Value, pattern: &str, more: Value) -> Value {
        let mut body = json!({"endpointId": endpoint["id"], "eventType": pattern});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.call("POST", "/subscriptions", &body).await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    pub async fn publish(&self, event_type: &str, data: Value) -> Value {
        let (status, answer) = self.call("POST", "/events", &json!({"type": event_type, "data": data})).await;
        assert_eq!(status, 201, "{answer}");
        answer
    }

    /// The deliveries of an event, once none of them waits for an attempt that is due.
    pub async fn until(&self, event: &Value, holds: impl Fn(&Value) -> bool) -> Vec<Value> {
        let path = format!("/deliveries?event_id={}", event["eventId"].as_str().unwrap());
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        loop {
            let found = self.get(&path).await["data"].as_array().unwrap().clone();
            if found.len() == event["deliveriesCreated"].as_u64().unwrap() as usize && found.iter().all(&holds) {
                return found;
            }
            assert!(tokio::time::Instant::now() < deadline, "not yet: {found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub async fn until_status(&self, event: &Value, status: &str) -> Vec<Value> {
        self.until(event, |delivery| delivery["status"] == status).await
    }
}

fn command(data: &std::path::Path, ranges: &str, more: &[(&'static str, String)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_postrider"));
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(data)
        .env("POSTRIDER_ADMIN_KEY", KEY)
        .env("POSTRIDER_LOG", "warn")
        .env("POSTRIDER_ALLOW_PRIVATE", ranges)
        .envs(more.iter().map(|(name, value)| (*name, value)));
    command
}

/// What libraries that we did not write say of a request.
pub async fn verified(secret: Option<&str>, public_key: Option<&str>, receipt: &Receipt) -> Value {
    let given = json!({
        "secret": secret, "public_key": public_key, "headers": receipt.headers, "body_base64": STANDARD.encode(&receipt.body),
    });
    let mut child = Peer::tool("webhook_verifier.py").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "the verifier failed");
    serde_json::from_slice(&output.stdout).unwrap()
}
