//! A receiver that remembers each request it got, in order, and what it answered.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
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
    answered_ok: BTreeMap<(String, String), usize>,
    flaky: u64,
}

pub struct Receiver {
    pub address: String,
    log: Arc<Mutex<Log>>,
    healed: Arc<AtomicBool>,
}

impl Receiver {
    pub async fn start() -> Receiver {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Log::default()));
        let healed = Arc::new(AtomicBool::new(false));
        let (shared, well) = (log.clone(), healed.clone());
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let (shared, well) = (shared.clone(), well.clone());
                let service = service_fn(move |request| answer(request, shared.clone(), well.clone()));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Receiver { address, log, healed }
    }

    /// From now on `/fifo-flaky` answers 200.
    pub fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
    }

    pub fn receipts(&self) -> Vec<(String, (String, u64))> {
        self.log.lock().unwrap().receipts.clone()
    }

    /// How many receipts came after the same message had been answered 200 already.
    pub fn answered_ok_again(&self, path: &str) -> usize {
        let log = self.log.lock().unwrap();
        log.answered_ok.iter().filter(|((known, _), _)| known == path).map(|(_, times)| times - 1).sum()
    }
}

async fn answer(
    request: http::Request<Incoming>,
    log: Arc<Mutex<Log>>,
    healed: Arc<AtomicBool>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let id = request.headers()["x-postrider-msg-id"].to_str().unwrap().to_owned();
    let Ok(body) = request.into_body().collect().await else {
        // Cut off in the middle of the body: the server was killed, nothing was received.
        return Ok(http::Response::builder().status(400).body(Full::default()).unwrap());
    };
    let sequence: u64 = String::from_utf8_lossy(&body.to_bytes()).trim().trim_matches('"').parse().unwrap();
    let mut log = log.lock().unwrap();
    log.receipts.push((path.clone(), (id.clone(), sequence)));
    log.flaky += 1;
    let status = match path.as_str() {
        "/hopeless" => 500,
        "/fifo-flaky" if !healed.load(Ordering::SeqCst) && log.flaky.is_multiple_of(5) => 500,
        _ => 200,
    };
    if status == 200 {
        *log.answered_ok.entry((path, id)).or_default() += 1;
    }
    Ok(http::Response::builder().status(status).body(Full::default()).unwrap())
}
