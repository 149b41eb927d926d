//! One HTTP/1.1 connection to a remote system, driven by the task that uses it.
//!
//! No task of its own stands behind it: whoever waits for an answer also moves the bytes, which saves two wake-ups a request, and
//! dropping a link closes its socket. It must not know of pools, settings or deadlines' origins.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_rustls::client::TlsStream;

use super::metered::{Meter, Metered};

/// The longest head of one response. hyper takes at most 100 header fields.
const RESPONSE_HEAD_BYTES_MAX: usize = 64 * 1024;

pub(crate) type OutgoingRequest = Request<Full<Bytes>>;

/// Plain or encrypted; HTTP goes over both alike.
pub(crate) enum Stream {
    Plain(Metered),
    Tls(Box<TlsStream<Metered>>),
}

impl Stream {
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        match self {
            Stream::Plain(tcp) => tcp.peer(),
            Stream::Tls(tls) => tls.get_ref().0.peer(),
        }
    }

    /// What the other side showed, in DER.
    pub(crate) fn certificate(&self) -> Option<Vec<u8>> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => Some(tls.get_ref().1.peer_certificates()?.first()?.to_vec()),
        }
    }
}

pub(crate) struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it has ended, which it does when the socket is closed by either side.
    connection: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    meter: Arc<Meter>,
}

/// How an exchange ended without a status line.
pub(crate) enum Broken {
    Deadline,
    /// `sent` tells whether any byte of the request may have reached the peer.
    Failed {
        error: hyper::Error,
        sent: bool,
    },
}

/// A response's body as far as it was read.
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) incomplete: bool,
}

impl Link {
    pub(crate) async fn open(stream: Stream, meter: Arc<Meter>) -> Result<Link, hyper::Error> {
        // A response that came is better read leniently than lost: it would be sent again.
        let (sender, connection) = Builder::new()
            .max_buf_size(RESPONSE_HEAD_BYTES_MAX)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Link { sender, connection: Some(connection), meter })
    }

    /// Moves bytes both ways as far as they go now.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            // How it ended is told to the request in flight; here it only matters that it did.
            && Pin::new(connection).poll(cx).is_ready()
        {
            self.connection = None;
        }
    }

    /// Whether a further request may go over this link, as far as is known without waiting.
    pub(crate) async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            self.drive(cx);
            let ready = matches!(self.sender.poll_ready(cx), Poll::Ready(Ok(())));
            Poll::Ready(ready && self.connection.is_some() && !self.meter.is_broken())
        })
        .await
    }

    /// Sends a request and waits for the status line, until `deadline`.
    pub(crate) async fn ask(
        &mut self,
        request: OutgoingRequest,
        reused: bool,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<Response<Incoming>, Broken> {
        self.meter.begin(reused);
        let mut answer = pin!(self.sender.try_send_request(request));
        poll_fn(|cx| {
            self.drive(cx);
            if let Poll::Ready(result) = answer.as_mut().poll(cx) {
                return Poll::Ready(match result {
                    Ok(response) => {
                        self.meter.head_is_complete();
                        Ok(response)
                    }
                    Err(failed) => Err(Broken::Failed { error: failed.into_error(), sent: self.meter.has_written() }),
                });
            }
            deadline.as_mut().poll(cx).map(|()| Err(Broken::Deadline))
        })
        .await
    }

    /// Reads a body to its end, to `bytes_max` bytes, or until `deadline`, whichever comes first. The status line has decided already, so
    /// nothing here is an error (R16).
    pub(crate) async fn read_body(
        &mut self,
        mut body: Incoming,
        bytes_max: usize,
        mut deadline: Pin<&mut Sleep>,
    ) -> ReadBody {
        let mut read = Gathered::new(&body, bytes_max);
        let incomplete = poll_fn(|cx| {
            loop {
                if body.is_end_stream() {
                    return Poll::Ready(false);
                }
                self.drive(cx);
                match Pin::new(&mut body).poll_frame(cx) {
                    Poll::Ready(Some(Ok(frame))) => {
                        if let Ok(chunk) = frame.into_data()
                            && !read.push(chunk)
                        {
                            return Poll::Ready(true);
                        }
                    }
                    Poll::Ready(Some(Err(_))) => return Poll::Ready(true),
                    Poll::Ready(None) => return Poll::Ready(false),
                    Poll::Pending => break,
                }
            }
            deadline.as_mut().poll(cx).map(|()| true)
        })
        .await;
        ReadBody { bytes: read.into_bytes(), incomplete }
    }
}

/// Collects chunks up to a limit; most bodies are one chunk.
struct Gathered {
    bytes: BytesMut,
    bytes_max: usize,
}

impl Gathered {
    fn new(body: &Incoming, bytes_max: usize) -> Self {
        let expected = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        // A length that is only announced reserves little.
        Gathered { bytes: BytesMut::with_capacity(expected.min(bytes_max).min(64 * 1024)), bytes_max }
    }

    /// `false` when the chunk did not fit whole.
    fn push(&mut self, chunk: Bytes) -> bool {
        let room = self.bytes_max - self.bytes.len();
        self.bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        chunk.len() <= room
    }

    fn into_bytes(self) -> Bytes {
        self.bytes.freeze()
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_read(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write(cx, buf),
            Stream::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            Stream::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(tcp) => tcp.is_write_vectored(),
            Stream::Tls(tls) => tls.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_flush(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(tcp) => Pin::new(tcp).poll_shutdown(cx),
            Stream::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
        }
    }
}
