//! The remote system: answers 200 and notes when each message came. Runs on a lane of its own.
//!
//! It must not know who sends, the server or a bare client.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::failure::Failure;
use crate::lane::Lane;
use crate::messages;

/// What came since the book was opened.
pub struct Book {
    opened_at: Instant,
    /// By sequence number: nanoseconds after `opened_at` of the first receipt, 0 = none.
    stamps: Vec<AtomicU64>,
    distinct: AtomicU64,
    again: AtomicU64,
    first_ns: AtomicU64,
    last_ns: AtomicU64,
}

impl Book {
    pub fn new(messages: usize) -> Book {
        Book {
            opened_at: Instant::now(),
            stamps: std::iter::repeat_with(|| AtomicU64::new(0)).take(messages).collect(),
            distinct: AtomicU64::new(0),
            again: AtomicU64::new(0),
            first_ns: AtomicU64::new(0),
            last_ns: AtomicU64::new(0),
        }
    }

    /// Notes a receipt. Only one lane may write, so that plain loads and stores are enough.
    pub fn note(&self, sequence: usize) {
        let Some(stamp) = self.stamps.get(sequence) else { return };
        let now = u64::try_from(self.opened_at.elapsed().as_nanos()).unwrap_or(u64::MAX).max(1);
        if stamp.load(Ordering::Relaxed) != 0 {
            self.again.store(self.again.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            return;
        }
        stamp.store(now, Ordering::Relaxed);
        if self.first_ns.load(Ordering::Relaxed) == 0 {
            self.first_ns.store(now, Ordering::Relaxed);
        }
        self.last_ns.store(now, Ordering::Relaxed);
        self.distinct.store(self.distinct.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// How many different messages came.
    pub fn distinct(&self) -> u64 {
        self.distinct.load(Ordering::Acquire)
    }

    /// Receipts of what had come before.
    pub fn again(&self) -> u64 {
        self.again.load(Ordering::Relaxed)
    }

    pub fn first_at(&self) -> Option<Instant> {
        self.at(self.first_ns.load(Ordering::Relaxed))
    }

    pub fn last_at(&self) -> Option<Instant> {
        self.at(self.last_ns.load(Ordering::Relaxed))
    }

    /// When this message came first.
    pub fn received_at(&self, sequence: usize) -> Option<Instant> {
        self.at(self.stamps.get(sequence)?.load(Ordering::Relaxed))
    }

    fn at(&self, nanos: u64) -> Option<Instant> {
        (nanos != 0).then(|| self.opened_at + Duration::from_nanos(nanos))
    }
}

struct Shared {
    book: Mutex<Arc<Book>>,
    /// Requests come in and are never answered.
    hangs: AtomicBool,
    status: StatusCode,
    answer: Bytes,
}

pub struct Receiver {
    pub address: SocketAddr,
    lane: Lane,
    shared: Arc<Shared>,
}

impl Receiver {
    /// Listens on a free port of the loopback interface and answers everything with this status and body.
    pub async fn start(name: &str, status: StatusCode, answer: &'static str) -> Result<Receiver, Failure> {
        let lane = Lane::start(name)?;
        let shared = Arc::new(Shared {
            book: Mutex::new(Arc::new(Book::new(0))),
            hangs: AtomicBool::new(false),
            status,
            answer: Bytes::from_static(answer.as_bytes()),
        });
        let listener = lane.on(TcpListener::bind("127.0.0.1:0")).await?;
        let address = listener.local_addr()?;
        lane.handle().spawn(accept(listener, shared.clone()));
        Ok(Receiver { address, lane, shared })
    }

    /// Begins a new book for messages 0 to `messages`; what comes under higher numbers is answered and not noted.
    pub fn open_book(&self, messages: usize) -> Arc<Book> {
        let book = Arc::new(Book::new(messages));
        *self.shared.book.lock().unwrap_or_else(PoisonError::into_inner) = book.clone();
        book
    }

    pub fn hang(&self, hangs: bool) {
        self.shared.hangs.store(hangs, Ordering::Relaxed);
    }

    pub async fn cpu(&self) -> Duration {
        self.lane.cpu().await
    }

    /// `http://` and the address.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // No free file descriptor, say: the limit is raised at the start, so this passes.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let shared = shared.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &shared));
            // A caller that is killed breaks its connection off; that is no error of ours.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, Infallible> {
    let sequence = sequence_of(request.into_body()).await;
    if shared.hangs.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    if let Some(sequence) = sequence {
        shared.book.lock().unwrap_or_else(PoisonError::into_inner).note(sequence);
    }
    let mut response = Response::new(Full::new(shared.answer.clone()));
    *response.status_mut() = shared.status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// Reads the body to its end; the number stands in its first frame.
pub async fn sequence_of(mut body: Incoming) -> Option<usize> {
    let mut found = None;
    while let Some(frame) = body.frame().await {
        let data = frame.ok()?.into_data().ok()?;
        if found.is_none() {
            found = Some(messages::sequence(&data)?);
        }
    }
    found
}
