//! One message on one socket: opened or found open, written, and read from until the acknowledgment is there or the time is up.
//!
//! It must not know what follows.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use postrider_core::ack::Ack;
use postrider_core::{Answer, NoAnswerKind, Reply, Said};
use tokio::io::{AsyncRead as _, AsyncReadExt as _, AsyncWriteExt as _, ReadBuf};

use super::lane::Lane;
use super::wanted::{Taken, Wanted};
use super::{MllpSender, Route};
use crate::codec::mllp::{Decoder, FrameError, Pending};
use crate::egress::Progress;
use crate::send::cause;
use crate::send::link::Stream;
use crate::send::metered::Meter;

/// A frame that lacks only the last byte of its end is taken for whole when nothing more comes for this long.
const END_WITHIN: Duration = Duration::from_millis(250);
const READ_BYTES: usize = 8 * 1024;

pub(super) struct Socket {
    stream: Stream,
    meter: Arc<Meter>,
    decoder: Decoder,
}

pub(super) struct Exchange<'a> {
    pub(super) sender: &'a MllpSender,
    pub(super) route: &'a Route,
    pub(super) wanted: Wanted<'a>,
    pub(super) frame: &'a BytesMut,
}

/// How reading for an acknowledgment ended without one.
enum Lost {
    Closed,
    Broken(io::Error),
    Unreadable(FrameError),
}

impl Exchange<'_> {
    /// Leaves the socket in the lane only after an acknowledgment, and only with nothing more on it.
    pub(super) async fn run(mut self, lane: &mut Lane) -> Result<Reply, Reply> {
        let mut socket = self.written(lane.socket.take()).await?;
        let timeout = self.route.target.ack_timeout;
        let read = tokio::time::timeout(timeout.as_duration(), socket.read_ack(&mut self.wanted)).await;
        match read {
            Ok(Ok((ack, bytes))) => {
                if self.route.target.keep_open && socket.is_clean() {
                    lane.socket = Some(socket);
                }
                Ok(self.answered(ack, bytes))
            }
            Ok(Err(lost)) => Err(self.lost(lost)),
            // The socket is dropped here: what comes late on it is nobody's (M01).
            Err(_) => Err(self.no_ack(format!("no acknowledgment within {timeout}"), socket.decoder.pending())),
        }
    }

    /// A socket with the message on it. At most one that could have reached the receiver is written: a second one only if not a byte of
    /// the first left.
    async fn written(&self, open: Option<Socket>) -> Result<Socket, Reply> {
        if let Some(mut socket) = open
            && socket.is_quiet().await
        {
            match self.write(&mut socket, true).await {
                Ok(()) => return Ok(socket),
                Err(_) if !socket.meter.has_written() => {}
                Err(reply) => return Err(reply),
            }
        }
        let mut socket = self.connect().await?;
        self.write(&mut socket, false).await?;
        Ok(socket)
    }

    async fn connect(&self) -> Result<Socket, Reply> {
        let (target, host) = (&self.route.target, &self.route.host);
        let progress = Progress::new();
        let opening = self.sender.connector.open_stream(self.route.destination(), self.route.tls.as_ref(), &progress);
        let opened = tokio::time::timeout(target.connect_timeout.as_duration(), opening).await;
        let opened =
            opened.map_err(|_| cause::timed_out(host, target.connect_timeout, progress.stage(), target.pool_size))?;
        let (stream, meter) = opened.map_err(|error| cause::not_connected(host, &error))?;
        let bytes_max = usize::try_from(target.message_bytes_max).unwrap_or(usize::MAX);
        Ok(Socket { stream, meter, decoder: Decoder::new(target.framing.clone(), bytes_max) })
    }

    async fn write(&self, socket: &mut Socket, reused: bool) -> Result<(), Reply> {
        socket.meter.begin(reused);
        // What bounds a receiver's answer is the decoder.
        socket.meter.head_is_complete();
        let (timeout, shown) = (self.route.target.write_timeout, self.route.host.shown());
        let writing = async {
            socket.stream.write_all(self.frame).await?;
            socket.stream.flush().await
        };
        match tokio::time::timeout(timeout.as_duration(), writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(cause::broken(shown, &error, "while the message was written")),
            Err(_) => {
                let detail = format!("{shown} did not take the whole message within {timeout}");
                Err(Reply::unanswered(NoAnswerKind::Timeout, detail))
            }
        }
    }

    fn answered(&self, ack: Ack, bytes: Bytes) -> Reply {
        let bytes_max = self.sender.answer_bytes_max;
        let incomplete = bytes.len() > bytes_max;
        let body = if incomplete { bytes.slice(..bytes_max) } else { bytes };
        Reply::Answered(Answer { said: Some(Said::Ack(ack)), body, incomplete, ..Answer::default() })
    }

    fn lost(&self, lost: Lost) -> Reply {
        let shown = self.route.host.shown();
        let when = "before an acknowledgment (reset after write)";
        match lost {
            Lost::Closed => {
                let came = told(&self.wanted.what_came());
                Reply::unanswered(NoAnswerKind::Unreachable, format!("{shown}: connection closed {when}{came}"))
            }
            Lost::Broken(error) => cause::broken(shown, &error, when),
            Lost::Unreadable(error) => {
                self.no_ack(format!("no acknowledgment that can be read: {error}"), Pending::Nothing)
            }
        }
    }

    fn no_ack(&self, what: String, pending: Pending) -> Reply {
        let left = match pending {
            Pending::Nothing => String::new(),
            Pending::Junk(bytes) => format!("; {bytes} bytes came without the start of a message"),
            Pending::Message(bytes) => format!("; {bytes} bytes of a message came without its end"),
            Pending::AtEnd => "; a message came without the last byte of its end".to_owned(),
        };
        let came = told(&self.wanted.what_came());
        Reply::unanswered(NoAnswerKind::NoAck, format!("{}: {what}{came}{left}", self.route.host.shown()))
    }
}

fn told(came: &str) -> String {
    if came.is_empty() { String::new() } else { format!("; {came}") }
}

impl Socket {
    /// Whether nothing was said since the last acknowledgment, as far as is known; white space is not said. Just before the first byte is
    /// written the kernel is asked once more.
    async fn is_quiet(&mut self) -> bool {
        let mut byte = [0; 64];
        loop {
            let mut buffer = ReadBuf::new(&mut byte);
            let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))).await;
            match read {
                Poll::Pending => return true,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && is_space(buffer.filled()) => {}
                Poll::Ready(_) => return false,
            }
        }
    }

    /// Nothing of a further message is there already.
    fn is_clean(&mut self) -> bool {
        let is_space = self.decoder.pending() == Pending::Nothing;
        is_space && !self.meter.is_broken()
    }

    async fn read_ack(&mut self, wanted: &mut Wanted<'_>) -> Result<(Ack, Bytes), Lost> {
        loop {
            while let Some(message) = self.decoder.next_message().map_err(Lost::Unreadable)? {
                if let Taken::Decided(ack, bytes) = wanted.take(message) {
                    return Ok((ack, bytes));
                }
            }
            let is_at_end = self.decoder.pending() == Pending::AtEnd;
            let buffer = self.decoder.buffer();
            buffer.reserve(READ_BYTES);
            let reading = self.stream.read_buf(buffer);
            let read = if is_at_end {
                tokio::time::timeout(END_WITHIN, reading).await.unwrap_or(Ok(0))
            } else {
                reading.await
            };
            match read {
                Ok(0) => {
                    let last = self.decoder.finish().ok_or(Lost::Closed)?;
                    if let Taken::Decided(ack, bytes) = wanted.take(last) {
                        return Ok((ack, bytes));
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(Lost::Broken(error)),
            }
        }
    }
}

fn is_space(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}
