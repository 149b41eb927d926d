//! A remote system that keeps every request whole, and answers each as its path says.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;

#[derive(Clone, Debug)]
pub struct Mirrored {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Mirrored {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

#[derive(Default)]
struct Seen {
    requests: Mutex<Vec<Mirrored>>,
    arrived: Notify,
}

pub struct Mirror {
    pub address: String,
    seen: Arc<Seen>,
}

impl Mirror {
    pub async fn start() -> Mirror {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Seen> = Arc::default();
        let shared = seen.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let shared = shared.clone();
                let service = service_fn(move |request| answer(request, shared.clone()));
                let http = hyper::server::conn::http1::Builder::new();
                tokio::spawn(http.serve_connection(TokioIo::new(stream), service));
            }
        });
        Mirror { address, seen }
    }

    pub fn requests(&self) -> Vec<Mirrored> {
        self.seen.requests.lock().unwrap().clone()
    }

    pub fn last(&self) -> Mirrored {
        self.requests().pop().expect("a request arrived")
    }

    pub fn count(&self) -> usize {
        self.seen.requests.lock().unwrap().len()
    }

    /// Waits until so many requests have arrived.
    pub async fn until(&self, count: usize) {
        loop {
            let arrived = self.seen.arrived.notified();
            if self.count() >= count {
                return;
            }
            tokio::time::timeout(Duration::from_secs(30), arrived).await.expect("the request arrives");
        }
    }
}

/// `…/status/404` is answered 404, `…/hang` never, `…/slow` after a moment, `…/token` with a token, all else 200.
async fn answer(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let path = parts.uri.path().to_owned();
    let number = {
        let mut requests = seen.requests.lock().unwrap();
        requests.push(Mirrored { method: parts.method, uri: parts.uri, headers: parts.headers, body });
        requests.len()
    };
    seen.arrived.notify_waiters();
    if path.ends_with("/hang") {
        std::future::pending::<()>().await;
    }
    if path.ends_with("/slow") {
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    let mut response =
        Response::builder().header("x-remote", "yes").header("set-cookie", "a=1").header("set-cookie", "b=2");
    if let Some((_, status)) = path.rsplit_once("/status/") {
        response = response.status(status.parse::<u16>().unwrap());
    }
    let body = match path.as_str() {
        "/token" => {
            let token = format!(r#"{{"access_token":"t{number}","token_type":"Bearer","expires_in":3600}}"#);
            response = response.header("content-type", "application/json");
            token
        }
        _ if path.ends_with("/status/204") || path.ends_with("/status/304") => String::new(),
        _ => format!("answer {number}"),
    };
    Ok(response.body(Full::new(Bytes::from(body))).unwrap())
}
