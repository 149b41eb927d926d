//! A TCP stream that keeps count of what one attempt has put on it and got from it.
//!
//! The counts are what the sender's two promises rest on: an attempt is sent again on another socket only when not one of its bytes went
//! to the kernel, and an answer that came decides even when the rest of the request could no longer be written (R16). It must not know of
//! HTTP or TLS.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Bytes that may come before the final status line is complete: interim responses and one head.
pub(super) const HEAD_BYTES_MAX: usize = 256 * 1024;

/// The counts of one socket. Only the task that has the socket touches them, so no order between them is needed.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    written_bytes: AtomicU64,
    head_bytes_left: AtomicUsize,
    look_first: AtomicBool,
    write_failed: AtomicBool,
}

impl Meter {
    /// A request begins. On a reused socket the first write is preceded by a look whether the peer has closed it meanwhile.
    pub(super) fn begin(&self, reused: bool) {
        self.written_bytes.store(0, Relaxed);
        self.head_bytes_left.store(HEAD_BYTES_MAX, Relaxed);
        self.look_first.store(reused, Relaxed);
    }

    /// The status line is there: the body has a limit of its own.
    pub(super) fn head_is_complete(&self) {
        self.head_bytes_left.store(usize::MAX, Relaxed);
    }

    /// Whether any byte since `begin` may have reached the peer.
    pub(super) fn has_written(&self) -> bool {
        self.written_bytes.load(Relaxed) > 0
    }

    /// The socket is of no use for a further request.
    pub(super) fn is_broken(&self) -> bool {
        self.write_failed.load(Relaxed)
    }

    fn count_read(&self, bytes: usize) -> io::Result<()> {
        let left = self.head_bytes_left.load(Relaxed);
        if left == usize::MAX {
            return Ok(());
        }
        let left = left.checked_sub(bytes).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "more than 256 KiB came before a complete status line and headers",
            )
        })?;
        self.head_bytes_left.store(left, Relaxed);
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct Metered {
    tcp: TcpStream,
    meter: Arc<Meter>,
}

impl Metered {
    pub(super) fn new(tcp: TcpStream) -> (Self, Arc<Meter>) {
        let meter = Arc::new(Meter::default());
        // A TLS handshake may read what it needs.
        meter.head_is_complete();
        (Metered { tcp, meter: meter.clone() }, meter)
    }

    pub(super) fn peer(&self) -> Option<std::net::SocketAddr> {
        self.tcp.peer_addr().ok()
    }

    /// Between two requests a peer has nothing to say: anything readable is its farewell (an end, a reset, a 408), and what is written
    /// now would be lost or, worse, half read.
    fn check_quiet(&self) -> io::Result<()> {
        let mut byte = [MaybeUninit::uninit()];
        match SockRef::from(&self.tcp).peek(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            _ => Err(io::Error::new(io::ErrorKind::ConnectionAborted, "the idle connection was closed by the peer")),
        }
    }

    fn after_write(&self, result: Poll<io::Result<usize>>, asked_bytes: usize) -> Poll<io::Result<usize>> {
        match ready!(result) {
            Ok(bytes) => {
                self.meter.written_bytes.fetch_add(bytes as u64, Relaxed);
                Poll::Ready(Ok(bytes))
            }
            // The peer may have answered and closed without reading the rest. The rest is let go, and what can be read tells how it ended.
            Err(_) if self.meter.has_written() => {
                self.meter.write_failed.store(true, Relaxed);
                Poll::Ready(Ok(asked_bytes))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn before_write(&self) -> io::Result<()> {
        if self.meter.look_first.swap(false, Relaxed) { self.check_quiet() } else { Ok(()) }
    }
}

impl AsyncRead for Metered {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.tcp).poll_read(cx, buf))?;
        Poll::Ready(self.meter.count_read(buf.filled().len() - before))
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.meter.is_broken() {
            return Poll::Ready(Ok(buf.len()));
        }
        self.before_write()?;
        let result = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.after_write(result, buf.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let asked_bytes = bufs.iter().map(|buf| buf.len()).sum();
        if self.meter.is_broken() {
            return Poll::Ready(Ok(asked_bytes));
        }
        self.before_write()?;
        let result = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.after_write(result, asked_bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    async fn pair() -> (Metered, Arc<Meter>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (metered, meter) = Metered::new(ours);
        (metered, meter, listener.accept().await.unwrap().0)
    }

    // proves: R16 (an answer that came decides, though the request could not be written to its end)
    #[tokio::test]
    async fn r16_an_answer_is_read_after_a_write_failed() {
        let (mut ours, meter, mut peer) = pair().await;
        meter.begin(false);
        ours.write_all(b"part of a request").await.unwrap();
        peer.readable().await.unwrap();
        peer.write_all(b"answer").await.unwrap();
        // Closed with bytes unread: a reset follows the answer.
        drop(peer);
        ours.write_all(&vec![0; 16 << 20]).await.unwrap();
        assert!(meter.is_broken() && meter.has_written());
        let mut answer = [0; 6];
        ours.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
    }

    #[tokio::test]
    async fn a_reused_socket_that_the_peer_closed_takes_no_byte() {
        let (mut ours, meter, peer) = pair().await;
        meter.begin(true);
        drop(peer);
        assert_eq!(ours.write_all(b"request").await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        assert!(!meter.has_written());
    }
}
