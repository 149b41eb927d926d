//! Remote systems that misbehave, each in its own manner and on its own port, all on one lane.
//!
//! They note what they took in one book. They must not know who sends.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Mutex;
use tokio::task::{JoinHandle, JoinSet};

use crate::failure::Failure;
use crate::lane::Lane;
use crate::receiver::{Book, sequence_of};

const SLOW: Duration = Duration::from_millis(200);
const BACKLOG: u32 = 1024;
/// The kernel may need a moment to give a port back.
const BIND_TRIES: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    Well,
    /// 200 ms for each answer.
    Slow,
    /// 500 for every third request.
    FailsEveryThird,
    /// 500 for every second request.
    FailsEveryOther,
    /// Breaks the connection with RST in place of every second answer.
    ResetsEveryOther,
    /// Takes requests and never answers.
    Hangs,
    /// Refuses connections.
    Closed,
}

pub struct Remote {
    pub address: SocketAddr,
    lane: Arc<Lane>,
    /// `None` in an outage that refuses connections.
    door: Mutex<Door>,
    shared: Arc<Shared>,
}

enum Door {
    Open(JoinHandle<()>),
    /// Bound and not listening, so that the port stays ours and connections are refused.
    Closed(Option<TcpSocket>),
}

struct Shared {
    manner: Manner,
    book: Arc<Book>,
    turns: AtomicU64,
    hangs: AtomicBool,
}

impl Remote {
    pub async fn start(lane: &Arc<Lane>, manner: Manner, book: &Arc<Book>) -> Result<Remote, Failure> {
        let socket = bound(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = socket.local_addr()?;
        let hangs = AtomicBool::new(manner == Manner::Hangs);
        let shared = Arc::new(Shared { manner, book: book.clone(), turns: AtomicU64::new(0), hangs });
        let remote = Remote { address, lane: lane.clone(), door: Mutex::new(Door::Closed(Some(socket))), shared };
        if manner != Manner::Closed {
            remote.open().await?;
        }
        Ok(remote)
    }

    /// Requests come in and are never answered, or are again. What hung stays so until its sender gives up.
    pub fn hang(&self, hangs: bool) {
        self.shared.hangs.store(hangs, Ordering::Relaxed);
    }

    /// Breaks all connections off and refuses new ones.
    pub async fn close(&self) -> Result<(), Failure> {
        let mut door = self.door.lock().await;
        let Door::Open(accepting) = &mut *door else { return Ok(()) };
        accepting.abort();
        // Ends as cancelled, and its connections with it.
        let _ = accepting.await;
        *door = Door::Closed(Some(bound_again(self.address).await?));
        Ok(())
    }

    pub async fn open(&self) -> Result<(), Failure> {
        let mut door = self.door.lock().await;
        let Door::Closed(socket) = &mut *door else { return Ok(()) };
        let socket = match socket.take() {
            Some(socket) => socket,
            None => bound_again(self.address).await?,
        };
        let listener = self.lane.on(async move { socket.listen(BACKLOG) }).await?;
        *door = Door::Open(self.lane.handle().spawn(accept(listener, self.shared.clone())));
        Ok(())
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn bound_again(address: SocketAddr) -> Result<TcpSocket, Failure> {
    let mut tries = 0;
    loop {
        match bound(address) {
            Ok(socket) => return Ok(socket),
            Err(_) if tries < BIND_TRIES => tries += 1,
            Err(error) => return Err(Failure::new(format!("the receiver's port {address} is gone: {error}"))),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        if shared.manner == Manner::ResetsEveryOther {
            // Closing is then RST.
            let _ = stream.set_zero_linger();
        }
        let shared = shared.clone();
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, &shared));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Full<Bytes>>, io::Error> {
    let sequence = sequence_of(request.into_body()).await;
    let turn = shared.turns.fetch_add(1, Ordering::Relaxed);
    if shared.manner == Manner::Slow {
        tokio::time::sleep(SLOW).await;
    }
    if shared.hangs.load(Ordering::Relaxed) {
        std::future::pending::<()>().await;
    }
    let fails = match shared.manner {
        Manner::FailsEveryThird => turn % 3 == 2,
        Manner::FailsEveryOther => turn % 2 == 1,
        Manner::ResetsEveryOther if turn % 2 == 1 => return Err(io::ErrorKind::ConnectionReset.into()),
        _ => false,
    };
    let mut response = Response::new(Full::new(Bytes::new()));
    if fails {
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    } else if let Some(sequence) = sequence {
        shared.book.note(sequence);
    }
    Ok(response)
}
