//! A bare client of the HTTP API.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

use super::server::KEY;

#[derive(Clone)]
pub struct Api {
    pub base: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Api {
    pub fn new(base: &str) -> Api {
        Api { base: base.to_owned(), client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Where the server is.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// `Err`: no answer came, so whether the request was accepted is unknown.
    pub async fn call(&self, method: &str, path: &str, body: &str) -> Result<(u16, String), String> {
        self.call_as(method, path, body, "application/json").await
    }

    /// The same with a body of another type.
    pub async fn call_as(
        &self,
        method: &str,
        path: &str,
        body: &str,
        content_type: &str,
    ) -> Result<(u16, String), String> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("authorization", format!("Bearer {KEY}"))
            .header("content-type", content_type)
            .body(Full::new(Bytes::from(body.to_owned())))
            .unwrap();
        let answer = self.client.request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
        Ok((status, String::from_utf8_lossy(&body).into_owned()))
    }

    pub async fn wait_until_drained(&self, connection: &str, within: Duration) {
        let path = format!("/api/v1/projects/default/connections/{connection}/queue?limit=1");
        let deadline = tokio::time::Instant::now() + within;
        loop {
            let (status, body) = self.call("GET", &path, "").await.unwrap();
            assert_eq!(status, 200, "{body}");
            let page: serde_json::Value = serde_json::from_str(&body).unwrap();
            if page["data"].as_array().unwrap().is_empty() {
                return;
            }
            assert!(tokio::time::Instant::now() < deadline, "{connection} has not drained: {body}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn delivery_status(&self, id: &str) -> Option<String> {
        let path = format!("/api/v1/projects/default/deliveries/{id}");
        let (status, body) = self.call("GET", &path, "").await.unwrap();
        if status == 404 {
            return None;
        }
        let delivery: serde_json::Value = serde_json::from_str(&body).unwrap();
        delivery["status"].as_str().map(str::to_owned)
    }
}
