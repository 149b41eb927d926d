//! A peer on a raw socket: each accepted socket runs a script that reads and writes bytes as it likes.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use socket2::{Domain, SockRef, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

pub struct Peer {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// One accepted socket.
pub struct Talk {
    pub tcp: TcpStream,
    /// From 0, in the order of acceptance.
    pub index: usize,
    requests: Arc<AtomicUsize>,
}

/// A request as it was on the wire.
#[derive(Clone, Debug)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Peer {
    pub async fn start<F, S>(script: S) -> Peer
    where
        S: Fn(Talk) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, requests) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (counter, seen) = (accepted.clone(), requests.clone());
        let task = tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let index = counter.fetch_add(1, SeqCst);
                tokio::spawn(script(Talk { tcp, index, requests: seen.clone() }));
            }
        });
        Peer { address, accepted, requests, task }
    }

    /// Answers every request on every socket with these bytes.
    pub async fn answering(answer: impl Into<Vec<u8>>) -> Peer {
        let answer: Arc<[u8]> = answer.into().into();
        Peer::start(move |mut talk| {
            let answer = answer.clone();
            async move {
                while talk.read_request().await.is_some() {
                    talk.write(&answer).await;
                }
            }
        })
        .await
    }

    /// Reads one request, writes these bytes, then stays silent with the socket open.
    pub async fn stuck_after(bytes: impl Into<Vec<u8>>) -> Peer {
        let bytes: Arc<[u8]> = bytes.into().into();
        Peer::start(move |mut talk| {
            let bytes = bytes.clone();
            async move {
                talk.read_request().await;
                talk.write(&bytes).await;
                talk.hang().await;
            }
        })
        .await
    }

    /// Reads one request, writes these bytes and closes.
    pub async fn closing_after(bytes: impl Into<Vec<u8>>) -> Peer {
        let bytes: Arc<[u8]> = bytes.into().into();
        Peer::start(move |mut talk| {
            let bytes = bytes.clone();
            async move {
                talk.read_request().await;
                talk.write(&bytes).await;
            }
        })
        .await
    }

    /// Reads one request, then writes `first` once and `more` for ever.
    pub async fn flooding(first: &'static str, more: &'static str) -> Peer {
        Peer::start(move |mut talk| async move {
            talk.read_request().await;
            talk.write(first.as_bytes()).await;
            while talk.tcp.write_all(more.as_bytes()).await.is_ok() {}
        })
        .await
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn sockets(&self) -> usize {
        self.accepted.load(SeqCst)
    }

    /// Requests whose head was read whole.
    pub fn requests(&self) -> usize {
        self.requests.load(SeqCst)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Talk {
    /// `None` when the other side closed.
    pub async fn read_request(&mut self) -> Option<Seen> {
        let seen = read_request(&mut self.tcp).await?;
        self.requests.fetch_add(1, SeqCst);
        Some(seen)
    }

    /// A peer whose client has gone writes into the void.
    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = self.tcp.write_all(bytes).await;
    }

    pub async fn hang(self) {
        let _open = self.tcp;
        std::future::pending::<()>().await;
    }

    /// Closes with RST instead of FIN.
    pub fn reset(self) {
        SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

pub async fn read_request(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = header(&head, "content-length").map_or(0, |value| value.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen { head, body })
}

pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    pub fn count(&self, name: &str) -> usize {
        let is_it = |line: &&str| line.split(':').next().is_some_and(|known| known.eq_ignore_ascii_case(name));
        self.head.lines().skip(1).filter(is_it).count()
    }

    pub fn line(&self) -> &str {
        self.head.lines().next().unwrap_or("")
    }
}

/// A listener that never accepts, its backlog full, so that connecting to it hangs. Keep the result alive.
pub fn full_backlog() -> (SocketAddr, Vec<Socket>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut kept = vec![listener];
    for _ in 0..4 {
        let filler = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        filler.set_nonblocking(true).unwrap();
        let _ = filler.connect(&address);
        kept.push(filler);
    }
    (address.as_socket().unwrap(), kept)
}

/// A port on which nothing listens.
pub async fn refusing_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}
