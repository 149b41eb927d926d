//! A server, a peer, and calls between them.

use std::time::Duration;

use base64::Engine as _;
use serde_json::{Value, json};

use crate::harness::{Api, Peer, Server};

pub const PROJECT: &str = "/api/v1/projects/default";
pub const NAMESPACE: &str = "urn:lab:registry";

pub const OK: (bool, bool, bool) = (true, false, false);
pub const IN_QUEUE: (bool, bool, bool) = (false, true, false);
pub const RETURNED: (bool, bool, bool) = (false, false, false);

pub struct Lab {
    pub api: Api,
    pub peer: Peer,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Lab {
    pub async fn start(script: &str) -> Lab {
        let dir = tempfile::tempdir().unwrap();
        let (server, peer) = tokio::join!(Server::start(dir.path()), Peer::start(script));
        Lab { api: Api::new(&server.address), peer, _server: server, _dir: dir }
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &text).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::String(answer)))
    }

    pub async fn connection(&self, name: &str, url_path: &str, more: Value) {
        let mut body =
            json!({"name": name, "type": "soap", "host": self.peer.address, "url_path": url_path, "timeout": 20});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.call("POST", "/connections", &body).await;
        assert_eq!(status, 201, "{answer}");
    }

    pub async fn invoke(&self, name: &str, operation: &str, message: Value) -> Value {
        let request = json!({"operation": operation, "message": message});
        let (status, result) = self.call("POST", &format!("/connections/{name}/send"), &request).await;
        assert!(matches!(status, 200 | 202), "{status} {result}");
        result
    }

    /// Requests that the peer has seen under a path, once there are so many.
    pub async fn seen(&self, path: &str, at_least: usize) -> Vec<Value> {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            let log = self.peer.call("GET", "/__log", &Value::Null).await;
            let seen: Vec<Value> =
                log.as_array().unwrap().iter().filter(|entry| entry["path"] == path).cloned().collect();
            if seen.len() >= at_least {
                return seen;
            }
            assert!(tokio::time::Instant::now() < deadline, "only {} requests at {path}", seen.len());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    pub async fn delivery_until(&self, result: &Value, status: &str) -> Value {
        let path = format!("/deliveries/{}", result["msg_id"].as_str().unwrap());
        let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
        loop {
            let (_, delivery) = self.call("GET", &path, &Value::Null).await;
            if delivery["status"] == status {
                return delivery;
            }
            assert!(tokio::time::Instant::now() < deadline, "not {status}: {delivery}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

pub fn flags(result: &Value) -> (bool, bool, bool) {
    let flag = |name: &str| result[name].as_bool().unwrap();
    (flag("is_ok"), flag("is_in_queue"), flag("is_in_dlq"))
}

pub fn body_of(entry: &Value) -> String {
    let bytes = base64::engine::general_purpose::STANDARD.decode(entry["body_base64"].as_str().unwrap()).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Retries that take no time.
pub fn queue() -> Value {
    json!({"use_queue": true, "max_retries": 1, "retry_sleep_time": 0})
}
