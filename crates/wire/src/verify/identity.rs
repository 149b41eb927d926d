//! By what a provider knows a webhook, so that its own resend is known as one. It must not know what was seen before.

use http::HeaderMap;
use postrider_core::source::{Provider, SourceSpec};
use serde::Deserialize;

use super::standard;

/// Longer ids are none of anybody's.
const ID_BYTES_MAX: usize = 256;

/// The provider's own id of it: from a header, or from the body where the provider writes it there. `None`: it has none.
pub fn provider_id(spec: &SourceSpec, headers: &HeaderMap, body: &[u8]) -> Option<String> {
    let named = |name: &str| {
        let text = headers.get(name)?.to_str().ok()?.trim();
        usable(text).then(|| text.to_owned())
    };
    match spec.provider {
        Provider::GitHub => named("x-github-delivery"),
        Provider::GitLab => {
            named(standard::ID).or_else(|| named("idempotency-key")).or_else(|| named("x-gitlab-event-uuid"))
        }
        Provider::Shopify => named("x-shopify-webhook-id"),
        Provider::Twilio => named("i-twilio-idempotency-token"),
        Provider::Standard => named(standard::ID),
        Provider::Slack | Provider::Square => read(body).event_id.filter(|id| usable(id)),
        Provider::Stripe => read(body).id.filter(|id| usable(id)),
        Provider::Hmac | Provider::None => spec.id_header.as_deref().and_then(named),
        // Batches: none of their events stands for all of them.
        Provider::HubSpot | Provider::SendGrid => None,
    }
}

fn usable(id: &str) -> bool {
    !id.is_empty() && id.len() <= ID_BYTES_MAX
}

#[derive(Default, Deserialize)]
struct Identified {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    event_id: Option<String>,
}

fn read(body: &[u8]) -> Identified {
    serde_json::from_slice(body).unwrap_or_default()
}
