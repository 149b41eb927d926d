//! A remote system whose answers the test decides as it goes: the status, and whether it answers yet. It says back what it was sent.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;

struct State {
    status: AtomicU16,
    open: watch::Sender<bool>,
    bodies: Mutex<Vec<String>>,
}

pub struct Desk {
    pub address: String,
    state: Arc<State>,
}

impl Desk {
    pub async fn start() -> Desk {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (status, open, bodies) = (AtomicU16::new(200), watch::Sender::new(true), Mutex::default());
        let state = Arc::new(State { status, open, bodies });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let shared = Arc::clone(&shared);
                let service = service_fn(move |request| answer(request, Arc::clone(&shared)));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Desk { address, state }
    }

    /// What requests that come from now on are answered.
    pub fn says(&self, status: u16) {
        self.state.status.store(status, Ordering::SeqCst);
    }

    /// Requests are received and not answered.
    pub fn hold(&self) {
        self.state.open.send_replace(false);
    }

    pub fn release(&self) {
        self.state.open.send_replace(true);
    }

    /// Of all requests, in the order of their arrival.
    pub fn bodies(&self) -> Vec<String> {
        self.state.bodies.lock().unwrap().clone()
    }

    pub async fn until_received(&self, count: usize) {
        let waiting = async {
            while self.bodies().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waiting).await.expect("so many requests come");
    }
}

async fn answer(
    request: http::Request<Incoming>,
    state: Arc<State>,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let Ok(body) = request.into_body().collect().await else {
        return Ok(http::Response::builder().status(400).body(Full::default()).unwrap());
    };
    let body = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    // Decided on arrival, so that what is held is not changed by what comes later.
    let status = state.status.load(Ordering::SeqCst);
    state.bodies.lock().unwrap().push(body.clone());
    let mut open = state.open.subscribe();
    let _ = open.wait_for(|open| *open).await;
    let answer = http::Response::builder().status(status).header("x-desk", "1").header("content-type", "text/plain");
    Ok(answer.body(Full::from(format!("heard {body}"))).unwrap())
}
