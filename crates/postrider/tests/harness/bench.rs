//! A server with its data and a client, and the few calls that most tests of faults make.

use std::path::PathBuf;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Api, KEY, Server};

pub const PROJECT: &str = "/api/v1/projects/default";

pub struct Bench {
    pub server: Server,
    pub api: Api,
    data: PathBuf,
    _dir: tempfile::TempDir,
}

impl Bench {
    pub async fn start() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        Bench::at(dir.path().join("data"), dir).await
    }

    pub async fn at(data: PathBuf, dir: tempfile::TempDir) -> Bench {
        let server = Server::start(&data).await;
        let api = Api::new(&server.address);
        Bench { server, api, data, _dir: dir }
    }

    /// kill -9, and a new process over the same data.
    pub async fn kill_and_restart(self) -> Bench {
        self.server.kill_nine().await;
        Bench::at(self.data, self._dir).await
    }

    /// SIGTERM, which lets attempts under way end, and a new process over the same data.
    pub async fn stop_and_restart(self) -> Bench {
        self.server.stop().await;
        Bench::at(self.data, self._dir).await
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &body).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    pub async fn connection(&self, name: &str, host: &str, more: Value) {
        let mut body = json!({"name": name, "type": "rest", "host": host, "url_path": "/"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.call("POST", "/connections", &body).await;
        assert_eq!(status, 201, "{answer}");
    }

    pub async fn send(&self, name: &str, body: &str) -> (u16, Value) {
        self.call("POST", &format!("/connections/{name}/send"), &json!({"body": body})).await
    }

    pub async fn publish(&self, name: &str, body: &str) -> String {
        let (status, answer) = self.call("POST", &format!("/connections/{name}/publish"), &json!({"body": body})).await;
        assert_eq!(status, 202, "{answer}");
        answer["msg_id"].as_str().unwrap().to_owned()
    }

    pub async fn delivery(&self, id: &str) -> Value {
        self.call("GET", &format!("/deliveries/{id}"), &Value::Null).await.1
    }

    pub async fn until_status(&self, id: &str, status: &str) -> Value {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            let now = self.delivery(id).await;
            if now["status"] == status {
                return now;
            }
            assert!(tokio::time::Instant::now() < deadline, "{id} is not {status}: {now}");
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }

    pub async fn until_attempted(&self, id: &str) {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        while self.delivery(id).await["attempts"].as_u64().unwrap() == 0 {
            assert!(tokio::time::Instant::now() < deadline, "{id} was never attempted");
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    }

    /// How many deliveries there are, at most 1000.
    pub async fn count(&self) -> usize {
        self.call("GET", "/deliveries?limit=1000", &Value::Null).await.1["data"].as_array().unwrap().len()
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.server.address.strip_prefix("http://").unwrap()).await.unwrap()
    }

    /// The head of a request with our key, up to and with the empty line.
    pub fn head(&self, path: &str, more: &str) -> String {
        format!(
            "POST {PROJECT}{path} HTTP/1.1\r\nHost: x\r\nX-API-Key: {KEY}\r\nContent-Type: application/json\r\nConnection: close\r\n{more}\r\n"
        )
    }

    /// What comes back for these bytes until the server closes; empty when it only closed.
    pub async fn exchange(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// `is_ok`, `is_in_queue`, `is_in_dlq`.
pub fn flags(result: &Value) -> (bool, bool, bool) {
    let flag = |name: &str| result[name].as_bool().unwrap_or_else(|| panic!("no result: {result}"));
    (flag("is_ok"), flag("is_in_queue"), flag("is_in_dlq"))
}
