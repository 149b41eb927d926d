//! A server over a database that will be troubled: its log is kept and counted, and its health watched.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::cluster::{command, eventually};
use crate::harness::{Api, Server};

pub const PROJECT: &str = "/api/v1/projects/default";

pub struct Plant {
    pub server: Server,
    pub api: Api,
    log: PathBuf,
    _dir: tempfile::TempDir,
}

impl Plant {
    pub async fn start(url: &str) -> Plant {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let mut command = command("serve", url, &dir.path().join("data"));
        command.args(["--listen", "127.0.0.1:0"]).env("POSTRIDER_LOG", "info");
        command.stderr(std::fs::File::create(&log).unwrap());
        let server = Server::of(command).await;
        let api = Api::new(&server.address);
        Plant { server, api, log, _dir: dir }
    }

    pub async fn connection(&self, name: &str, remote: &str, more: Value) {
        let mut body = json!({"name": name, "type": "rest", "host": remote, "url_path": format!("/{name}"), "use_queue": true,
            "max_retries": 3, "retry_sleep_time": 0, "retry_backoff_threshold": 0});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let (status, answer) = self.call("POST", "/connections", &body).await;
        assert_eq!(status, 201, "{answer}");
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, answer) = self.api.call(method, &format!("{PROJECT}{path}"), &body).await.unwrap();
        (status, serde_json::from_str(&answer).unwrap_or(Value::Null))
    }

    pub async fn publish(&self, name: &str, body: &str) -> (u16, Value) {
        self.call("POST", &format!("/connections/{name}/publish"), &json!({"body": body})).await
    }

    pub async fn until_status(&self, id: &Value, status: &str) -> Value {
        let path = format!("/deliveries/{}", id.as_str().unwrap());
        eventually(status, async || {
            let (_, now) = self.call("GET", &path, &Value::Null).await;
            (now["status"] == status).then_some(now)
        })
        .await
    }

    /// Red, while the process itself is well.
    pub async fn until_not_ready(&self) {
        eventually("it is not ready", async || (self.health("ready").await == 503).then_some(())).await;
        assert_eq!(self.health("live").await, 200);
    }

    pub async fn until_ready(&self) {
        eventually("it is ready", async || (self.health("ready").await == 200).then_some(())).await;
    }

    async fn health(&self, which: &str) -> u16 {
        let path = format!("/health/{which}");
        let asked = self.api.call("GET", &path, "");
        tokio::time::timeout(Duration::from_secs(5), asked).await.expect("health answers from memory").unwrap().0
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Lines logged so far.
    pub fn log_lines(&self) -> usize {
        self.log().lines().count()
    }
}
