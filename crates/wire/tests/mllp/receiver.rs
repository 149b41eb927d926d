//! A receiver that does with each socket what a test says.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub struct Receiver {
    pub address: SocketAddr,
    sockets: Arc<AtomicUsize>,
}

/// One socket, from its receiver's side.
pub struct Talk {
    pub tcp: TcpStream,
    /// From 1.
    pub socket: usize,
    bytes: Vec<u8>,
}

impl Receiver {
    pub async fn start<F>(each: impl Fn(Talk) -> F + Send + Sync + 'static) -> Receiver
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sockets = Arc::new(AtomicUsize::new(0));
        let counted = sockets.clone();
        tokio::spawn(async move {
            while let Ok((tcp, _)) = listener.accept().await {
                let socket = counted.fetch_add(1, SeqCst) + 1;
                tokio::spawn(each(Talk { tcp, socket, bytes: Vec::new() }));
            }
        });
        Receiver { address, sockets }
    }

    /// Acknowledges everything as this code.
    pub async fn saying(code: &'static str) -> Receiver {
        Receiver::start(move |mut talk| async move {
            while let Some(message) = talk.message().await {
                talk.ack(code, &control_id(&message)).await;
            }
        })
        .await
    }

    /// Writes these bytes for every message, whatever it is.
    pub async fn writing(bytes: impl Into<Vec<u8>>) -> Receiver {
        let bytes: Arc<[u8]> = bytes.into().into();
        Receiver::start(move |mut talk| {
            let bytes = bytes.clone();
            async move {
                while talk.message().await.is_some() {
                    talk.write(&bytes).await;
                }
            }
        })
        .await
    }

    pub fn sockets(&self) -> usize {
        self.sockets.load(SeqCst)
    }
}

impl Talk {
    /// The next message without its frame; `None` when the sender has closed or died.
    pub async fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\x1c\r") {
                let rest = self.bytes.split_off(end + 2);
                let frame = std::mem::replace(&mut self.bytes, rest);
                assert_eq!(frame[0], 0x0b, "a frame begins with VT");
                return Some(frame[1..end].to_vec());
            }
            let mut piece = vec![0; 64 * 1024];
            match self.tcp.read(&mut piece).await {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.bytes.extend_from_slice(&piece[..read]),
            }
        }
    }

    /// Whether nothing comes for this long.
    pub async fn is_quiet_for(&mut self, ms: u64) -> bool {
        tokio::time::timeout(Duration::from_millis(ms), self.tcp.readable()).await.is_err()
    }

    pub async fn write(&mut self, bytes: &[u8]) {
        let _ = self.tcp.write_all(bytes).await;
    }

    pub async fn ack(&mut self, code: &str, id: &str) {
        self.write(&framed(&ack(code, id))).await;
    }

    /// Closes with a reset instead of an end.
    pub fn reset(self) {
        SockRef::from(&self.tcp).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

pub fn framed(message: &str) -> Vec<u8> {
    [b"\x0b", message.as_bytes(), b"\x1c\r"].concat()
}

pub fn ack(code: &str, id: &str) -> String {
    format!("MSH|^~\\&|LIS|GH|HIS|GH|20260312120534||ACK^A01^ACK|ACK{id}|P|2.5\rMSA|{code}|{id}\r")
}

pub fn control_id(message: &[u8]) -> String {
    let header = message.split(|byte| *byte == b'\r').find(|segment| segment.starts_with(b"MSH")).unwrap();
    String::from_utf8(header.split(|byte| *byte == b'|').nth(9).unwrap().to_vec()).unwrap()
}
