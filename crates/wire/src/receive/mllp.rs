//! A listener for HL7 over MLLP: frames in, acknowledgments out, in the order in which the frames came.
//!
//! Every wait has a bound: for TLS, for the rest of a message that has begun, for a socket on which nothing goes on, for an acknowledgment to be
//! taken. It must not know what is done with a message: `Take` says what is answered.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use postrider_core::connection::{MllpDoor, ServerTls};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

use crate::codec::mllp::{Decoder, FrameError, Pending, encode};
use crate::tls;

const HANDSHAKE: Duration = Duration::from_secs(10);
/// For an acknowledgment to leave.
const WRITE: Duration = Duration::from_secs(30);
/// How long the last bytes of a message's end may be late before it is taken for whole without them.
const LATE_END: Duration = Duration::from_millis(500);
/// Between two tries to accept where the system has no sockets left.
const NO_SOCKETS: Duration = Duration::from_millis(200);
const READ_BYTES: usize = 16 * 1024;

/// What becomes of messages.
#[async_trait]
pub trait Take: Send + Sync + 'static {
    /// Called for one message of a socket at a time. What is answered; `None`: nothing.
    async fn take(&self, message: Bytes, peer: SocketAddr) -> Option<Bytes>;

    /// The answer to what is no whole message; the socket is closed after it.
    fn refuse(&self, why: &str) -> Bytes;

    /// A socket was refused or closed for a reason that an operator should know.
    fn told(&self, peer: SocketAddr, why: &str);
}

/// One open port.
pub struct MllpListener {
    socket: TcpListener,
    door: Arc<MllpDoor>,
    tls: Option<Arc<Acceptor>>,
    take: Arc<dyn Take>,
    slots: Arc<Semaphore>,
}

struct Acceptor {
    settings: ServerTls,
    built: Mutex<Option<(Vec<Stamp>, TlsAcceptor)>>,
}

type Stamp = Option<(SystemTime, u64)>;

impl MllpListener {
    /// Opens the port, and reads the certificate.
    ///
    /// # Errors
    /// In words: the port is taken or not ours to open, or a file of TLS cannot be used.
    pub async fn open(door: Arc<MllpDoor>, take: Arc<dyn Take>) -> Result<MllpListener, String> {
        let tls = match &door.tls {
            None => None,
            Some(settings) => {
                let acceptor = Acceptor { settings: settings.clone(), built: Mutex::default() };
                acceptor.ready().await?;
                Some(Arc::new(acceptor))
            }
        };
        let socket = TcpListener::bind(door.listen).await.map_err(|error| format!("{}: {error}", door.listen))?;
        let slots = Arc::new(Semaphore::new(usize::try_from(door.connections_max).unwrap_or(1).max(1)));
        Ok(MllpListener { socket, door, tls, take, slots })
    }

    /// Until `stop` says so; then sockets end after the message that is under way.
    pub async fn serve(self, mut stop: watch::Receiver<bool>) {
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                accepted = self.socket.accept() => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Somebody who left at once is no news; a system without sockets is, and needs a moment.
                    if !matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
                        tokio::time::sleep(NO_SOCKETS).await;
                    }
                    continue;
                }
            };
            let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
                self.take.told(peer, "there are as many connections as there may be (`connections_max`)");
                continue;
            };
            let (door, tls, take) = (Arc::clone(&self.door), self.tls.clone(), Arc::clone(&self.take));
            let stop = stop.clone();
            tokio::spawn(async move {
                let ended = welcome(stream, peer, &door, tls, &*take, stop).await;
                if let Err(why) = ended {
                    take.told(peer, &why);
                }
                drop(slot);
            });
        }
    }
}

async fn welcome(
    stream: TcpStream,
    peer: SocketAddr,
    door: &MllpDoor,
    tls: Option<Arc<Acceptor>>,
    take: &dyn Take,
    stop: watch::Receiver<bool>,
) -> Result<(), String> {
    // Acknowledgments are short and waited for.
    let _ = stream.set_nodelay(true);
    match tls {
        None => converse(stream, peer, door, take, stop).await,
        Some(tls) => {
            let acceptor = tls.ready().await?;
            let shaken = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
            let stream = shaken.map_err(|_| "TLS was not set up in time".to_owned())?;
            let stream = stream.map_err(|error| format!("TLS was not set up: {error}"))?;
            converse(stream, peer, door, take, stop).await
        }
    }
}

/// One socket, message by message.
async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    door: &MllpDoor,
    take: &dyn Take,
    mut stop: watch::Receiver<bool>,
) -> Result<(), String> {
    let bytes_max = usize::try_from(door.message_bytes_max).unwrap_or(usize::MAX);
    let mut decoder = Decoder::new(door.framing.clone(), bytes_max);
    // When the message that has begun must be whole.
    let mut due: Option<tokio::time::Instant> = None;
    loop {
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => {
                    due = None;
                    answer(&mut stream, door, take.take(message, peer).await).await?;
                    if *stop.borrow() {
                        return Ok(());
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let why = refusal(error);
                    answer(&mut stream, door, Some(take.refuse(&why))).await?;
                    return Err(why);
                }
            }
        }
        let pending = decoder.pending();
        let wait = match pending {
            Pending::Nothing => {
                due = None;
                door.idle_close.map(|wait| wait.as_duration())
            }
            Pending::AtEnd => Some(LATE_END),
            Pending::Junk(_) | Pending::Message(_) => {
                let by = *due.get_or_insert_with(|| after(door.read_timeout.as_duration()));
                Some(left(by))
            }
        };
        let buffer = decoder.buffer();
        buffer.reserve(READ_BYTES);
        let read = tokio::select! {
            biased;
            // A message that has begun is read to its end, or to its time.
            _ = stop.wait_for(|stop| *stop), if pending == Pending::Nothing => return Ok(()),
            read = stream.read_buf(buffer) => Some(read),
            () = in_time(wait) => None,
        };
        match read {
            Some(Ok(0)) => {
                if let Some(message) = decoder.finish() {
                    // It may have closed its own side alone, and wait for the answer.
                    return answer(&mut stream, door, take.take(message, peer).await).await;
                }
                return match pending {
                    Pending::Nothing => Ok(()),
                    _ => Err("the connection ended inside of a message".to_owned()),
                };
            }
            Some(Ok(_)) => {}
            Some(Err(error)) if pending == Pending::Nothing => {
                let _ = error;
                return Ok(());
            }
            Some(Err(error)) => return Err(format!("the connection broke off inside of a message: {error}")),
            None => match (pending, decoder.finish()) {
                (_, Some(message)) => {
                    due = None;
                    answer(&mut stream, door, take.take(message, peer).await).await?;
                }
                (Pending::Nothing, None) => return Ok(()),
                (_, None) => return Err("a message that had begun did not end in time (`recv_timeout`)".to_owned()),
            },
        }
    }
}

fn after(wait: Duration) -> tokio::time::Instant {
    let far = tokio::time::sleep(wait);
    far.deadline()
}

fn left(by: tokio::time::Instant) -> Duration {
    by.saturating_duration_since(after(Duration::ZERO))
}

/// Never, without a bound.
async fn in_time(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

fn refusal(error: FrameError) -> String {
    match error {
        FrameError::TooLong { bytes_max } => format!("a message of more than {bytes_max} bytes (max_msg_size)"),
        other => other.to_string(),
    }
}

async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    door: &MllpDoor,
    acknowledgment: Option<Bytes>,
) -> Result<(), String> {
    let Some(acknowledgment) = acknowledgment else { return Ok(()) };
    let mut framed = BytesMut::new();
    encode(&door.framing, &acknowledgment, &mut framed).map_err(|error| format!("the acknowledgment: {error}"))?;
    let written = async {
        stream.write_all(&framed).await?;
        stream.flush().await
    };
    match tokio::time::timeout(WRITE, written).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(format!("the acknowledgment of a message that is taken could not be sent: {error}")),
        Err(_) => Err("the acknowledgment of a message that is taken was not read in time".to_owned()),
    }
}

impl Acceptor {
    /// Renewed files hold from the next socket on.
    async fn ready(&self) -> Result<TlsAcceptor, String> {
        let mut built = self.built.lock().await;
        let stamps = self.stamps().await;
        if let Some((known, acceptor)) = built.as_ref()
            && *known == stamps
        {
            return Ok(acceptor.clone());
        }
        let settings = self.settings.clone();
        let config = tokio::task::spawn_blocking(move || tls::server_config(&settings)).await;
        let config =
            config.map_err(|lost| format!("TLS cannot be set up: {lost}"))?.map_err(|error| error.to_string())?;
        let acceptor = TlsAcceptor::from(config);
        *built = Some((stamps, acceptor.clone()));
        Ok(acceptor)
    }

    async fn stamps(&self) -> Vec<Stamp> {
        let identity = &self.settings.identity;
        let mut stamps = Vec::new();
        for path in self.settings.clients_ca.iter().chain([&identity.cert_path, &identity.key_path]) {
            let found = tokio::fs::metadata(path).await.ok();
            stamps.push(found.and_then(|found| Some((found.modified().ok()?, found.len()))));
        }
        stamps
    }
}
