//! A receiver that we did not write, from the peer lab (`tests/peers`), as a child process.

use std::path::PathBuf;
use std::process::Stdio;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

pub struct Peer {
    pub address: String,
    /// Dropping it closes the peer's standard input, which ends the peer and what it has started; a kill would orphan the latter.
    _child: Child,
}

impl Peer {
    pub async fn start(script: &str) -> Peer {
        Peer::start_with(&[script]).await
    }

    /// A script of the lab and its options.
    pub async fn start_with(command: &[&str]) -> Peer {
        let (script, options) = command.split_first().unwrap();
        let mut child = Peer::tool(script)
            .args(options)
            .arg("--stop-with-stdin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().expect("the peer ended before it listened");
        let port = serde_json::from_str::<Value>(&line).unwrap()["port"].as_u64().unwrap();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Peer { address: format!("http://127.0.0.1:{port}"), _child: child }
    }

    /// A program of the lab, to be given its arguments.
    pub fn tool(script: &str) -> Command {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let lab = |name: &str, folder: &str| {
            std::env::var(name).map_or_else(|_| root.join("target/peers").join(folder), PathBuf::from)
        };
        let python = lab("POSTRIDER_PEERS_VENV", "venv").join("bin/python");
        assert!(python.exists(), "the peer lab is not installed; `cargo xtask peers` installs it");
        let mut command = Command::new(python);
        command
            .arg(root.join("tests/peers").join(script))
            .env("POSTRIDER_PEERS_NODE", lab("POSTRIDER_PEERS_NODE", "node"));
        command
    }

    pub async fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address))
            .header("content-type", "application/json")
            .body(Full::new(body))
            .unwrap();
        let answer = client.request(request).await.unwrap();
        let status = answer.status();
        let bytes = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&bytes));
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    }
}
