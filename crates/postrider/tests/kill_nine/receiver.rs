//! The remote system of every connection: it enters each request that came whole into the books and answers as the scenario says.
//!
//! It must not know the server, nor what is right.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;

use crate::books::{EDITED, Life, Receipt, Shared};
use crate::scenario::{self, plan};

#[derive(Default)]
struct Counts {
    by_connection: BTreeMap<String, usize>,
    by_id: BTreeMap<String, usize>,
    healed: bool,
}

#[derive(Clone)]
pub struct Remote {
    pub address: String,
    books: Shared,
    counts: Arc<Mutex<Counts>>,
}

impl Remote {
    pub async fn start(books: Shared) -> Remote {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let remote = Remote { address, books, counts: Arc::default() };
        let serving = remote.clone();
        tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let life = serving.books.open().life;
                let remote = serving.clone();
                let service = service_fn(move |request| remote.clone().answer(request, life));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        remote
    }

    /// The flaky connection's receiver is well from now on.
    pub fn heal(&self) {
        self.counts.lock().unwrap().healed = true;
    }

    /// The next life begins. Connections are accepted in the order in which they were made, so one more, made now and accepted, shows that
    /// every connection of the former life carries that life's number.
    pub async fn begin_life(&self) {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let mut stream = tokio::net::TcpStream::connect(&self.address).await.unwrap();
        stream.write_all(b"GET /nobody HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        self.books.open().life += 1;
    }

    async fn answer(
        self,
        request: http::Request<Incoming>,
        life: Life,
    ) -> Result<http::Response<Full<Bytes>>, Infallible> {
        let reply = |status: u16| Ok(http::Response::builder().status(status).body(Full::default()).unwrap());
        let connection = request.uri().path().trim_start_matches('/').to_owned();
        let Some(plan) = plan(&connection) else { return reply(404) };
        let id = request.headers()["x-postrider-msg-id"].to_str().unwrap().to_owned();
        // Cut off in the middle of the body: the server was killed, nothing was received.
        let Ok(body) = request.into_body().collect().await else { return reply(400) };
        let body = String::from_utf8_lossy(&body.to_bytes()).trim().trim_matches('"').to_owned();
        let (key, edited) = match body.strip_suffix(EDITED) {
            Some(key) => (key.to_owned(), true),
            None => (body, false),
        };
        let mut counts = self.counts.lock().unwrap();
        let turn = counted(&mut counts.by_connection, &connection);
        let earlier = counted(&mut counts.by_id, &id);
        let status = scenario::answer(plan.manner, &key, earlier, turn, counts.healed);
        let mut books = self.books.open();
        let tick = books.next_tick();
        books.receipts.push(Receipt { connection, id, key, edited, life, tick, status });
        reply(status)
    }
}

/// How many there were before this one.
fn counted(counts: &mut BTreeMap<String, usize>, of: &str) -> usize {
    let count = counts.entry(of.to_owned()).or_default();
    *count += 1;
    *count - 1
}
