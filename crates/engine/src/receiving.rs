//! Webhooks that come in: verified over the bytes as they came, known when they came before, stored with their forwards, and only then acknowledged
//! (R12, law 3). What is not let in leaves a count and a reason.
//!
//! The order is: address, rate, size, signature, the provider's own id, what was signed, the store. Ids count only once they are verified, so that
//! nobody can use up another's; and before the signature, so that a provider's own resend is not taken for an attack.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use postrider_core::delivery::Origin;
use postrider_core::id::{Cid, EventId, SourceId};
use postrider_core::message::{HeaderList, is_ours};
use postrider_core::source::Provider;
use postrider_core::{Timestamp, Wait};
use postrider_store::{Arrival, Enqueued, NewBody, NewEvent, Receipt, Received, StoreError, TopicMessageDraft};
use postrider_wire::verify::{self, Arrived, Handshake, HeaderMap, Proven, handshake, provider_id, verify};
use sha2::{Digest as _, Sha256};

use crate::engine::Engine;
use crate::events;
use crate::intake;
use crate::refusal::Refusal;
use crate::shared::Shared;
use crate::sources::{OpenSource, Outcome, Rejection};
use crate::sourcing::token_hash;

/// Headers that say what came in from where; whoever sends a webhook cannot write them.
pub use postrider_wire::send::service::{QUERY as QUERY_HEADER, SOURCE as SOURCE_HEADER, VERIFIED as VERIFIED_HEADER};

/// A webhook as it came in.
#[derive(Clone, Debug)]
pub struct IncomingWebhook {
    pub method: String,
    /// The part of the address that opened the source, which some providers sign.
    pub token: String,
    pub query: Option<String>,
    pub headers: HeaderMap,
    /// The same as far as they are passed on.
    pub carried: HeaderList,
    pub body: Bytes,
    pub from: Option<IpAddr>,
}

/// It was taken in, or it came before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Welcome {
    Stored { event: EventId, cid: Cid, forwards: usize },
    Duplicate(EventId),
    Handshake(Handshake),
}

/// Why it was not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLetIn {
    #[error("there is nothing at this address")]
    Unknown,
    #[error("the source is switched off")]
    Disabled,
    #[error("more webhooks a second than the source takes (`rate_limit_per_second`)")]
    TooFast,
    #[error("{0}")]
    Rejected(#[from] verify::Rejected),
    #[error("what was signed came before, within the time in which it may not come again (`replay_seconds`)")]
    Replayed,
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl Engine {
    /// The source that this token opens, as far as can be told before the body is read.
    ///
    /// # Errors
    /// `Unknown`, `Disabled` and `TooFast`; each is counted.
    pub fn ingress(&self, token: &str, from: Option<IpAddr>) -> Result<Arc<OpenSource>, NotLetIn> {
        let shared = &self.shared;
        let now = shared.now();
        let Some(source) = shared.sources.opened_by(&token_hash(token), now) else {
            shared.sources.count_stranger();
            return Err(NotLetIn::Unknown);
        };
        let spec = &source.row.source.spec;
        let id = source.row.source.id;
        if !spec.enabled {
            return Err(rejected(shared, id, "disabled", NotLetIn::Disabled, from));
        }
        match spec.rate_limit_per_second {
            Some(most) if !shared.sources.has_room(id, most, now) => {
                Err(rejected(shared, id, "rate", NotLetIn::TooFast, from))
            }
            _ => Ok(source),
        }
    }

    /// For what is refused before it gets here, such as a body that is too large.
    pub fn note_rejected(&self, source: SourceId, reason: &'static str, detail: &str, from: Option<IpAddr>) {
        let at = self.shared.now();
        let rejection = Rejection { at, reason, detail: detail.to_owned(), address: from };
        self.shared.sources.count(source, Outcome::Rejected(rejection), at);
    }

    /// Stored with its forwards when this returns, or known to have been before.
    pub async fn receive(&self, source: &OpenSource, webhook: IncomingWebhook) -> Result<Welcome, NotLetIn> {
        let shared = &self.shared;
        let (id, from) = (source.row.source.id, webhook.from);
        if shared.is_stopping() {
            return Err(Refusal::Stopping.into());
        }
        let now = shared.now();
        let proven = proven(source, &webhook, now).map_err(|why| {
            let reason = match &why {
                NotLetIn::Rejected(rejected) => rejected.as_str(),
                _ => "secret_unreadable",
            };
            rejected(shared, id, reason, why, from)
        })?;
        let spec = &source.row.source.spec;
        if let Some(asked) = handshake(spec, &webhook.headers, &webhook.body) {
            shared.sources.count(id, Outcome::Handshake, now);
            return Ok(Welcome::Handshake(asked));
        }
        let provider_id = provider_id(spec, &webhook.headers, &webhook.body);
        let by_id = provider_id.as_deref().filter(|_| spec.dedupe_window > Wait::ZERO);
        let by_id = by_id.map(|text| receipt(id, b"id", text.as_bytes(), now + spec.dedupe_window));
        let by_signature = proven.signed.filter(|_| spec.replay_window > Wait::ZERO);
        let by_signature = by_signature.map(|hash| receipt(id, b"signed", &hash, now + spec.replay_window));
        match store(shared, source, webhook, (by_id, by_signature), now).await? {
            Welcomed::Stored(welcome) => {
                shared.sources.count(id, Outcome::Accepted, now);
                Ok(welcome)
            }
            Welcomed::SameId(event) => {
                shared.sources.count(id, Outcome::Duplicate, now);
                Ok(Welcome::Duplicate(event))
            }
            // With a time among what was signed, this is that very webhook, sent again under no id.
            Welcomed::SameSignature(event) if proven.has_time && provider_id.is_none() => {
                shared.sources.count(id, Outcome::Duplicate, now);
                Ok(Welcome::Duplicate(event))
            }
            Welcomed::SameSignature(_) => Err(rejected(shared, id, "replayed", NotLetIn::Replayed, from)),
        }
    }
}

enum Welcomed {
    Stored(Welcome),
    SameId(EventId),
    SameSignature(EventId),
}

fn rejected(shared: &Shared, id: SourceId, reason: &'static str, why: NotLetIn, from: Option<IpAddr>) -> NotLetIn {
    let at = shared.now();
    let rejection = Rejection { at, reason, detail: why.to_string(), address: from };
    shared.sources.count(id, Outcome::Rejected(rejection), at);
    why
}

fn proven(source: &OpenSource, webhook: &IncomingWebhook, now: Timestamp) -> Result<Proven, NotLetIn> {
    let spec = &source.row.source.spec;
    let keys = source.keys_at(now).map_err(Refusal::Unavailable)?;
    let url = spec.public_url.as_ref().map(|base| {
        let query = webhook.query.as_ref().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}/ingress/{}{query}", base.origin(), webhook.token)
    });
    let arrived = Arrived {
        method: &webhook.method,
        url: url.as_deref(),
        headers: &webhook.headers,
        body: &webhook.body,
        at: now,
    };
    Ok(verify(spec, &keys, &arrived)?)
}

/// The source is in the hash, so that two sources share nothing.
fn receipt(source: SourceId, kind: &[u8], value: &[u8], ends_at: Timestamp) -> Receipt {
    let mut hash = Sha256::new();
    hash.update(source.as_u128().to_be_bytes());
    hash.update(kind);
    hash.update(value);
    Receipt { hash: hash.finalize().into(), ends_at }
}

async fn store(
    shared: &Arc<Shared>,
    source: &OpenSource,
    webhook: IncomingWebhook,
    (by_id, by_signature): (Option<Receipt>, Option<Receipt>),
    now: Timestamp,
) -> Result<Welcomed, NotLetIn> {
    let (given, allowed) = (webhook.body.len() as u64, shared.options.body_bytes_max);
    if given > allowed {
        return Err(Refusal::TooLarge { given, allowed }.into());
    }
    let known = &source.row.source;
    let project_id = known.project_id;
    let (event, cid) = (EventId::new(now, shared.dice.bits()), shared.new_cid(now));
    let headers = with_ours(source, &webhook);
    let message =
        TopicMessageDraft { topic: known.spec.topic.clone(), id: event, cid: cid.clone(), headers, published_at: now };
    let body = NewBody { id: shared.new_body_id(now), bytes: webhook.body };
    let deliveries = events::fan_out(shared, project_id, &message, &body, (Origin::Incoming, now), |_| true)?;
    let new_topic = Some(events::topic_of(shared, project_id, &known.spec.topic, now));
    let mut batch = intake::Fan::new(shared, deliveries);
    let deliveries = batch.take_deliveries();
    let event_in = NewEvent { project_id, message, new_topic, body, id_is_given: false, deliveries };
    let arrival = Arrival { source_id: known.id, event: event_in, by_id, by_signature };
    match shared.store.receive(arrival).await {
        Ok(Received::Stored(answers)) => {
            let forwards = answers.iter().filter(|answer| matches!(answer, Enqueued::Stored { .. })).count();
            batch.hand_out(shared, &answers);
            Ok(Welcomed::Stored(Welcome::Stored { event, cid, forwards }))
        }
        other => {
            batch.came_to_nothing();
            match other {
                Ok(Received::SameSignature(event)) => Ok(Welcomed::SameSignature(event)),
                Ok(Received::SameId(event)) => Ok(Welcomed::SameId(event)),
                Err(StoreError::NotFound { what: "source" }) => Err(NotLetIn::Unknown),
                Err(error) => Err(Refusal::from(error).into()),
                Ok(Received::Stored(_)) => Err(Refusal::Stopping.into()),
            }
        }
    }
}

/// What is passed on: what came, without what only we may say and without a secret of ours that was shown (D14).
fn with_ours(source: &OpenSource, webhook: &IncomingWebhook) -> HeaderList {
    let spec = &source.row.source.spec;
    let secret = verify::secret_header(spec);
    let mut headers = HeaderList::default();
    let mut push = |name: &str, value: &str| {
        // Names are tokens, and a value that cannot be one is left out.
        let _ = headers.push(name.to_owned(), value.to_owned());
    };
    for (name, value) in webhook.carried.iter() {
        if !is_ours(name) && secret.is_none_or(|secret| !secret.eq_ignore_ascii_case(name)) {
            push(name, value);
        }
    }
    push(SOURCE_HEADER, &source.row.source.id.to_string());
    push(VERIFIED_HEADER, if spec.provider == Provider::None { "false" } else { "true" });
    if let Some(query) = &webhook.query {
        push(QUERY_HEADER, query);
    }
    headers
}
