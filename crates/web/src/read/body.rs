//! A request body, collected within its limit and with minimum progress, so that a slow caller holds a slot only for so long.

use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use tokio::time::Sleep;

use super::budget::Budget;
use crate::problem::Problem;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyBounds {
    /// Of the content that is stored (D07). JSON around it, and base64, make the request itself larger.
    pub body_bytes_max: u64,
    /// Of all bodies that are being collected together; one that does not fit is answered 503.
    pub budget: Budget,
    /// How often progress is looked at.
    pub window: Duration,
    /// Bytes that must have come in each window; a caller below is answered 408.
    pub window_bytes_min: usize,
}

/// `bodies_bytes_max`
const BODIES_BYTES_MAX: u64 = 256 << 20;

impl Default for BodyBounds {
    fn default() -> Self {
        BodyBounds {
            body_bytes_max: 8 << 20,
            budget: Budget::new(BODIES_BYTES_MAX),
            window: Duration::from_secs(10),
            window_bytes_min: 4096,
        }
    }
}

impl BodyBounds {
    /// The largest request that can carry a body of the allowed size: base64 makes 4 bytes of 3, a JSON string 2 of `\n` and, from
    /// clients that write only ASCII, `\u00e9` of the two bytes of `é`: three times as many. Params, headers and the like come on top.
    pub fn request_bytes_max(&self) -> u64 {
        self.body_bytes_max.saturating_mul(3).saturating_add(256 << 10)
    }
}

/// A body that comes piece by piece, with minimum progress.
pub struct Paced {
    body: Body,
    bounds: BodyBounds,
    window: Pin<Box<Sleep>>,
    window_bytes: usize,
}

impl Paced {
    pub fn new(body: Body, bounds: &BodyBounds) -> Self {
        Paced { body, bounds: bounds.clone(), window: Box::pin(tokio::time::sleep(bounds.window)), window_bytes: 0 }
    }

    /// The next bytes; `None` at the end. 408 when they come too slowly, 400 when the body breaks off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        loop {
            let frame = tokio::select! {
                biased;
                frame = self.body.frame() => frame,
                () = &mut self.window => {
                    if self.window_bytes < self.bounds.window_bytes_min {
                        return Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body came too slowly"));
                    }
                    self.begin_window();
                    continue;
                }
            };
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(Problem::new(StatusCode::BAD_REQUEST, "the body broke off")),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    self.window_bytes += data.len();
                    return Ok(Some(data));
                }
            }
        }
    }

    /// The time that we spent ourselves is not held against the caller.
    pub fn begin_window(&mut self) {
        self.window_bytes = 0;
        self.window.set(tokio::time::sleep(self.bounds.window));
    }
}

/// Reads the whole body of a request that is JSON around its content. 413 before anything is read when `Content-Length` tells, 408 when it comes too slowly, 400 when it breaks off.
pub async fn collect(headers: &HeaderMap, body: Body, bounds: &BodyBounds) -> Result<Bytes, Problem> {
    collect_at_most(headers, body, bounds, bounds.request_bytes_max(), Problem::request_too_large).await
}

/// The same for a body that is the content itself: at most `body_bytes_max`.
pub async fn collect_content(headers: &HeaderMap, body: Body, bounds: &BodyBounds) -> Result<Bytes, Problem> {
    collect_at_most(headers, body, bounds, bounds.body_bytes_max, Problem::too_large).await
}

async fn collect_at_most(
    headers: &HeaderMap,
    body: Body,
    bounds: &BodyBounds,
    bytes_max: u64,
    too_large: fn(u64) -> Problem,
) -> Result<Bytes, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > bytes_max) {
        return Err(too_large(bytes_max));
    }
    let mut collected = BytesMut::new();
    let mut share = bounds.budget.share();
    let mut body = Paced::new(body, bounds);
    while let Some(data) = body.next().await? {
        if (collected.len() + data.len()) as u64 > bytes_max {
            return Err(too_large(bytes_max));
        }
        if !share.grow(data.len() as u64) {
            return Err(Problem::unavailable("too many request bodies are under way (`bodies_bytes_max`): come again"));
        }
        collected.extend_from_slice(&data);
    }
    Ok(collected.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_of_the_allowed_size_fits_as_text_in_whatever_way_it_is_escaped() {
        let bounds = BodyBounds::default();
        let escaped = r"\u00e9".len() as u64 * (bounds.body_bytes_max / "é".len() as u64);
        assert!(escaped + 1024 < bounds.request_bytes_max());
    }
}
