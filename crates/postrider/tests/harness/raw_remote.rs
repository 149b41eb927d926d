//! A remote system that misbehaves on the wire as its script says, until it is healed.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One thing that it does with a connection.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Reads one request to its end and remembers its body.
    Read,
    Say(&'static [u8]),
    /// Says it again and again, with this pause between, until the other side has gone.
    SayForEver(&'static [u8], Duration),
    /// Says nothing more, and neither closes nor reads.
    Hold,
    /// Ends the connection with a reset.
    Reset,
}

pub struct RawRemote {
    pub address: String,
    bodies: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
    healed: Arc<AtomicBool>,
}

impl RawRemote {
    /// Every connection goes through the script and is then closed.
    pub async fn start(script: &'static [Act]) -> RawRemote {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = RawRemote {
            address: format!("http://{}", listener.local_addr().unwrap()),
            bodies: Arc::default(),
            connections: Arc::default(),
            closed: Arc::default(),
            healed: Arc::default(),
        };
        let (bodies, connections, healed) = (remote.bodies.clone(), remote.connections.clone(), remote.healed.clone());
        let closed = remote.closed.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let (bodies, closed, healed) = (bodies.clone(), closed.clone(), healed.load(Ordering::SeqCst));
                tokio::spawn(async move {
                    if healed {
                        answer_all(stream, &bodies).await
                    } else {
                        play(stream, script, &bodies).await
                    }
                    closed.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        remote
    }

    /// New connections are answered 200 from now on.
    pub fn heal(&self) {
        self.healed.store(true, Ordering::SeqCst);
    }

    /// Of the requests that came whole, in the order of their arrival.
    pub fn bodies(&self) -> Vec<String> {
        self.bodies.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many connections have been closed from here.
    pub async fn until_closed(&self, count: usize) {
        let waiting = async {
            while self.closed.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("so many connections are closed");
    }

    pub async fn until_received(&self, count: usize) {
        let waiting = async {
            while self.bodies().len() < count {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("so many requests come");
    }
}

async fn answer_all(mut stream: TcpStream, bodies: &Mutex<Vec<String>>) {
    while read(&mut stream, bodies).await {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.is_err() {
            return;
        }
    }
}

async fn play(mut stream: TcpStream, script: &[Act], bodies: &Mutex<Vec<String>>) {
    for act in script {
        match act {
            Act::Read => {
                if !read(&mut stream, bodies).await {
                    return;
                }
            }
            Act::Say(bytes) => {
                let _ = stream.write_all(bytes).await;
            }
            Act::SayForEver(bytes, pause) => {
                // Many at a time where there is no pause, so that a flood is one on a busy machine too.
                let times = if pause.is_zero() { (64 << 10) / bytes.len() + 1 } else { 1 };
                let bytes = bytes.repeat(times);
                while stream.write_all(&bytes).await.is_ok() {
                    if !pause.is_zero() {
                        tokio::time::sleep(*pause).await;
                    }
                }
            }
            Act::Hold => std::future::pending().await,
            Act::Reset => stream.set_zero_linger().unwrap(),
        }
    }
}

async fn read(stream: &mut TcpStream, bodies: &Mutex<Vec<String>>) -> bool {
    let mut bytes = Vec::new();
    let mut chunk = [0; 16 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
            if bytes.len() >= end + 4 + length.unwrap_or(0usize) {
                bodies.lock().unwrap().push(String::from_utf8_lossy(&bytes[end + 4..]).into_owned());
                return true;
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
