//! A caller that says exactly what it means, and what most tests here set up.

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};

use crate::harness::{Bench, Mirror};

/// What a caller of a channel got.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answered {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }
}

/// `Err`: no answer came.
pub async fn try_ask(
    base: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Result<Answered, String> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let mut request = Request::builder().method(method).uri(format!("{base}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::copy_from_slice(body))).unwrap();
    let answer = client.request(request).await.map_err(|error| error.to_string())?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let body = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok(Answered { status, headers, body })
}

pub async fn ask(bench: &Bench, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
    try_ask(&bench.server.address, method, path, headers, body).await.unwrap()
}

pub async fn post(bench: &Bench, path: &str, body: &str) -> Answered {
    ask(bench, "POST", path, &[("content-type", "application/json")], body.as_bytes()).await
}

/// A service that is no host of ours, at an address of its own.
pub async fn service(bench: &Bench, name: &str, address: &str) {
    let (status, answer) = bench.call("POST", "/services", &json!({"name": name, "address": address})).await;
    assert_eq!(status, 201, "{answer}");
}

pub async fn channel(bench: &Bench, name: &str, url_path: &str, more: Value) -> Value {
    let mut body = json!({"name": name, "type": "rest", "url_path": url_path});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let (status, answer) = bench.call("POST", "/channels", &body).await;
    assert_eq!(status, 201, "{answer}");
    answer
}

/// A server, a mirror as the service `mirror`, and nothing else.
pub async fn with_mirror() -> (Bench, Mirror) {
    let (bench, mirror) = tokio::join!(Bench::start(), Mirror::start());
    service(&bench, "mirror", &mirror.address).await;
    (bench, mirror)
}

/// The deliveries that a cid names.
pub async fn by_cid(bench: &Bench, cid: &str) -> Vec<Value> {
    let (status, page) = bench.call("GET", &format!("/deliveries?cid={cid}"), &Value::Null).await;
    assert_eq!(status, 200, "{page}");
    page["data"].as_array().unwrap().clone()
}

pub async fn until_ended(bench: &Bench, cid: &str, status: &str) -> Value {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(40);
    loop {
        let found = by_cid(bench, cid).await;
        if let Some(delivery) = found.iter().find(|delivery| delivery["status"] == status) {
            return delivery.clone();
        }
        assert!(tokio::time::Instant::now() < deadline, "{cid} is not {status}: {found:?}");
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    }
}
