//! A stream that loses patience: with a head that comes too slowly, with an idle connection, with a caller that does not read.
//!
//! Request bodies are not its business: whoever reads one bounds that. It must not know of HTTP beyond "a request is in service".

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// The bounds, and how many requests of this connection are in service.
#[derive(Debug)]
pub(super) struct Patience {
    head: Duration,
    idle: Duration,
    write: Duration,
    in_service: AtomicU32,
    /// Rises with each request, so that the stream notices that one came and went between two looks.
    served: AtomicU32,
}

impl Patience {
    pub(super) fn new(head: Duration, idle: Duration, write: Duration) -> Self {
        Patience { head, idle, write, in_service: AtomicU32::new(0), served: AtomicU32::new(0) }
    }
}

/// Lives from a request's head to the end of its answer.
pub(super) struct InService(Arc<Patience>);

impl InService {
    pub(super) fn begin(patience: Arc<Patience>) -> Self {
        patience.in_service.fetch_add(1, Ordering::Relaxed);
        patience.served.fetch_add(1, Ordering::Relaxed);
        InService(patience)
    }

    pub(super) fn until_sent(self, body: Body) -> Body {
        Body::new(SentBody { body, _in_service: self })
    }
}

impl Drop for InService {
    fn drop(&mut self) {
        self.0.in_service.fetch_sub(1, Ordering::Relaxed);
    }
}

struct SentBody {
    body: Body,
    _in_service: InService,
}

impl HttpBody for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// For the first byte of a head; the number tells one wait from the next.
    Idle(u32),
    /// For the rest of a head.
    Head(u32),
}

pub(super) struct PatientStream {
    stream: TcpStream,
    patience: Arc<Patience>,
    /// What is waited for, and until when.
    reading: Option<(Waiting, Instant)>,
    /// Rings for `reading`, or too early: it is set anew only then, since most waits end long before.
    alarm: Option<Pin<Box<Sleep>>>,
    /// The number of the request whose head has begun to come.
    head_of: Option<u32>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl PatientStream {
    pub(super) fn new(stream: TcpStream, patience: Arc<Patience>) -> Self {
        PatientStream { stream, patience, reading: None, alarm: None, head_of: None, writing: None }
    }

    pub(super) fn into_inner(self) -> TcpStream {
        self.stream
    }

    fn read_timed_out(&mut self, context: &mut Context<'_>) -> bool {
        if self.patience.in_service.load(Ordering::Relaxed) > 0 {
            self.reading = None;
            return false;
        }
        let number = self.patience.served.load(Ordering::Relaxed);
        let (waiting, bound) = if self.head_of == Some(number) {
            (Waiting::Head(number), self.patience.head)
        } else {
            (Waiting::Idle(number), self.patience.idle)
        };
        let until = match self.reading {
            Some((known, until)) if known == waiting => until,
            _ => tokio::time::sleep(bound).deadline(),
        };
        self.reading = Some((waiting, until));
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if alarm.deadline() > until {
            alarm.as_mut().reset(until);
        }
        while alarm.as_mut().poll(context).is_ready() {
            if alarm.deadline() >= until {
                return true;
            }
            alarm.as_mut().reset(until);
        }
        false
    }
}

impl AsyncRead for PatientStream {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let filled = into.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, into) {
            let in_service = self.patience.in_service.load(Ordering::Relaxed) > 0;
            if into.filled().len() > filled && !in_service {
                self.head_of = Some(self.patience.served.load(Ordering::Relaxed));
                // A caller that sends byte after byte is never `Pending` for long, but its head's time runs all the same.
                if self.read_timed_out(context) {
                    return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
                }
            }
            return Poll::Ready(read);
        }
        if self.read_timed_out(context) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Pending
    }
}

impl PatientStream {
    fn written<T>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.writing = None;
            return result;
        }
        let write = self.patience.write;
        let sleep = self.writing.get_or_insert_with(|| Box::pin(tokio::time::sleep(write)));
        ready!(sleep.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for PatientStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.written(context, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
