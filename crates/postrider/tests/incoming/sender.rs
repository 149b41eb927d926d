//! Who sends webhooks: requests with the headers that a provider's library made, or that a test writes itself.

use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Map, Value, json};
use tokio::io::AsyncWriteExt;

use crate::harness::{Hooks, Peer};

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub async fn source(hooks: &Hooks, name: &str, provider: &str, more: Value) -> Value {
    let mut body = json!({"name": name, "provider": provider});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = hooks.call("POST", "/sources", &body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

pub async fn destination(hooks: &Hooks, source: &Value, url: &str, more: Value) -> Value {
    let mut body = json!({"sourceId": source["id"], "url": url});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = hooks.call("POST", "/destinations", &body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

/// Status and body of the answer. `Err`: none came.
pub async fn send(
    url: &str,
    content_type: &str,
    headers: &Map<String, Value>,
    body: &[u8],
) -> Result<(u16, Value), String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut request = http::Request::builder().method("POST").uri(url).header("content-type", content_type);
    for (name, value) in headers {
        request = request.header(name, value.as_str().unwrap());
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let answer = client.request(request).await.map_err(|error| error.to_string())?;
    let status = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    let text = || Value::from(String::from_utf8_lossy(&bytes).into_owned());
    Ok((status, serde_json::from_slice(&bytes).unwrap_or_else(|_| text())))
}

/// The headers that a provider's library makes, and the secret that verifies them.
pub async fn signed(
    provider: &str,
    secret: &str,
    url: &str,
    content_type: &str,
    body: &[u8],
    at: u64,
) -> (Map<String, Value>, String) {
    let given = json!({
        "provider": provider, "secret": secret, "url": url, "content_type": content_type, "at": at, "id": "msg_1",
        "body_base64": STANDARD.encode(body),
    });
    let mut child = Peer::tool("webhook_signer.py").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "the signer failed");
    let signed: Value = serde_json::from_slice(&output.stdout).unwrap();
    (signed["headers"].as_object().unwrap().clone(), signed["secret"].as_str().unwrap().to_owned())
}

pub fn headers(pairs: &[(&str, &str)]) -> Map<String, Value> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))).collect()
}

/// Of a source that verifies nothing.
pub fn address(hooks: &Hooks, source: &Value) -> String {
    format!("{}{}", hooks.api.base(), source["ingressPath"].as_str().unwrap())
}
