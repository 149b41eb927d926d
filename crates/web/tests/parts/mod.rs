//! A server on a free port, and a caller that writes bytes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so at once")]
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod api;
pub mod browser;

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use postrider_web::{Server, ServerLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub struct Running {
    pub address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub async fn start(service: Router, limits: ServerLimits) -> Running {
        let server = Server::bind("127.0.0.1:0".parse().unwrap(), limits).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let until = async move {
            let _ = stopped.await;
        };
        let task = tokio::spawn(server.serve(service, until, Duration::from_secs(10)));
        Running { address, stop, task }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub async fn stop(self) {
        let _ = self.stop.send(());
        tokio::time::timeout(Duration::from_secs(20), self.task).await.expect("the server stops in time").unwrap();
    }
}

/// One request on its own connection; empty when no answer came.
pub async fn exchange(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    if stream.write_all(request).await.is_err() {
        return String::new();
    }
    read_answer(&mut stream).await
}

/// One answer: its head, and its body by `Content-Length`.
pub async fn read_answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let reading = async {
        loop {
            if let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
                if bytes.len() >= head + 4 + length.unwrap_or(0usize) {
                    break;
                }
            }
            match stream.read(&mut chunk).await {
                Ok(read) if read > 0 => bytes.extend_from_slice(&chunk[..read]),
                _ => break,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reading).await.expect("an answer comes in time");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Head in lower case, and body.
pub fn answer(text: &str) -> (String, &str) {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    (head.to_ascii_lowercase(), body)
}
