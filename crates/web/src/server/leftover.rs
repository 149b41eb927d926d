//! What is left of a request's body when its answer is there: refusals are given before it is read.
//!
//! A little is read and dropped, so that the caller can go on with the same connection; of more, the answer says that the connection ends
//! (RFC 9112, section 9.6). A caller that was told nothing would send its next request into a closed socket. It must not know what was answered.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// `leftover_bytes_max`: more is not read for the sake of the connection.
const BYTES_MAX: u64 = 64 << 10;
/// `leftover_time_max`: an answer waits no longer for what the caller still sends.
const TIME_MAX: Duration = Duration::from_millis(250);

type Slot = Arc<Mutex<Option<Incoming>>>;

/// Comes to know what a handler leaves of a body.
pub(super) struct Leftover {
    /// `None`: it has no body.
    slot: Option<Slot>,
    /// The caller sends nothing until it is asked to (`Expect: 100-continue`), and reading would ask it.
    waits_to_be_asked: bool,
}

/// The body as a handler has it: dropped, it goes back.
struct Lent {
    body: Option<Incoming>,
    slot: Slot,
}

/// The request for its handler, and what tells the rest of it.
pub(super) fn lend(request: Request<Incoming>) -> (Request<Body>, Leftover) {
    if request.body().is_end_stream() {
        return (request.map(Body::new), Leftover { slot: None, waits_to_be_asked: false });
    }
    let slot = Slot::default();
    let waits_to_be_asked = request.headers().contains_key(EXPECT);
    let leftover = Leftover { slot: Some(Arc::clone(&slot)), waits_to_be_asked };
    (request.map(|body| Body::new(Lent { body: Some(body), slot })), leftover)
}

impl Leftover {
    /// The answer, which says that the connection ends if it does.
    pub(super) async fn settled(self, mut response: Response<Body>) -> Response<Body> {
        let left = self.slot.and_then(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        // Still lent: what answers reads on, and so leaves nothing.
        let Some(left) = left.filter(|body| !body.is_end_stream()) else { return response };
        let is_little = left.size_hint().upper().is_none_or(|bytes| bytes <= BYTES_MAX) && !self.waits_to_be_asked;
        if !is_little || !tokio::time::timeout(TIME_MAX, is_read(left)).await.unwrap_or(false) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// Whether its end came.
async fn is_read(mut body: Incoming) -> bool {
    let mut left = BYTES_MAX;
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return false };
        let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
        let Some(rest) = left.checked_sub(bytes) else { return false };
        left = rest;
    }
    true
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(HttpBody::size_hint).unwrap_or_default()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.slot.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
    }
}
