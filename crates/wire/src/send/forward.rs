//! What a forward's request says beside its body: the headers that the webhook came with, its signature among them, so that the receiver can verify
//! it; what only we can know; and nothing that we signed (R12).
//!
//! It must not know of sockets, nor of the source that the webhook came from.

use http::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, USER_AGENT};
use postrider_core::connection::WebhookTarget;
use postrider_core::id::ForwardId;

use super::request::{Unsendable, continue_trace, text_value};
use super::route::Route;
use super::webhook::{ATTEMPT, DELIVERY, EVENT, EVENT_ID, WebhookAttempt};
use super::{OUR_USER_AGENT, Outgoing};

const FORWARD: HeaderName = HeaderName::from_static("x-postrider-forward");

/// The endpoint's own headers replace what came under their names.
pub(super) fn headers(
    route: &Route,
    target: &WebhookTarget,
    outgoing: &Outgoing,
    attempt: &WebhookAttempt,
) -> Result<HeaderMap, Unsendable> {
    let arrived = &outgoing.head.headers;
    let mut map = HeaderMap::with_capacity(arrived.len() + target.custom_headers.len() + 10);
    let unsendable = |name: &str| Unsendable::Header(name.to_owned());
    for (name, value) in arrived.iter() {
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable(name))?;
        // Framing is that of the request that is sent.
        if ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&field) {
            map.append(field, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable(name))?);
        }
    }
    for (name, value) in target.custom_headers.iter() {
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable(name))?;
        map.insert(field, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable(name))?);
    }
    map.insert(HOST, route.origin.host_header.clone());
    map.insert(CONTENT_LENGTH, HeaderValue::from(outgoing.body.len()));
    map.entry(USER_AGENT).or_insert(OUR_USER_AGENT);
    continue_trace(&mut map, outgoing)?;
    map.insert(DELIVERY, text_value(outgoing.delivery_id.to_string(), &DELIVERY)?);
    map.insert(FORWARD, text_value(ForwardId::of(outgoing.delivery_id).to_string(), &FORWARD)?);
    map.insert(ATTEMPT, HeaderValue::from(outgoing.attempt));
    if let Some(event) = &attempt.event {
        map.insert(EVENT, text_value(event.event_type.clone(), &EVENT)?);
        map.insert(EVENT_ID, text_value(event.id.to_string(), &EVENT_ID)?);
    }
    Ok(map)
}
