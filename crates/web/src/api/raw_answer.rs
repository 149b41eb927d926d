//! Bodies of answers that are passed on: one that breaks off where the remote system's did, and one that never comes.
//!
//! It must not know where the bytes are from.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// What came, and then a break: the caller sees that something is missing, as it would have seen it at the remote system.
pub struct CutShort {
    left: Option<Bytes>,
}

impl CutShort {
    pub fn after(bytes: Bytes) -> Self {
        CutShort { left: Some(bytes) }
    }
}

impl Body for CutShort {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(Some(match self.left.take() {
            Some(bytes) => Ok(Frame::data(bytes)),
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the remote system's answer was cut short")),
        }))
    }
}

/// Nothing, of which nobody is told the length: that of a HEAD or a 304 speaks of another body.
pub struct Unmeasured;

impl Body for Unmeasured {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        Poll::Ready(None)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
