//! What a webhook's request says beside its body: the Standard Webhooks headers, ours, and the endpoint's own (V10).
//!
//! It must not know of sockets, nor what an event is about.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use postrider_core::Timestamp;
use postrider_core::connection::WebhookTarget;
use postrider_core::delivery::EventRef;
use postrider_core::envelope::Payload;
use postrider_core::settings::headers::is_reserved_header;

use super::request::{IDEMPOTENCY_KEY, Unsendable, continue_trace, text_value};
use super::route::Route;
use super::{OUR_USER_AGENT, Outgoing, forward};
use crate::signature::SigningKey;

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
pub(super) const DELIVERY: HeaderName = HeaderName::from_static("x-postrider-delivery");
pub(super) const EVENT: HeaderName = HeaderName::from_static("x-postrider-event");
pub(super) const EVENT_ID: HeaderName = HeaderName::from_static("x-postrider-event-id");
pub(super) const ATTEMPT: HeaderName = HeaderName::from_static("x-postrider-attempt");
const TEST: HeaderName = HeaderName::from_static("x-postrider-test");

/// What one attempt at an endpoint carries beside the request.
#[derive(Clone, Debug)]
pub struct WebhookAttempt {
    /// Those in force now; during a rotation several, each with a signature of its own.
    pub keys: Vec<Arc<SigningKey>>,
    /// What the signature says it was made at: this attempt's beginning.
    pub at: Timestamp,
    /// `None`: a request that is no event, such as a challenge.
    pub event: Option<EventRef>,
    /// It is no delivery, and says so: a test, or a challenge.
    pub is_probe: bool,
}

impl WebhookAttempt {
    /// Not signed yet.
    pub fn of(event: Option<EventRef>) -> Self {
        WebhookAttempt { keys: Vec::new(), at: Timestamp::default(), event, is_probe: false }
    }

    /// The same of a request that is no delivery.
    pub fn probe(event: Option<EventRef>) -> Self {
        WebhookAttempt { is_probe: true, ..WebhookAttempt::of(event) }
    }

    /// A webhook that came in and goes on as it is: with its own headers, and unsigned (R12).
    pub fn goes_as_it_arrived(&self) -> bool {
        let is_so = self.event.as_ref().is_some_and(|event| event.payload == Payload::AsArrived);
        is_so && !self.is_probe
    }
}

/// The endpoint's headers give way to the subscription's, and both to ours.
pub(super) fn headers(
    route: &Route,
    target: &WebhookTarget,
    outgoing: &Outgoing,
    attempt: &WebhookAttempt,
) -> Result<HeaderMap, Unsendable> {
    if attempt.goes_as_it_arrived() {
        return forward::headers(route, target, outgoing, attempt);
    }
    let mut map = HeaderMap::with_capacity(16 + target.custom_headers.len());
    for (name, value) in target.custom_headers.iter().chain(outgoing.head.headers.iter()) {
        let unsendable = || Unsendable::Header(name.to_owned());
        let field = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable())?;
        if field != CONTENT_TYPE && is_reserved_header(name) {
            continue;
        }
        map.insert(field, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| unsendable())?);
    }
    map.insert(HOST, route.origin.host_header.clone());
    map.entry(CONTENT_TYPE).or_insert_with(|| route.content_type.clone());
    map.entry(USER_AGENT).or_insert(OUR_USER_AGENT);
    map.insert(CONTENT_LENGTH, HeaderValue::from(outgoing.body.len()));
    continue_trace(&mut map, outgoing)?;
    let id = outgoing.delivery_id.to_string();
    let seconds = attempt.at.as_millis().div_euclid(1000);
    let signatures: Vec<String> = attempt.keys.iter().map(|key| key.sign(&id, seconds, &outgoing.body)).collect();
    map.insert(WEBHOOK_SIGNATURE, text_value(signatures.join(" "), &WEBHOOK_SIGNATURE)?);
    map.insert(WEBHOOK_TIMESTAMP, HeaderValue::from(seconds));
    map.insert(ATTEMPT, HeaderValue::from(outgoing.attempt));
    if let Some(event) = &attempt.event {
        map.insert(EVENT, text_value(event.event_type.clone(), &EVENT)?);
        map.insert(EVENT_ID, text_value(event.id.to_string(), &EVENT_ID)?);
    }
    if attempt.is_probe {
        map.insert(TEST, HeaderValue::from_static("true"));
    }
    let id = HeaderValue::from_maybe_shared(Bytes::from(id)).map_err(|_| Unsendable::Header(DELIVERY.to_string()))?;
    for name in [WEBHOOK_ID, DELIVERY, IDEMPOTENCY_KEY] {
        map.insert(name, id.clone());
    }
    Ok(map)
}
