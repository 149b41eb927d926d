//! A receiver that remembers each request it got, in order; `/hopeless` it answers 500, all else 200.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

#[derive(Default)]
struct Log {
    /// (path, (msg_id, sequence)) in the order of receipt.
    receipts: Vec<(String, (String, u64))>,
    ids: std::collections::HashSet<String>,
}

pub struct Receiver {
    pub address: String,
    log: Arc<Mutex<Log>>,
}

impl Receiver {
    pub async fn start() -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = log.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let shared = shared.clone();
                let service = service_fn(move |request| answer(request, shared.clone()));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Receiver { address, log }
    }

    /// How many different requests were received.
    pub fn count(&self) -> usize {
        self.log.lock().unwrap().ids.len()
    }

    pub fn receipts(&self) -> Vec<(String, (String, u64))> {
        self.log.lock().unwrap().receipts.clone()
    }
}

async fn answer(
    request: http::Request<Incoming>,
    log: Arc<Mutex<Log>>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let Some(id) = request.headers().get("x-postrider-msg-id") else {
        // A ping: no delivery, and so nothing was received.
        return Ok(http::Response::new(Full::default()));
    };
    let id = id.to_str().unwrap().to_owned();
    let Ok(body) = request.into_body().collect().await else {
        // Cut off in the middle of the body: the server was killed, nothing was received.
        return Ok(http::Response::builder().status(400).body(Full::default()).unwrap());
    };
    // What has no number was sent by somebody who does not count.
    let Ok(sequence) = String::from_utf8_lossy(&body.to_bytes()).trim().trim_matches('"').parse::<u64>() else {
        return Ok(http::Response::new(Full::default()));
    };
    let status = if path == "/hopeless" { 500 } else { 200 };
    let mut log = log.lock().unwrap();
    log.ids.insert(id.clone());
    log.receipts.push((path, (id, sequence)));
    drop(log);
    Ok(http::Response::builder().status(status).body(Full::default()).unwrap())
}
